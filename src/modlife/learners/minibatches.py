"""Random orders of samples."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from modlife.domains.env import PRNGKey


def shuffle(count: int, *, key: PRNGKey) -> Int[Array, " count"]:
    """The numbers below `count` in random order: one sort, where `jax.random.permutation` makes two."""
    return jnp.argsort(jax.random.bits(key, (count,)))
