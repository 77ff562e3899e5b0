"""The program that `modlife bench env` times."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Key

from modlife.domains.env import Outcome, PRNGKey, step_batch
from modlife.domains.grid2d.spec import World
from modlife.domains.grid2d.world import Grid2D, Observation, State

STEPS = 1_048_576
"""Environment steps, about, in one compiled call."""


def random_steps(world: World, task: str, *, batch: int, devices: int) -> tuple[int, Callable[[], object]]:
    """How many steps one call makes, and the call: random actions, observations, restarts."""
    env = Grid2D(world)
    indices = jnp.array(env.graph.indices(env.graph.parse(task)))
    length = max(16, min(STEPS // batch, 2048))
    each = batch // devices

    def body(states: State, key: PRNGKey) -> tuple[State, tuple[Observation, Outcome]]:
        key_act, key_restart = jax.random.split(key)
        actions = jax.random.randint(key_act, (each,), 0, world.actions, dtype=jnp.int32)
        states, outcomes = step_batch(env, states, actions, key=key_restart)
        # Whole observations leave the loop, as they would for a learner: nothing can be optimised away.
        return states, (jax.vmap(env.observe)(states), outcomes)

    def steps(states: State, keys: Key[Array, "1"]) -> tuple[State, tuple[Observation, Outcome]]:
        return jax.lax.scan(body, states, jax.random.split(keys[0], length))

    mesh = Mesh(np.array(jax.devices()[:devices]), ("device",))
    one = PartitionSpec("device")
    shard = partial(jax.shard_map, mesh=mesh, check_vma=False)
    step_all = jax.jit(shard(steps, in_specs=(one, one), out_specs=(one, PartitionSpec(None, "device"))))
    keys = jax.random.split(jax.random.key(0), batch)
    states = jax.jit(jax.vmap(lambda key: env.reset(indices, key=key)))(keys)
    keys = jax.random.split(jax.random.key(1), devices)

    def run() -> None:
        jax.block_until_ready(step_all(states, keys))

    return batch * length, run
