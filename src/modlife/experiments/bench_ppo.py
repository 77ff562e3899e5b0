"""The program that `modlife bench ppo` times."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from modlife.domains.grid2d.spec import World
from modlife.domains.grid2d.world import Grid2D
from modlife.learners.config import PPOConfig
from modlife.learners.ppo import PPO
from modlife.policies.networks import Modular


def training_updates(world: World, task: tuple[str, str, int], *, devices: int) -> tuple[int, Callable[[], object]]:
    """How many environment steps one update makes, and the update: collect and four epochs of a life's training."""
    env = Grid2D(world)
    static, target, dynamics = task
    indices = jnp.array([env.graph.indices(env.graph.task({"static": static, "target": target, "dynamics": dynamics}))])
    ppo = PPO(env, Modular(env.graph, (1, 1, 1), critic=1), PPOConfig(), devices)
    key = jax.random.key(0)
    state = ppo.init(ppo.network.init(key=key), indices, jnp.zeros_like(indices), key=key)
    number = 0

    def run() -> None:
        nonlocal state, number
        number += 1
        state, _ = ppo.update(state, key=jax.random.fold_in(key, number))
        jax.block_until_ready(state)

    return ppo.config.batch, run
