"""Heat maps."""

from typing import Any

import numpy as np
from jaxtyping import Float

from modlife.analysis.report.charts import Chart, Range, canvas, short, stretched
from modlife.analysis.report.colours import STEPS
from modlife.analysis.report.markup import Markup, element, per_cent, text_at

NUMBERED = 80
"""Cells of a heat map that have their numbers in them, at most."""


def height_of(rows: int, *, least: int) -> int:
    """Pixels for so many rows with their names beside them, at least so many in all."""
    return int(np.clip(14 * rows, least, 900))


def heat_map(values: Float[np.ndarray, "row column"], limits: Range, *, height: int, **about: Any) -> Chart:
    """Cells with colours between limits; those that are not known are empty."""
    rows, columns = values.shape
    known = np.isfinite(values)
    parts = np.clip((np.where(known, values, 0) - limits.low) / (limits.high - limits.low), 0, 1)
    shades = np.where(known, np.minimum((parts * STEPS).astype(int), STEPS - 1), -1)
    paths = [cells_path(shades == shade, shade) for shade in range(STEPS) if (shades == shade).any()]
    cells = np.argwhere(known & (values != 0)) if values.size <= NUMBERED else []
    texts = [numbered(values, row, column, shade=int(shades[row, column])) for row, column in cells]
    picture = canvas(stretched(*paths, width=columns, height=rows), *texts, height=height)
    return Chart(kind="grid", picture=picture, height=height, **about)


def numbered(values: Float[np.ndarray, "row column"], row: int, column: int, *, shade: int) -> Markup:
    """The number of a cell, black or white as its colour asks for."""
    place = ((column + 0.5) / values.shape[1], (row + 0.5) / values.shape[0])
    look = {"dy": ".35em", "text_anchor": "middle", "class_": f"n{shade}"}
    return text_at(*place, short(round(float(values[row, column]), 2)), **look)


def cells_path(cells: np.ndarray, shade: int) -> Markup:
    """All cells of one colour as one path: runs of neighbours in a row are one piece."""
    words = []
    for row, line in enumerate(cells):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], line.astype(int), [0]])))
        words += [f"M{start} {row}h{end - start}v1H{start}" for start, end in zip(edges[::2], edges[1::2], strict=True)]
    return element("path", d=Markup("".join(words)), class_=f"h{shade}")


def scale_key(limits: Range) -> Markup:
    """What the colours of a heat map mean."""
    cells = [
        element("rect", x=per_cent(n / STEPS), width=per_cent(1 / STEPS + 0.004), height="100%", class_=f"h{n}")
        for n in range(STEPS)
    ]
    bar = element("svg", *cells, class_="scale", width=120, height=10, aria_hidden="true")
    return element("p", short(limits.low), " ", bar, " ", short(limits.high), class_="legend")
