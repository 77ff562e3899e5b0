"""The paper's networks for image-like states (Appendix D.1): modular, chained-input and monolithic.

A network is a value without parameters; parameters are pytrees that it makes (`init`), narrows to one task (`pick`)
and applies to a batch of observations (`__call__`). The modular network's parameters are a module bank.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import nn
from jaxtyping import Array, Float, Int

from modlife.domains.env import Choice, Part, PRNGKey
from modlife.domains.graph import ProblemGraph
from modlife.policies.bank import pick
from modlife.policies.layers import Conv2x2, Linear, host_generator

SHALLOW, DEEP, HIDDEN = 16, 32, 64
"""Channels after a shallow and a deep encoder; units in the heads' hidden layer."""

CORNERS = 4
"""Cells that are left of the view after a shallow encoder: 2 x 2."""


class Output(eqx.Module):
    """What a network says of a batch of observations."""

    logits: Float[Array, "A B"]
    values: Float[Array, "Q B"]
    """Q for each action, or a single row with V."""

    @property
    def value(self) -> Float[Array, " B"]:
        """V(s): the largest Q, with the gradient going through that one only; or V itself."""
        return self.values.max(axis=0)


class GaussianOutput(eqx.Module):
    """What a network says of a batch of observations where actions are real numbers."""

    mean: Float[Array, "A B"]
    log_std: Float[Array, " A"]
    value: Float[Array, " B"]


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


class First(eqx.Module):
    """The module of the first factor: its view, encoded."""

    encoder: Shallow

    def __call__(self, view: Float[Array, "c 7 7 B"], before: None) -> Float[Array, "16 2 2 B"]:
        """Applies it to a batch."""
        return self.encoder(view)


class Second(eqx.Module):
    """The module of the second factor: its view, encoded, joined with the first module's output."""

    encoder: Shallow
    join: Conv2x2

    def __call__(self, view: Float[Array, "c 7 7 B"], before: Float[Array, "..."]) -> Float[Array, "32 B"]:
        """Applies it to a batch; what comes before may be flat."""
        encoded = self.encoder(view)
        both = jnp.concatenate([before.reshape(encoded.shape), encoded])
        return nn.relu(self.join(both)).reshape(DEEP, -1)


class Later(eqx.Module):
    """The module of a factor between the second and the last."""

    encoder: Deep
    join: Linear

    def __call__(self, view: Float[Array, "c 7 7 B"], before: Float[Array, "32 B"]) -> Float[Array, "32 B"]:
        """Applies it to a batch."""
        return nn.relu(self.join(jnp.concatenate([before, self.encoder(view)])))


class Last(eqx.Module):
    """The module of the last factor: its view, encoded, joined with what came before, to actor and critic."""

    encoder: Deep
    actor: Head
    critic: Head

    def __call__(
        self, view: Part, before: Float[Array, "..."] | None, descriptor: Float[Array, "D B"] | None = None
    ) -> Output:
        """Applies it to a batch; a descriptor joins the input of both heads."""
        encoded = encode(self.encoder, view)
        parts = [encoded] if before is None else [before.reshape(-1, encoded.shape[-1]), encoded]
        joined = jnp.concatenate(parts if descriptor is None else [*parts, descriptor])
        return Output(self.actor(joined), self.critic(joined))


class ChainedSecond(eqx.Module):
    """Chained input: the second module sees nothing but the first one's output."""

    join: Conv2x2

    def __call__(self, view: None, before: Float[Array, "16 2 2 B"]) -> Float[Array, "32 B"]:
        """Applies it to a batch."""
        return nn.relu(self.join(before)).reshape(DEEP, -1)


class ChainedLast(eqx.Module):
    """Chained input: actor and critic on nothing but what came before."""

    actor: Head
    critic: Head

    def __call__(self, view: None, before: Float[Array, "..."]) -> Output:
        """Applies it to a batch."""
        flat = before.reshape(-1, before.shape[-1])
        return Output(self.actor(flat), self.critic(flat))


def encode(encoder: Deep, view: Part) -> Float[Array, "32 B"]:
    """The encoded view; a view with few possible values is encoded once per value, not once per sample."""
    if isinstance(view, Choice):
        return encoder(view.values) @ nn.one_hot(view.index, view.values.shape[-1], axis=0)
    return encoder(view)


def dense(view: Part) -> Float[Array, "..."]:
    """The view written out for each sample."""
    return view.values[..., view.index] if isinstance(view, Choice) else view


@runtime_checkable
class Network(Protocol):
    """What learners know of a network."""

    def init(self, *, key: PRNGKey) -> Any:
        """Fresh parameters."""
        ...

    def pick(self, params: Any, structure: Int[Array, " F"]) -> Any:
        """The parameters of the policy that a structure stands for."""
        ...

    def __call__(self, policy: Any, parts: Mapping[str, Part]) -> Output:
        """Logits and values of a batch, from the parts of its observations."""
        ...


@runtime_checkable
class GaussianNetwork(Protocol):
    """A network for domains whose actions are real numbers, at work."""

    def __call__(self, policy: Any, parts: Mapping[str, Part]) -> GaussianOutput:
        """Mean, spread and value of a batch, from the parts of its observations."""
        ...


@dataclass(frozen=True)
class Modular:
    """A bank of modules; a policy is a chain of one module per factor, each seeing its own part of the state."""

    graph: ProblemGraph
    sizes: tuple[int, ...]
    """Modules per factor."""
    critic: int
    """Rows of the critic's output: one per action for Q, 1 for V."""

    def init(self, *, key: PRNGKey) -> tuple[eqx.Module, ...]:
        """A bank of fresh modules."""
        rng = host_generator(key)
        return tuple(
            stacked([self.module(depth, rng=rng) for _ in range(size)]) for depth, size in enumerate(self.sizes)
        )

    def module(self, depth: int, *, rng: np.random.Generator) -> eqx.Module:
        """A fresh module of the factor at this depth."""
        channels = view_channels(self.graph, depth)
        if depth == len(self.graph.factors) - 1:
            joined = DEEP + (0, SHALLOW * CORNERS, DEEP)[min(depth, 2)]
            actor = Head.init(joined, self.graph.actions.size, rng=rng)
            return Last(Deep.init(channels, rng=rng), actor, Head.init(joined, self.critic, rng=rng))
        if depth == 0:
            return First(Shallow.init(channels, rng=rng))
        if depth == 1:
            return Second(Shallow.init(channels, rng=rng), Conv2x2.init(2 * SHALLOW, DEEP, rng=rng))
        return Later(Deep.init(channels, rng=rng), Linear.init(2 * DEEP, DEEP, rng=rng))

    def pick(self, params: tuple, structure: Int[Array, " F"]) -> tuple:
        """The chain of modules that a structure stands for."""
        return pick(params, structure)

    def __call__(self, policy: tuple, parts: Mapping[str, Part]) -> Output:
        """Logits and values of a batch."""
        return self.onward(policy, parts, None, depth=0)

    def features(self, policy: tuple, parts: Mapping[str, Part], *, depth: int) -> Float[Array, "n B"]:
        """What the modules before a depth (1 or more) make of a batch; `onward` takes it from there."""
        before = chain(self.graph, policy[:depth], parts)
        assert before is not None
        return before.reshape(-1, before.shape[-1])

    def onward(
        self, policy: tuple, parts: Mapping[str, Part], features: Float[Array, "n B"] | None, *, depth: int
    ) -> Output:
        """Logits and values of a batch, from the features that the modules before a depth made of it."""
        *early, last = policy
        before = chain(self.graph, early[depth:], parts, before=features, depth=depth)
        return last(view_of(self.graph, -1, parts), before)


@dataclass(frozen=True)
class Chained:
    """Modules without views of their own: the first sees the whole state, each other only the one before it.

    The ablation "MTL Chain" (Appendix E).
    """

    graph: ProblemGraph
    sizes: tuple[int, ...]
    critic: int

    def init(self, *, key: PRNGKey) -> tuple[eqx.Module, ...]:
        """A bank of fresh modules; three factors, as the paper's ablation has them."""
        rng, (first, second, last) = host_generator(key), self.sizes
        channels = sum(part.shape[0] for part in self.graph.state)
        return (
            stacked([First(Shallow.init(channels, rng=rng)) for _ in range(first)]),
            stacked([ChainedSecond(Conv2x2.init(SHALLOW, DEEP, rng=rng)) for _ in range(second)]),
            stacked([self.last(rng) for _ in range(last)]),
        )

    def last(self, rng: np.random.Generator) -> ChainedLast:
        """A fresh last module."""
        actor = Head.init(DEEP, self.graph.actions.size, rng=rng)
        return ChainedLast(actor, Head.init(DEEP, self.critic, rng=rng))

    def pick(self, params: tuple, structure: Int[Array, " F"]) -> tuple:
        """The chain of modules that a structure stands for."""
        return pick(params, structure)

    def __call__(self, policy: tuple, parts: Mapping[str, Part]) -> Output:
        """Logits and values of a batch."""
        first, second, last = policy
        whole = jnp.concatenate([dense(parts[part.name]) for part in self.graph.state])
        return last(None, second(None, first(whole, None)))


@dataclass(frozen=True)
class Monolithic:
    """One network for all tasks: the modular chain with one module per factor, told the task by a descriptor.

    The descriptor has a 1 for each component of the task and joins the input of the first dense layers.
    """

    graph: ProblemGraph
    critic: int
    descriptor: int = 16
    """Width of the descriptor; the components fill its beginning. The paper's parameter counts have 16."""

    def __post_init__(self) -> None:
        if self.descriptor < sum(self.graph.shape):
            raise ValueError(f"A descriptor of {self.descriptor} cannot hold {sum(self.graph.shape)} components.")

    @property
    def chain(self) -> Modular:
        """The same network without a descriptor."""
        return Modular(self.graph, (1,) * len(self.graph.factors), self.critic)

    def init(self, *, key: PRNGKey) -> tuple[eqx.Module, ...]:
        """Fresh parameters: the chain's, with wider heads."""
        rng = host_generator(key)
        *early, last = (self.chain.module(depth, rng=rng) for depth in range(len(self.graph.factors)))
        assert isinstance(last, Last)
        joined = last.actor.hidden.weight.shape[1] + self.descriptor
        actor = Head.init(joined, self.graph.actions.size, rng=rng)
        return (*early, Last(last.encoder, actor, Head.init(joined, self.critic, rng=rng)))

    def pick(self, params: tuple, structure: Int[Array, " F"]) -> tuple:
        """The whole network, with the descriptor of the task that has these component indices."""
        starts = np.cumsum([0, *self.graph.shape[:-1]])
        hot = nn.one_hot(structure + jnp.asarray(starts), self.descriptor).sum(axis=0)
        return (params, hot)

    def __call__(self, policy: tuple, parts: Mapping[str, Part]) -> Output:
        """Logits and values of a batch."""
        (*early, last), hot = policy
        view = view_of(self.graph, -1, parts)
        batch = (view.index if isinstance(view, Choice) else view).shape[-1]
        descriptor = jnp.broadcast_to(hot[:, None], (self.descriptor, batch))
        return last(view, chain(self.graph, early, parts), descriptor)


def stacked(modules: Sequence[eqx.Module]) -> eqx.Module:
    """Modules of one shape as one, with a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *modules)


def chain(
    graph: ProblemGraph,
    modules: Sequence[Any],
    parts: Mapping[str, Part],
    *,
    before: Float[Array, "..."] | None = None,
    depth: int = 0,
) -> Float[Array, "..."] | None:
    """The output of consecutive modules from a depth on, each applied to its view and the output before it."""
    for here, module in enumerate(modules, start=depth):
        before = module(dense(view_of(graph, here, parts)), before)
    return before


def view_channels(graph: ProblemGraph, depth: int) -> int:
    """How many channels the modules of a factor see."""
    return sum(part.shape[0] for part in graph.state if part.name in graph.factors[depth].sees)


def view_of(graph: ProblemGraph, depth: int, parts: Mapping[str, Part]) -> Part:
    """What the modules of a factor see."""
    names = graph.factors[depth].sees
    return parts[names[0]] if len(names) == 1 else jnp.concatenate([dense(parts[name]) for name in names])
