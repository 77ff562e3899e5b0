"""What panels of figures have in common: curves, bars, ranges, and legends that cover nothing."""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from modlife.analysis.groups import Group, over_seeds
from modlife.analysis.lives import FinishedLife, Row
from modlife.errors import plain
from modlife.metrics import mean_and_error, reach

NOTHING = "no data in these lives"
LETTERS, LINE = 13, 0.16
"""Letters of a legend on an inch, and the height of its lines in inches."""
BELOW = 38
"""How far below its axes a legend stands, in points: tick labels and the axis' label are between them."""
HEADING = 0.45
"""The height of a figure's heading, in inches."""
TITLE = 10.5
"""Points of a panel's title."""
ENOUGH = 3
"""Seeds that an interval needs: that of two reaches 12.7 standard errors to either side, and would hide the rest."""
MEASURES = {"return": "return per episode", "success": "share of episodes that succeed"}
"""What is measured of a task, and what axes call it."""


def sheet(
    lives: Sequence[FinishedLife], title: str, *panels: Callable[[Any], list[Row]], width: float = 11
) -> tuple[Any, list[Row]]:
    """A figure of panels side by side, under a title; and the rows of all of them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, 4), layout="constrained")
    every = zip(figure.subplots(1, len(panels)), panels, strict=True)
    rows = [row for axes, panel in every for row in panel(axes)]
    heading(figure, title, lives)
    fit(figure, height=4)
    return figure, rows


def heading(figure: Any, text: str, lives: Sequence[FinishedLife]) -> None:
    """Says above all panels what is shown, of how many tasks, in which domain."""
    domains = " and ".join(dict.fromkeys(life.config.domain.name for life in lives))
    figure.suptitle(safe(f"{text} ({tasks_of(lives)}, domain {domains})"), fontsize=12)


def tasks_of(lives: Sequence[FinishedLife]) -> str:
    """How many tasks lives learnt, in words."""
    counts, different = sorted({life.tasks for life in lives}), {task for life in lives for task in life.names}
    if len(counts) > 1:
        return f"{counts[0]} to {counts[-1]} tasks"
    if counts == [1]:
        return f"{len(different)} tasks, one in each life" if len(different) > 1 else "1 task"
    return f"{counts[0]} tasks"


def safe(text: str) -> str:
    """Text from anywhere as text: no part of it is taken for a formula, and no control characters are in it."""
    return plain(text).replace("$", r"\$")


def draw_curves(
    axes: Any, groups: Sequence[Group], what: str = "return", *, kind: str = "curve", notes: Sequence[str] = ()
) -> list[Row]:
    """Mean training return (or success) over tasks and seeds, at the same number of steps in each task.

    Notes are lines that stand below.
    """
    rows, seeds = [], []
    for group in groups:
        told = [(life, found) for life in group.lives if (found := life.told(what)).tasks]
        curves = [(found.steps, life.mean_curve(what)) for life, found in told]
        if not curves:
            continue
        steps, (mean, error) = curves[0][0], over_seeds(curves)
        axes.plot(steps / 1000, mean, label=group.told(len(curves)), **group.look, **group.marks(len(steps)))
        draw_band(axes, steps / 1000, mean, error, group, seeds=len(curves))
        seeds.append(len(curves))
        rows += [
            group.row(kind, float(value), steps=int(step), error=float(spread), seeds=len(curves))
            for step, value, spread in zip(steps, mean, error, strict=True)
            if not np.isnan(value)
        ]
    title = with_bands("Learning curves: mean over tasks", seeds)
    lines = ["thousand environment steps in a task", *map(safe, notes)]
    axes.set_xlabel("\n".join(lines), fontsize=8 if notes else None)
    finish(axes, title=title, ylabel=f"{MEASURES[what]}, while learning")
    return rows


def draw_band(axes: Any, at: np.ndarray, mean: np.ndarray, error: np.ndarray, group: Group, *, seeds: int) -> None:
    """The interval around a line, if there are seeds enough for one that hides nothing."""
    if seeds >= ENOUGH:
        half = reach(seeds) * error
        with unscaled(axes):
            axes.fill_between(at, mean - half, mean + half, color=group.colour, alpha=0.12, lw=0)


def draw_seeds(axes: Any, at: float, values: Sequence[float], **look: Any) -> None:
    """The interval of the mean over seeds; where there are too few for one, each of them as a point."""
    mean, error = mean_and_error(values)
    if len(values) >= ENOUGH:
        with unscaled(axes):
            axes.errorbar(at, mean, reach(len(values)) * error, ls="", **look)
    elif len(values) > 1:
        axes.scatter([at] * len(values), values, s=14, color=look["color"], edgecolor="white", linewidth=0.4, zorder=3)


@contextmanager
def unscaled(axes: Any) -> Iterator[None]:
    """What is drawn meanwhile sets no range: an interval can be far wider than all means."""
    before = axes.dataLim.frozen()
    yield
    axes.dataLim.set(before)


@dataclass(frozen=True)
class Bar:
    """The mean of some lives of a group."""

    group: Group
    name: str
    values: Sequence[float]


def draw_bars(axes: Any, bars: Sequence[Bar]) -> list[tuple[Bar, float, float]]:
    """The mean over seeds of each bar, its interval or its seeds, and its standard error: by name, then by group."""
    names = list(dict.fromkeys(bar.name for bar in bars))
    labels = list(dict.fromkeys(bar.group.label for bar in bars))
    width, drawn = 0.8 / max(1, len(labels)), []
    for bar in bars:
        mean, error = mean_and_error(bar.values)
        place = names.index(bar.name) + (labels.index(bar.group.label) + 0.5) * width - 0.4
        first = all(bar.group is not one.group for one, _, _ in drawn)
        look = {"facecolor": bar.group.colour, "hatch": bar.group.hatch, "edgecolor": "white", "linewidth": 0}
        axes.bar(place, mean, width, label=bar.group.told() if first else None, **look)
        draw_seeds(axes, place, bar.values, color="black", capsize=2, elinewidth=0.8)
        if mean == 0:
            axes.text(place, 0, "0", ha="center", va="bottom", fontsize=8)  # a bar all the same
        drawn.append((bar, mean, error))
    axes.set_xticks(range(len(names)), [safe(name) for name in names])
    return drawn


def with_intervals(title: str, mark: str, seeds: Iterable[int]) -> str:
    """A title that says what the mark of an interval is, and what points are, as far as there are any."""
    counts = [*seeds]
    marks = [f"{mark}: 95 % interval over seeds"] if max(counts, default=0) >= ENOUGH else []
    marks += ["points: two seeds"] if any(1 < count < ENOUGH for count in counts) else []
    return f"{title}\n({'; '.join(marks)})" if marks else title


def with_bands(title: str, seeds: Iterable[int]) -> str:
    """A title that says what bands are, if there are any."""
    return f"{title}\n(band: 95 % interval, from {ENOUGH} seeds on)" if any(one >= ENOUGH for one in seeds) else title


def finish(axes: Any, **about: Any) -> None:
    """Titles, a range of 0 to 1 or of what there is beyond, and a legend below; or that there is nothing."""
    axes.set(**about)
    axes.title.set_fontsize(TITLE)
    low, high = axes.dataLim.intervaly
    if not np.isfinite([low, high]).all():
        axes.text(0.5, 0.5, NOTHING, transform=axes.transAxes, ha="center", va="center", color="gray")
        axes.set(xticks=[], yticks=[])
        return
    margin = 0.05 * (max(1, high) - min(0, low))
    axes.set_ylim(low - margin if low < 0 else 0, high + margin if high > 1 else 1)
    legend_below(axes)


def legend_below(axes: Any) -> None:
    """A legend that covers nothing, at the same distance from the axes however high they are."""
    from matplotlib.transforms import ScaledTranslation

    handles, labels = axes.get_legend_handles_labels()
    texts = [wrapped(label, letters_below(axes)) for label in labels]
    below = axes.transAxes + ScaledTranslation(0, -BELOW / 72 - LINE * more_lines(axes), axes.figure.dpi_scale_trans)
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "bbox_transform": below, "borderaxespad": 0}
    look = {"fontsize": 7.5, "columnspacing": 1, "handlelength": 3, "frameon": False}
    axes.legend(handles, texts, ncols=columns(axes, texts), **look, **place)


def more_lines(axes: Any) -> int:
    """Lines of the label of the axis below, but one."""
    return axes.get_xlabel().count("\n")


def wrapped(text: str, letters: int) -> str:
    """A text in lines, with the number of seeds in one; `safe` as all text."""
    return textwrap.fill(safe(text).replace(" seed", "\N{NO-BREAK SPACE}seed"), letters)


def letters_below(axes: Any) -> int:
    """How many letters there is room for below a panel."""
    return int(LETTERS * axes.figure.get_figwidth() / axes.get_subplotspec().get_gridspec().ncols)


def columns(axes: Any, texts: Sequence[str]) -> int:
    """Two for a long legend of short texts."""
    return 2 if len(texts) > 5 and max(len(text) for text in texts) <= 0.6 * letters_below(axes) else 1


def fit(figure: Any, *, height: float, rows: int = 1) -> None:
    """Makes rows of panels, each of some height, and room for the longest legend below each and a heading above."""
    above = HEADING if figure.get_suptitle() else 0.0
    figure.set_figheight(above + rows * (height + LINE * max(lines_below(axes) for axes in figure.axes)))


def lines_below(axes: Any) -> float:
    """How many lines a panel's legend has, and the label above it beyond one."""
    legend = axes.get_legend()
    texts = [text.get_text() for text in legend.get_texts()] if legend else []
    return sum(text.count("\n") + 1 for text in texts) / columns(axes, texts) + more_lines(axes)
