"""The 2-D world's independent judge: the same task on Farama's minigrid, driven side by side with ours."""

from collections import Counter
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from minigrid.core.world_object import Door, Goal, Lava

from modlife.domains.grid2d.environment import Grid2D, State
from modlife.domains.grid2d.farama import STATIC_OBJECTS, FaramaGrid2D, Food
from modlife.domains.grid2d.world import COLOURS, STATICS, World


class Episodes(NamedTuple):
    """What many episodes showed; axes [episode, time, ...], images one longer than the rest."""

    image: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray


def oracle_of(world: World, task: tuple[int, int, int]) -> FaramaGrid2D:
    static, target, dynamics = task
    return FaramaGrid2D(world.statics[static], COLOURS[target], dynamics, world=world)


def state_of(oracle: FaramaGrid2D, task: tuple[int, int, int]) -> State:
    """Our state for the oracle's layout, read off its grid."""
    world, inner = oracle.world, range(1, oracle.world.size - 1)
    cells = {(x, y): oracle.grid.get(x, y) for x in inner for y in inner}
    kind = STATIC_OBJECTS[oracle.static]
    objects = [place for place, cell in cells.items() if type(cell) is kind]
    column = objects[0][0]
    assert {x for x, _ in objects} == {column}
    (gap,) = set(inner) - {y for _, y in objects}
    door = cells[column, gap]
    targets = {cell.color: place for place, cell in cells.items() if isinstance(cell, Goal)}
    places = np.array([targets[name] for name in COLOURS[: world.colour_count]], np.int8)
    return State(
        task=jnp.array(task, jnp.int32),
        static=jnp.int8(1 + STATICS.index(oracle.static)),
        column=jnp.int8(column),
        gap=jnp.int8(gap),
        closed=jnp.array(isinstance(door, Door) and not door.is_open),
        objects=jnp.uint32(sum(1 << y for _, y in objects)),
        target_x=jnp.asarray(places[:, 0]),
        target_y=jnp.asarray(places[:, 1]),
        x=jnp.int8(int(oracle.agent_pos[0])),
        y=jnp.int8(int(oracle.agent_pos[1])),
        direction=jnp.int8(int(oracle.agent_dir)),
        time=jnp.int32(0),
    )


class CountingOracle:
    """Steps an oracle and counts what its steps meet."""

    def __init__(self, oracle: FaramaGrid2D, events: Counter):
        self.oracle, self.events = oracle, events

    def step(self, action: int):
        oracle = self.oracle
        primitive = oracle.primitives[action]
        ahead, here = oracle.grid.get(*oracle.front_pos), oracle.grid.get(*oracle.agent_pos)
        if primitive == 2 and isinstance(ahead, Goal):
            self.events["right target" if ahead.color == oracle.target else "wrong target"] += 1
        if primitive == 2 and isinstance(ahead, Lava):
            self.events["lava"] += 1
        if primitive == 2 and isinstance(ahead, Door):
            self.events["through the door" if ahead.is_open else "against the door"] += 1
        if primitive == 5 and isinstance(ahead, Door):
            self.events["closes the door" if ahead.is_open else "opens the door"] += 1
        if primitive == 3 and isinstance(here, Food):
            self.events["eats"] += 1
        if primitive == 3 and isinstance(ahead, Food):
            self.events["picks from the cell ahead"] += 1
        result = oracle.step(action)
        self.events["horizon"] += result[3] or oracle.step_count == oracle.max_steps
        return result


def drive_oracle(oracle: FaramaGrid2D | CountingOracle, first: np.ndarray, actions: np.ndarray) -> list[tuple]:
    """(image, reward, terminated, truncated) of each step until the episode ends."""
    steps = [(first, 0.0, False, False)]
    for action in actions:
        image, reward, terminated, truncated, _ = oracle.step(int(action))
        steps.append((image, float(reward), terminated, truncated))
        if terminated or truncated:
            break
    return steps


@partial(jax.jit, static_argnums=0)
def run(env: Grid2D, states: State, actions):
    """Images and outcomes of all steps."""

    def body(states: State, action):
        states, outcome = jax.vmap(env.step)(states, action)
        return states, (images(env, states), outcome)

    first = images(env, states)
    _, (later, outcome) = jax.lax.scan(body, states, actions.T)
    return jnp.concatenate([first[None], later]), outcome


def drive_ours(env: Grid2D, states: State, actions: np.ndarray) -> Episodes:
    """All episodes at once, from these states, without restarts."""
    image, outcome = run(env, states, jnp.asarray(actions, jnp.int32))
    image, outcome = jax.tree.map(lambda leaf: np.swapaxes(np.asarray(leaf), 0, 1), (image, outcome))
    return Episodes(image, outcome.reward, outcome.terminated, outcome.truncated)


def images(env: Grid2D, states: State):
    """Seven channels, last, of each state."""
    return jnp.moveaxis(jax.vmap(lambda state: env.channels(env.observe(state)))(states), 1, -1)
