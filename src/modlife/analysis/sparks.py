"""Curves and tables in plain text: as wide as there is room, in letters that the output has."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

BLOCKS, LETTERS = "▁▂▃▄▅▆▇█", "_.-=+*#@"
"""Eight heights; the letters are for outputs that have no blocks."""


def ramp_for(encoding: str | None) -> str:
    """The heights that an output can show."""
    try:
        BLOCKS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return LETTERS
    return BLOCKS


def sparkline(values: Float[np.ndarray, " n"], *, low: float, high: float, ramp: str = BLOCKS) -> str:
    """A letter for each value, higher from `low` to `high`; a blank where none is known."""
    span = high - low if high > low else 1.0
    places = np.clip(np.nan_to_num((values - low) / span) * len(ramp), 0, len(ramp) - 1).astype(int)
    return "".join(" " if np.isnan(value) else ramp[place] for value, place in zip(values, places, strict=True))


def in_bins(
    steps: Float[np.ndarray, " n"], values: Float[np.ndarray, " n"], *, end: float, bins: int
) -> Float[np.ndarray, " bins"]:
    """The mean of a curve in each of so many equal parts of 0 to `end`; NaN where nothing is known.

    A part in which no step is told has the value of the one before it, if the curve goes on after it.
    """
    found = np.full(bins, np.nan)
    places = np.clip(np.ceil(steps / end * bins).astype(int) - 1, 0, bins - 1)
    for place in np.unique(places):
        found[place] = values[places == place].mean()
    known = np.flatnonzero(~np.isnan(found))
    for place in range(known[0], known[-1]) if known.size else ():
        if np.isnan(found[place]):
            found[place] = found[place - 1]
    return found


def table(rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> list[str]:
    """Lines with cells below each other; the columns in `left` begin at their left, all others end at their right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if number in left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
