"""The robot domain as learners see it: the same pure functions as the 2-D world, with MuJoCo behind a host call.

An episode's whole physics is a row of numbers in its state, so `reset` and `step` are functions of arrays like any
other: they can be mapped, scanned, repeated and saved. `jax.vmap` turns a batch into a single call of `Physics`.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int, Int32, UInt32

from modlife.domains.env import Outcome, Part, PRNGKey
from modlife.domains.graph import ProblemGraph
from modlife.domains.robot.physics import ROW, Physics, Step
from modlife.domains.robot.world import OBSERVED, SEEN, SPLITS, RobotWorld

Kind = tuple[Sequence[float], float]
"""What some of the observed numbers are about, and what makes their differences from that about 1."""
PLACE: Kind = ((0.2, 0.0, 0.9), 5.0)
WAY: Kind = ((0.0,) * 3, 10.0)
TURN: Kind = ((0.0,) * 4, 1.0)
POSE = (PLACE, TURN, WAY, TURN)
"""Metres over the table, a quaternion, and both as seen from the hand."""
ARM: tuple[Kind, ...] = (((0.0,) * 14, 1.0), ((0.0,) * 7, 5.0), PLACE, TURN, ((0.0,) * 2, 50.0), ((0.0,) * 2, 5.0))
"""Cosines and sines of the joints, their speeds, the grip, the hand, places and speeds of the fingers."""
KINDS = {"obstacle": POSE, "object": POSE, "goal": (*POSE, WAY), "robot": ARM}
CENTRES = {name: np.concatenate([centre for centre, _ in kinds]).astype(np.float32) for name, kinds in KINDS.items()}
SCALES = {
    name: np.concatenate([np.full(len(centre), scale, np.float32) for centre, scale in kinds])
    for name, kinds in KINDS.items()
}

BITS = 2 * ROW
"""A row of the state has 64-bit numbers, and JAX has 32-bit ones here: it carries their bits."""


class State(eqx.Module):
    """One episode at one moment."""

    task: Int32[Array, " 3"]
    """Component indices: obstacle, object, robot."""
    time: Int32[Array, ""]
    """Steps taken in this episode."""
    row: UInt32[Array, f" {BITS}"]
    """The physics (`physics.ROW` 64-bit numbers)."""
    observation: Float32[Array, f" {OBSERVED}"]


@functools.cache
def physics(world: RobotWorld, workers: int) -> Physics:
    """The simulator that all environments of a world share."""
    return Physics(world, workers=workers)


@dataclass(frozen=True)
class RobotLift:
    """The robot domain as an `Environment`. Equal ones share their simulators and compiled functions."""

    world: RobotWorld
    workers: int = 1
    """Threads that physics runs on; the results do not depend on it."""
    at_once: ClassVar[int] = 1000
    """Steps of a compiled call: about a second on one slow core."""

    @property
    def graph(self) -> ProblemGraph:
        """Obstacle, then object, then robot."""
        return self.world.graph

    @property
    def horizon(self) -> int:
        """Steps after which every episode has ended."""
        return self.world.horizon

    def reset(self, task: Int[Array, " 3"], *, key: PRNGKey) -> State:
        """A first state of a task: the object's place is random."""
        task = task.astype(jnp.int32)
        row, observation, _, _ = self._on_host(self._start, task, jax.random.uniform(key, (3,)))
        return State(task, jnp.int32(0), row, observation)

    def restart(self, state: State, *, key: PRNGKey) -> State:
        """A first state of the task that this state belongs to."""
        return self.reset(state.task, key=key)

    def step(self, state: State, action: Float[Array, " 8"]) -> tuple[State, Outcome]:
        """50 ms of physics. Episodes are never terminated, solved or not: only the horizon ends them."""
        row, observation, reward, success = self._on_host(self._step, state.task, state.row, action)
        time = state.time + 1
        outcome = Outcome(reward, jnp.zeros((), bool), time >= self.horizon, success)
        return State(state.task, time, row, observation), outcome

    def observe(self, state: State) -> Float32[Array, f" {OBSERVED}"]:
        """Obstacle, object, goal and robot, one after the other."""
        return state.observation

    def parts(self, observations: Float32[Array, f"B {OBSERVED}"]) -> dict[str, Part]:
        """The four parts of a batch of observations, the batch last."""
        pieces = jnp.split(observations.T, SPLITS)
        return self.as_inputs({part.name: piece for part, piece in zip(SEEN, pieces, strict=True)})

    def as_inputs(self, seen: Mapping[str, Float32[Array, "n B"]]) -> dict[str, Part]:
        """What networks are given of the parts that are observed."""
        if self.world.inputs == "plain":
            return dict(seen)
        return {name: (part - CENTRES[name][:, None]) * SCALES[name][:, None] for name, part in seen.items()}

    def _on_host(
        self, function: Callable[..., tuple[np.ndarray, ...]], *arguments: Array
    ) -> tuple[Array, Array, Array, Array]:
        """A function of `Physics` inside compiled code; a mapped call arrives there as one batch."""
        shapes = (
            jax.ShapeDtypeStruct((BITS,), jnp.uint32),
            jax.ShapeDtypeStruct((OBSERVED,), jnp.float32),
            jax.ShapeDtypeStruct((), jnp.float32),
            jax.ShapeDtypeStruct((), jnp.bool_),
        )
        return jax.pure_callback(function, shapes, *arguments, vmap_method="broadcast_all")

    def _start(self, task: Array, draws: Array) -> tuple[np.ndarray, ...]:
        tasks, shape = batch_of(task)
        started = physics(self.world, self.workers).start(tasks, batch_of(draws)[0].astype(np.float64))
        return as_bits(started, shape)

    def _step(self, task: Array, row: Array, action: Array) -> tuple[np.ndarray, ...]:
        tasks, shape = batch_of(task)
        rows = batch_of(row)[0].view(np.float64)
        stepped = physics(self.world, self.workers).step(tasks, rows, batch_of(action)[0].astype(np.float64))
        return as_bits(stepped, shape)


def batch_of(array: Array) -> tuple[np.ndarray, tuple[int, ...]]:
    """Rows, and the shape that they were laid out in."""
    host = np.asarray(array)
    return np.ascontiguousarray(host).reshape(-1, host.shape[-1]), host.shape[:-1]


def as_bits(step: Step, shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """What the host gives back, in JAX's types."""
    return (
        step.rows.view(np.uint32).reshape(*shape, BITS),
        step.observation.astype(np.float32).reshape(*shape, OBSERVED),
        step.reward.astype(np.float32).reshape(shape),
        step.success.reshape(shape),
    )
