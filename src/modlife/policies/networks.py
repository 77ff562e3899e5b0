"""The paper's networks for image-like states (Appendix D.1): modular, chained-input and monolithic.

A network is a value without parameters; parameters are pytrees that it makes (`init`), narrows to one task (`pick`)
and applies to a batch of observations (`__call__`). The modular network's parameters are a module bank.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import nn
from jaxtyping import Array, Float, Int

from modlife.domains.env import Choice, Part, PRNGKey
from modlife.domains.graph import ProblemGraph
from modlife.policies.bank import pick
from modlife.policies.layers import Conv2x2, Linear, max_pool

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


class Shallow(eqx.Module):
    """Two convolutions: 7 x 7 cells to 16 channels of 2 x 2."""

    first: Conv2x2
    second: Conv2x2

    @staticmethod
    def init(channels: int, *, key: PRNGKey) -> "Shallow":
        """Fresh parameters."""
        keys = jax.random.split(key)
        return Shallow(Conv2x2.init(channels, 8, key=keys[0]), Conv2x2.init(8, SHALLOW, key=keys[1]))

    def __call__(self, view: Float[Array, "c 7 7 B"]) -> Float[Array, "16 2 2 B"]:
        """Pooling comes before the rectifier, which is the same and cheaper."""
        return nn.relu(self.second(nn.relu(max_pool(self.first(view)))))


class Deep(eqx.Module):
    """Three convolutions: 7 x 7 cells to 32 numbers."""

    shallow: Shallow
    third: Conv2x2

    @staticmethod
    def init(channels: int, *, key: PRNGKey) -> "Deep":
        """Fresh parameters."""
        keys = jax.random.split(key)
        return Deep(Shallow.init(channels, key=keys[0]), Conv2x2.init(SHALLOW, DEEP, key=keys[1]))

    def __call__(self, view: Float[Array, "c 7 7 B"]) -> Float[Array, "32 B"]:
        """Applies it to a batch."""
        return nn.relu(self.third(self.shallow(view))).reshape(DEEP, -1)


class Head(eqx.Module):
    """A hidden layer with tanh, and a linear one."""

    hidden: Linear
    out: Linear

    @staticmethod
    def init(size_in: int, size_out: int, *, key: PRNGKey) -> "Head":
        """Fresh parameters."""
        keys = jax.random.split(key)
        return Head(Linear.init(size_in, HIDDEN, key=keys[0]), Linear.init(HIDDEN, size_out, key=keys[1]))

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

    def __call__(self, view: Float[Array, "c 7 7 B"], before: Float[Array, "16 2 2 B"]) -> Float[Array, "32 B"]:
        """Applies it to a batch."""
        both = jnp.concatenate([before, self.encoder(view)])
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


def dense(view: Part) -> Float[Array, "*shape B"]:
    """The view written out for each sample."""
    return view.values[..., view.index] if isinstance(view, Choice) else view


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


@dataclass(frozen=True)
class Modular:
    """A bank of modules; a policy is a chain of one module per factor, each seeing its own part of the state."""

    graph: ProblemGraph
    sizes: tuple[int, ...]
    """Modules per factor."""
    critic: int
    """Rows of the critic's output: one per action for Q, 1 for V."""

    @partial(jax.jit, static_argnums=0)
    def init(self, *, key: PRNGKey) -> tuple[eqx.Module, ...]:
        """A bank of fresh modules."""
        keys = jax.random.split(key, len(self.sizes))
        return tuple(
            jax.vmap(lambda key, depth=depth: self.module(depth, key=key))(jax.random.split(keys[depth], size))
            for depth, size in enumerate(self.sizes)
        )

    def module(self, depth: int, *, key: PRNGKey) -> eqx.Module:
        """A fresh module of the factor at this depth."""
        key_encoder, key_actor, key_critic = jax.random.split(key, 3)
        channels, actions = view_channels(self.graph, depth), self.graph.actions.size
        if depth == len(self.graph.factors) - 1:
            joined = DEEP + (0, SHALLOW * CORNERS, DEEP)[min(depth, 2)]
            actor, critic = (
                Head.init(joined, size, key=key) for size, key in ((actions, key_actor), (self.critic, key_critic))
            )
            return Last(Deep.init(channels, key=key_encoder), actor, critic)
        if depth == 0:
            return First(Shallow.init(channels, key=key_encoder))
        if depth == 1:
            return Second(Shallow.init(channels, key=key_encoder), Conv2x2.init(2 * SHALLOW, DEEP, key=key_actor))
        return Later(Deep.init(channels, key=key_encoder), Linear.init(2 * DEEP, DEEP, key=key_actor))

    def pick(self, params: tuple, structure: Int[Array, " F"]) -> tuple:
        """The chain of modules that a structure stands for."""
        return pick(params, structure)

    def __call__(self, policy: tuple, parts: Mapping[str, Part]) -> Output:
        """Logits and values of a batch."""
        *early, last = policy
        return last(view_of(self.graph, -1, parts), chain(self.graph, early, parts))


@dataclass(frozen=True)
class Chained:
    """Modules without views of their own: the first sees the whole state, each other only the one before it.

    The ablation "MTL Chain" (Appendix E).
    """

    graph: ProblemGraph
    sizes: tuple[int, ...]
    critic: int

    @partial(jax.jit, static_argnums=0)
    def init(self, *, key: PRNGKey) -> tuple[eqx.Module, ...]:
        """A bank of fresh modules; three factors, as the paper's ablation has them."""
        first, second, last = (
            jax.random.split(k, size) for k, size in zip(jax.random.split(key, 3), self.sizes, strict=True)
        )
        channels = sum(part.shape[0] for part in self.graph.state)
        return (
            jax.vmap(lambda key: First(Shallow.init(channels, key=key)))(first),
            jax.vmap(lambda key: ChainedSecond(Conv2x2.init(SHALLOW, DEEP, key=key)))(second),
            jax.vmap(self.last)(last),
        )

    def last(self, key: PRNGKey) -> ChainedLast:
        """A fresh last module."""
        keys = jax.random.split(key)
        actor = Head.init(DEEP, self.graph.actions.size, key=keys[0])
        return ChainedLast(actor, Head.init(DEEP, self.critic, key=keys[1]))

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

    @partial(jax.jit, static_argnums=0)
    def init(self, *, key: PRNGKey) -> tuple[eqx.Module, ...]:
        """Fresh parameters: the chain's, with wider heads."""
        key_chain, key_actor, key_critic = jax.random.split(key, 3)
        *early, last = pick(self.chain.init(key=key_chain), jnp.zeros(len(self.graph.factors), int))
        joined = last.actor.hidden.weight.shape[1] + self.descriptor
        actor = Head.init(joined, self.graph.actions.size, key=key_actor)
        return (*early, Last(last.encoder, actor, Head.init(joined, self.critic, key=key_critic)))

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


def chain(graph: ProblemGraph, early: Sequence[Any], parts: Mapping[str, Part]) -> Float[Array, "..."] | None:
    """The output of all modules but the last, each applied to its view and the output before it."""
    before = None
    for depth, module in enumerate(early):
        before = module(dense(view_of(graph, depth, parts)), before)
    return before


def view_channels(graph: ProblemGraph, depth: int) -> int:
    """How many channels the modules of a factor see."""
    return sum(part.shape[0] for part in graph.state if part.name in graph.factors[depth].sees)


def view_of(graph: ProblemGraph, depth: int, parts: Mapping[str, Part]) -> Part:
    """What the modules of a factor see."""
    names = graph.factors[depth].sees
    return parts[names[0]] if len(names) == 1 else jnp.concatenate([dense(parts[name]) for name in names])
