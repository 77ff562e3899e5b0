"""The program that `modlife bench env` times."""

import time
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Key

from modlife.domains.domain import Domain, environment_of
from modlife.domains.env import Environment, Outcome, PRNGKey, step_batch
from modlife.domains.graph import Discrete
from modlife.types import Pytree

STEPS = 1_048_576
"""Environment steps, at most about, in one compiled call."""
LONGEST = 2048
"""Time steps in one."""
SLOW, SLOW_CALL = 2e-5, 2e-3
"""Seconds that the reset of an environment, and a call, may take in a domain that is compiled; others step singly."""


def bench_task(domain: Domain) -> tuple[int, ...]:
    """The task that benchmarks step: the last component of the first factor, the first of all others."""
    shape = domain.usual_world().graph.shape
    return (shape[0] - 1, *[0] * (len(shape) - 1))


def random_steps(domain: Domain, *, batch: int, devices: int) -> tuple[int, Callable[[], object]]:
    """How many steps one call makes, and the call: random actions, observations, restarts."""
    env = environment_of(domain.usual_world())
    indices, each = jnp.array(bench_task(domain)), batch // devices
    start = jax.jit(jax.vmap(lambda key: env.reset(indices, key=key)))
    states = jax.block_until_ready(start(jax.random.split(jax.random.key(0), batch)))
    begun = time.perf_counter()
    jax.block_until_ready(start(jax.random.split(jax.random.key(1), batch)))
    slow = time.perf_counter() - begun > SLOW * batch + SLOW_CALL
    length = 1 if slow else max(16, min(STEPS // batch, LONGEST))

    def body(states: Pytree, key: PRNGKey) -> tuple[Pytree, tuple[Pytree, Outcome]]:
        key_act, key_restart = jax.random.split(key)
        stepped = step_batch(env, states, random_actions(env, each, key=key_act), key=key_restart)
        # Whole observations leave the loop, as they would for a learner: nothing can be optimised away.
        return stepped.states, (jax.vmap(env.observe)(stepped.states), stepped.outcomes)

    def steps(states: Pytree, keys: Key[Array, "1"]) -> tuple[Pytree, tuple[Pytree, Outcome]]:
        return jax.lax.scan(body, states, jax.random.split(keys[0], length))

    mesh = Mesh(np.array(jax.devices()[:devices]), ("device",))
    one = PartitionSpec("device")
    shard = partial(jax.shard_map, mesh=mesh, check_vma=False)
    step_all = jax.jit(shard(steps, in_specs=(one, one), out_specs=(one, PartitionSpec(None, "device"))))
    keys = jax.random.split(jax.random.key(1), devices)
    return batch * length, lambda: jax.block_until_ready(step_all(states, keys))


def random_actions(env: Environment, count: int, *, key: PRNGKey) -> Array:
    """Any action for each environment."""
    actions = env.graph.actions
    if isinstance(actions, Discrete):
        return jax.random.randint(key, (count,), 0, actions.size, dtype=jnp.int32)
    return jax.random.uniform(key, (count, actions.size), minval=actions.low, maxval=actions.high)
