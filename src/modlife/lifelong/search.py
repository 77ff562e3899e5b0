"""Structure search: every combination of modules is tried on the new task, and the best one taken."""

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np

from modlife.domains.env import Environment, PRNGKey
from modlife.learners.acting import Rule
from modlife.lifelong.evaluation import evaluate_chunk
from modlife.lifelong.loop import Chosen, Structure
from modlife.policies.networks import Modular


def all_structures(sizes: tuple[int, ...]) -> tuple[Structure, ...]:
    """Every structure, the last factor changing fastest."""
    return tuple(itertools.product(*map(range, sizes)))


def search(
    env: Environment, network: Modular, bank: Any, task: tuple[int, ...], *, episodes: int, key: PRNGKey
) -> Chosen:
    """The structure with the highest mean return, the first of them if several have it; all steps are counted.

    One compiled call, acting as PPO does. All structures meet the same layouts with the same luck in drawing actions:
    they differ by what they are only.
    """
    structures = all_structures(network.sizes)
    count = len(structures)
    same = jnp.tile(jnp.array(task), (count, 1)), jnp.array(structures), jnp.repeat(key[None], count)
    result = evaluate_chunk(env, network, episodes, Rule("actor"), bank, *same)
    returns = np.asarray(result.returns).mean(axis=1)
    return Chosen(
        structures[int(returns.argmax())],
        "searched",
        steps=int(np.asarray(result.length).sum()),
        returns=tuple(round(float(value), 4) for value in returns),
    )
