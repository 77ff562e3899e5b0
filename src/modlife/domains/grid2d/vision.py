"""What an agent can see: MiniGrid's field of view and its rule for what hides what.

The view is a square of VIEW x VIEW cells; `[i, j]` counts i from the agent's left to its right and j towards the
agent, who stands at the middle of the last row, `[3, 6]`.

Which cells are visible depends only on the agent's place and direction and on the column of walls, if there is
one. There are few enough such cases to look at all of them once (about 7,000 for the paper's world), so an
observation needs one table look-up instead of an algorithm.
"""

import functools

import numpy as np
from jaxtyping import Array, Bool, Int

from modlife.domains.grid2d.world import VIEW, World

LATERAL = np.repeat(np.arange(VIEW, dtype=np.int8)[:, None] - VIEW // 2, VIEW, axis=1)
"""How many cells to the agent's right each cell of the view lies."""

AHEAD = np.repeat(VIEW - 1 - np.arange(VIEW, dtype=np.int8)[None, :], VIEW, axis=0)
"""How many cells before the agent each cell of the view lies."""

OWN_CELL = (LATERAL == 0) & (AHEAD == 0)


Number = int | Int[Array, ""]


def wall_case(world: World, column: Number, gap: Number, closed: Number) -> Number:
    """The row of the visibility table for a column of walls; row 0 is for worlds without one."""
    return 1 + 2 * ((column - world.columns[0]) * world.room + gap - 1) + closed


@functools.cache
def visibility(world: World) -> Bool[np.ndarray, "case 4 room room 7 7"]:
    """Whether a view cell is visible, by wall case, direction, agent's y - 1 and x - 1; the agent's own never is."""
    opaque = opaque_cells(world)
    direction, y, x = np.ix_(range(4), range(1, world.room + 1), range(1, world.room + 1))
    ahead_x, ahead_y = np.array([1, 0, -1, 0])[direction], np.array([0, 1, 0, -1])[direction]
    expand = (..., None, None)
    view_x = x[expand] + AHEAD * ahead_x[expand] - LATERAL * ahead_y[expand]
    view_y = y[expand] + AHEAD * ahead_y[expand] + LATERAL * ahead_x[expand]
    outside = (view_x < 0) | (view_x >= world.size) | (view_y < 0) | (view_y >= world.size)
    blocked = opaque[:, view_y.clip(0, world.size - 1), view_x.clip(0, world.size - 1)] | outside
    return seen_through(blocked) & ~OWN_CELL


def opaque_cells(world: World) -> Bool[np.ndarray, "case size size"]:
    """For each wall case, which cells of the grid hide what is behind them, as [case, y, x]."""
    empty = np.ones((world.size, world.size), dtype=bool)
    empty[1:-1, 1:-1] = False
    cases = np.repeat(empty[None], 1 + 2 * len(world.columns) * world.room, axis=0)
    for column in world.columns:
        for gap in range(1, world.room + 1):
            for closed in (0, 1):
                case = cases[wall_case(world, column, gap, closed)]
                case[:, column] = True
                case[gap, column] = bool(closed)
    return cases


def seen_through(blocked: Bool[np.ndarray, "*batch 7 7"]) -> Bool[np.ndarray, "*batch 7 7"]:
    """MiniGrid's `process_vis`: light spreads sideways and ahead, row by row, from cells it can pass.

    Within a row it first sweeps to the right, then to the left; from a lit cell that lets it pass it reaches the
    next cell in the direction of the sweep and, in the row ahead, that cell's and its own neighbour.
    """
    lit = np.zeros_like(blocked)
    lit[..., VIEW // 2, VIEW - 1] = True
    for j in reversed(range(VIEW)):
        for i in range(VIEW - 1):
            spread(lit, blocked, i, i + 1, j)
        for i in reversed(range(1, VIEW)):
            spread(lit, blocked, i, i - 1, j)
    return lit


def spread(lit: Bool[np.ndarray, "*batch 7 7"], blocked: Bool[np.ndarray, "*batch 7 7"], i: int, to: int, j: int):
    """Light from cell [i, j] to its neighbour [to, j] and to both cells ahead of them, in place."""
    passes = lit[..., i, j] & ~blocked[..., i, j]
    lit[..., to, j] |= passes
    if j > 0:
        lit[..., to, j - 1] |= passes
        lit[..., i, j - 1] |= passes
