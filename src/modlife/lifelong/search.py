"""Structure search: every combination of modules is tried on the new task, and the best one taken."""

import itertools
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from modlife.domains.env import Environment, PRNGKey
from modlife.learners.acting import Rule
from modlife.learners.rollout import Episodes, evaluate
from modlife.lifelong.loop import Chosen, Structure
from modlife.policies.networks import Modular


def all_structures(sizes: tuple[int, ...]) -> tuple[Structure, ...]:
    """Every structure, the last factor changing fastest."""
    return tuple(itertools.product(*map(range, sizes)))


def search(
    env: Environment, network: Modular, bank: Any, task: tuple[int, ...], *, episodes: int, key: PRNGKey
) -> Chosen:
    """The structure with the highest mean return, the first of them if several have it; all steps are counted."""
    structures = all_structures(network.sizes)
    result = try_all(env, network, episodes, bank, jnp.array(task), jnp.array(structures), key)
    returns = np.asarray(result.returns).mean(axis=1)
    return Chosen(
        structures[int(returns.argmax())],
        "searched",
        steps=int(np.asarray(result.length).sum()),
        candidates=structures,
        returns=tuple(round(float(value), 4) for value in returns),
    )


@partial(jax.jit, static_argnums=(0, 1, 2))
def try_all(
    env: Environment,
    network: Modular,
    episodes: int,
    bank: Any,
    task: Int[Array, " F"],
    structures: Int[Array, "S F"],
    key: PRNGKey,
) -> Episodes:
    """Episodes of a task under each structure, acting as PPO does; axes [structure, episode].

    All structures meet the same layouts with the same luck in drawing actions: they differ by what they are only.
    """

    def one(structure: Int[Array, " F"]) -> Episodes:
        policy = network.pick(bank, structure)
        return evaluate(env, network, policy, task, episodes=episodes, rule=Rule("actor"), key=key)

    return jax.lax.map(one, structures)
