"""Step by step the same as Farama's minigrid, in all tasks, with the paper's and the released code's rules."""

from collections import Counter
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import CountingOracle, Episodes, drive_oracle, drive_ours, oracle_of, state_of

from modlife.domains.grid2d.environment import Grid2D
from modlife.domains.grid2d.world import STATICS, World

EPISODES = 20
"""Per task."""

SOME_TASKS = [(0, 0, 1), (2, 1, 2)]
LARGE = World(size=11, colour_count=6, dynamics_count=24, horizon=40)


def paired_episodes(world: World, tasks: list[tuple[int, int, int]], seed: int) -> tuple[list, Episodes, Counter]:
    """The oracle's episodes, ours from the same layouts with the same actions, and what happened in them."""
    rng = np.random.default_rng(seed)
    theirs, states, actions, events = [], [], [], Counter()
    for task in tasks:
        oracle = oracle_of(world, task)
        # Mostly forward, and often at the door, so that episodes meet walls, doors, objects and targets.
        odds = np.full(world.actions, 0.1)
        odds[oracle.primitives.index(2)] = 0.45
        odds[oracle.primitives.index(5)] = 0.2
        for _ in range(EPISODES):
            first, _ = oracle.reset(seed=int(rng.integers(2**31)))
            states.append(state_of(oracle, task))
            actions.append(rng.choice(world.actions, size=world.horizon, p=odds / odds.sum()))
            theirs.append(drive_oracle(CountingOracle(oracle, events), first, actions[-1]))
    stacked = jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *jax.device_get(states))
    return theirs, drive_ours(Grid2D(world), stacked, np.array(actions)), events


def assert_equal_episodes(theirs: list, ours: Episodes) -> None:
    for number, steps in enumerate(theirs):
        image, reward, terminated, truncated = (np.array(values) for values in zip(*steps, strict=True))
        length = len(steps) - 1
        np.testing.assert_array_equal(ours.image[number, : length + 1], image)
        np.testing.assert_allclose(ours.reward[number, :length], reward[1:], rtol=0, atol=1e-6)
        np.testing.assert_array_equal(ours.terminated[number, :length], terminated[1:])
        np.testing.assert_array_equal(ours.truncated[number, :length], truncated[1:])


EVENTS_OF = {
    "wall": ("opens the door", "closes the door", "through the door", "against the door"),
    "floor": (),
    "food": ("eats", "picks from the cell ahead"),
    "lava": ("lava",),
}


@pytest.mark.parametrize("static", range(4), ids=STATICS)
@pytest.mark.parametrize("world", [World(), World.released()], ids=["paper", "released"])
def test_all_64_tasks_equal_minigrid(world: World, static: int):
    tasks = [(static, target, dynamics) for target in range(4) for dynamics in range(4)]
    theirs, ours, events = paired_episodes(world, tasks, seed=static)
    assert_equal_episodes(theirs, ours)
    for event in ("right target", "wrong target", "horizon", *EVENTS_OF[STATICS[static]]):
        assert events[event] >= 5, f"{event} happened {events[event]} times: too few to have tested it"


def test_a_larger_world_with_more_colours_and_dynamics_equals_minigrid():
    rng = np.random.default_rng(0)
    tasks = [(s, int(rng.integers(6)), int(d)) for s in range(4) for d in rng.choice(24, size=5, replace=False)]
    theirs, ours, _ = paired_episodes(LARGE, tasks, seed=9)
    assert_equal_episodes(theirs, ours)


@pytest.mark.parametrize(
    ("switch", "value"),
    [("channel_order", "released"), ("agent_channel", "centre"), ("time_limit", "terminates"), ("actions", 7)],
)
def test_each_switch_alone_equals_minigrid_and_changes_something(switch: str, value: str | int):
    world = World(**{switch: value})  # pyright: ignore[reportArgumentType]  # fields of several types in one table
    theirs, ours, _ = paired_episodes(world, SOME_TASKS, seed=5)
    assert_equal_episodes(theirs, ours)
    if switch == "actions":
        assert Grid2D(world).graph.actions.size == 7
        return
    with pytest.raises(AssertionError):
        assert_equal_episodes(usual_episodes(), ours)


@cache
def usual_episodes() -> list:
    return paired_episodes(World(), SOME_TASKS, seed=5)[0]
