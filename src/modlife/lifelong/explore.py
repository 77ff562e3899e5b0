"""The online phase that all agents share: PPO updates until the budget of steps is spent."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float16, UInt32

from modlife.domains.env import PRNGKey
from modlife.learners.ppo import PPO, LearnerState, Rehearsal
from modlife.learners.replay import AnyReplay, Experience, Packing, Replay, with_finals
from modlife.lifelong.agent import AgentState, Reports
from modlife.lifelong.reports import Curve
from modlife.policies.bank import Chain
from modlife.types import Task


class Kept(eqx.Module):
    """Packed rows of the last updates, [update, time, environment, word]; empty where nothing is kept."""

    rows: UInt32[Array, "update T E W"]
    reached: UInt32[Array, "kept T E W"]
    """What was seen before restarts; empty where nobody asked for it."""
    said: Float16[Array, "update T E n"] | None = None
    """What the policy said; None where nobody asked for it."""


class Exploring(eqx.Module):
    """The online phase between two updates."""

    learner: LearnerState
    kept: Kept


@dataclass(frozen=True)
class Explore:
    """PPO on what `start` gives; `finish` says what the agent makes of it. Replay keeps the last `times` time steps."""

    ppo: PPO
    steps: int
    """Environment steps per task, those of a search included."""
    start: Callable[[AgentState], LearnerState]
    finish: Callable[[AgentState, Exploring], tuple[AgentState, Reports]]
    key: PRNGKey
    times: int = 0
    rehearsing: Callable[[AgentState], Rehearsal | None] | None = None
    """What of old tasks takes part in each gradient step, if anything."""
    name: str = "online"

    def begin(self, state: AgentState) -> Exploring:
        """A learner, and room for what will be kept."""
        shape = (self.kept_updates, self.ppo.config.length, self.ppo.config.envs, Packing.of(self.ppo.env).words)
        reached = shape if self.ppo.keeps_reached else (0, *shape[1:])
        said = (*shape[:3], self.ppo.env.graph.actions.size + 1) if self.ppo.keeps_said else None
        room = [jnp.zeros(shape, jnp.uint32), jnp.zeros(reached, jnp.uint32), said and jnp.zeros(said, jnp.float16)]
        return Exploring(self.start(state), Kept(*room))

    def length(self, state: AgentState) -> int:
        """Updates until each task has had at least its steps."""
        return update_count(self.ppo, self.steps - state.facts.spent)

    @property
    def kept_updates(self) -> int:
        """The last updates, of which replay keeps the transitions."""
        return -(-self.times // self.ppo.config.length)

    def run(self, state: AgentState) -> Iterator[tuple[int, Exploring, Reports]]:
        """One update after the other."""
        work, spent, length = state.work, state.facts.spent, self.length(state)
        learner, kept = work.learner, work.kept
        rehearsal = self.rehearsing(state) if self.rehearsing else None
        for number in range(state.facts.done, length):
            key = jax.random.fold_in(self.key, number)
            learner, happened, progress = self.ppo.update(learner, rehearsal, key=key)
            place = number - (length - self.kept_updates)
            if place >= 0:
                kept = self.keep(kept, place, happened)
            norms = learner.anchor and (float(learner.anchor.norms[0]), float(learner.anchor.norms[1]))
            curve = Curve(spent + (number + 1) * self.ppo.config.batch, jax.tree.map(np.asarray, progress), norms)
            yield number + 1, Exploring(learner, kept), (curve,)

    def keep(self, kept: Kept, place: int, happened: Experience) -> Kept:
        """What was kept, and what happened in one more update of a single task."""
        packing = Packing.of(self.ppo.env)
        happened = jax.tree.map(lambda leaf: leaf[0], happened)
        rows, reached, said = kept.rows.at[place].set(packing.pack(happened.transitions)), kept.reached, kept.said
        if self.ppo.keeps_reached:
            reached = reached.at[place].set(packing.seen(self.ppo.env, happened.reached))
        if said is not None and happened.said is not None:
            said = said.at[place].set(happened.said.astype(jnp.float16))
        return Kept(rows, reached, said)

    def end(self, state: AgentState) -> tuple[AgentState, Reports]:
        """As the agent says."""
        return self.finish(state, state.work)

    def replay(self, work: Exploring, updates: int) -> Replay:
        """The last time steps of a phase of so many updates, and what was seen after them."""
        env, packing = self.ppo.env, Packing.of(self.ppo.env)
        first = max(0, self.kept_updates - updates)  # a short phase does not fill all of the room
        after = observe_all(env, jax.tree.map(lambda leaf: leaf[0], work.learner.actors.states))
        last = np.asarray(packing.seen(env, after))
        pieces = [np.asarray(one[first:]) for one in jax.tree.leaves(work.kept)]
        rows, reached, *said = (one.reshape(-1, *one.shape[2:])[-self.times :] for one in pieces)
        if not self.ppo.keeps_reached:
            return Replay(np.concatenate([rows, last[None]]), len(rows), *said)
        flat = jnp.asarray(rows.reshape(-1, packing.words))
        truncated = np.asarray(packing.unpack(flat).truncated).reshape(rows.shape[:2])
        return with_finals(rows, last, reached, truncated)


observe_all = jax.jit(lambda env, states: jax.vmap(env.observe)(states), static_argnums=0)


def update_count(ppo: PPO, steps: int) -> int:
    """Updates until each task has had at least this many environment steps."""
    return -(-steps // ppo.config.batch)


def times_of(ppo: PPO, steps: int, replay_size: int) -> int:
    """Time steps of a phase of so many environment steps that replay of a size holds."""
    return max(1, min(replay_size, update_count(ppo, steps) * ppo.config.batch) // ppo.config.envs)


def is_kept(replay: AnyReplay, ppo: PPO, *, times: int, said: int) -> bool:
    """Whether a replay is of so many time steps, with so many numbers said of each transition, and nothing else."""
    shape = (times, ppo.config.envs)
    rows = replay.times == times and replay.rows.shape == (times + 1, shape[1], Packing.of(ppo.env).words)
    return rows and replay.taught.shape == (*shape, said) and not replay.measured.size


def begin_chain(ppo: PPO, chain: Chain, task: Task, *, key: PRNGKey) -> LearnerState:
    """A learner of one task, on a copy of a chain of modules."""
    tasks = jnp.array([ppo.env.graph.indices(task)])
    return ppo.init(chain, tasks, jnp.zeros_like(tasks), key=key)
