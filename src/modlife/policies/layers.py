"""Layers whose inputs have the batch as their *last* axis.

On a CPU this is two to three times as fast as a vmapped convolution: every layer is one matrix product whose long axis
lies contiguous in memory (`docs/performance.md`). The exception to "write for one example" ends at this folder.

Fresh parameters are drawn by NumPy on the host (`host_generator`): JAX would compile for ten seconds to do it.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from modlife.domains.env import PRNGKey


def host_generator(key: PRNGKey) -> np.random.Generator:
    """A NumPy generator that follows from a JAX key."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


class Linear(eqx.Module):
    """y = W x + b."""

    weight: Float[Array, "*k out in"]
    bias: Float[Array, "*k out"]

    @staticmethod
    def init(size_in: int, size_out: int, *, rng: np.random.Generator) -> "Linear":
        """Rows drawn from N(0, 1) and scaled to unit length; biases zero."""
        weight = rng.normal(size=(size_out, size_in))
        weight /= np.linalg.norm(weight, axis=1, keepdims=True)
        return Linear(jnp.asarray(weight, jnp.float32), jnp.zeros(size_out, jnp.float32))

    def __call__(self, x: Float[Array, "in B"]) -> Float[Array, "out B"]:
        """Applies it to a batch."""
        return self.weight @ x + self.bias[:, None]


class Conv2x2(eqx.Module):
    """A convolution with a 2 x 2 kernel, stride 1, without padding, as one matrix product over stacked patches."""

    weight: Float[Array, "*k out in_times_4"]
    """Input channels are stacked four times: top left, top right, bottom left, bottom right."""
    bias: Float[Array, "*k out"]

    @staticmethod
    def init(channels_in: int, channels_out: int, *, rng: np.random.Generator) -> "Conv2x2":
        """Weights and biases uniform within 1 / sqrt(fan in)."""
        bound = (4 * channels_in) ** -0.5
        weight = rng.uniform(-bound, bound, size=(channels_out, 4 * channels_in))
        bias = rng.uniform(-bound, bound, size=channels_out)
        return Conv2x2(jnp.asarray(weight, jnp.float32), jnp.asarray(bias, jnp.float32))

    def __call__(self, x: Float[Array, "in h w B"]) -> Float[Array, "out h-1 w-1 B"]:
        """Applies it to a batch."""
        channels, height, width, batch = x.shape
        corners = [x[:, :-1, :-1], x[:, :-1, 1:], x[:, 1:, :-1], x[:, 1:, 1:]]
        patches = jnp.concatenate(corners).reshape(4 * channels, -1)
        return (self.weight @ patches + self.bias[:, None]).reshape(-1, height - 1, width - 1, batch)


def max_pool(x: Float[Array, "c h w B"]) -> Float[Array, "c h//2 w//2 B"]:
    """The largest of each 2 x 2 block, as the maximum of four strided slices."""
    top = jnp.maximum(x[:, ::2, ::2], x[:, ::2, 1::2])
    return jnp.maximum(top, jnp.maximum(x[:, 1::2, ::2], x[:, 1::2, 1::2]))
