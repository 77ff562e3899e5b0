"""Replay: rows hold transitions exactly, however an episode ended, and no action is cut short."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transitions import random_transitions

from modlife.domains.graph import Continuous, Discrete
from modlife.domains.grid2d.environment import Grid2D
from modlife.domains.grid2d.world import World
from modlife.learners.replay import Packing, following, no_action, with_finals

GRID = Grid2D(World())
unpacked = jax.jit(Packing.of(GRID).unpack)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), count=st.sampled_from((1, 7, 20)))
def test_what_is_packed_comes_out_again(seed: int, count: int):
    transitions = random_transitions((count,), seed)
    packing = Packing.of(GRID)
    rows = packing.pack(transitions)
    assert rows.shape == (count, 14) and rows.dtype == jnp.uint32
    for before, after in zip(*map(jax.tree.leaves, (transitions, unpacked(rows))), strict=True):
        np.testing.assert_array_equal(np.asarray(before), np.asarray(after))


def test_a_row_of_the_2d_world_has_56_bytes():
    # Cells, direction, action, reward; and one byte whose bits say whether it terminated or was truncated.
    assert 4 * Packing.of(GRID).words == 7 * 7 + 1 + 1 + 4 + 1


def test_leading_axes_do_not_matter():
    transitions, packing = random_transitions((3, 5), seed=1), Packing.of(GRID)
    flat = jax.tree.map(lambda leaf: leaf.reshape(15, *leaf.shape[2:]), transitions)
    np.testing.assert_array_equal(packing.pack(transitions).reshape(15, -1), packing.pack(flat))


def test_rows_that_only_hold_what_was_seen_hold_it():
    transitions, packing = random_transitions((3, 5), seed=2), Packing.of(GRID)
    found = unpacked(packing.seen(GRID, transitions.observation).reshape(15, -1))
    np.testing.assert_array_equal(found.observation.cells, transitions.observation.cells.reshape(15, 7, 7))
    assert not (found.ended.any() or found.reward.any() or found.action.any())


@pytest.mark.parametrize(
    ("count", "dtype"), [(2, "uint8"), (256, "uint8"), (257, "uint16"), (65_536, "uint16"), (65_537, "uint32")]
)
def test_an_action_takes_as_many_bytes_as_it_needs(count: int, dtype: str):
    kept = no_action(Discrete(tuple(f"a{n}" for n in range(count))))
    assert (kept.shape, kept.dtype) == ((), np.dtype(dtype))
    assert np.iinfo(kept.dtype).max >= count - 1


def test_real_valued_actions_are_kept_as_they_are():
    kept = no_action(Continuous(8))
    assert (kept.shape, kept.dtype) == ((8,), np.dtype("float32"))


@pytest.mark.parametrize("shares", [1, 2])
def test_the_row_after_a_transition_is_the_next_one_or_what_a_time_limit_cut_off(shares: int):
    """Rows hold their own place in time; what was reached holds it plus 100."""
    rng = np.random.default_rng(0)
    times, envs = 9, 4
    truncated = rng.random((times, envs)) < 0.4
    rows = (np.arange(times)[:, None] * 10 + np.arange(envs))[..., None].astype(np.uint32)
    replay = with_finals(rows, np.full((envs, 1), 999, np.uint32), rows + np.uint32(100), truncated)
    assert replay.times == times and (replay.last == 999).all()
    assert len(replay.finals) == truncated.sum(axis=0).max()
    place, width = following(truncated, shares=shares), envs // shares
    for share in range(shares):
        columns = slice(share * width, (share + 1) * width)
        flat = replay.rows[:, columns].reshape(-1)
        found = flat[place[:, columns]]
        after = np.concatenate([rows[1:, columns, 0], replay.last[None, columns, 0]])
        expected = np.where(truncated[:, columns], rows[:, columns, 0] + 100, after)
        np.testing.assert_array_equal(found, expected)
