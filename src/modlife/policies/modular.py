"""Networks as chains of modules: one module per factor, each seeing its part of the state and the output before it.

A network is a value without parameters; parameters are pytrees that it makes (`init`), narrows to one task (`pick`)
and applies to a batch of observations (`__call__`). What the modules are made of, the domain brings (`Modules`).
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import nn
from jaxtyping import Array, Float, Int, Integer

from modlife.arrays import ints, zeros
from modlife.domains.env import Choice, Part, PRNGKey
from modlife.domains.graph import Discrete, Factor, ProblemGraph
from modlife.domains.graph import Part as StatePart
from modlife.errors import InputError
from modlife.policies.bank import Bank, Chain
from modlife.policies.distributions import Categorical, Gaussian, log_softmax
from modlife.policies.layers import Linear, host_generator
from modlife.types import Critic, Structure

Pattern = tuple[bool, ...]
"""Which modules of a chain move."""


class Output(eqx.Module):
    """What a network says of a batch of observations where actions are a few."""

    logits: Float[Array, "A B"]
    values: Float[Array, "Q B"]
    """Q for each action, or a single row with V."""

    @property
    def value(self) -> Float[Array, " B"]:
        """V(s): the largest Q, with the gradient going through that one only; or V itself."""
        return self.values.max(axis=0)

    @property
    def distribution(self) -> Categorical:
        """How the actor acts."""
        return Categorical(log_softmax(self.logits))

    def worth(self, *, key: PRNGKey) -> Float[Array, "1 B"]:
        """V by each critic, of which there is one."""
        return self.value[None]

    def valued(self, action: Integer[Array, " B"]) -> Float[Array, "Q B"]:
        """What the critic says that can be cloned: of every action, or V."""
        return self.values


VALUE_ACTIONS = 10
"""Actions of which the mean is a state's value, where critics take an action."""


class GaussianOutput(eqx.Module):
    """What a network says of a batch of observations where actions are real numbers."""

    mean: Float[Array, "A B"]
    log_std: Float[Array, " A"]
    value: Float[Array, " B"] | None
    """V; None where critics take an action."""
    critics: tuple[Any, ...] = ()
    """Each an `eqx.Module`, called with actions, one for each sample or several: Q, all else computed."""

    @property
    def distribution(self) -> Gaussian:
        """How the actor acts."""
        return Gaussian(self.mean, self.log_std)

    def worth(self, *, key: PRNGKey) -> Float[Array, "critics B"]:
        """V by each critic: the mean of Q over actions that the actor, which learns nothing by it, might take."""
        if self.value is not None:
            return self.value[None]
        drawn = self.drawn(VALUE_ACTIONS, key=key)
        return jnp.stack([critic(drawn).mean(axis=0) for critic in self.critics])

    def drawn(self, count: int, *, key: PRNGKey) -> Float[Array, "A count B"]:
        """Actions that the actor might take."""
        size, batch = self.mean.shape
        noise = jnp.exp(self.log_std)[:, None, None] * jax.random.normal(key, (size, count, batch))
        return jax.lax.stop_gradient(self.mean)[:, None] + noise

    def valued(self, action: Float[Array, "B A"]) -> Float[Array, "critics B"]:
        """What critics say that can be cloned: Q of an action, or V."""
        if self.value is not None:
            return self.value[None]
        return jnp.stack([critic(action.T) for critic in self.critics])


AnyOutput = Output | GaussianOutput


class Apart(eqx.Module):
    """A module of several networks that share nothing but the structure: the actor's first, then the critics'."""

    networks: tuple[Any, ...]


def of_actor(params: Any) -> Any:
    """For each array of parameters, whether it is the actor's alone."""

    def one(node: Any) -> Any:
        none = jax.tree.map(lambda _: False, node)
        if not isinstance(node, Apart):
            return none
        return eqx.tree_at(lambda apart: apart.networks[0], none, jax.tree.map(lambda _: True, node.networks[0]))

    return jax.tree.map(one, params, is_leaf=lambda node: isinstance(node, Apart))


@runtime_checkable
class Network(Protocol):
    """What learners know of a network."""

    def init(self, *, key: PRNGKey) -> Any:
        """Fresh parameters."""
        ...

    def pick(self, params: Any, structure: Int[Array, " F"]) -> Any:
        """The parameters of the policy that a structure stands for."""
        ...

    def __call__(self, policy: Any, parts: Mapping[str, Part]) -> AnyOutput:
        """What a policy says of a batch, from the parts of its observations."""
        ...


@runtime_checkable
class Modules(Protocol):
    """What a domain's networks are made of: a frozen, hashable value."""

    def module(self, graph: ProblemGraph, depth: int, *, critic: int, rng: np.random.Generator) -> eqx.Module:
        """A fresh module of the factor at this depth, called with its view and the output before it (None at first).

        What it gives is a pytree, since calls are compiled. The last one gives an `Output` or `GaussianOutput`, and may
        be given a task's descriptor as third argument. `critic` is the number of its values: one per action for Q, 1
        for V. Where actions are real numbers, 1 is V and 2 are two critics that take the action.
        """
        ...

    tells_each: ClassVar[bool] = False
    """Whether, in a network for all tasks, each module is told its own component; else the last is told all."""

    def told(self, last: Any, graph: ProblemGraph, width: int, *, critic: int, rng: np.random.Generator) -> eqx.Module:
        """The last module made to take a descriptor of this width; asked if it is the one that is told."""
        return last

    def scaled(self, last: Any, factor: float) -> Any:
        """The last module with other output layers: scaled down, it says little, whatever it has learnt."""
        ...

    def linear(self, size_in: int, size_out: int, *, rng: np.random.Generator) -> Linear:
        """A fresh linear layer, drawn as those of the modules are."""
        return Linear.init(size_in, size_out, rng=rng)

    def timid(self, last: Any) -> Any:
        """The last module of a fresh active column (`policies.columns`), whose lateral connections may say little."""
        return last

    def view(self, graph: ProblemGraph, depth: int, parts: Mapping[str, Part]) -> Part | None:
        """What the modules of a factor see: usually its parts of the state, one after the other."""
        names = graph.factors[depth].sees
        return parts[names[0]] if len(names) == 1 else jnp.concatenate([dense(parts[name]) for name in names])

    def width(self, graph: ProblemGraph, depth: int, *, critic: int) -> int:
        """How many numbers per sample come out of the module before a depth; 0 before the first."""
        ...


@jax.jit
def applied(module: Any, *given: Any) -> Any:
    """What a module makes of its view, the output before it, and what else it is told; traced once for each shape."""
    return module(*given)


@dataclass(frozen=True)
class Modular:
    """A bank of modules; a policy is a chain of one module per factor."""

    graph: ProblemGraph
    sizes: tuple[int, ...]
    """Modules per factor."""
    critic: int
    """Rows of the critic's output: one per action for Q, 1 for V."""
    modules: Modules

    @staticmethod
    def with_q(graph: ProblemGraph, sizes: tuple[int, ...], modules: Modules) -> "Modular":
        """The network whose critic tells the value of each action, or whose two critics take it."""
        return Modular(graph, sizes, q_critic(graph), modules)

    def init(self, *, key: PRNGKey) -> Bank:
        """A bank of fresh modules."""
        fresh = partial(self.modules.module, self.graph, critic=self.critic, rng=host_generator(key))
        return Bank.of([[fresh(depth) for _ in range(size)] for depth, size in enumerate(self.sizes)])

    def pick(self, params: Bank, structure: Structure | Int[Array, " F"]) -> Chain:
        """The chain of modules that a structure stands for."""
        return params.pick(structure)

    def __call__(self, policy: Chain, parts: Mapping[str, Part]) -> AnyOutput:
        """What a chain says of a batch."""
        return self.onward(policy, parts, None, depth=0)

    def features(self, policy: Chain, parts: Mapping[str, Part], *, depth: int) -> Float[Array, "n B"]:
        """What the modules before a depth (1 or more) make of a batch; `onward` takes it from there."""
        before = self.chain(policy[:depth], parts, None, depth=0)
        assert before is not None
        return before.reshape(-1, before.shape[-1])

    def onward(
        self, policy: Chain, parts: Mapping[str, Part], features: Float[Array, "n B"] | None, *, depth: int
    ) -> AnyOutput:
        """What a chain says of a batch, from the features that the modules before a depth made of it."""
        *early, last = policy
        before = self.chain(early[depth:], parts, features, depth=depth)
        return applied(last, self.view(len(early), parts), before)

    def chain(
        self, modules: Sequence[Any], parts: Mapping[str, Part], before: Float[Array, "..."] | None, *, depth: int
    ) -> Float[Array, "..."] | None:
        """The output of consecutive modules from a depth on, each applied to its view and the output before it."""
        for here, module in enumerate(modules, start=depth):
            before = applied(module, self.view(here, parts), before)
        return before

    def view(self, depth: int, parts: Mapping[str, Part]) -> Part | None:
        """What the modules of a factor see."""
        return self.modules.view(self.graph, depth, parts)

    def width(self, depth: int) -> int:
        """How many features the modules before a depth give."""
        return self.modules.width(self.graph, depth, critic=self.critic)

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """All patterns with at least one moving module, in the order of the first that moves."""
        moving = itertools.product((False, True), repeat=len(self.sizes))
        return tuple(sorted((pattern for pattern in moving if any(pattern)), reverse=True))


@dataclass(frozen=True)
class OnePolicy:
    """A network whose parameters are a single policy of another, whatever structure is asked for."""

    network: Network

    def init(self, *, key: PRNGKey) -> Any:
        """A fresh policy."""
        params = self.network.init(key=key)
        return self.network.pick(params, zeros(len(params.sizes), dtype=np.int32))

    def pick(self, params: Any, structure: Int[Array, " F"]) -> Any:
        """The policy."""
        return params

    def __call__(self, policy: Any, parts: Mapping[str, Part]) -> AnyOutput:
        """What it says of a batch."""
        return self.network(policy, parts)


@dataclass(frozen=True)
class Monolithic:
    """One network for all tasks: the modular chain with one module per factor, told the task by a descriptor."""

    graph: ProblemGraph
    critic: int
    modules: Modules
    descriptor: int = 16
    """Width of the descriptor, with a 1 for each component of the task; the paper's parameter counts have 16."""

    def __post_init__(self) -> None:
        if self.descriptor < sum(self.graph.shape):
            raise InputError(f"A descriptor of {self.descriptor} cannot hold {sum(self.graph.shape)} components.")

    @staticmethod
    def usual(graph: ProblemGraph, modules: Modules) -> "Monolithic":
        """As the paper's: the last is told, with a state value; or each is told, with critics that take the action."""
        return Monolithic.with_critic(graph, modules, q_critic(graph) if modules.tells_each else 1)

    @staticmethod
    def with_critic(graph: ProblemGraph, modules: Modules, critic: int) -> "Monolithic":
        """With so many rows of the critic."""
        return Monolithic(graph, critic, modules, max(16, sum(graph.shape)))

    @property
    def chain(self) -> Modular:
        """The same network, whose modules see what they are told where each is told something."""
        graph = telling(self.graph) if self.modules.tells_each else self.graph
        return Modular(graph, (1,) * len(self.graph.factors), self.critic, self.modules)

    def init(self, *, key: PRNGKey) -> Chain:
        """Fresh parameters: the chain's, with wider heads."""
        rng = host_generator(key)
        fresh = partial(self.modules.module, self.chain.graph, critic=self.critic, rng=rng)
        *early, last = map(fresh, range(len(self.graph.factors)))
        if self.modules.tells_each:
            return (*early, last)
        return (*early, self.modules.told(last, self.graph, self.descriptor, critic=self.critic, rng=rng))

    def pick(self, params: Chain, structure: Structure | Int[Array, "*B F"]) -> tuple[Chain, Array]:
        """The whole network, with the descriptor of the task that has these component indices; or one per sample."""
        return (params, self.described(jnp.asarray(structure)))

    def described(self, structures: Int[Array, "*B F"]) -> Float[Array, "*B D"]:
        """The descriptors of tasks."""
        starts = np.cumsum([0, *self.graph.shape[:-1]])
        shifted = structures + jnp.asarray(starts, structures.dtype).reshape(*[1] * (structures.ndim - 1), -1)
        return nn.one_hot(shifted, self.descriptor).sum(axis=-2)

    def __call__(self, policy: tuple[Chain, Array], parts: Mapping[str, Part]) -> AnyOutput:
        """What it says of a batch, of one task or of a task for each sample."""
        (*early, last), hot = policy
        some = next(iter(parts.values()))
        batch = (some.index if isinstance(some, Choice) else some).shape[-1]
        descriptor = jnp.broadcast_to(hot[:, None] if hot.ndim == 1 else hot.T, (self.descriptor, batch))
        if self.modules.tells_each:
            return self.chain((*early, last), {**parts, **self.each(descriptor)})
        view = self.chain.view(len(early), parts)
        return applied(last, view, self.chain.chain(early, parts, None, depth=0), descriptor)

    def each(self, descriptor: Float[Array, "D B"]) -> dict[str, Part]:
        """What each factor's module is told, of a descriptor of all."""
        pieces = jnp.split(descriptor, np.cumsum(self.graph.shape))
        return {told_part(factor): piece for factor, piece in zip(self.graph.factors, pieces, strict=False)}


def q_critic(graph: ProblemGraph) -> int:
    """Rows of a critic that tells what actions are worth: one per action; or two critics that take the action."""
    return graph.actions.size if isinstance(graph.actions, Discrete) else 2


def critic_of(graph: ProblemGraph, critic: Critic) -> int:
    """Rows of a critic that tells what actions, or only what states are worth."""
    return q_critic(graph) if critic == "actions" else 1


def tells_actions(graph: ProblemGraph, critic: int) -> bool:
    """Whether critics of so many rows tell what actions are worth."""
    return critic == q_critic(graph)


def told_part(factor: Factor) -> str:
    """The name of the part of the state that tells a factor's component."""
    return f"told-{factor.name}"


def telling(graph: ProblemGraph) -> ProblemGraph:
    """The graph in which the modules of each factor also see which component it is."""
    more = tuple(StatePart(told_part(factor), (len(factor.components),)) for factor in graph.factors)
    factors = tuple(replace(factor, sees=(*factor.sees, told_part(factor))) for factor in graph.factors)
    return replace(graph, factors=factors, state=(*graph.state, *more))


@dataclass(frozen=True)
class Described:
    """A monolithic network as learners from replay know networks: a chain of itself, which moves, and a descriptor.

    The bank has one network and the descriptor of each task; task number n has the structure (0, n).
    """

    network: Monolithic

    @property
    def critic(self) -> int:
        """How many numbers its critic gives."""
        return self.network.critic

    def bank(self, params: Chain, tasks: Sequence[Structure], *, room: int) -> Bank:
        """The bank of these tasks, by their component indices, and of some more that there is room for."""
        filled = ints([tasks[n % len(tasks)] for n in range(room)])
        return Bank((jax.tree.map(lambda leaf: leaf[None], params), self.network.described(filled)))

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """The network always moves; the descriptor is the task's in hand, or another."""
        return ((True, True), (True, False))

    def width(self, depth: int) -> int:
        """Nothing comes before the network."""
        return 0

    def features(self, policy: Chain, parts: Mapping[str, Part], *, depth: int) -> Float[Array, "n B"]:
        """Never asked for."""
        raise NotImplementedError("Nothing comes before the network.")

    def onward(
        self, policy: Chain, parts: Mapping[str, Part], features: Float[Array, "n B"] | None, *, depth: int
    ) -> AnyOutput:
        """What the network says of a batch; nothing is differentiated by the descriptor."""
        params, hot = policy
        return self.network((params, jax.lax.stop_gradient(hot)), parts)

    def __call__(self, policy: Chain, parts: Mapping[str, Part]) -> AnyOutput:
        """The same."""
        return self.onward(policy, parts, None, depth=0)


def dense(view: Part) -> Float[Array, "..."]:
    """The view written out for each sample."""
    return view.values[..., view.index] if isinstance(view, Choice) else view


def view_size(graph: ProblemGraph, depth: int, *, axes: slice) -> int:
    """How many numbers a factor sees along some axes of its parts."""
    return sum(math.prod(part.shape[axes]) for part in graph.state if part.name in graph.factors[depth].sees)
