"""Made-up transitions of the 2-D world."""

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
