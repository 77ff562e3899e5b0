"""Replay: rows hold transitions exactly, and the agent keeps exactly the last ones."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from transitions import random_transitions

from modlife.domains.grid2d.spec import World
from modlife.domains.grid2d.world import Grid2D
from modlife.learners.replay import Packing, last_rows

GRID = Grid2D(World())


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), count=st.sampled_from((1, 7, 20)))
def test_what_is_packed_comes_out_again(seed: int, count: int):
    transitions = random_transitions((count,), seed)
    packing = Packing.of(GRID)
    rows = packing.pack(transitions)
    assert rows.shape == (count, 14) and rows.dtype == jnp.uint32
    for before, after in zip(*map(jax.tree.leaves, (transitions, packing.unpack(rows))), strict=True):
        np.testing.assert_array_equal(np.asarray(before), np.asarray(after))


def test_a_row_of_the_2d_world_has_56_bytes():
    assert 4 * Packing.of(GRID).words == 7 * 7 + 1 + 1 + 1 + 4  # cells, direction, action, ended, reward


def test_leading_axes_do_not_matter():
    transitions, packing = random_transitions((3, 5), seed=1), Packing.of(GRID)
    flat = jax.tree.map(lambda leaf: leaf.reshape(15, *leaf.shape[2:]), transitions)
    np.testing.assert_array_equal(packing.pack(transitions).reshape(15, -1), packing.pack(flat))


def test_the_last_rows_are_kept_and_the_one_after_them():
    pieces = tuple(
        jnp.full((4, 2, 1), n, jnp.uint32) + jnp.arange(4, dtype=jnp.uint32)[:, None, None] for n in (0, 4, 8)
    )
    after = jnp.full((2, 1), 99, jnp.uint32)
    assert last_rows(pieces, after, keep=6)[:, 0, 0].tolist() == [6, 7, 8, 9, 10, 11, 99]
    assert last_rows(pieces[:1], after, keep=6)[:, 0, 0].tolist() == [0, 1, 2, 3, 99]
