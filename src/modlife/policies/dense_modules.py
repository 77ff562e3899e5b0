"""Modules for states that are vectors: dense layers with tanh. For actions of either kind."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from modlife.domains.env import Part
from modlife.domains.graph import Discrete, ProblemGraph
from modlife.policies.layers import Head, Linear
from modlife.policies.modular import AnyOutput, GaussianOutput, Modules, Output, dense, view_size


@dataclass(frozen=True)
class DenseModules(Modules):
    """Each module joins its view with what came before; the last has actor and critic."""

    units: int = 64
    """Numbers that a module passes on."""
    log_std: float = -0.5
    """Spread of real-valued actions, the same for all and fixed."""

    def module(self, graph: ProblemGraph, depth: int, *, critic: int, rng: np.random.Generator) -> eqx.Module:
        """A fresh module of the factor at this depth."""
        joined = view_size(graph, depth, axes=slice(None)) + self.width(graph, depth)
        if depth < len(graph.factors) - 1:
            return DenseModule(Linear.init(joined, self.units, rng=rng))
        return self.last(joined, graph, critic, rng)

    def told(self, last: Any, graph: ProblemGraph, width: int, *, critic: int, rng: np.random.Generator) -> eqx.Module:
        """The last module with heads that take a descriptor too."""
        return self.last(last.actor.hidden.weight.shape[1] + width, graph, critic, rng)

    def last(self, joined: int, graph: ProblemGraph, critic: int, rng: np.random.Generator) -> "DenseLast":
        """Fresh actor and critic."""
        actor, value = Head.init(joined, graph.actions.size, rng=rng), Head.init(joined, critic, rng=rng)
        return DenseLast(actor, value, None if isinstance(graph.actions, Discrete) else self.log_std)

    def width(self, graph: ProblemGraph, depth: int) -> int:
        """The same after every module."""
        return self.units if depth else 0


class DenseModule(eqx.Module):
    """A module before the last."""

    layer: Linear

    def __call__(self, view: Part, before: Float[Array, "n B"] | None) -> Float[Array, "units B"]:
        """Applies it to a batch."""
        return jnp.tanh(self.layer(joined_input(view, before)))


class DenseLast(eqx.Module):
    """The last module: actor and critic."""

    actor: Head
    critic: Head
    log_std: float | None = eqx.field(static=True)
    """Of real-valued actions."""

    def __call__(
        self, view: Part, before: Float[Array, "n B"] | None, descriptor: Float[Array, "D B"] | None = None
    ) -> AnyOutput:
        """Applies it to a batch; a descriptor joins the input of both heads."""
        joined = joined_input(view, before, descriptor)
        if self.log_std is None:
            return Output(self.actor(joined), self.critic(joined))
        mean = jnp.tanh(self.actor(joined))
        return GaussianOutput(mean, jnp.full(mean.shape[0], self.log_std), self.critic(joined)[0])


def joined_input(view: Part, *more: Float[Array, "_ B"] | None) -> Float[Array, "all B"]:
    """A view, flat, and what else there is, one below the other."""
    seen = dense(view)
    flat = seen.reshape(-1, seen.shape[-1])
    return jnp.concatenate([flat, *(one for one in more if one is not None)])
