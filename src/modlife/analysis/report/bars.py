"""Bars, standing side by side or lying one below the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from modlife.analysis.report.charts import Chart, Range, canvas, number, short, span
from modlife.analysis.report.markup import Markup, element, per_cent, text_at

NARROW = 0.05
"""Bars up to this part of the width have no number above them."""


@dataclass(frozen=True)
class Bar:
    """A bar, with its error where that is known."""

    value: float
    look: str
    error: float = float("nan")


def bar_chart(groups: Sequence[tuple[str, Sequence[Bar | None]]], *, height: int = 220, **about: Any) -> Chart:
    """Standing bars side by side in groups, which are the columns of the table; bars in a group are its rows."""
    bars = [bar for _, group in groups for bar in group if bar is not None]
    up = span([bar.value + (bar.error if np.isfinite(bar.error) else 0) for bar in bars])
    width = 1 / len(groups)
    marks: list[Markup] = []
    for row in range(max(len(group) for _, group in groups)):
        for place, (_, group) in enumerate(groups):
            bar, own = group[row], 0.8 * width / len(group)
            if bar is not None:
                marks.append(standing(bar, (place + 0.1) * width + row * own, own, up, at=f"{row} {place}"))
    bottom = [((place + 0.5) * width, name) for place, (name, _) in enumerate(groups)]
    picture = canvas(*up.lines(), *marks, height=height)
    return Chart(kind="marks", picture=picture, height=height, left=up.left, bottom=bottom, **about)


def standing(bar: Bar, left: float, width: float, up: Range, *, at: str) -> Markup:
    """A bar from 0 to its value, and its error."""
    zero, end = up.place(0), up.place(bar.value)
    box = element(
        "rect",
        x=per_cent(left),
        width=per_cent(width * 0.92),
        y=per_cent(1 - max(zero, end)),
        height=per_cent(abs(end - zero)),
        class_=f"bar {bar.look}",
    )
    middle, parts = per_cent(left + width * 0.46), [box]
    if np.isfinite(bar.error):
        ends = [per_cent(1 - up.place(bar.value + sign * bar.error)) for sign in (1, -1)]
        parts.append(element("line", x1=middle, x2=middle, y1=ends[0], y2=ends[1], class_="error"))
    if width > NARROW:
        top = 1 - up.place(max(0, bar.value + (bar.error if np.isfinite(bar.error) else 0)))
        parts.append(text_at(left + width * 0.46, top, number(bar.value, 2), dy="-.4em", text_anchor="middle"))
    return element("g", *parts, class_="m", data_at=at)


def lying_chart(rows: Sequence[tuple[str, Sequence[tuple[float, float, str]]]], across: Range, **about: Any) -> Chart:
    """A row for each name, with pieces from one value to another; a piece without length is a dot."""
    tall, marks = 1 / max(1, len(rows)), []
    for place, (_, pieces) in enumerate(rows):
        if len(pieces) > 1:
            ends, middle = (
                [across.place(value) for piece in pieces for value in piece[:2]],
                per_cent((place + 0.5) * tall),
            )
            marks.append(
                element("line", x1=per_cent(min(ends)), x2=per_cent(max(ends)), y1=middle, y2=middle, class_="tie")
            )
        for column, (start, end, look) in enumerate(pieces):
            at = f"{place} {column}"
            left, right = sorted([across.place(start), across.place(end)])
            middle = per_cent((place + 0.5) * tall)
            if left == right:
                marks.append(element("circle", cx=per_cent(left), cy=middle, r="5", class_=f"m dot {look}", data_at=at))
            else:
                box = {"x": per_cent(left), "width": per_cent(right - left), "y": per_cent((place + 0.2) * tall)}
                marks.append(element("rect", **box, height=per_cent(0.6 * tall), class_=f"m bar {look}", data_at=at))
    height = 14 + 24 * len(rows)
    left = [((place + 0.5) * tall, name) for place, (name, _) in enumerate(rows)]
    rules = [per_cent(across.place(tick)) for tick in across.ticks()]
    lines = [element("line", x1=x, x2=x, y1="0", y2="100%", class_="rule") for x in rules]
    picture = canvas(*lines, *marks, height=height)
    bottom = [(across.place(tick), short(tick)) for tick in across.ticks()]
    return Chart(kind="marks", picture=picture, height=height, left=left, bottom=bottom, wide=True, **about)
