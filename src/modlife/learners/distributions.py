"""Distributions over actions, for a batch: what a policy samples from, in domains of either kind."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt8

from modlife.domains.env import PRNGKey
from modlife.domains.graph import Continuous, Discrete
from modlife.learners import losses


class Categorical(eqx.Module):
    """One of a few actions; noise is a uniform number in [0, 1) for each sample."""

    log_probs: Float[Array, "A B"]
    """Minus infinity where an action is never taken."""

    def sample(self, noise: Float[Array, " B"]) -> Int[Array, " B"]:
        """An action for each sample."""
        return losses.sample(self.log_probs, noise)

    def log_prob(self, action: Int[Array, " B"] | UInt8[Array, " B"]) -> Float[Array, " B"]:
        """Log-probabilities of actions."""
        return losses.chosen(self.log_probs, action)


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


def noise(actions: Discrete | Continuous, shape: tuple[int, ...], *, key: PRNGKey) -> Float[Array, "..."]:
    """What sampling takes, for as many samples as the shape says."""
    if isinstance(actions, Discrete):
        return jax.random.uniform(key, shape)
    return jax.random.normal(key, (*shape, actions.size))
