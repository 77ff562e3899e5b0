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

from modlife.arrays import floats, zeros
from modlife.domains.env import PRNGKey

HIDDEN = 64
"""Units in a head's hidden layer."""


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
        return Linear(floats(weight), zeros(size_out))

    @staticmethod
    def glorot(size_in: int, size_out: int, *, rng: np.random.Generator) -> "Linear":
        """Weights uniform within sqrt(6 / (in + out)); biases zero. Glorot and Bengio 2010."""
        bound = (6 / (size_in + size_out)) ** 0.5
        weight = rng.uniform(-bound, bound, size=(size_out, size_in))
        return Linear(floats(weight), zeros(size_out))

    def __call__(self, x: Float[Array, "in *more"]) -> Float[Array, "out *more"]:
        """Applies it to a batch, or to several."""
        return product(self.weight, x) + self.bias.reshape(-1, *[1] * (x.ndim - 1))

    def after(self, known: Float[Array, "k B"], more: Float[Array, "m *S B"]) -> Float[Array, "out *S B"]:
        """Applies it to both, one below the other; what is known is multiplied once, however much is joined to it."""
        first = self.weight[:, : len(known)] @ known + self.bias[:, None]
        return alike(first, more) + product(self.weight[:, len(known) :], more)

    def scaled(self, factor: float) -> "Linear":
        """With smaller, or larger, weights and biases."""
        return Linear(factor * self.weight, factor * self.bias)


def product(weight: Float[Array, "out in"], x: Float[Array, "in *more"]) -> Float[Array, "out *more"]:
    """W x, for one batch or several.

    Several are one while it lasts: by axes of their own, gradients would first copy all that they multiply into another
    order, and an update of PPO with critics takes half as long again (`docs/performance.md`).
    """
    return jnp.tensordot(weight, x.reshape(len(x), -1), axes=1).reshape(len(weight), *x.shape[1:])


def alike(known: Float[Array, "n B"], more: Float[Array, "m *S B"]) -> Float[Array, "n *ones B"]:
    """What is known of each sample, with the axes of what there is more of."""
    return known.reshape(len(known), *[1] * (more.ndim - 2), known.shape[-1])


class Head(eqx.Module):
    """A hidden layer with tanh, and a linear one."""

    hidden: Linear
    out: Linear

    @staticmethod
    def init(size_in: int, size_out: int, *, rng: np.random.Generator) -> "Head":
        """Fresh parameters."""
        return Head(Linear.init(size_in, HIDDEN, rng=rng), Linear.init(HIDDEN, size_out, rng=rng))

    def __call__(self, x: Float[Array, "in B"]) -> Float[Array, "out B"]:
        """Applies it to a batch."""
        return self.out(jnp.tanh(self.hidden(x)))

    def after(self, known: Float[Array, "k B"], more: Float[Array, "m *S B"]) -> Float[Array, "out *S B"]:
        """Applies it to both, one below the other: see `Linear.after`."""
        return self.out(jnp.tanh(self.hidden.after(known, more)))

    def scaled(self, factor: float) -> "Head":
        """With another output layer."""
        return Head(self.hidden, self.out.scaled(factor))


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
        return Conv2x2(floats(weight), floats(bias))

    def __call__(self, x: Float[Array, "in h w B"]) -> Float[Array, "out h-1 w-1 B"]:
        """Applies it to a batch."""
        channels, height, width, batch = x.shape
        corners = [x[:, :-1, :-1], x[:, :-1, 1:], x[:, 1:, :-1], x[:, 1:, 1:]]
        patches = jnp.concatenate(corners).reshape(4 * channels, -1)
        return (self.weight @ patches + self.bias[:, None]).reshape(-1, height - 1, width - 1, batch)

    def pooled(self, x: Float[Array, "in h w B"]) -> Float[Array, "out (h-1)//2 (w-1)//2 B"]:
        """Applies it to a batch and keeps the largest of each 2 x 2 block; h and w are odd."""
        return convolve_and_pool(self.weight, self.bias, x)


Residuals = tuple[list[Array], list[Array], Array, Array, tuple[int, ...]]


@jax.custom_vjp
def convolve_and_pool(
    weight: Float[Array, "out in_times_4"], bias: Float[Array, " out"], x: Float[Array, "in h w B"]
) -> Float[Array, "out (h-1)//2 (w-1)//2 B"]:
    """A 2 x 2 convolution followed by 2 x 2 max-pooling, with a gradient of its own.

    The four places of a pooling block are four matrix products of a quarter of the size, and the gradient goes to the
    first of them that holds the maximum. A fifth faster, for the whole network, than the two steps and their gradients
    one after the other (`docs/performance.md`).
    """
    return pool_forward(weight, bias, x)[0]


def pool_forward(weight: Array, bias: Array, x: Array) -> tuple[Array, Residuals]:
    """The pooled values, and what the gradient needs."""
    _, height, width, batch = x.shape
    patches = [
        jnp.concatenate([x[at] for at in place]).reshape(4 * x.shape[0], -1) for place in pool_places(height, width)
    ]
    values = [weight @ patch for patch in patches]
    largest = jnp.maximum(jnp.maximum(values[0], values[1]), jnp.maximum(values[2], values[3]))
    pooled = (largest + bias[:, None]).reshape(-1, (height - 1) // 2, (width - 1) // 2, batch)
    return pooled, (patches, values, largest, weight, x.shape)


def pool_backward(residuals: Residuals, gradient: Array) -> tuple[Array, Array, Array]:
    """Gradients by weight, bias and input; the last is never computed where the input is data."""
    patches, values, largest, weight, shape = residuals
    channels, height, width, batch = shape
    left = gradient.reshape(largest.shape)
    by_bias, by_weight, by_input = left.sum(axis=1), jnp.zeros_like(weight), jnp.zeros(shape)
    for patch, value, place in zip(patches, values, pool_places(height, width), strict=True):
        here = jnp.where(value == largest, left, 0.0)
        left = left - here
        by_weight = by_weight + here @ patch.T
        corners = (weight.T @ here).reshape(4, channels, (height - 1) // 2, (width - 1) // 2, batch)
        for at, corner in zip(place, corners, strict=True):
            by_input = by_input.at[at].add(corner)
    return by_weight, by_bias, by_input


convolve_and_pool.defvjp(pool_forward, pool_backward)


def pool_places(height: int, width: int) -> list[list[tuple[slice, ...]]]:
    """For each of the four places in a pooling block, the cells of its convolution's four corners."""

    def cells(start: int, size: int) -> slice:
        return slice(start, start + size - 2, 2)

    two = (0, 1)
    return [
        [(slice(None), cells(i + u, height), cells(j + v, width)) for u in two for v in two] for i in two for j in two
    ]
