"""The paper's modules for image-like states (Appendix D.1): small convolutions over 7 x 7 views."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import nn
from jaxtyping import Array, Float

from modlife.domains.env import Choice, Part
from modlife.domains.graph import ProblemGraph
from modlife.policies.layers import Conv2x2, Head, Linear
from modlife.policies.modular import Modules, Output, dense, view_size

SHALLOW, DEEP = 16, 32
"""Channels after a shallow and a deep encoder."""

CORNERS = 4
"""Cells that are left of the view after a shallow encoder: 2 x 2."""


@dataclass(frozen=True)
class ConvModules(Modules):
    """Each module encodes its own channels and joins them with what came before; the last has actor and critic."""

    def module(self, graph: ProblemGraph, depth: int, *, critic: int, rng: np.random.Generator) -> eqx.Module:
        """A fresh module of the factor at this depth."""
        channels = view_size(graph, depth, axes=slice(1))
        if depth == len(graph.factors) - 1:
            joined = DEEP + self.width(graph, depth, critic=critic)
            actor = Head.init(joined, graph.actions.size, rng=rng)
            return Last(Deep.init(channels, rng=rng), actor, Head.init(joined, critic, rng=rng))
        if depth == 0:
            return First(Shallow.init(channels, rng=rng))
        if depth == 1:
            return Second(Shallow.init(channels, rng=rng), Conv2x2.init(2 * SHALLOW, DEEP, rng=rng))
        return Later(Deep.init(channels, rng=rng), Linear.init(2 * DEEP, DEEP, rng=rng))

    def told(self, last: Any, graph: ProblemGraph, width: int, *, critic: int, rng: np.random.Generator) -> eqx.Module:
        """The last module with heads that take a descriptor too."""
        return Last(last.encoder, *heads(last.actor.hidden.weight.shape[1] + width, graph, critic, rng))

    def scaled(self, last: Any, factor: float) -> eqx.Module:
        """With other output layers."""
        return Last(last.encoder, last.actor.scaled(factor), last.critic.scaled(factor))

    def width(self, graph: ProblemGraph, depth: int, *, critic: int) -> int:
        """16 channels of 2 x 2 after the first module, 32 numbers after any other."""
        return (0, SHALLOW * CORNERS, DEEP)[min(depth, 2)]


@dataclass(frozen=True)
class ChainedConvModules(ConvModules):
    """Modules without views of their own: the first sees the whole state, each other only the one before it.

    The ablation "MTL Chain" (Appendix E), for three factors as the paper has them.
    """

    def module(self, graph: ProblemGraph, depth: int, *, critic: int, rng: np.random.Generator) -> eqx.Module:
        """A fresh module of the factor at this depth."""
        if depth == 0:
            return First(Shallow.init(sum(part.shape[0] for part in graph.state), rng=rng))
        if depth == 1:
            return ChainedSecond(Conv2x2.init(SHALLOW, DEEP, rng=rng))
        return Last(None, *heads(DEEP, graph, critic, rng))

    def view(self, graph: ProblemGraph, depth: int, parts: Mapping[str, Part]) -> Part | None:
        """All channels for the first factor, nothing for the others."""
        return jnp.concatenate([dense(parts[part.name]) for part in graph.state]) if depth == 0 else None


def heads(size_in: int, graph: ProblemGraph, critic: int, rng: np.random.Generator) -> tuple[Head, Head]:
    """Fresh actor and critic."""
    return Head.init(size_in, graph.actions.size, rng=rng), Head.init(size_in, critic, rng=rng)


class Shallow(eqx.Module):
    """Two convolutions: 7 x 7 cells to 16 channels of 2 x 2."""

    first: Conv2x2
    second: Conv2x2

    @staticmethod
    def init(channels: int, *, rng: np.random.Generator) -> "Shallow":
        """Fresh parameters."""
        return Shallow(Conv2x2.init(channels, 8, rng=rng), Conv2x2.init(8, SHALLOW, rng=rng))

    def __call__(self, view: Float[Array, "c 7 7 B"]) -> Float[Array, "16 2 2 B"]:
        """Pooling comes before the rectifier, which is the same and cheaper."""
        return nn.relu(self.second(nn.relu(self.first.pooled(view))))


class Deep(eqx.Module):
    """Three convolutions: 7 x 7 cells to 32 numbers."""

    shallow: Shallow
    third: Conv2x2

    @staticmethod
    def init(channels: int, *, rng: np.random.Generator) -> "Deep":
        """Fresh parameters."""
        return Deep(Shallow.init(channels, rng=rng), Conv2x2.init(SHALLOW, DEEP, rng=rng))

    def __call__(self, view: Float[Array, "c 7 7 B"]) -> Float[Array, "32 B"]:
        """Applies it to a batch."""
        return nn.relu(self.third(self.shallow(view))).reshape(DEEP, -1)


class First(eqx.Module):
    """The module of the first factor: its view, encoded."""

    encoder: Shallow

    def __call__(self, view: Part, before: None) -> Float[Array, "16 2 2 B"]:
        """Applies it to a batch."""
        return self.encoder(dense(view))


class Second(eqx.Module):
    """The module of the second factor: its view, encoded, joined with the first module's output."""

    encoder: Shallow
    join: Conv2x2

    def __call__(self, view: Part, before: Float[Array, "..."]) -> Float[Array, "32 B"]:
        """Applies it to a batch; what comes before may be flat."""
        encoded = self.encoder(dense(view))
        both = jnp.concatenate([before.reshape(encoded.shape), encoded])
        return nn.relu(self.join(both)).reshape(DEEP, -1)


class Later(eqx.Module):
    """The module of a factor between the second and the last."""

    encoder: Deep
    join: Linear

    def __call__(self, view: Part, before: Float[Array, "32 B"]) -> Float[Array, "32 B"]:
        """Applies it to a batch."""
        return nn.relu(self.join(jnp.concatenate([before, self.encoder(dense(view))])))


class Last(eqx.Module):
    """The module of the last factor: its view, encoded, joined with what came before, to actor and critic."""

    encoder: Deep | None
    """None with chained input."""
    actor: Head
    critic: Head

    def __call__(
        self, view: Part | None, before: Float[Array, "..."] | None, descriptor: Float[Array, "D B"] | None = None
    ) -> Output:
        """Applies it to a batch; a descriptor joins the input of both heads."""
        flat = None if before is None else before.reshape(-1, before.shape[-1])
        encoded = None if self.encoder is None or view is None else encode(self.encoder, view)
        joined = jnp.concatenate([part for part in (flat, encoded, descriptor) if part is not None])
        return Output(self.actor(joined), self.critic(joined))


class ChainedSecond(eqx.Module):
    """Chained input: the second module sees nothing but the first one's output."""

    join: Conv2x2

    def __call__(self, view: None, before: Float[Array, "16 2 2 B"]) -> Float[Array, "32 B"]:
        """Applies it to a batch."""
        return nn.relu(self.join(before)).reshape(DEEP, -1)


def encode(encoder: Deep, view: Part) -> Float[Array, "32 B"]:
    """The encoded view; a view with few possible values is encoded once per value, not once per sample."""
    if isinstance(view, Choice):
        return encoder(view.values) @ nn.one_hot(view.index, view.values.shape[-1], axis=0)
    return encoder(view)
