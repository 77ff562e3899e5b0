"""A domain with real-valued actions and two factors: where to go, and what the actions do."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from PIL import Image, ImageDraw

from modlife.domains.env import Outcome, Part, PRNGKey
from modlife.domains.graph import Continuous, Factor, ProblemGraph
from modlife.domains.graph import Part as StatePart
from modlife.domains.pictures import Picture, captioned, contact_sheet

TARGETS = {"east": (1.0, 0.0), "north": (0.0, 1.0), "west": (-1.0, 0.0)}
STEERING = {
    "plain": ((1.0, 0.0), (0.0, 1.0)),
    "mirrored": ((-1.0, 0.0), (0.0, 1.0)),
    "turned": ((0.0, -1.0), (1.0, 0.0)),
}


@dataclass(frozen=True)
class Reach:
    """Which tasks there are: its fields become the options `--world.horizon` and so on."""

    horizon: int = 12
    """Steps after which an episode is cut off."""
    speed: float = 0.3
    """How far an action moves the point."""

    @property
    def graph(self) -> ProblemGraph:
        """Factors in the order of the chain, what each sees, and the actions."""
        return ProblemGraph(
            name="reach",
            factors=(
                Factor("target", tuple(TARGETS), sees=("place",)),
                Factor("steering", tuple(STEERING), sees=("last",)),
            ),
            state=(StatePart("place", (2,)), StatePart("last", (2,))),
            actions=Continuous(2),
        )


class State(eqx.Module):
    """One episode at one moment."""

    task: Int[Array, " 2"]
    place: Float[Array, " 2"]
    last: Float[Array, " 2"]
    time: Int[Array, ""]


@dataclass(frozen=True)
class ReachEnv:
    """The rules, as pure functions of one environment's state."""

    world: Reach

    @property
    def graph(self) -> ProblemGraph:
        return self.world.graph

    @property
    def horizon(self) -> int:
        return self.world.horizon

    def reset(self, task: Int[Array, " 2"], *, key: PRNGKey) -> State:
        place = jax.random.uniform(key, (2,), minval=-1.0, maxval=1.0)
        return State(task.astype(jnp.int32), place, jnp.zeros(2), jnp.int32(0))

    def restart(self, state: State, *, key: PRNGKey) -> State:
        return self.reset(state.task, key=key)

    def step(self, state: State, action: Float[Array, " 2"]) -> tuple[State, Outcome]:
        target = jnp.array(list(TARGETS.values()))[state.task[0]]
        steering = jnp.array(list(STEERING.values()))[state.task[1]]
        place = jnp.clip(state.place + self.world.speed * steering @ jnp.clip(action, -1, 1), -1.5, 1.5)
        distance, time = jnp.sqrt(((place - target) ** 2).sum()), state.time + 1
        late = time >= self.horizon
        outcome = Outcome(1 - distance, jnp.zeros_like(late), late, distance < 0.2)
        return State(state.task, place, place - state.place, time), outcome

    def observe(self, state: State) -> Float[Array, " 4"]:
        return jnp.concatenate([state.place, state.last])

    def parts(self, observations: Float[Array, "B 4"]) -> dict[str, Part]:
        return {"place": observations.T[:2], "last": observations.T[2:]}


@dataclass(frozen=True)
class ReachPictures:
    """How the domain is drawn."""

    env: ReachEnv
    fps: float = 5
    every: int = 1
    linger: int = 2

    def draw(self, state: State, note: str) -> Picture:
        image = Image.new("RGB", (160, 160), "white")
        pen, task = ImageDraw.Draw(image), self.env.graph.named(np.asarray(state.task).tolist())
        for (x, y), colour in ((TARGETS[task.components[0]], "#2a7f62"), (np.asarray(state.place), "black")):
            at, up = 80 + 50 * float(x), 80 - 50 * float(y)
            pen.ellipse((at - 6, up - 6, at + 6, up + 6), fill=colour)
        return captioned(np.asarray(image), f"{task}{note}", size=11)

    def sheet(self, seed: int) -> Picture:
        graph, key = self.env.graph, jax.random.key(seed)
        states = [self.env.reset(jnp.array(graph.indices(task)), key=key) for task in graph.tasks]
        return contact_sheet([self.draw(state, "") for state in states], columns=3)
