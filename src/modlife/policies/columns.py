"""Two columns: a network that learns, beside one that is frozen and lends it what it computes on the way.

    y = f(x) + g * W₂ act(W₁ z)        f, x: a layer of the active column and its input; z: the input of the same
                                       layer of the frozen column; g: a gate for each output

Every layer of the active column but the first of each module has such a lateral connection. Both columns run at once,
side by side in the batch: modules do not know of it. Schwarz et al. 2018, as the paper's authors built it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import nn
from jaxtyping import Array, Float, Int

from modlife.arrays import floats
from modlife.domains.env import Choice, Part, PRNGKey
from modlife.policies.bank import Chain
from modlife.policies.layers import Conv2x2, Linear, alike, host_generator
from modlife.policies.modular import AnyOutput, Apart, GaussianOutput, Modules, Monolithic, Output

Layer = Linear | Conv2x2
GATE = 0.1
"""Gates are drawn between 0 and this."""


class Beside(eqx.Module):
    """A layer of the active column, with its lateral connection; of a convolution, W₁ looks at single cells."""

    layer: Layer
    first: Float[Array, "out in"]
    second: Float[Array, "out more"]
    gate: Float[Array, " out"]

    @staticmethod
    def of(layer: Layer, modules: Modules, *, rng: np.random.Generator) -> "Beside":
        """Fresh weights, drawn as those of the domain's layers of this kind are."""
        size_out, size_in = layer.weight.shape
        gate = floats(rng.uniform(0, GATE, size_out))
        if isinstance(layer, Linear):
            first, second = (modules.linear(size, size_out, rng=rng).weight for size in (size_in, size_out))
            return Beside(layer, first, second, gate)
        bound = (size_in // 4) ** -0.5
        first = floats(rng.uniform(-bound, bound, (size_out, size_in // 4)))
        return Beside(layer, first, Conv2x2.init(size_out, size_out, rng=rng).weight, gate)

    def scaled(self, factor: float) -> "Beside":
        """With smaller, or larger, lateral weights and gates."""
        return Beside(self.layer, factor * self.first, factor * self.second, factor * self.gate)

    def lateral(self, z: Float[Array, "in *more"]) -> Float[Array, "out *other"]:
        """What it takes from the frozen column; the activation between is that of the layer's kind."""
        inner = jnp.tensordot(self.first, z, axes=1)
        if isinstance(self.layer, Linear):
            given = jnp.tensordot(self.second, jnp.tanh(inner), axes=1)
        else:
            given = Conv2x2(self.second, jnp.zeros(len(self.gate)))(nn.relu(inner))
        return self.gate.reshape(-1, *[1] * (given.ndim - 1)) * given


class Twin(eqx.Module):
    """The same layer of both columns; the first half of a batch is the active column's, the second the frozen one's."""

    active: Layer | Beside
    frozen: Layer

    def __call__(self, x: Float[Array, "in *more"]) -> Float[Array, "out *other"]:
        """Applies it to a batch."""
        mine, base = jnp.split(x, 2, axis=-1)
        if isinstance(self.active, Beside):
            found = self.active.layer(mine) + self.active.lateral(base)
        else:
            found = self.active(mine)
        return jnp.concatenate([found, self.frozen(base)], axis=-1)

    def after(self, known: Float[Array, "k B"], more: Float[Array, "m *S B"]) -> Float[Array, "out *S B"]:
        """As `Linear.after`; a lateral connection takes both at once."""
        if isinstance(self.active, Linear) and isinstance(self.frozen, Linear):
            halves = [jnp.split(both, 2, axis=-1) for both in (known, more)]
            layers = zip((self.active, self.frozen), *halves, strict=True)
            return jnp.concatenate([layer.after(one, other) for layer, one, other in layers], axis=-1)
        spread = jnp.broadcast_to(alike(known, more), (len(known), *more.shape[1:]))
        return self(jnp.concatenate([spread, more]))

    def pooled(self, x: Float[Array, "in h w B"]) -> Float[Array, "out *other"]:
        """As `Conv2x2.pooled`; only first layers of modules are pooled."""
        assert isinstance(self.active, Conv2x2) and isinstance(self.frozen, Conv2x2)
        mine, base = jnp.split(x, 2, axis=-1)
        return jnp.concatenate([self.active.pooled(mine), self.frozen.pooled(base)], axis=-1)


class Columns(eqx.Module):
    """The parameters of both."""

    active: Chain
    """A chain whose layers, but for the first of each module, are `Beside`."""
    frozen: Chain


@dataclass(frozen=True)
class TwoColumns:
    """The network of the active column; nothing is differentiated by the frozen one's parameters."""

    column: Monolithic

    def init(self, *, key: PRNGKey) -> Columns:
        """Fresh columns."""
        key_active, key_frozen = jax.random.split(key)
        return Columns(self.fresh(key=key_active), self.column.init(key=key_frozen))

    def fresh(self, *, key: PRNGKey) -> Chain:
        """A fresh active column."""
        key_column, key_beside = jax.random.split(key)
        rng = host_generator(key_beside)
        modules = self.column.modules
        *early, last = (beside(module, modules, rng) for module in self.column.init(key=key_column))
        return (*early, modules.timid(last))

    def pick(self, params: Columns, structure: Int[Array, " F"]) -> tuple[Columns, Array]:
        """Both columns, with the descriptor of a task."""
        return (params, self.column.described(jnp.asarray(structure)))

    def __call__(self, policy: tuple[Columns, Array], parts: Mapping[str, Part]) -> AnyOutput:
        """What the active column says of a batch."""
        columns, hot = policy
        frozen = jax.lax.stop_gradient(columns.frozen)
        twins = jax.tree.map(Twin, columns.active, frozen, is_leaf=is_layer)
        output = self.column((twins, hot), {name: twice(part) for name, part in parts.items()})
        return first_half(output)


def is_layer(node: Any) -> bool:
    """Whether this is one layer of a column."""
    return isinstance(node, Linear | Conv2x2 | Beside)


def beside(module: Any, modules: Modules, rng: np.random.Generator) -> Any:
    """A module with lateral connections at every layer but its first; of several networks, at those of each."""
    if isinstance(module, Apart):
        networks = tuple(beside(network, modules, rng) for network in module.networks)
        return eqx.tree_at(lambda apart: apart.networks, module, networks)
    layers, structure = jax.tree.flatten(module, is_leaf=is_layer)
    return jax.tree.unflatten(structure, [layers[0], *(Beside.of(layer, modules, rng=rng) for layer in layers[1:])])


def twice(part: Part) -> Part:
    """A view for both columns."""
    if isinstance(part, Choice):
        values, index = (jnp.concatenate([one, one], axis=-1) for one in (part.values, part.index))
        shift = jnp.repeat(jnp.arange(2), part.index.shape[-1]) * part.values.shape[-1]
        return Choice(values, index + shift.astype(index.dtype))
    return jnp.concatenate([part, part], axis=-1)


def first_half(output: AnyOutput) -> AnyOutput:
    """What was said of the first half of a batch."""

    def half(rows: Array) -> Array:
        return jnp.split(rows, 2, axis=-1)[0]

    if isinstance(output, Output):
        return Output(half(output.logits), half(output.values))
    value = None if output.value is None else half(output.value)
    return GaussianOutput(half(output.mean), output.log_std, value, tuple(map(FirstCritic, output.critics)))


class FirstCritic(eqx.Module):
    """A critic of the first half of a batch; the frozen column, too, is asked about the action."""

    critic: Any

    def __call__(self, action: Float[Array, "A *S B"]) -> Float[Array, "*S B"]:
        """What actions are worth."""
        return jnp.split(self.critic(jnp.concatenate([action, action], axis=-1)), 2, axis=-1)[0]
