"""Curves over a common axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from modlife.analysis.report.charts import SIDE, Chart, Range, Table, canvas, number, span, stretched
from modlife.analysis.report.markup import Markup, element, per_cent

MOST_POINTS = 12_000
"""Points of all curves of a chart together, about."""


@dataclass(frozen=True)
class Line:
    """A curve."""

    name: str
    x: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]
    look: str
    """Its classes: colour, dashes, thin or not."""
    error: Float[np.ndarray, " n"] | None = None

    def at(self, x: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
        """Its values at some places; not known outside of its own."""
        known = np.isfinite(self.y)
        return np.interp(x, self.x[known], self.y[known], left=np.nan, right=np.nan) if known.any() else x * np.nan


def thinned(
    x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"], buckets: int
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """The least and the greatest of each bucket of a curve, and its ends: it looks the same with fewer points."""
    if len(x) <= 2 * buckets:
        return x, y
    kept = {0, len(x) - 1}
    for bucket in np.array_split(np.arange(len(x)), buckets):
        known = bucket[np.isfinite(y[bucket])]
        kept |= {int(known[np.argmin(y[known])]), int(known[np.argmax(y[known])])} if len(known) else {int(bucket[0])}
    places = sorted(kept)
    return x[places], y[places]


def path_of(x: Sequence[float], y: Sequence[float]) -> str:
    """A path through places of 1, with gaps where nothing is known; after each gap, steps from point to point."""
    words, last = [], None
    for across, up in zip(x, y, strict=True):
        if not np.isfinite(up):
            last = None
            continue
        here = (round(SIDE * across), round(SIDE * (1 - up)))
        words.append(f"M{here[0]} {here[1]}l0 0" if last is None else step_between(last, here))
        last = here
    return "".join(words)


def step_between(last: tuple[int, int], here: tuple[int, int]) -> str:
    """A step of a path: numbers need nothing between them where a sign begins the next."""
    across, down = here[0] - last[0], here[1] - last[1]
    return f"{'' if across < 0 else ' '}{across}{'' if down < 0 else ' '}{down}"


def band_of(line: Line, across: Range, up: Range) -> Markup:
    """The area of a curve's errors."""
    assert line.error is not None
    known = np.isfinite(line.y) & np.isfinite(line.error)
    x = [across.place(value) for value in line.x[known]]
    upper, lower = line.y[known] + line.error[known], line.y[known] - line.error[known]
    there = path_of([*x, *x[::-1]], [up.place(value) for value in (*upper, *lower[::-1])])
    return element("path", d=Markup(there + "z"), class_=f"band {line.look}") if x else Markup("")


def drawn(line: Line, across: Range, up: Range, buckets: int) -> Markup:
    """A curve."""
    x, y = thinned(line.x, line.y, buckets)
    d = path_of([across.place(value) for value in x], [up.place(value) for value in y])
    return element("path", d=Markup(d), class_=f"line {line.look}")


def dots_of(line: Line, across: Range, up: Range) -> list[Markup]:
    """The points of a curve."""
    points = [(x, y) for x, y in zip(line.x, line.y, strict=True) if np.isfinite(y)]
    places = [(per_cent(across.place(x)), per_cent(1 - up.place(y))) for x, y in points]
    return [element("circle", cx=x, cy=y, r="3", class_=f"point {line.look}") for x, y in places]


def line_chart(
    lines: Sequence[Line], columns: Float[np.ndarray, " m"], *, heads: Sequence[object], height: int = 260, **about: Any
) -> Chart:
    """Curves over a common axis; the table has their values at some places. The first lines are drawn last."""
    edges = [float(edge) for line in lines for edge in (line.x.min(), line.x.max()) if len(line.x)]
    across = Range(min(0.0, *edges), max([*edges, min(edges) + 1e-9]))
    up = span(
        np.concatenate([line.y for line in lines] + [line.y + line.error for line in lines if line.error is not None])
    )
    buckets = int(np.clip(MOST_POINTS / 2 / max(1, len(lines)), 8, 150))
    bands = [band_of(line, across, up) for line in lines if line.error is not None]
    paths = [drawn(line, across, up, buckets) for line in reversed(lines) if "dots" not in line.look]
    dots = [dot for line in lines if "dots" in line.look for dot in dots_of(line, across, up)]
    rows = [(line.name, *(number(value) for value in line.at(columns))) for line in lines]
    places = " ".join(f"{across.place(column):.4f}".rstrip("0").rstrip(".") for column in columns)
    return Chart(
        kind="lines",
        table=Table(heads, rows),
        picture=canvas(*up.lines(), stretched(*bands, *paths), *dots, height=height),
        height=height,
        left=up.left,
        data={"x": Markup(places), "low": up.low, "high": up.high},
        bottom=[(across.place(tick), in_thousands(tick)) for tick in across.ticks()],
        **about,
    )


def in_thousands(value: float) -> str:
    """A number of steps for an axis."""
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if value >= 1e3 else f"{value:g}"
