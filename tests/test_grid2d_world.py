"""The 2-D world's parameters: the family, its errors, and exact values of the rules."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modlife.domains.grid2d.environment import FIRST_TARGET, FORWARD, PICK, TOGGLE, Grid2D, Observation, State
from modlife.domains.grid2d.world import COLOURS, PERMUTATIONS, World, smallest_size
from modlife.errors import InputError


def state_with(**changes) -> State:
    """An agent at (2, 3) that looks right, the column at x = 4 with its gap in row 5, targets along the top."""
    values = {
        "task": jnp.array([0, 0, 0], jnp.int32),
        "static": jnp.int8(1),
        "column": jnp.int8(4),
        "gap": jnp.int8(5),
        "closed": jnp.array(True),
        "objects": jnp.uint32(0b01011110),
        "target_x": jnp.array([1, 2, 3, 5], jnp.int8),
        "target_y": jnp.array([1, 1, 1, 1], jnp.int8),
        "x": jnp.int8(2),
        "y": jnp.int8(3),
        "direction": jnp.int8(0),
        "time": jnp.int32(0),
    }
    return State(**(values | changes))


def test_dynamics_are_the_papers_four_and_then_all_24():
    assert World().action_table() == ((0, 1, 2, 3, 4, 5), (0, 1, 5, 3, 4, 2), (0, 2, 1, 3, 4, 5), (0, 2, 5, 3, 4, 1))
    table = World(dynamics_count=24).action_table()
    assert len(set(table)) == 24
    assert all(sorted(row) == list(range(6)) and row[3:5] == (3, 4) for row in table)
    assert all(row[-1] == 6 for row in World.released().action_table())


def test_the_family_reaches_768_tasks_and_more():
    assert World(colour_count=8, dynamics_count=24).graph.task_count == 768
    assert World(colour_count=len(COLOURS), dynamics_count=len(PERMUTATIONS)).graph.task_count == 1152


@pytest.mark.parametrize(("time", "reward"), [(0, 1 - 0.9 / 64), (31, 0.55), (63, 0.1)])
def test_stepping_on_the_target_pays_by_time(time: int, reward: float):
    beside = state_with(x=jnp.int8(2), y=jnp.int8(1), direction=jnp.int8(2), time=jnp.int32(time))
    _, outcome = Grid2D(World()).step(beside, jnp.int32(FORWARD))
    assert float(outcome.reward) == pytest.approx(reward, abs=1e-6)
    assert outcome.terminated
    assert outcome.success
    assert bool(outcome.truncated) == (time == 63)


def test_food_pays_once_and_only_under_the_agent():
    env = Grid2D(World())
    before = state_with(static=jnp.int8(3), closed=jnp.array(False), x=jnp.int8(3))
    assert float(env.step(before, jnp.int32(PICK))[1].reward) == 0
    on_it, moved = env.step(before, jnp.int32(FORWARD))
    assert (int(on_it.x), float(moved.reward)) == (4, 0)
    eaten, first = env.step(on_it, jnp.int32(PICK))
    _, second = env.step(eaten, jnp.int32(PICK))
    assert float(first.reward) == pytest.approx(0.05)
    assert float(second.reward) == 0


def test_lava_burns_and_the_door_opens_and_closes():
    env = Grid2D(World())
    _, burnt = env.step(state_with(static=jnp.int8(4), closed=jnp.array(False), x=jnp.int8(3)), jnp.int32(FORWARD))
    assert float(burnt.reward) == pytest.approx(-0.05)
    assert burnt.terminated
    assert not burnt.success
    at_door = state_with(x=jnp.int8(3), y=jnp.int8(5))
    blocked, _ = env.step(at_door, jnp.int32(FORWARD))
    opened, _ = env.step(at_door, jnp.int32(TOGGLE))
    through, _ = env.step(opened, jnp.int32(FORWARD))
    shut, _ = env.step(opened, jnp.int32(TOGGLE))
    assert (int(blocked.x), int(through.x)) == (3, 4)
    assert (bool(opened.closed), bool(shut.closed)) == (False, True)


def test_channels_of_a_batch_take_the_batch_last():
    env = Grid2D(World())
    keys, channels = jax.random.split(jax.random.key(0), 5), jax.jit(env.channels)
    observe = jax.jit(jax.vmap(lambda key: env.observe(env.reset(jnp.array([3, 2, 1]), key=key))))
    seen = jax.tree.map(np.asarray, observe(keys))
    last = Observation(jnp.asarray(np.moveaxis(seen.cells, 0, -1)), jnp.asarray(seen.direction))
    each = np.stack([channels(jax.tree.map(lambda leaf, n=n: jnp.asarray(leaf[n]), seen)) for n in range(5)], axis=-1)
    assert (np.asarray(channels(last)) == each).all()
    assert each.shape == (7, 7, 7, 5)


def test_an_observation_takes_50_bytes_and_shows_every_colour():
    world = World(colour_count=12)
    seen = Grid2D(world).observe(Grid2D(world).reset(jnp.array([1, 0, 0]), key=jax.random.key(0)))
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(seen)) == 50
    cells = jnp.full((7, 7), FIRST_TARGET + 11, jnp.uint8)
    assert float(Grid2D(world).channels(Observation(cells, jnp.uint8(3)))[5].max()) == 12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 4}, "size = 4, but it must be 5 to 18 with 4 colours."),
        ({"size": 5, "colour_count": 6}, "size = 5, but it must be 6 to 18 with 6 colours."),
        ({"size": 19}, "size = 19, but it must be 5 to 18 with 4 colours."),
        ({"colour_count": 13}, "colour_count = 13, but it must be 1 to 12."),
        ({"dynamics_count": 25}, "dynamics_count = 25, but it must be 1 to 24."),
        ({"horizon": 0}, "horizon = 0, but it must be 1 to 1048576."),
        ({"statics": ("wall", "lawa")}, "No static object 'lawa'. Did you mean 'lava'?"),
        ({"statics": ("wall", "wall")}, "statics = wall, wall names an object twice."),
        ({"statics": ()}, "statics is empty; take some of wall, floor, food, lava."),
        ({"gap_rows": "al"}, "No value for gap_rows 'al'. Did you mean 'all'? Known: all, released."),
        ({"actions": 8}, "No value for actions '8'. Known: 6, 7."),
        ({"time_limit": "ends"}, "No value for time_limit 'ends'."),
    ],
)
def test_an_impossible_world_is_refused(options: dict, message: str):
    with pytest.raises(InputError) as caught:
        World(**options)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("colours", [1, 4, 12])
def test_the_smallest_sizes_hold_what_they_must(colours: int):
    env = Grid2D(World(size=smallest_size(colours), colour_count=colours))
    tasks = jnp.stack([jnp.arange(200) % 4, jnp.zeros(200, int), jnp.zeros(200, int)], axis=1)
    keys = jax.random.split(jax.random.key(0), 200)
    states = jax.jit(jax.vmap(lambda task, key: env.reset(task, key=key)))(tasks, keys)
    x = np.concatenate([states.target_x, states.x[:, None]], axis=1).astype(int)
    y = np.concatenate([states.target_y, states.y[:, None]], axis=1).astype(int)
    assert all(len(set(row)) == colours + 1 for row in 100 * y + x)
