"""The rules of the 2-D world: reset, step and observe, for one environment, as pure functions in JAX.

A cell's content is one code: 0 nothing, then the five objects of `Cell`, then the target colours. The state does
not hold a grid: a layout is a column of static objects with a gap, and one target per colour, so the content of
any cell follows from a few numbers (`Grid2D.content`). Everything small is an int8: a batch of 4,096 environments
then fits the processor's inner caches, and 64 of them go through one vector instruction.
"""

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int8, Int32, UInt8, UInt32

from modlife.domains.env import Choice, Outcome, Part, PRNGKey
from modlife.domains.graph import ProblemGraph
from modlife.domains.grid2d.vision import AHEAD, LATERAL, OWN_CELL, visibility, wall_case
from modlife.domains.grid2d.world import STATICS, VIEW, World

TURN_LEFT, TURN_RIGHT, FORWARD, PICK, DROP, TOGGLE = range(6)
RIGHT, DOWN, LEFT, UP = range(4)

NOTHING = 0
WALL, FLOOR, FOOD, LAVA = (1 + STATICS.index(name) for name in ("wall", "floor", "food", "lava"))
DOOR = 5
"""A closed door; an open one is NOTHING."""
FIRST_TARGET = 6
"""The code of a target is FIRST_TARGET plus the index of its colour."""

FOOD_REWARD = 0.05
LAVA_REWARD = -0.05


class State(eqx.Module):
    """One episode at one moment. x counts from the left, y from the top, both from 0 at the outer wall."""

    task: Int32[Array, " 3"]
    """Component indices: static object, target colour, dynamics."""
    static: Int8[Array, ""]
    """Code of the static object."""
    column: Int8[Array, ""]
    """x of the column of static objects."""
    gap: Int8[Array, ""]
    """y of the cell in the column that holds a door (if the object is wall) or nothing."""
    closed: Bool[Array, ""]
    """There is a door and it is closed."""
    objects: UInt32[Array, ""]
    """Bit y is set where the column holds a static object; picking food clears it."""
    target_x: Int8[Array, " C"]
    target_y: Int8[Array, " C"]
    x: Int8[Array, ""]
    y: Int8[Array, ""]
    direction: Int8[Array, ""]
    """0 right, 1 down, 2 left, 3 up."""
    time: Int32[Array, ""]
    """Steps taken in this episode."""


class Observation(eqx.Module):
    """What the agent sees, one byte per cell; `channels` turns it into the paper's seven channels."""

    cells: UInt8[Array, "..."]
    """Content codes of the view, [7, 7]; 0 where there is nothing or nothing can be seen."""
    direction: UInt8[Array, "..."]


@dataclass(frozen=True)
class Grid2D:
    """The 2-D world as an `Environment`. Equal worlds are equal here, so compiled functions are shared."""

    world: World

    @property
    def graph(self) -> ProblemGraph:
        """Static object, then target, then dynamics."""
        return self.world.graph

    @property
    def horizon(self) -> int:
        """Steps after which every episode has ended."""
        return self.world.horizon

    def reset(self, task: Int[Array, " 3"], *, key: PRNGKey) -> State:
        """A random layout of a task, given by its component indices."""
        return self.layout(task.astype(jnp.int32), jax.random.bits(key, (4 + self.world.colour_count,)))

    def restart(self, state: State, *, key: PRNGKey) -> State:
        """A random layout of the task that this state belongs to."""
        return self.reset(state.task, key=key)

    def layout(self, task: Int32[Array, " 3"], bits: UInt32[Array, " draws"]) -> State:
        """The layout that random bits stand for: column, gap, direction, then agent and targets in free cells."""
        world = self.world
        static = jnp.array([1 + STATICS.index(name) for name in world.statics], jnp.int8)[task[0]]
        column = world.columns[0] + below(bits[0], len(world.columns)).astype(jnp.int8)
        gap = world.gaps[0] + below(bits[1], len(world.gaps)).astype(jnp.int8)
        direction = below(bits[2], 4).astype(jnp.int8)
        has_door = static == WALL
        # Free cells are numbered column by column, the column of objects left out; the empty gap comes last.
        beside = (world.room - 1) * world.room
        places = distinct(bits[3:], beside + 1 - has_door.astype(jnp.int32)).astype(jnp.int32)
        across = (1 + places // world.room).astype(jnp.int8)
        in_gap = places == beside
        x = jnp.where(in_gap, column, across + (across >= column).astype(jnp.int8))
        y = jnp.where(in_gap, gap, (1 + places % world.room).astype(jnp.int8))
        rows = jnp.uint32(2 ** (world.size - 1) - 2)
        return State(
            task=task,
            static=static,
            column=column,
            gap=gap,
            closed=has_door,
            objects=rows & ~bit(gap),
            target_x=x[1:],
            target_y=y[1:],
            x=x[0],
            y=y[0],
            direction=direction,
            time=jnp.int32(0),
        )

    def content(self, state: State, x: Int8[Array, "*cells"], y: Int8[Array, "*cells"]) -> Int8[Array, "*cells"]:
        """The code of what lies in each of these cells; outside the grid is wall."""
        code = jnp.zeros_like(x)
        for colour in range(self.world.colour_count):
            here = (x == state.target_x[colour]) & (y == state.target_y[colour])
            code = jnp.where(here, jnp.int8(FIRST_TARGET + colour), code)
        in_column = x == state.column
        code = jnp.where(in_column & (state.objects & bit(y) != 0), state.static, code)
        code = jnp.where(in_column & (y == state.gap) & state.closed, jnp.int8(DOOR), code)
        last = self.world.size - 1
        return jnp.where((x <= 0) | (x >= last) | (y <= 0) | (y >= last), jnp.int8(WALL), code)

    def step(self, state: State, action: Int[Array, ""]) -> tuple[State, Outcome]:
        """One action, 0 <= action < world.actions, with the meaning that the task's dynamics give it."""
        primitive = jnp.array(self.world.action_table(), jnp.int8)[state.task[2], action]
        time = state.time + 1
        ahead_x, ahead_y = heading(state.direction)
        front_x, front_y = state.x + ahead_x, state.y + ahead_y
        front = self.content(state, front_x, front_y)

        forward = primitive == FORWARD
        moves = forward & (front != WALL) & (front != DOOR)
        reached = forward & (front == FIRST_TARGET + state.task[1].astype(jnp.int8))
        burnt = forward & (front == LAVA)
        eats = (primitive == PICK) & (self.content(state, state.x, state.y) == FOOD)
        door_ahead = (front_x == state.column) & (front_y == state.gap) & (state.static == WALL)
        turn = (primitive == TURN_RIGHT).astype(jnp.int8) - (primitive == TURN_LEFT).astype(jnp.int8)

        after = replace(
            state,
            closed=state.closed ^ (door_ahead & (primitive == TOGGLE)),
            objects=jnp.where(eats, state.objects & ~bit(state.y), state.objects),
            x=jnp.where(moves, front_x, state.x),
            y=jnp.where(moves, front_y, state.y),
            direction=(state.direction + turn) & 3,
            time=time,
        )
        reward = jnp.where(reached, 1 - 0.9 * (time / self.world.horizon), 0.0)
        reward = jnp.where(eats, FOOD_REWARD, jnp.where(burnt, LAVA_REWARD, reward))
        terminated, truncated = reached | burnt, time >= self.world.horizon
        if self.world.time_limit == "terminates":
            terminated, truncated = terminated | truncated, jnp.zeros_like(truncated)
        return after, Outcome(reward, terminated, truncated, success=reached)

    def observe(self, state: State) -> Observation:
        """The visible part of the view."""
        code = self.content(state, *view_cells(state))
        seen = jnp.where(self.visible_cells(state), code, jnp.int8(NOTHING))
        return Observation(seen.astype(jnp.uint8), state.direction.astype(jnp.uint8))

    def visible_cells(self, state: State) -> Bool[Array, "7 7"]:
        """Which cells of the view the agent can see; never its own."""
        column, gap, closed = (v.astype(jnp.int32) for v in (state.column, state.gap, state.closed))
        case = jnp.where(state.static == WALL, wall_case(self.world, column, gap, closed), 0)
        return jnp.asarray(visibility(self.world))[case, state.direction, state.y - 1, state.x - 1]

    def channels(self, observation: Observation) -> Float[Array, "7 7 7 *batch"]:
        """The paper's seven channels, channel axis first, of an observation or of a batch, which is the *last* axis."""
        agent = self.agent_planes()[..., observation.direction]
        return jnp.concatenate([self.static_planes(observation.cells), target_plane(observation.cells), agent])

    def parts(self, observations: Observation) -> dict[str, Part]:
        """The parts that the factors' modules see; the agent's takes only four values, one per direction."""
        cells = jnp.moveaxis(observations.cells, 0, -1)
        return {
            "static": self.static_planes(cells),
            "target": target_plane(cells),
            "agent": Choice(self.agent_planes(), observations.direction),
        }

    def static_planes(self, cells: UInt8[Array, "7 7 *batch"]) -> Float[Array, "5 7 7 *batch"]:
        """Where each object is, one plane per object in the world's order."""
        codes = {"wall": WALL, "floor": FLOOR, "food": FOOD, "lava": LAVA, "door": DOOR}
        return jnp.stack([(cells == codes[name]).astype(jnp.float32) for name in self.world.channels[:5]])

    def agent_planes(self) -> Float[Array, "1 7 7 4"]:
        """The agent channel for each of the four directions."""
        at_agent = OWN_CELL if self.world.agent_channel == "location" else np.roll(OWN_CELL, -(VIEW // 2), axis=1)
        return jnp.asarray(at_agent[None, :, :, None] * np.arange(1.0, 5.0), jnp.float32)


def target_plane(cells: UInt8[Array, "7 7 *batch"]) -> Float[Array, "1 7 7 *batch"]:
    """The colour of each target, counted from 1."""
    return jnp.where(cells >= FIRST_TARGET, cells - jnp.uint8(FIRST_TARGET - 1), 0).astype(jnp.float32)[None]


def view_cells(state: State) -> tuple[Int8[Array, "7 7"], Int8[Array, "7 7"]]:
    """Grid coordinates x and y of each cell of the view."""
    ahead_x, ahead_y = heading(state.direction)
    x = state.x + AHEAD * ahead_x - LATERAL * ahead_y
    y = state.y + AHEAD * ahead_y + LATERAL * ahead_x
    return x, y


def heading(direction: Int8[Array, ""]) -> tuple[Int8[Array, ""], Int8[Array, ""]]:
    """One step ahead, as changes of x and y."""
    one = [(direction == way).astype(jnp.int8) for way in (RIGHT, DOWN, LEFT, UP)]
    return one[RIGHT] - one[LEFT], one[DOWN] - one[UP]


def bit(y: Int8[Array, "*cells"]) -> UInt32[Array, "*cells"]:
    """Bit y of a word."""
    return jnp.uint32(1) << (y & 31).astype(jnp.uint32)


def below(bits: UInt32[Array, "*draws"], n: int | Int[Array, ""]) -> Int32[Array, "*draws"]:
    """Uniform integers in [0, n) from random words, n at most 256: 24 random bits, scaled.

    The odds of two values differ by at most n / 2^24, and a division is saved.
    """
    return ((bits >> 8) * jnp.asarray(n).astype(jnp.uint32) >> 24).astype(jnp.int32)


def distinct(bits: UInt32[Array, " draws"], n: Int32[Array, ""]) -> Int32[Array, " draws"]:
    """Different uniform integers in [0, n), one per random word.

    The k-th is drawn among the n - k that are left: its rank among them, raised past each smaller one taken before.
    """
    chosen: list[Int32[Array, ""]] = []
    ascending: list[Int32[Array, ""]] = []
    for word in bits:
        value = below(word, n - len(chosen))
        for taken in ascending:
            value = value + (value >= taken).astype(jnp.int32)
        chosen.append(value)
        for place, taken in enumerate(ascending):
            ascending[place], value = jnp.minimum(taken, value), jnp.maximum(taken, value)
        ascending.append(value)
    return jnp.stack(chosen)
