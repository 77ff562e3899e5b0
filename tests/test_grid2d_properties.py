"""Laws of the 2-D world that hold for any world of the family, any task and any sequence of actions."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modlife.domains.env import Environment, step_batch
from modlife.domains.grid2d.environment import DOOR, FIRST_TARGET, FOOD, WALL, Grid2D, State
from modlife.domains.grid2d.world import LARGEST, World, smallest_size

WORLDS = (
    World(),
    World.released(),
    World(size=smallest_size(12), colour_count=12, dynamics_count=24),
    World(size=LARGEST, statics=("lava", "wall"), colour_count=1, dynamics_count=1, horizon=9),
)
TASKS = st.tuples(*[st.integers(0, 2**16)] * 3)
ACTIONS = st.lists(st.integers(0, 2**16), min_size=80, max_size=80)
SEEDS = st.integers(0, 2**32 - 1)


@functools.cache
def compiled(world: World):
    """One episode from a seed, with everything that can be seen of it at every moment, and many at once."""
    env = Grid2D(world)
    rows, columns = (jnp.asarray(n, jnp.int8) for n in np.indices((world.size, world.size)))

    def moment(state: State):
        return state, env.observe(state), env.content(state, columns, rows)

    def body(state: State, action):
        state, outcome = env.step(state, action)
        return state, (outcome, *moment(state))

    def episode(task, seed, actions):
        start = env.reset(task, key=jax.random.key(seed))
        return moment(start), jax.lax.scan(body, start, actions)[1]

    return jax.jit(episode), jax.jit(jax.vmap(episode))


def arguments(world: World, task: tuple[int, ...], seed: int, actions: list[int]):
    """Any whole numbers, folded into what the world allows."""
    chosen = [number % count for number, count in zip(task, world.graph.shape, strict=True)]
    folded = np.array(actions, np.int32) % world.actions
    return np.array(chosen, np.int32), np.uint32(seed), folded


def assert_legal(world: World, state: State, content: np.ndarray) -> None:
    """Every state, [time], is one that the rules allow."""
    moments = np.arange(len(content))
    below_agent = content[moments, state.y, state.x]
    assert ((state.x >= 1) & (state.x <= world.room) & (state.y >= 1) & (state.y <= world.room)).all()
    assert not np.isin(below_agent, (WALL, DOOR)).any(), "the agent stands in a wall or a closed door"
    assert ((state.direction >= 0) & (state.direction <= 3)).all()
    assert np.isin(state.column, world.columns).all()
    assert np.isin(state.gap, world.gaps).all()
    rows = sum(1 << row for row in range(1, world.size - 1)) & ~(1 << int(state.gap[0]))
    food = int(state.static[0]) == FOOD
    assert ((state.objects & ~np.uint32(rows)) == 0).all()
    assert (state.objects == rows).all() or food, "only food can go"
    assert (np.diff(np.bitwise_count(state.objects).astype(int)) <= 0).all(), "nothing comes back"
    assert not state.closed.any() or int(state.static[0]) == WALL
    for colour in range(world.colour_count):
        assert (np.sum(content == FIRST_TARGET + colour, axis=(1, 2)) == 1).all(), "each target once, for ever"
    edges = np.concatenate([content[:, 0], content[:, -1], content[:, :, 0], content[:, :, -1]], axis=1)
    assert (edges == WALL).all()


@pytest.mark.parametrize("world", WORLDS, ids=["paper", "released", "crowded", "large"])
@settings(max_examples=100, deadline=None)
@given(TASKS, SEEDS, ACTIONS)
def test_any_actions_keep_the_state_legal(world: World, task: tuple, seed: int, actions: list[int]):
    episode, _ = compiled(world)
    _, (outcome, state, seen, content) = jax.device_get(episode(*arguments(world, task, seed, actions)))
    assert_legal(world, state, content)
    assert seen.cells.max() < FIRST_TARGET + world.colour_count
    assert (seen.cells[:, 3, 6] == 0).all(), "the agent sees what it stands on"
    assert (state.time == np.arange(1, len(actions) + 1)).all()
    late = outcome.terminated if world.time_limit == "terminates" else outcome.truncated
    assert late[world.horizon - 1 :].all()
    # Episodes go on here after their end; while they last, rewards are those of the rules.
    lasting = state.time <= world.horizon
    assert ((outcome.reward[lasting] >= np.float32(-0.05)) & (outcome.reward[lasting] <= 1)).all()
    assert not (outcome.success & ~outcome.terminated).any()


@settings(max_examples=50, deadline=None)
@given(TASKS, SEEDS, ACTIONS)
def test_same_seed_same_episode(task: tuple, seed: int, actions: list[int]):
    episode, _ = compiled(WORLDS[0])
    once, again = (episode(*arguments(WORLDS[0], task, seed, actions)) for _ in range(2))
    jax.tree.map(np.testing.assert_array_equal, once, again)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.lists(TASKS, min_size=8, max_size=8), ACTIONS)
def test_a_batch_equals_its_elements(seed: int, tasks: list[tuple], actions: list[int]):
    episode, batch = compiled(WORLDS[0])
    each = [arguments(WORLDS[0], task, (seed + n) % 2**32, actions[n:] + actions[:n]) for n, task in enumerate(tasks)]
    whole = batch(*(np.stack(values) for values in zip(*each, strict=True)))
    for place, values in enumerate(each):
        one = jax.tree.map(lambda leaf, place=place: leaf[place], whole)
        jax.tree.map(assert_same, one, episode(*values))


def assert_same(one: jax.Array, other: jax.Array) -> None:
    """Equal; but rewards, differences from 1, may be rounded once more or less by another program."""
    rounding = 1.2e-7 if jnp.issubdtype(one.dtype, jnp.floating) else 0.0
    np.testing.assert_allclose(one, other, rtol=0, atol=rounding)


def test_different_seeds_give_different_layouts():
    _, batch = compiled(WORLDS[0])
    seeds = np.arange(200, dtype=np.uint32)
    (_, _, content), _ = batch(np.tile(np.array([1, 0, 0], np.int32), (200, 1)), seeds, np.zeros((200, 80), np.int32))
    assert len({grid.tobytes() for grid in np.asarray(content)}) == 200


def test_the_world_is_an_environment():
    assert isinstance(Grid2D(World()), Environment)


def test_a_batch_restarts_exactly_the_episodes_that_ended():
    """Every episode of a batch that steps for long begins anew after its end, in its own task, and only then."""
    world, count = World(horizon=12), 64
    env = Grid2D(world)
    tasks = jnp.array([world.graph.indices(task) for task in world.graph.tasks], jnp.int32)
    reset, plainly = jax.jit(jax.vmap(lambda task, key: env.reset(task, key=key))), jax.jit(jax.vmap(env.step))
    states = reset(tasks, jax.random.split(jax.random.key(0), count))
    step = jax.jit(lambda states, actions, key: step_batch(env, states, actions, key=key))
    ends = 0
    for key in jax.random.split(jax.random.key(1), 60):
        key_act, key_step = jax.random.split(key)
        actions = jax.random.randint(key_act, (count,), 0, 6, dtype=jnp.int32)
        plain, outcome = plainly(states, actions)
        stepped = step(states, actions, key_step)
        states, batched = stepped.states, stepped.outcomes
        jax.tree.map(np.testing.assert_array_equal, stepped.reached, plain)  # before any restart
        ended = np.asarray(outcome.terminated | outcome.truncated)
        ends += ended.sum()
        assert (np.asarray(states.time) == np.where(ended, 0, np.asarray(plain.time))).all()
        assert (np.asarray(states.task) == np.asarray(tasks)).all()
        for old, new in zip(jax.tree.leaves(plain), jax.tree.leaves(states), strict=True):
            np.testing.assert_array_equal(np.asarray(old)[~ended], np.asarray(new)[~ended])
        np.testing.assert_allclose(np.asarray(batched.reward), np.asarray(outcome.reward), rtol=1e-6)
    assert ends > 3 * count
