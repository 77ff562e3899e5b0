"""A hall that is walked along: where to, from where, and what the actions do are its three factors."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from modlife.domains.env import Outcome, Part, PRNGKey
from modlife.domains.graph import Discrete, Factor, ProblemGraph
from modlife.domains.graph import Part as StatePart
from modlife.policies.dense_modules import DenseModules


@dataclass(frozen=True)
class Hall:
    """A hall."""

    horizon: int = 8
    """Steps after which an episode is cut off."""

    @property
    def graph(self) -> ProblemGraph:
        return ProblemGraph(
            name="hall",
            factors=(
                Factor("start", ("near", "far"), sees=("place",)),
                Factor("end", ("west", "east"), sees=("place",)),
                Factor("feet", ("plain", "crossed"), sees=("last",)),
            ),
            state=(StatePart("place", (1,)), StatePart("last", (1,))),
            actions=Discrete(("back", "on", "stay")),
        )


class State(eqx.Module):
    """One episode at one moment."""

    task: Int[Array, " 3"]
    place: Float[Array, ""]
    last: Float[Array, ""]
    time: Int[Array, ""]


@dataclass(frozen=True)
class HallEnv:
    """The rules: ends are at -2 and 2; the reward falls with the distance to the right one."""

    world: Hall

    @property
    def graph(self) -> ProblemGraph:
        return self.world.graph

    @property
    def horizon(self) -> int:
        return self.world.horizon

    def reset(self, task: Int[Array, " 3"], *, key: PRNGKey) -> State:
        task = task.astype(jnp.int32)
        away = (1 + task[0]).astype(jnp.float32) / 2
        return State(task, away * jax.random.uniform(key, minval=-1.0), jnp.float32(0), jnp.int32(0))

    def restart(self, state: State, *, key: PRNGKey) -> State:
        return self.reset(state.task, key=key)

    def step(self, state: State, action: Int[Array, ""]) -> tuple[State, Outcome]:
        side = (2 * state.task - 1).astype(jnp.float32)
        move = jnp.where(action == 2, 0.0, side[2] * (2 * action - 1).astype(jnp.float32))
        place, time = jnp.clip(state.place + move, -2.0, 2.0), state.time + 1
        distance = jnp.abs(place - 2 * side[1])
        there = distance < 0.5
        outcome = Outcome(1 - distance / 4, there, (time >= self.horizon) & ~there, there)
        return State(state.task, place, move, time), outcome

    def observe(self, state: State) -> Float[Array, " 2"]:
        return jnp.stack([state.place, state.last])

    def parts(self, observations: Float[Array, "B 2"]) -> dict[str, Part]:
        return {"place": observations.T[:1], "last": observations.T[1:]}


def small_modules() -> DenseModules:
    """Of a few units."""
    return DenseModules(units=8)
