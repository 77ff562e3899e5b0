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
from modlife.policies.bank import Bank, Chain
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


@dataclass(frozen=True)
class Judge:
    """How policies are evaluated: where, how they act, and for how many episodes."""

    env: Environment
    network: Network
    rule: Rule
    episodes: int

    def evaluate(self, tasks: Sequence[Task], policies: Sequence[Pytree], *, key: PRNGKey) -> Evaluation:
        """Whole episodes of each task under its policy; layouts and actions follow from the key."""
        places = [n % len(tasks) for n in range(-(-len(tasks) // CHUNK) * CHUNK)]  # padding repeats tasks
        indices = jnp.array([self.env.graph.indices(tasks[n]) for n in places])
        keys = jax.random.split(key, len(places))
        pieces = []
        for start in range(0, len(places), CHUNK):
            here = slice(start, start + CHUNK)
            together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(policies[n] for n in places[here]))
            pieces.append(evaluate_chunk(self, together, indices[here], keys[here]))
        result = jax.tree.map(lambda *leaves: np.concatenate(leaves)[: len(tasks)], *pieces)
        return Evaluation(tuple(tasks), result.returns, result.success, result.length)


@partial(jax.jit, static_argnums=0)
def evaluate_chunk(judge: Judge, policies: Pytree, tasks: Int[Array, "N F"], keys: Array) -> Episodes:
    """A fixed number of tasks, one after the other in one program."""

    def one(task: tuple[Pytree, Int[Array, " F"], PRNGKey]) -> Episodes:
        policy, indices, key = task
        return evaluate(judge.env, judge.network, policy, indices, episodes=judge.episodes, rule=judge.rule, key=key)

    return jax.lax.map(one, (policies, tasks, keys))


def wrong_chains(bank: Bank, structure: Structure, factor: int) -> list[Chain]:
    """The chains whose structures differ from this one in one factor only: all its other modules there."""
    others = [other for other in range(bank.sizes[factor]) if other != structure[factor]]
    return [bank.pick((*structure[:factor], other, *structure[factor + 1 :])) for other in others]
