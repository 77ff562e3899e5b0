"""The program that `modlife bench ppo` times."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from modlife.benchmarks.env import bench_task
from modlife.domains.domain import Domain, environment_of
from modlife.learners.config import PPOConfig
from modlife.learners.ppo import PPO
from modlife.policies.modular import Modular, OnePolicy


def training(domain: Domain, *, devices: int) -> tuple[int, dict[str, Callable[[], object]]]:
    """How many environment steps an update makes; and updates of one life's training, whole and in parts."""
    env = environment_of(domain.usual_world())
    indices = jnp.array([bench_task(domain)])
    network = Modular(env.graph, (1,) * len(env.graph.factors), 1, domain.of("modules"))
    ppo = PPO(env, OnePolicy(network), PPOConfig(), devices)
    key = jax.random.key(0)
    policy = network.init(key=key).pick((0,) * len(network.sizes))
    state = ppo.init(policy, indices, jnp.zeros_like(indices), key=key)
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
