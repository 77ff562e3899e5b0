"""Evaluating many tasks, each with a policy of its own, in one compiled call."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from modlife.domains.env import Environment, PRNGKey
from modlife.learners.rollout import Episodes, evaluate
from modlife.policies.acting import Rule
from modlife.policies.modular import Network
from modlife.types import Pytree, Structure, Task

CHUNK = 16
"""Tasks per compiled call. Fixed, so that nothing is compiled anew as tasks accumulate."""


@dataclass(frozen=True)
class Evaluation:
    """How tasks went, each with one policy; axes [task, episode]."""

    tasks: tuple[Task, ...]
    returns: Float[np.ndarray, "N episode"]
    success: Bool[np.ndarray, "N episode"]
    length: Int[np.ndarray, "N episode"]

    @property
    def mean_return(self) -> Float[np.ndarray, " N"]:
        """Mean return of each task."""
        return self.returns.mean(axis=1)

    @property
    def standard_error(self) -> Float[np.ndarray, " N"]:
        """Standard error of each task's mean return."""
        return self.returns.std(axis=1, ddof=1) / np.sqrt(self.returns.shape[1])


@dataclass(frozen=True)
class Judge:
    """How policies are evaluated: where, how they act, and for how many episodes."""

    env: Environment
    network: Network
    rule: Rule
    episodes: int

    def evaluate(self, tasks: Sequence[Task], policies: Sequence[Pytree], *, key: PRNGKey) -> Evaluation:
        """Whole episodes of each task under its policy; layouts and actions follow from the key."""
        count, place = padding(len(tasks))
        keys = jax.random.split(key, len(place))
        pieces = [
            self.chunk([tasks[n] for n in here], [policies[n] for n in here], keys[start : start + CHUNK])
            for start in range(0, len(place), CHUNK)
            for here in [place[start : start + CHUNK]]
        ]
        result = jax.tree.map(lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves])[:count], *pieces)
        return Evaluation(tuple(tasks), result.returns, result.success, result.length)

    def chunk(self, tasks: Sequence[Task], policies: Sequence[Pytree], keys: Array) -> Episodes:
        """Some tasks in one compiled call."""
        indices = jnp.array([self.env.graph.indices(task) for task in tasks])
        together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *policies)
        return evaluate_chunk(self, together, indices, keys)


def padding(count: int) -> tuple[int, list[int]]:
    """Places of tasks in whole chunks: padding repeats tasks, and what they give is dropped."""
    return count, [n % count for n in range(-(-count // CHUNK) * CHUNK)]


@partial(jax.jit, static_argnums=0)
def evaluate_chunk(judge: Judge, policies: Pytree, tasks: Int[Array, "N F"], keys: Array) -> Episodes:
    """A fixed number of tasks, one after the other in one program."""

    def one(task: tuple[Pytree, Int[Array, " F"], PRNGKey]) -> Episodes:
        policy, indices, key = task
        return evaluate(judge.env, judge.network, policy, indices, episodes=judge.episodes, rule=judge.rule, key=key)

    return jax.lax.map(one, (policies, tasks, keys))


def wrong_structures(structure: Structure, factor: int, modules: int) -> list[Structure]:
    """The structures that differ from this one in one factor only: all its other modules there."""
    return [
        (*structure[:factor], other, *structure[factor + 1 :]) for other in range(modules) if other != structure[factor]
    ]
