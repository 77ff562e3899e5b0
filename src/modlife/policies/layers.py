"""Layers whose inputs have the batch as their *last* axis.

On a CPU this is two to three times as fast as a vmapped convolution: every layer is one matrix product whose long axis
lies contiguous in memory (`docs/performance.md`). The exception to "write for one example" ends at this folder.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from modlife.domains.env import PRNGKey


class Linear(eqx.Module):
    """y = W x + b."""

    weight: Float[Array, "*k out in"]
    bias: Float[Array, "*k out"]

    @staticmethod
    def init(size_in: int, size_out: int, *, key: PRNGKey) -> "Linear":
        """Rows drawn from N(0, 1) and scaled to unit length; biases zero."""
        weight = jax.random.normal(key, (size_out, size_in))
        return Linear(weight / jnp.linalg.norm(weight, axis=1, keepdims=True), jnp.zeros(size_out))

    def __call__(self, x: Float[Array, "in B"]) -> Float[Array, "out B"]:
        """Applies it to a batch."""
        return self.weight @ x + self.bias[:, None]


class Conv2x2(eqx.Module):
    """A convolution with a 2 x 2 kernel, stride 1, without padding, as one matrix product over stacked patches."""

    weight: Float[Array, "*k out in_times_4"]
    """Input channels are stacked four times: top left, top right, bottom left, bottom right."""
    bias: Float[Array, "*k out"]

    @staticmethod
    def init(channels_in: int, channels_out: int, *, key: PRNGKey) -> "Conv2x2":
        """Weights and biases uniform within 1 / sqrt(fan in)."""
        key_weight, key_bias = jax.random.split(key)
        bound = (4 * channels_in) ** -0.5
        weight = jax.random.uniform(key_weight, (channels_out, 4 * channels_in), minval=-bound, maxval=bound)
        return Conv2x2(weight, jax.random.uniform(key_bias, (channels_out,), minval=-bound, maxval=bound))

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
