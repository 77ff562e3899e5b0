"""Distributions over actions, for a batch that is the last axis: what a policy samples from."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer

from modlife.domains.env import PRNGKey
from modlife.domains.graph import Continuous, Discrete


class Categorical(eqx.Module):
    """One of a few actions; noise is a uniform number in [0, 1) for each sample."""

    log_probs: Float[Array, "A B"]
    """Minus infinity where an action is never taken."""

    def sample(self, noise: Float[Array, " B"]) -> Int[Array, " B"]:
        """An action for each sample: the inverse of the distribution function."""
        below = jnp.cumsum(jnp.exp(self.log_probs), axis=0)[:-1] <= noise[None]
        return below.sum(axis=0, dtype=jnp.int32)

    def log_prob(self, action: Integer[Array, " B"]) -> Float[Array, " B"]:
        """Log-probabilities of actions."""
        return chosen(self.log_probs, action)

    def entropy(self) -> Float[Array, ""]:
        """-Σₐ π(a) log π(a), mean over the batch."""
        return -(jnp.exp(self.log_probs) * self.log_probs).sum(axis=0).mean()

    @property
    def numbers(self) -> Float[Array, "A B"]:
        """What tells it from others of its kind."""
        return self.log_probs

    def other(self, numbers: Float[Array, "A B"]) -> "Categorical":
        """One of its kind."""
        return Categorical(numbers)

    def divergence(self, other: Float[Array, "A B"]) -> Float[Array, " B"]:
        """KL(p || self) = Σₐ p(a) (log p(a) - log self(a)) of each sample; p has these numbers."""
        return (jnp.exp(other) * (other - self.log_probs)).sum(axis=0)


class Gaussian(eqx.Module):
    """Real numbers around a mean, independent of each other; noise is standard normal. Nothing is clipped here."""

    mean: Float[Array, "A B"]
    log_std: Float[Array, " A"]

    def sample(self, noise: Float[Array, "B A"]) -> Float[Array, "B A"]:
        """An action for each sample."""
        return self.mean.T + jnp.exp(self.log_std)[None] * noise

    def log_prob(self, action: Float[Array, "B A"]) -> Float[Array, " B"]:
        """Log-densities of actions."""
        scaled = (action - self.mean.T) / jnp.exp(self.log_std)[None]
        return (-0.5 * scaled**2 - self.log_std[None] - 0.5 * math.log(2 * math.pi)).sum(axis=-1)

    def entropy(self) -> Float[Array, ""]:
        """Sum over the numbers of log std + ½ log 2πe, the same for every sample."""
        return (self.log_std + 0.5 * math.log(2 * math.pi * math.e)).sum()

    @property
    def numbers(self) -> Float[Array, "A B"]:
        """What tells it from others of its kind: its spread is fixed."""
        return self.mean

    def other(self, numbers: Float[Array, "A B"]) -> "Gaussian":
        """One of its kind."""
        return Gaussian(numbers, self.log_std)

    def divergence(self, other: Float[Array, "A B"]) -> Float[Array, " B"]:
        """KL(p || self) = ½ Σⱼ ((mⱼ - meanⱼ) / stdⱼ)² of each sample; p has the means m and the same spread."""
        return (0.5 * (other - self.mean) ** 2 * jnp.exp(-2 * self.log_std)[:, None]).sum(axis=0)


Distribution = Categorical | Gaussian
"""Has `sample`, `log_prob`, `entropy`, `numbers`, `other` and `divergence`; learners know little else of it."""


def noise(actions: Discrete | Continuous, shape: tuple[int, ...], *, key: PRNGKey) -> Float[Array, "..."]:
    """What sampling takes, for as many samples as the shape says."""
    if isinstance(actions, Discrete):
        return jax.random.uniform(key, shape)
    return jax.random.normal(key, (*shape, actions.size))


def log_softmax(logits: Float[Array, "A B"]) -> Float[Array, "A B"]:
    """Log-probabilities of actions, the batch last."""
    return jax.nn.log_softmax(logits, axis=0)


def chosen(table: Float[Array, "A B"], action: Integer[Array, " B"]) -> Float[Array, " B"]:
    """What a table says of the action taken. A masked sum: on a CPU cheaper than a gather, and its gradient too."""
    hot = jax.nn.one_hot(action, table.shape[0], axis=0)
    return (table * hot).sum(axis=0)


def likely(log_probs: Float[Array, "A B"], *, threshold: float) -> Bool[Array, "A B"]:
    """Actions whose probability is more than a share of the likeliest one's: π(a|s) > τ max π(·|s)."""
    if threshold == 0:
        return jnp.ones_like(log_probs, bool)
    return log_probs - log_probs.max(axis=0, keepdims=True) > math.log(threshold)
