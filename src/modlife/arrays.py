"""Arrays that are made on the host, and then put where JAX computes.

Whatever JAX makes or slices by itself is a program, compiled for every shape in every process: some 20 milliseconds
each, of which a life would need a hundred. Putting an array there compiles nothing.
"""

from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Int


def ints(values: Any) -> Int[Array, "..."]:
    """Whole numbers."""
    return jax.device_put(np.asarray(values, np.int32))


def floats(values: Any) -> Float[Array, "..."]:
    """Numbers of 32 bits."""
    return jax.device_put(np.asarray(values, np.float32))


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    """Zeros of any type."""
    return jax.device_put(np.zeros(shape, dtype))
