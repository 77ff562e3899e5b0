"""Charts as pictures that need no script, each with the table of its numbers, from which the script reads.

A picture is as wide as there is room: places are in per cent, letters and lines keep their size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from modlife.analysis.report.markup import Markup, element, escaped, joined, per_cent, text_at

SIDE = 1000
"""Units of a picture's width and height, in paths."""
Ticks = Sequence[tuple[float, object]]
"""Places along an axis, of 1, and what is written there."""


@dataclass(frozen=True)
class Table:
    """The numbers of a chart: a head, and rows that begin with a name. Empty where nothing is known."""

    head: Sequence[object]
    rows: Sequence[Sequence[object]]

    def html(self, caption: object) -> Markup:
        """The table; tags that HTML lets out are left out."""
        head = joined(element("th", cell, scope="col") for cell in self.head)
        lines = [
            f'<tr><th scope="row">{escaped(row[0])}' + "".join(f"<td>{escaped(cell)}" for cell in row[1:])
            for row in self.rows
        ]
        body = Markup("\n".join(lines))
        return element(
            "table", element("caption", caption), element("thead", element("tr", head)), element("tbody", body)
        )


@dataclass(frozen=True)
class Chart:
    """A picture and its table."""

    title: str
    about: str
    """What it shows, in a sentence for those who do not see it."""
    kind: str
    """How the cells of the table lie in the picture: `lines`, `grid`, or `marks` that say where."""
    say: str
    """A cell in words: with {row}, {column} and {value}."""
    table: Table
    picture: Markup
    height: int
    left: Ticks = ()
    bottom: Ticks = ()
    y: str = ""
    x: str = ""
    legend: object = ""
    wide: bool = False
    """Whether names, not numbers, stand at its left."""
    size: str = "whole"
    """How much of a broad screen's width it takes: `whole`, `half` or `third`."""
    data: Mapping[str, object] = field(default_factory=dict)
    """What the script must know besides."""

    def html(self, number: int) -> Markup:
        """The figure."""
        name = f"chart-{number}"
        known = {f"data_{key}": value for key, value in {"kind": self.kind, "say": self.say, **self.data}.items()}
        area = element("div", self.picture, class_="area", **known)
        left = [text_at(1, place, text, dy=".35em", text_anchor="end") for place, text in self.left]
        bottom = [text_at(place, 0, text, dy="1em", text_anchor=anchor(place)) for place, text in self.bottom]
        plot = element(
            "div",
            element("svg", *left, class_="left", height=self.height, aria_hidden="true"),
            area,
            element("svg", *bottom, class_="bottom", height=18, aria_hidden="true"),
            class_="plot wide" if self.wide else "plot",
            tabindex="0",
            role="img",
            aria_label=f"{self.title}. {self.about}",
            id=name,
        )
        y, x = (
            element("p", text, class_=f"axis {side}") if text else "" for text, side in ((self.y, "y"), (self.x, "x"))
        )
        rows = element(
            "div",
            self.table.html(self.title),
            class_="scroll",
            tabindex="0",
            role="group",
            aria_label=f"Table: {self.title}",
        )
        table = element("details", element("summary", "Table"), rows)
        parts = (element("figcaption", self.title), self.legend, y, plot, x, table)
        return element("figure", *parts, class_=self.size)


def anchor(place: float) -> str:
    """Texts at the ends of an axis stay inside."""
    return "start" if place < 0.04 else "end" if place > 0.96 else "middle"


def canvas(*content: object, height: int) -> Markup:
    """A picture in which places are in per cent."""
    return element("svg", *content, height=height, aria_hidden="true")


def stretched(*content: object, width: int = SIDE, height: int = SIDE) -> Markup:
    """A part of a picture in units of its own, stretched over all of it."""
    return element(
        "svg", *content, viewBox=f"0 0 {width} {height}", preserveAspectRatio="none", width="100%", height="100%"
    )


@dataclass(frozen=True)
class Range:
    """What an axis reaches over."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """Where a value lies, from the bottom 0 to the top 1."""
        return (value - self.low) / (self.high - self.low)

    def ticks(self, most: int = 5) -> list[float]:
        """Round values in it."""
        rough = (self.high - self.low) / most
        unit = 10.0 ** np.floor(np.log10(rough))
        step = next(unit * one for one in (1, 2, 2.5, 5, 10) if unit * one >= rough * 0.999)
        first, last = np.ceil(self.low / step - 1e-9), np.floor(self.high / step + 1e-9)
        return [round(float(tick), 10) + 0.0 for tick in np.arange(first, last + 1) * step]

    @property
    def left(self) -> list[tuple[float, str]]:
        """Ticks of a vertical axis."""
        return [(1 - self.place(tick), short(tick)) for tick in self.ticks()]

    def lines(self) -> list[Markup]:
        """Thin lines at the ticks."""
        heights = [per_cent(1 - self.place(tick)) for tick in self.ticks()]
        return [element("line", x1="0", x2="100%", y1=height, y2=height, class_="rule") for height in heights]


def span(values: Any) -> Range:
    """From 0 to 1, or as far as values go beyond."""
    known = np.asarray(values, float)
    known = known[np.isfinite(known)]
    low, high = min(0.0, *known, 0.0), max(1.0, *known, 1.0)
    margin = 0.04 * (high - low)
    return Range(low - margin if low < 0 else 0.0, high + margin if high > 1 else 1.0)


def short(value: float) -> str:
    """A number as short as it is."""
    return f"{value:,.10g}"


def number(value: float | None, digits: int = 3) -> str:
    """A number for a table; nothing where it is not known."""
    if value is None or not np.isfinite(value):
        return ""
    text = f"{value:,.{digits}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def legend(entries: Sequence[tuple[str, str]]) -> Markup:
    """What lines and bars mean: their classes, and words."""
    parts = []
    for look, words in entries:
        line = element("line", x1="0", x2="22", y1="6", y2="6", class_=f"line {look}")
        parts.append(element("span", element("svg", line, width=22, height=12, aria_hidden="true"), " ", words))
    return element("p", *parts, class_="legend")
