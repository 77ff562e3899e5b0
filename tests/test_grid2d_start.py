"""Where episodes start: against the law itself, and against the oracle's generator.

Each test makes many comparisons and allows each a false-alarm rate of ALARM divided by their number, so a correct
world fails a whole test with a probability of at most ALARM = 1e-4 over the choice of its seed; seeds are fixed.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import oracle_of, state_of
from scipy import stats

from modlife.domains.grid2d.environment import Grid2D, State
from modlife.domains.grid2d.world import STATICS, World

ALARM = 1e-4


@cache
def resets(world: World):
    """Many first states of any task, as one program."""
    env = Grid2D(world)
    return jax.jit(jax.vmap(lambda task, key: env.reset(task, key=key), in_axes=(None, 0)))


def sample(world: World, static: int, count: int, seed: int) -> State:
    keys = jax.random.split(jax.random.key(seed), count)
    return jax.device_get(resets(world)(jnp.array([static, 1, 0], jnp.int32), keys))


def features(states: State) -> dict[str, np.ndarray]:
    """What the start states are compared by: each a whole number per state."""
    x, y, column, gap, direction = (
        np.asarray(v, int) for v in (states.x, states.y, states.column, states.gap, states.direction)
    )
    target_x, target_y = np.asarray(states.target_x, int), np.asarray(states.target_y, int)
    side = np.sign(x - column) + 1
    target_side = np.sign(target_x - column[:, None]) + 1
    return {
        "column": column,
        "gap": gap,
        "direction": direction,
        "agent cell": 20 * y + x,
        "wanted target cell": 20 * target_y[:, 1] + target_x[:, 1],
        "other target cell": 20 * target_y[:, 3] + target_x[:, 3],
        "agent side and wanted target side": 3 * side + target_side[:, 1],
        "sides of two targets": 3 * target_side[:, 0] + target_side[:, 2],
        "agent in the gap": (x == column) & (y == gap),
        "column and agent side": 10 * column + side,
    }


@pytest.mark.parametrize("static", range(4), ids=STATICS)
@pytest.mark.parametrize("world", [World(), World.released()], ids=["paper", "released"])
def test_start_states_agree_with_the_oracles_generator(world: World, static: int):
    ours = features(sample(world, static, 40_000, seed=7))
    oracle, states = oracle_of(world, (static, 1, 0)), []
    for seed in range(1_000):
        oracle.reset(seed=seed)
        states.append(jax.device_get(state_of(oracle, (static, 1, 0))))
    theirs = features(jax.tree.map(lambda *leaves: np.stack(leaves), *states))
    for name, values in ours.items():
        both = np.unique(np.concatenate([values, theirs[name]]))
        counts = np.array([[np.sum(v == value) for value in both] for v in (values, theirs[name])])
        if len(both) > 1:
            p = float(np.asarray(stats.chi2_contingency(counts)[1]))
            assert p > ALARM / (8 * len(ours)), f"{name}: p = {p}"


@pytest.mark.parametrize("static", range(4), ids=STATICS)
def test_start_states_follow_the_law(static: int):
    """Column, gap and direction uniform; agent and targets uniform over ordered choices of free cells."""
    world, count = World(), 200_000
    states = sample(world, static, count, seed=3)
    seen, wall = features(states), STATICS[static] == "wall"
    free = 30 if wall else 31
    uniform = {
        "column": (seen["column"], 4),
        "gap": (seen["gap"], 6),
        "direction": (seen["direction"], 4),
        "column, gap and direction": (seen["column"] * 100 + seen["gap"] * 10 + seen["direction"], 96),
    }
    assert set(np.unique(seen["column"])) == {2, 3, 4, 5}
    assert set(np.unique(seen["gap"])) == {1, 2, 3, 4, 5, 6}
    # Given one column and gap, agent and wanted target are a uniform ordered pair of different free cells.
    here = (seen["column"] == 3) & (seen["gap"] == 2)
    pairs = seen["agent cell"] * 1000 + seen["wanted target cell"]
    uniform["agent and target"] = (pairs[here], free * (free - 1))
    others = np.asarray(states.target_y, int) * 20 + np.asarray(states.target_x, int)
    uniform["two other targets"] = (others[here, 2] * 1000 + others[here, 3], free * (free - 1))
    for name, (values, cells) in uniform.items():
        found, counts = np.unique(values, return_counts=True)
        assert len(found) == cells, name
        p = stats.chisquare(counts).pvalue
        assert p > ALARM / (4 * len(uniform)), f"{name}: p = {p}"


def test_the_released_gap_is_never_in_the_last_row():
    assert set(np.unique(features(sample(World.released(), 0, 20_000, seed=0))["gap"])) == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(("static", "measured"), [("wall", 0.083), ("floor", 0.089), ("food", 0.094), ("lava", 0.042)])
def test_a_random_agent_earns_what_it_earns_in_the_released_code(static: str, measured: float):
    """Measured there over 600 episodes, one task each: a standard error of about 0.01; here over 8,192."""
    task = jnp.array([STATICS.index(static), 0, 0], jnp.int32)
    returns = random_returns()(task, jax.random.split(jax.random.key(0), 8192))
    assert float(returns.mean()) == pytest.approx(measured, abs=0.03)


@cache
def random_returns():
    """Returns of a random agent in any task of the released world, as one program."""
    env = Grid2D(World.released())

    def episode(task, key):
        key_reset, key_act = jax.random.split(key)
        actions = jax.random.randint(key_act, (64,), 0, 6, dtype=jnp.int32)

        def body(carry, action):
            state, alive = carry
            state, outcome = env.step(state, action)
            return (state, alive & ~outcome.terminated), outcome.reward * alive.astype(jnp.float32)

        start = (env.reset(task, key=key_reset), jnp.array(True))
        return jax.lax.scan(body, start, actions)[1].sum()

    return jax.jit(jax.vmap(episode, in_axes=(None, 0)))
