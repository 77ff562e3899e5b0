"""Evaluating many tasks, each with a policy of its own, in compiled calls that are never long."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from modlife.arrays import ints
from modlife.domains.env import Environment, PRNGKey, at_once, is_slow
from modlife.learners.rollout import Episodes, Playing, begin_episodes, play
from modlife.pauses import counted, pause
from modlife.policies.acting import Rule
from modlife.policies.bank import Bank, Chain
from modlife.policies.modular import Network
from modlife.types import Pytree, Structure, Task

CHUNK = 16
"""Tasks per compiled call. Fixed, so that nothing is compiled anew as tasks accumulate."""
EPISODES = 4096
"""Episodes of a task at a time. More are evaluated in groups, so that they need no more memory."""


@dataclass(frozen=True)
class Evaluation:
    """How tasks went, each with one policy; axes [task, episode]."""

    tasks: tuple[Task, ...]
    returns: Float[np.ndarray, "N episode"]
    success: Bool[np.ndarray, "N episode"]
    length: Int[np.ndarray, "N episode"]


OUTCOMES = ("returns", "success", "length")


@dataclass(frozen=True)
class Judge:
    """How policies are evaluated: where, how they act, and for how many episodes."""

    env: Environment
    network: Network
    rule: Rule
    episodes: int

    def evaluate(self, tasks: Sequence[Task], policies: Sequence[Pytree], *, key: PRNGKey) -> Evaluation:
        """Whole episodes of each task under its policy; layouts and actions follow from the key."""
        most = min(EPISODES, max(1, at_once(self.env) // CHUNK))
        if self.episodes <= most:
            return self.group(tasks, policies, key=key)
        sizes = [min(most, self.episodes - done) for done in range(0, self.episodes, most)]
        groups = [
            replace(self, episodes=size).group(tasks, policies, key=jax.random.fold_in(key, number))
            for number, size in enumerate(sizes)
        ]
        joined = {name: np.concatenate([getattr(one, name) for one in groups], axis=1) for name in OUTCOMES}
        return Evaluation(tuple(tasks), **joined)

    def played(self, tasks: int) -> int:
        """Episodes that an evaluation of so many tasks plays, those that fill up a call included."""
        size = self.at_a_time
        return self.episodes * -(-tasks // size) * size

    @property
    def at_a_time(self) -> int:
        """Tasks in a call."""
        return 1 if is_slow(self.env) else CHUNK

    def group(self, tasks: Sequence[Task], policies: Sequence[Pytree], *, key: PRNGKey) -> Evaluation:
        """Episodes that fit into memory."""
        size = self.at_a_time
        places = [n % len(tasks) for n in range(-(-len(tasks) // size) * size)]  # padding repeats tasks
        indices = np.array([self.env.graph.indices(tasks[n]) for n in places])
        keys = jax.random.split(key, len(places))
        pieces = []
        for start in counted(range(0, len(places), size), "tasks evaluated", each=size, whole=len(tasks)):
            here = slice(start, start + size)
            together = stacked([policies[n] for n in places[here]])
            pieces.append(evaluate_chunk(self, together, ints(indices[here]), keys[here]))
        result = jax.tree.map(lambda *leaves: np.concatenate(leaves)[: len(tasks)], *pieces)
        return Evaluation(tuple(tasks), result.returns, result.success, result.length)


def evaluate_chunk(judge: Judge, policies: Pytree, tasks: Int[Array, "N F"], keys: Array) -> Episodes:
    """Whole episodes of a fixed number of tasks, in as few calls as are short enough."""
    calls = -(-judge.env.horizon * judge.episodes * len(tasks) // at_once(judge.env))
    length = -(-judge.env.horizon // min(calls, judge.env.horizon))
    return in_pieces(judge, policies, tasks, keys, length=length, pieces=-(-judge.env.horizon // length))


@jax.jit
def stacked(trees: Sequence[Pytree]) -> Pytree:
    """Trees of arrays as one, with a first axis for them."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def in_pieces(
    judge: Judge, policies: Pytree, tasks: Int[Array, "N F"], keys: Array, *, length: int, pieces: int
) -> Episodes:
    """Episodes as far as some pieces lead. Each compiled call takes some steps; in between all can be stopped."""
    playing, steps = begin_chunk(judge.env, judge.episodes, tasks, keys, length)
    for number in range(pieces):
        playing, alive = play_chunk(judge, policies, playing, steps, np.int32(number * length), length)
        going_on = bool(alive)  # waits for the call
        pause()
        if not going_on:
            break
    return playing.sofar


@partial(jax.jit, static_argnums=(0, 1, 4))
def begin_chunk(
    env: Environment, episodes: int, tasks: Int[Array, "N F"], keys: Array, length: int
) -> tuple[Playing, Array]:
    """Episodes of each task at their start, and the keys of all steps, [task, step]: as many as calls will take."""
    begin = partial(begin_episodes, env, episodes=episodes)
    playing, steps = jax.vmap(lambda task, key: begin(task, key=key))(tasks, keys)
    return playing, steps[:, jnp.arange(-(-env.horizon // length) * length) % env.horizon]


@partial(jax.jit, static_argnums=(0, 5))
def play_chunk(
    judge: Judge, policies: Pytree, playing: Playing, steps: Array, start: Int[Array, ""], length: int
) -> tuple[Playing, Bool[Array, ""]]:
    """Some steps of each task's episodes, one task after the other; also whether any episode still goes on."""

    def one(task: tuple[Pytree, Playing, Array]) -> Playing:
        policy, playing, steps = task
        keys = jax.lax.dynamic_slice_in_dim(steps, start, length)
        return play(judge.env, judge.network, policy, playing, rule=judge.rule, keys=keys)

    after = jax.lax.map(one, (policies, playing, steps))
    return after, after.alive.any()


def wrong_chains(bank: Bank, structure: Structure, factor: int) -> list[Chain]:
    """The chains whose structures differ from this one in one factor only: all its other modules there."""
    others = [other for other in range(bank.sizes[factor]) if other != structure[factor]]
    return [bank.pick((*structure[:factor], other, *structure[factor + 1 :])) for other in others]
