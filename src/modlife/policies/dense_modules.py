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
        joined = view_size(graph, depth, axes=slice(None)) + self.width(graph, depth, critic=critic)
        if depth < len(graph.factors) - 1:
            return DenseModule(Linear.init(joined, self.units, rng=rng))
        return self.last(joined, graph, critic, rng)

    def told(self, last: Any, graph: ProblemGraph, width: int, *, critic: int, rng: np.random.Generator) -> eqx.Module:
        """The last module with heads that take a descriptor too."""
        return self.last(last.actor.hidden.weight.shape[1] + width, graph, critic, rng)

    def last(self, joined: int, graph: ProblemGraph, critic: int, rng: np.random.Generator) -> "DenseLast":
        """Fresh actor and critic, or critics that take the action."""
        size, discrete = graph.actions.size, isinstance(graph.actions, Discrete)
        actor = Head.init(joined, size, rng=rng)
        if discrete or critic == 1:
            return DenseLast(actor, Head.init(joined, critic, rng=rng), None if discrete else self.log_std)
        critics = tuple(Head.init(joined + size, 1, rng=rng) for _ in range(critic))
        return DenseLast(actor, critics, self.log_std)

    def scaled(self, last: "DenseLast", factor: float) -> "DenseLast":
        """With other output layers."""
        critic = last.critic
        less = tuple(one.scaled(factor) for one in critic) if isinstance(critic, tuple) else critic.scaled(factor)
        return DenseLast(last.actor.scaled(factor), less, last.log_std)

    def width(self, graph: ProblemGraph, depth: int, *, critic: int) -> int:
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
    critic: Head | tuple[Head, ...]
    log_std: float | None = eqx.field(static=True)
    """Of real-valued actions."""

    def __call__(
        self, view: Part, before: Float[Array, "n B"] | None, descriptor: Float[Array, "D B"] | None = None
    ) -> AnyOutput:
        """Applies it to a batch; a descriptor joins the input of both heads."""
        joined = joined_input(view, before, descriptor)
        said, critic = self.actor(joined), self.critic
        if isinstance(critic, tuple):
            return GaussianOutput(
                jnp.tanh(said), self.spread(said), None, tuple(DenseCritic(one, joined) for one in critic)
            )
        if self.log_std is None:
            return Output(said, critic(joined))
        return GaussianOutput(jnp.tanh(said), self.spread(said), critic(joined)[0])

    def spread(self, said: Float[Array, "A B"]) -> Float[Array, " A"]:
        """The logarithm of the spread of each action."""
        return jnp.full(len(said), self.log_std or 0.0)


class DenseCritic(eqx.Module):
    """Q of a batch of observations (`policies.modular.GaussianOutput.critics`)."""

    head: Head
    joined: Float[Array, "n B"]

    def __call__(self, action: Float[Array, "A *S B"]) -> Float[Array, "*S B"]:
        """What actions are worth."""
        return self.head.after(self.joined, action)[0]


def joined_input(view: Part, *more: Float[Array, "_ B"] | None) -> Float[Array, "all B"]:
    """A view, flat, and what else there is, one below the other."""
    seen = dense(view)
    flat = seen.reshape(-1, seen.shape[-1])
    return jnp.concatenate([flat, *(one for one in more if one is not None)])
