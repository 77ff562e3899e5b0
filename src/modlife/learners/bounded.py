"""Consolidation at a cost that does not grow with the number of tasks.

    L = s L(new) + (1 - s) mean of L(old) over the old tasks that share a module  s: 1 / all tasks, at least `new_share`

Each gradient step takes the new task and a few of the old ones, which go round in random order and are weighted so that
the mean over rounds of the gradient is that of L. Old tasks are *cloned*: their replay is thinned, and tells the
distribution over actions that their policy had when they were explored, and the values of the critic when folded in.

    L(old) = w₂ KL(π_then || π) + w₄ (Q_then - Q)²            L(new) = w₂ KL(π_then || π) + w₁ (Q - y)²,   y: `bcq`

Where actions are real numbers nothing is learnt from rewards (`td` none), and the new task is cloned as old ones are.
The actor learns the means that the online policy had, and the critics the values that it had of the actions taken.

Rolnick et al. 2019 (cloning), Wolczyk et al. 2022 and Ahn et al. 2025 (old policies as teachers).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Float16, Int, UInt32

from modlife.domains.env import PRNGKey
from modlife.domains.graph import Discrete
from modlife.errors import InputError
from modlife.learners.asking import numbers_and_values, said
from modlife.learners.bcq import BCQ, BCQState, Values
from modlife.learners.config import BoundedConfig
from modlife.learners.offline import PIECE, PROBE, Limits, some_steps, train
from modlife.learners.replay import AnyReplay, Replay
from modlife.learners.replay_table import Layout, Lesson, ReplayTable, Rows, gather, put
from modlife.learners.sharding import SECOND, THIRD
from modlife.pauses import pause
from modlife.policies.bank import Bank, Chain
from modlife.policies.distributions import chosen
from modlife.policies.layers import host_generator
from modlife.policies.modular import AnyOutput, Output, tells_actions

SHORTEST, LONGEST = 32, 64
"""Gradient steps with the same old tasks: as many as give all of them their share of an epoch, within these bounds."""
PARTS = 2
"""As many turns are a round of repair."""
URGENT = 4.0
"""How many times as much as another task one counts in it that was harmed."""
CLONED = 0.3
"""Work on an old task in a gradient step against that on the new one, with what is looked at and repaired; about."""
CHUNK = 16
"""Policies that are judged at once."""


class Extra(eqx.Module):
    """What stands beside the rows of a table."""

    taught: Float16[Array, "place time E n"]
    """What policies said, as far as it is known."""
    values: Values
    """Q of the target network, of tasks that learn from rewards."""


@dataclass(frozen=True)
class Bounded(BCQ):
    """Batch-constrained Q-learning of the new task beside cloning of a few old ones."""

    config: BoundedConfig

    def check_actions(self) -> None:
        """Actions have a value each, or nothing asks for it; likewise logits."""
        graph, config = self.layout.env.graph, self.config
        counted = isinstance(graph.actions, Discrete)
        if counted and tells_actions(graph, self.layout.network.critic):
            return
        wants = {"td": "none", "acting": "actor"} | ({} if counted else {"logit_weight": 0})
        wrong = [name for name in wants if getattr(config, name) not in (wants[name], "actor-greedy")]
        if wrong:
            why = "a critic of states has no value for each action"
            if not counted:
                why = f"the actions of '{graph.name}' are real numbers, which have no value or logit each"
            found = ", ".join(f"{name} = {getattr(config, name)}" for name in wrong)
            options = " ".join(f"--offline.{name.replace('_', '-')} {wants[name]}" for name in wrong)
            raise InputError(f"{found}, but {why}. Give `{options}`.")

    @property
    def new_is_first(self) -> bool:
        """The new task is in the first place of a table."""
        return True

    @property
    def weights(self) -> Mapping[str, float]:
        """The terms of the loss."""
        return {**super().weights, "values": self.config.value_weight}

    def learning_rate(self) -> optax.ScalarOrSchedule:
        """Falls evenly: with few tasks in a step, steps are noisy, and what is noise in the end should be small."""
        start = self.config.learning_rate
        return optax.linear_schedule(start, self.config.anneal * start, self.steps)

    # Gradient steps

    def run(
        self, bank: Bank, lessons: Sequence[Lesson], state: BCQState, *, done: int, key: PRNGKey
    ) -> Iterator[tuple[int, BCQState, Mapping[str, float] | None]]:
        """Gradient steps, some with the same old tasks, then some with others."""
        key_draw, key_learn = jax.random.split(key)
        number, period, span = done, self.config.target_period, self.span(len(lessons))
        table, extra = self.opened(bank, lessons[-1])
        present, valued = -1, False
        while number < self.steps:
            if number // span != present:
                present, valued = number // span, valued and self.config.td != "all"
                table, extra = self.turned(table, extra, self.turn(lessons, present, key=key_draw))
                yield number, state, None
            if number % period == 0:
                state, valued = replace(state, target=state.learner.own), False
            if not valued:
                for task in range(self.learning(int(table.count))):
                    values = jax.block_until_ready(self.valued(extra.values, table, task, state.target))
                    extra = Extra(extra.taught, values)
                    yield number, state, None
                valued = True
            most = min(period - number % period, span - number % span, self.steps - number)
            number, learner, means = some_steps(
                self, state.learner, table, extra, number=number, most=most, key=key_learn
            )
            state = replace(state, learner=learner)
            yield number, state, means

    def span(self, tasks: int) -> int:
        """Gradient steps with the same old tasks; all of them, where there is room for all tasks."""
        if tasks <= self.layout.room:
            return self.steps
        return min(LONGEST, max(SHORTEST, self.epoch_steps * self.others(tasks) // (tasks - 1)))

    def others(self, tasks: int) -> int:
        """Old tasks in a gradient step, of so many with the new one."""
        return min(tasks, self.layout.room) - 1

    def turn(
        self, lessons: Sequence[Lesson], number: int, *, key: PRNGKey, present: Sequence[Lesson] = ()
    ) -> list[Lesson]:
        """The new task, and the old ones whose turn it is, each with its weight.

        Some may be present each time, with more weight.
        """
        *old, new = lessons
        count = min(len(old), self.layout.room - 1 - len(present))
        order = host_generator(key).permutation(len(old))  # JAX would compile a program for every number of tasks
        here = [old[order[(number * count + place) % len(old)]] for place in range(count)]
        parts = np.array([1, *[URGENT] * len(present), *[len(old) / max(1, count)] * count])
        if self.config.new_share:
            parts[0] = max(1, self.config.new_share / (1 - self.config.new_share) * parts[1:].sum())
        weights = (len(parts) * parts / parts.sum()).tolist()
        return [replace(one, weight=part) for one, part in zip([new, *present, *here], weights, strict=True)]

    def opened(self, bank: Bank, new: Lesson) -> tuple[ReplayTable, Extra]:
        """A table with the new task, and what it was taught."""
        layout, room = self.layout, self.learning(self.layout.room)
        taught = layout.devices.zeros((layout.room, *layout.extent, self.taught), THIRD, dtype=jnp.float16)
        values = layout.devices.zeros((room, *layout.extent, self.actions), THIRD)
        return layout.fill(bank, [new]), Extra(self.teach(taught, 0, new.replay), values)

    def turned(self, table: ReplayTable, extra: Extra, lessons: Sequence[Lesson]) -> tuple[ReplayTable, Extra]:
        """The table with other old tasks, and what they were taught."""
        *_, table = self.layout.with_features(self.layout.refill(table, lessons), lessons)
        taught = extra.taught
        for place, lesson in enumerate(lessons[1:], start=1):
            taught = self.teach(taught, place, lesson.replay)
        return table, Extra(taught, extra.values)

    def teach(self, taught: Float16[Array, "place time E n"], place: int, replay: AnyReplay) -> Float16[Array, "..."]:
        """With what a task's policy said in its place."""
        return put(taught, np.int32(place), self.layout.devices.place(replay.taught, SECOND))

    # The loss

    def targets(self, own: Chain, rows: Rows, extra: Extra) -> tuple[Float[Array, "n B"], Float[Array, " B"] | None]:
        """What the task's policy said; and what Q of the action taken is drawn to, where it learns from rewards."""
        taught = gather(extra.taught, rows.task, rows.index).T.astype(jnp.float32)
        return taught, super().targets(own, rows, extra.values) if self.learns_from_rewards(rows) else None

    def learning(self, tasks: int) -> int:
        """The first so many of the tasks of a table learn from rewards."""
        return {"current": 1, "all": tasks, "none": 0}[self.config.td]

    def learns_from_rewards(self, rows: Rows) -> bool:
        """Whether the critic does, in a task."""
        return rows.is_new if self.config.td == "current" else self.config.td == "all"

    def terms(self, output: AnyOutput, rows: Rows, targets: tuple[Array, Array | None]) -> Float[Array, " terms"]:
        """Squared error of Q, divergence from what was said or done, sum of squared logits, squared error to values."""
        (numbers, values), aim = jnp.split(targets[0], [self.actions]), targets[1]
        action, says, none = rows.transition.action, output.distribution, jnp.float32(0)
        td = logits = none
        if self.config.clone == "distributions":
            likelihood = says.divergence(numbers).mean()
        else:
            likelihood = -says.log_prob(action).mean()
        if isinstance(output, Output):
            td = none if aim is None else ((chosen(output.values, action) - aim) ** 2).mean()
            logits = (output.logits**2).sum(axis=0).mean()
        cloned = ((output.valued(action) - values) ** 2).mean() if aim is None else none
        return jnp.stack([td, likelihood, logits, cloned])

    # Old tasks that were harmed

    @property
    def limits(self) -> Limits:
        """As the config says."""
        return Limits(self.config.repair, self.config.drift, self.config.drop, self.config.refuse)

    def drifts(self, bank: Bank, lessons: Sequence[Lesson], *, rows: int) -> Float[np.ndarray, " n"]:
        """The mean divergence of each task's policy from its teacher, in some transitions of its replay."""
        found, every = [], slice(None, None, PROBE // rows)
        for start in range(0, len(lessons), CHUNK):
            here = list(lessons[start : start + CHUNK])
            padded = here + here[:1] * (CHUNK - len(here))
            some = [one.replay.some(PROBE) for one in padded]
            asked, taught = (np.stack([pair[part][every] for pair in some]) for part in (0, 1))
            structures = np.array([one.structure for one in padded], np.int32)
            found += np.asarray(drift_of(self.layout, bank, structures, asked, taught))[: len(here)].tolist()
        return np.array(found)

    def repaired(
        self,
        bank: Bank,
        lessons: Sequence[Lesson],
        state: BCQState,
        *,
        harmed: Sequence[int],
        number: int,
        key: PRNGKey,
    ) -> BCQState:
        """Some steps in which those that were harmed most take part each time, and the other old ones in turn."""
        *old, new = lessons
        first = harmed[: max(1, (self.layout.room - 1) // 2)]
        rest = [lesson for n, lesson in enumerate(old) if n not in first]
        learner, (table, extra) = state.learner, self.opened(bank, new)
        for part in range(PARTS):
            turn = self.turn([*rest, new], number * PARTS + part, key=key, present=[old[n] for n in first])
            table, extra = self.turned(table, extra, turn)
            for task in range(self.learning(len(turn))):
                extra = Extra(extra.taught, self.valued(extra.values, table, task, state.target))
            key_part = jax.random.fold_in(jax.random.fold_in(key, number), part)
            steps, piece = min(LONGEST, self.epoch_steps), max(1, PIECE // (self.config.batch * len(turn)))
            for start in range(0, steps, piece):
                pause()
                span = np.int32(start), np.int32(min(piece, steps - start))
                learner = jax.block_until_ready(train(self, learner, table, extra, *span, key=key_part))
        return replace(state, learner=replace(learner, losses=jnp.zeros_like(learner.losses)))

    def load(self, tasks: int) -> float:
        """A bounded number of old tasks takes part in a step, and they are cloned only."""
        return 1 + CLONED * self.others(tasks)

    # What is kept

    @property
    def taught(self) -> int:
        """The numbers of the actor's distribution, and what critics say."""
        return self.actions + self.layout.network.critic

    @property
    def kept_times(self) -> int | None:
        """As the config says."""
        return self.layout.old_times

    def explored(self, replay: Replay, policy: Chain) -> Replay:
        """With what the policy that explored said of every transition."""
        return replace(replay, taught=self.said(replay, policy))

    def kept(self, replay: Replay, policy: Chain, *, key: PRNGKey) -> Replay:
        """Some of the transitions, with the values that the critic has now, if it has learnt from rewards."""
        if self.config.td != "none":
            actors, values = replay.taught[..., : self.actions], self.said(replay, policy)[..., self.actions :]
            replay = replace(replay, taught=np.concatenate([actors, values], axis=-1))
        times = self.layout.old_times
        return replay if times is None else replay.thinned(times, key=key)

    def in_order(self, replay: AnyReplay) -> bool:
        """Whether nothing was left out of it."""
        kept = self.layout.old_times
        return kept is None or replay.times > kept or kept >= self.layout.times

    def said(self, replay: Replay, policy: Chain) -> Float16[np.ndarray, "time E n"]:
        """What a policy says of every transition."""
        return said(self.layout.env, self.layout.network, policy, replay, what=numbers_and_values)


def bounded(layout: Layout, config: BoundedConfig, discount: float) -> Bounded:
    """The consolidator: its tables have room for the tasks of a gradient step, of old ones as much as is kept."""
    old_times = None if config.old_rows is None else min(layout.times, max(1, config.old_rows // layout.envs))
    return Bounded(replace(layout, room=config.tasks or layout.room, old_times=old_times), config, discount)


@partial(jax.jit, static_argnums=0)
def drift_of(
    layout: Layout,
    bank: Bank,
    structures: Int[Array, "N F"],
    rows: UInt32[Array, "N P W"],
    taught: Float16[Array, "N P n"],
) -> Float[Array, " N"]:
    """The mean divergence of policies from what they were taught of transitions."""

    def one(task: tuple[Array, Array, Array]) -> Float[Array, ""]:
        structure, rows, taught = task
        output = layout.network(bank.pick(structure), layout.env.parts(layout.packing.unpack(rows).observation))
        says = output.distribution
        return says.divergence(taught.T[: len(says.numbers)].astype(jnp.float32)).mean()

    return jax.lax.map(one, (structures, rows, taught))
