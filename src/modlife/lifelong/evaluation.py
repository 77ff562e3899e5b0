"""Evaluating many tasks, with any structures, in one compiled call."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from modlife.domains.env import Environment, PRNGKey
from modlife.learners.acting import Rule
from modlife.learners.rollout import Episodes, evaluate
from modlife.policies.networks import Network
from modlife.types import Task

CHUNK = 16
"""Tasks per compiled call. Fixed, so that nothing is compiled anew as tasks accumulate."""


@dataclass(frozen=True)
class Evaluation:
    """How tasks went, each with one structure; axes [task, episode]."""

    tasks: tuple[Task, ...]
    structures: tuple[tuple[int, ...], ...]
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


def evaluate_tasks(
    env: Environment,
    network: Network,
    params: Any,
    tasks: Sequence[Task],
    structures: Sequence[tuple[int, ...]],
    *,
    episodes: int,
    rule: Rule,
    key: PRNGKey,
) -> Evaluation:
    """Whole episodes of each task under its structure; layouts and actions follow from the key."""
    count = len(tasks)
    padded = -(-count // CHUNK) * CHUNK
    place = np.arange(padded) % count  # padding repeats tasks; what they give is dropped
    indices = jnp.array([env.graph.indices(task) for task in tasks])[place]
    chosen = jnp.array(structures)[place]
    keys = jax.random.split(key, padded)
    pieces = [
        evaluate_chunk(
            env, network, episodes, rule, params, indices[n : n + CHUNK], chosen[n : n + CHUNK], keys[n : n + CHUNK]
        )
        for n in range(0, padded, CHUNK)
    ]
    result = jax.tree.map(lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves])[:count], *pieces)
    return Evaluation(tuple(tasks), tuple(structures), result.returns, result.success, result.length)


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def evaluate_chunk(  # one compiled call: what is static and what is data stand apart
    env: Environment,
    network: Network,
    episodes: int,
    rule: Rule,
    params: Any,
    tasks: Int[Array, "N F"],
    structures: Int[Array, "N F"],
    keys: Any,
) -> Episodes:
    """A fixed number of tasks, one after the other in one program."""

    def one(task: tuple[Int[Array, " F"], Int[Array, " F"], PRNGKey]) -> Episodes:
        indices, structure, key = task
        policy = network.pick(params, structure)
        return evaluate(env, network, policy, indices, episodes=episodes, rule=rule, key=key)

    return jax.lax.map(one, (tasks, structures, keys))


def wrong_structures(structure: tuple[int, ...], factor: int, modules: int) -> list[tuple[int, ...]]:
    """The structures that differ from this one in one factor only: all its other modules there."""
    return [
        (*structure[:factor], other, *structure[factor + 1 :]) for other in range(modules) if other != structure[factor]
    ]
