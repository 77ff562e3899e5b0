"""The online phase that all agents share: PPO updates until the budget of steps is spent."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float16, Int, UInt32

from modlife.arrays import ints, zeros
from modlife.domains.env import Environment, PRNGKey
from modlife.learners.ppo import PPO, LearnerState, Rehearsal
from modlife.learners.replay import AnyReplay, Experience, Packing, Replay, cut_off, with_finals
from modlife.lifelong.agent import AgentState, Reports
from modlife.lifelong.reports import Curve
from modlife.policies.bank import Chain
from modlife.policies.layers import host_generator
from modlife.types import Pytree, Task

PIECES = 0x7FFF_9175
"""Sets the key by which pieces are drawn apart from those of updates."""


class Kept(eqx.Module):
    """Packed rows of the last updates, or of pieces of any: [group, time, environment, word]; or empty."""

    rows: UInt32[Array, "group T E W"]
    reached: UInt32[Array, "kept T E W"]
    """What was seen before restarts; empty where nobody asked for it."""
    said: Float16[Array, "group T E n"] | None = None
    """What the policy said; None where nobody asked for it."""


class Exploring(eqx.Module):
    """The online phase between two updates."""

    learner: LearnerState
    kept: Kept


@dataclass(frozen=True)
class Explore:
    """PPO on what `start` gives; `finish` says what the agent makes of it. Replay keeps `times` time steps."""

    ppo: PPO
    steps: int
    """Environment steps per task, those of a search included."""
    start: Callable[[AgentState], LearnerState]
    finish: Callable[[AgentState, Exploring], tuple[AgentState, Reports]]
    key: PRNGKey
    times: int = 0
    piece: int | None = None
    """Steps of a piece, where pieces from all over the phase are kept; else the last time steps are."""
    rehearsing: Callable[[AgentState], Rehearsal | None] | None = None
    """What of old tasks takes part in each gradient step, if anything."""
    name: str = "online"

    def begin(self, state: AgentState) -> Exploring:
        """A learner, and room for what will be kept."""
        shape = (*self.room, self.ppo.config.envs, Packing.of(self.ppo.env).words)
        reached = shape if self.ppo.keeps_reached else (0, *shape[1:])
        said = (*shape[:3], self.ppo.env.graph.actions.size + 1) if self.ppo.keeps_said else None
        rows, finals = (zeros(*one, dtype=np.uint32) for one in (shape, reached))
        return Exploring(self.start(state), Kept(rows, finals, said and zeros(*said, dtype=np.float16)))

    def length(self, state: AgentState) -> int:
        """Updates until each task has had at least its steps."""
        return update_count(self.ppo, self.steps - state.facts.spent)

    @property
    def room(self) -> tuple[int, int]:
        """Groups of time steps that are kept, and how long each is: the last updates, or pieces."""
        length = self.piece or self.ppo.config.length
        return -(-self.times // length), length

    def places(self, number: int, updates: int) -> list[tuple[int, int]]:
        """In which groups what happens in an update is kept, and from which of its time steps on.

        How many updates there will be is known, so pieces are drawn before any has happened: evenly, none twice.
        """
        groups, length = self.room
        if self.piece is None:
            place = number - (updates - groups)
            return [(place, 0)] if place >= 0 else []
        each = self.ppo.config.length // length
        rng = host_generator(jax.random.fold_in(self.key, PIECES))
        drawn = np.sort(rng.choice(updates * each, groups, replace=False))
        return [(place, int(n) % each * length) for place, n in enumerate(drawn) if n // each == number]

    def run(self, state: AgentState) -> Iterator[tuple[int, Exploring, Reports]]:
        """One update after the other."""
        work, spent, length = state.work, state.facts.spent, self.length(state)
        learner, kept = work.learner, work.kept
        rehearsal = self.rehearsing(state) if self.rehearsing else None
        for number in range(state.facts.done, length):
            key = jax.random.fold_in(self.key, number)
            learner, happened, progress = self.ppo.update(learner, rehearsal, key=key)
            for place, first in self.places(number, length) if self.times else ():
                kept = with_more(self.ppo.env, self.room[1], kept, np.int32(place), happened, np.int32(first))
            held = learner.anchor and learner.anchor.told
            curve = Curve(spent + (number + 1) * self.ppo.config.batch, jax.tree.map(np.asarray, progress), held)
            yield number + 1, Exploring(learner, kept), (curve,)

    def end(self, state: AgentState) -> tuple[AgentState, Reports]:
        """As the agent says."""
        return self.finish(state, state.work)

    def replay(self, work: Exploring, updates: int) -> Replay:
        """The time steps that were kept in a phase of so many updates, and what was seen at its end."""
        env = self.ppo.env
        first = 0 if self.piece else max(0, self.room[0] - updates)  # a short phase does not fill all of the room
        last = np.asarray(seen_last(env, work.learner.actors.states))
        pieces = [np.asarray(one)[first:] for one in jax.tree.leaves(work.kept)]
        rows, reached, *said = (one.reshape(-1, *one.shape[2:])[-self.times :] for one in pieces)
        if not self.ppo.keeps_reached:
            return Replay(np.concatenate([rows, last[None]]), len(rows), *said)
        return with_finals(rows, last, reached, np.asarray(cut_off(Packing.of(env), rows)))


@partial(jax.jit, static_argnums=(0, 1))
def with_more(
    env: Environment, length: int, kept: Kept, place: Int[Array, ""], happened: Experience, first: Int[Array, ""]
) -> Kept:
    """What was kept, with so many time steps of what happened to a single task, from one on, in their place."""
    packing = Packing.of(env)
    here = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf[0], first, length), happened)
    rows, reached, said = kept.rows.at[place].set(packing.pack(here.transitions)), kept.reached, kept.said
    if here.reached is not None:
        reached = reached.at[place].set(packing.seen(env, here.reached))
    if said is not None and here.said is not None:
        said = said.at[place].set(here.said.astype(jnp.float16))
    return Kept(rows, reached, said)


@partial(jax.jit, static_argnums=0)
def seen_last(env: Environment, states: Pytree) -> UInt32[Array, "E W"]:
    """What is seen in the states of a single task, packed."""
    return Packing.of(env).seen(env, jax.vmap(env.observe)(jax.tree.map(lambda leaf: leaf[0], states)))


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
    tasks = ints([ppo.env.graph.indices(task)])
    return ppo.init(chain, tasks, zeros(*tasks.shape, dtype=np.int32), key=key)
