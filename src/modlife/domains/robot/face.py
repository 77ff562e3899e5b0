"""Observations of robot tasks as they look from outside: for exported policies and data sets."""

from dataclasses import dataclass

import jax.numpy as jnp
from gymnasium import spaces
from jaxtyping import Array, Float32

from modlife.domains.env import Part
from modlife.domains.robot.environment import RobotLift
from modlife.domains.robot.gym import spaces_of
from modlife.domains.robot.world import SEEN, SPLITS


@dataclass(frozen=True)
class RobotFace:
    """Observations as the environments of `gym` give them (`exports.face.Face`): never scaled."""

    env: RobotLift

    @property
    def observation_space(self) -> spaces.Dict:
        """A vector for each part."""
        return spaces_of()[0]

    def seen(self, observations: Float32[Array, "B 77"]) -> dict[str, Array]:
        """The parts of a batch."""
        pieces = jnp.split(observations, SPLITS, axis=-1)
        return {part.name: piece for part, piece in zip(SEEN, pieces, strict=True)}

    def parts(self, seen: dict[str, Array]) -> dict[str, Part]:
        """What networks are given of them, the batch last."""
        return self.env.as_inputs({name: part.T for name, part in seen.items()})
