"""Made-up transitions, of the 2-D world and of the hall."""

import jax.numpy as jnp
import numpy as np

from modlife.domains.grid2d.environment import Observation
from modlife.learners.replay import Transition


def random_transitions(shape: tuple[int, ...], seed: int) -> Transition:
    rng = np.random.default_rng(seed)
    observation = Observation(
        jnp.asarray(rng.integers(0, 256, size=(*shape, 7, 7)), jnp.uint8),
        jnp.asarray(rng.integers(0, 256, size=shape), jnp.uint8),
    )
    action, ended, late = rng.integers(0, 6, size=shape), rng.random(shape) < 0.3, rng.random(shape) < 0.5
    reward = rng.normal(size=shape) * 10.0 ** rng.integers(-30, 30)
    return Transition(
        observation,
        jnp.asarray(action, jnp.int32),
        jnp.asarray(reward, jnp.float32),
        jnp.asarray(ended & ~late),
        jnp.asarray(ended & late),
    )


def steps_in_the_hall(shape: tuple[int, ...], seed: int) -> Transition:
    """With places, moves, rewards and ends that need not fit together."""
    rng = np.random.default_rng(seed)
    ended, late = rng.random(shape) < 0.3, rng.random(shape) < 0.5
    return Transition(
        jnp.asarray(rng.uniform(-2, 2, size=(*shape, 2)), jnp.float32),
        jnp.asarray(rng.integers(0, 3, size=shape), jnp.int32),
        jnp.asarray(rng.normal(size=shape), jnp.float32),
        jnp.asarray(ended & ~late),
        jnp.asarray(ended & late),
    )
