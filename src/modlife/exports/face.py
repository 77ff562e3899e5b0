"""Observations as they look from outside: plain arrays as Gymnasium gives them, the batch first."""

import copy
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import gymnasium
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from modlife.domains.domain import Domain
from modlife.domains.env import Environment, Part
from modlife.domains.graph import Continuous, Discrete
from modlife.policies.modular import dense
from modlife.types import Pytree, Task


@runtime_checkable
class Face(Protocol):
    """What a domain's Gymnasium environments show; `Domain.face` makes it from an environment."""

    @property
    def observation_space(self) -> spaces.Space[Any]:
        """An array, or a dictionary of arrays."""
        ...

    def seen(self, observations: Pytree) -> Any:
        """A batch of an environment's observations as elements of that space."""
        ...

    def parts(self, seen: Any) -> dict[str, Part]:
        """What networks take, from a batch of such elements."""
        ...


@dataclass(frozen=True)
class PartsFace:
    """A dictionary of the named parts of the state: what every domain has."""

    env: Environment

    @property
    def observation_space(self) -> spaces.Dict:
        """A vector, or a field, of real numbers for each part."""
        parts = self.env.graph.state
        return spaces.Dict({part.name: spaces.Box(-np.inf, np.inf, part.shape, np.float32) for part in parts})

    def seen(self, observations: Pytree) -> dict[str, Any]:
        """The parts, each with the batch as its first axis."""
        parts = self.env.parts(observations)
        return {name: jnp.moveaxis(dense(part), -1, 0).astype(jnp.float32) for name, part in parts.items()}

    def parts(self, seen: dict[str, Any]) -> dict[str, Part]:
        """The same with the batch as last axis."""
        return {name: jnp.moveaxis(part, 0, -1) for name, part in seen.items()}


def face_of(domain: Domain, env: Environment) -> Face:
    """How a domain's observations look from outside."""
    return domain.of("face", env) if domain.face else PartsFace(env)


def action_space(actions: Discrete | Continuous) -> spaces.Space[Any]:
    """Where actions come from. Real numbers are as policies draw them: without bounds, which environments may have."""
    if isinstance(actions, Discrete):
        return spaces.Discrete(actions.size)
    return spaces.Box(-np.inf, np.inf, (actions.size,), np.float32)


def spec_of(domain: Domain, world: Any, task: Task) -> EnvSpec | None:
    """How Gymnasium makes the environment of a task; None where a domain has registered none."""
    if not domain.gym:
        return None
    spec, usual = copy.copy(gymnasium.spec(domain.gym)), domain.usual_world()  # the one that is registered stays
    options = {name: value for name, value in vars(world).items() if value != getattr(usual, name)}
    chosen = zip(world.graph.factors, task.components, strict=True)
    spec.kwargs = {**{factor.name: component for factor, component in chosen}, **options}
    return spec
