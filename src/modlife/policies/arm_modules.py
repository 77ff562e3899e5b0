"""The paper's modules for robot arms (Appendix D.2): dense layers with tanh, actor and critics completely apart.

    first factor    h = tanh(W x)
    between         h = tanh(W [h, tanh(W' x)])
    last            u = tanh(W₂ tanh(W₁ x)),   mean = tanh(W [h, u]),   V = W [h, u];   in Q the action joins x

Each network goes through the chain by itself: what modules pass on is the actor's numbers, then those of each critic.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from modlife.domains.env import Part
from modlife.domains.graph import ProblemGraph
from modlife.policies.layers import Linear
from modlife.policies.modular import Apart, GaussianOutput, Modules, dense, view_size

EARLY, LATE = 32, 64
"""Units of layers before the last factor, and in it."""
TIMID = 0.01
"""A fresh actor's output layer is scaled by this: it says nearly nothing, and chance decides."""


@dataclass(frozen=True)
class ArmModules(Modules):
    """For actions that are real numbers; in a network for all tasks each module is told its own component."""

    log_std: tuple[float, ...]
    """Logarithm of the spread of each action, fixed."""
    tells_each: ClassVar[bool] = True

    def module(self, graph: ProblemGraph, depth: int, *, critic: int, rng: np.random.Generator) -> eqx.Module:
        """A fresh module of the factor at this depth."""
        seen = view_size(graph, depth, axes=slice(None))
        if depth == len(graph.factors) - 1:
            return self.last(graph, seen, critic, rng)
        kind: Callable[..., Any] = Between.init if depth else First.init
        return Early(tuple(kind(seen, rng=rng) for _ in range(1 + critic)))

    def last(self, graph: ProblemGraph, seen: int, critic: int, rng: np.random.Generator) -> "Last":
        """A fresh module of the last factor; several critics take the action."""
        size, before = graph.actions.size, EARLY if len(graph.factors) > 1 else 0
        arm = partial(Arm.init, before=before, rng=rng)
        actor, takes = arm(seen, out=size).scaled(TIMID), size if critic > 1 else 0
        return Last((actor, *(arm(seen + takes, out=1) for _ in range(critic))), self.log_std)

    def scaled(self, last: "Last", factor: float) -> "Last":
        """With other output layers of actor and critics."""
        return Last(tuple(one.scaled(factor) for one in last.networks), last.log_std)

    def linear(self, size_in: int, size_out: int, *, rng: np.random.Generator) -> Linear:
        """As all layers of arms."""
        return Linear.glorot(size_in, size_out, rng=rng)

    def timid(self, last: Any) -> Any:
        """With an actor's output layer that takes nearly nothing from another column, as it says nearly nothing."""
        return eqx.tree_at(lambda last: last.networks[0].out, last, replace_fn=lambda out: out.scaled(TIMID))

    def width(self, graph: ProblemGraph, depth: int, *, critic: int) -> int:
        """What the networks of the actor and of each critic pass on."""
        return (1 + critic) * EARLY if depth else 0


def arm_modules() -> ArmModules:
    """As the paper has them: a spread of 1 for seven joints, and a smaller one for the fingers."""
    return ArmModules((*[0.0] * 7, -0.5))


class First(eqx.Module):
    """One network's module of the first factor."""

    layer: Linear

    @staticmethod
    def init(seen: int, *, rng: np.random.Generator) -> "First":
        """Fresh parameters."""
        return First(Linear.glorot(seen, EARLY, rng=rng))

    def __call__(self, view: Float[Array, "n B"], before: None) -> Float[Array, "32 B"]:
        """Applies it to a batch."""
        return jnp.tanh(self.layer(view))


class Between(eqx.Module):
    """One network's module of a factor between the first and the last."""

    view: Linear
    join: Linear

    @staticmethod
    def init(seen: int, *, rng: np.random.Generator) -> "Between":
        """Fresh parameters."""
        return Between(Linear.glorot(seen, EARLY, rng=rng), Linear.glorot(2 * EARLY, EARLY, rng=rng))

    def __call__(self, view: Float[Array, "n B"], before: Float[Array, "32 B"]) -> Float[Array, "32 B"]:
        """Applies it to a batch."""
        return jnp.tanh(self.join(jnp.concatenate([before, jnp.tanh(self.view(view))])))


class Early(Apart):
    """A module before the last."""

    def __call__(self, view: Part, before: Float[Array, "n B"] | None) -> Float[Array, "m B"]:
        """Applies each network to the view and to its own part of what came before."""
        seen, pieces = dense(view), parts_of(before, len(self.networks))
        return jnp.concatenate([network(seen, piece) for network, piece in zip(self.networks, pieces, strict=True)])


class Arm(eqx.Module):
    """One network's module of the last factor."""

    first: Linear
    second: Linear
    out: Linear

    @staticmethod
    def init(seen: int, *, before: int, out: int, rng: np.random.Generator) -> "Arm":
        """Fresh parameters."""
        layer = partial(Linear.glorot, rng=rng)
        return Arm(layer(seen, LATE), layer(LATE, LATE), layer(before + LATE, out))

    def __call__(self, view: Float[Array, "n B"], before: Float[Array, "k B"]) -> Float[Array, "out B"]:
        """Applies it to a batch."""
        inner = jnp.tanh(self.second(jnp.tanh(self.first(view))))
        return self.out(jnp.concatenate([before, inner]))

    def scaled(self, factor: float) -> "Arm":
        """With another output layer."""
        return Arm(self.first, self.second, self.out.scaled(factor))


class ArmCritic(eqx.Module):
    """Q of a batch of observations (`policies.modular.GaussianOutput.critics`)."""

    arm: Arm
    view: Float[Array, "n B"]
    before: Float[Array, "k B"]

    def __call__(self, action: Float[Array, "A *S B"]) -> Float[Array, "*S B"]:
        """What actions are worth; what is seen is multiplied once for all."""
        inner = jnp.tanh(self.arm.second(jnp.tanh(self.arm.first.after(self.view, action))))
        return self.arm.out.after(self.before, inner)[0]


class Last(Apart):
    """The module of the last factor: actor and critics."""

    log_std: tuple[float, ...] = eqx.field(static=True)

    def __call__(self, view: Part, before: Float[Array, "n B"] | None) -> GaussianOutput:
        """Applies it to a batch."""
        seen, (actor, *critics) = dense(view), self.networks
        none = jnp.zeros((0, seen.shape[-1]))
        mine, *theirs = [none if one is None else one for one in parts_of(before, len(self.networks))]
        mean, spread = jnp.tanh(actor(seen, mine)), jnp.array(self.log_std)
        pairs = list(zip(critics, theirs, strict=True))
        if len(pairs) == 1:
            return GaussianOutput(mean, spread, pairs[0][0](seen, pairs[0][1])[0])
        return GaussianOutput(mean, spread, None, tuple(ArmCritic(one, seen, piece) for one, piece in pairs))


def parts_of(before: Float[Array, "n B"] | None, count: int) -> list[Any]:
    """What each of some networks passed on."""
    return [None] * count if before is None else jnp.split(before, count)
