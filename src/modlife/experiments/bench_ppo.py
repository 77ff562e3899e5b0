"""The program that `modlife bench ppo` times."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from modlife.domains.grid2d.spec import World
from modlife.domains.grid2d.world import Grid2D
from modlife.learners.config import PPOConfig
from modlife.learners.ppo import PPO
from modlife.policies.networks import Modular


def training(world: World, task: str, *, devices: int) -> tuple[int, dict[str, Callable[[], object]]]:
    """How many environment steps an update makes; and updates of one life's training, whole and in parts."""
    env = Grid2D(world)
    indices = jnp.array([env.graph.indices(env.graph.parse(task))])
    ppo = PPO(env, Modular(env.graph, (1, 1, 1), critic=1), PPOConfig(), devices)
    key = jax.random.key(0)
    state = ppo.init(ppo.network.init(key=key), indices, jnp.zeros_like(indices), key=key)
    state, batch, _, _ = ppo.collect(state, key=key)

    def update() -> object:
        nonlocal state
        state, _, progress = ppo.update(state, key=jax.random.fold_in(key, int(state.updates)))
        return jax.block_until_ready(progress)

    def collect() -> object:
        return jax.block_until_ready(ppo.collect(state, key=key))

    def learn() -> object:
        learnt = state
        for _ in range(ppo.config.epochs):
            learnt = ppo.epoch(learnt, batch, key=key)
        return jax.block_until_ready(learnt)

    return ppo.config.batch, {"stl": update, "stl collect": collect, "stl learn": learn}
