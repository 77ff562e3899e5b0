"""Learning curves of anyone's lives, grouped by what differs: the mean over tasks, and each task by itself.

Where returns are more than 1 they are sums of many rewards, and successes are shown beside them.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from modlife.analysis.groups import Group, grouped, over_seeds
from modlife.analysis.lives import FinishedLife, Row, colour, label, read_lives, save
from modlife.analysis.meanings import meanings
from modlife.analysis.panels import draw_band, draw_curves, fit, heading, letters_below, safe
from modlife.analysis.report.colours import told_apart

MOST = 100
"""Tasks that are drawn singly, at most; the table has them all."""
WIDE = 5.5
"""Inches: the panel with the mean."""
KINDS = (("return", "curve"), ("success", "success"))
"""What is told of a task, and what the table calls it."""
SMALL = (1.5, 1.25)
"""Inches: width and height of the panel of a task."""


def draw(paths: Sequence[Path], out: Path) -> None:
    """The mean over tasks in a large panel; beside it, a small one for each task, with the same colours."""
    from matplotlib.figure import Figure

    lives = read_lives(paths)
    groups = recoloured(grouped(lives, lambda life: label(life.agent)))
    tasks = list(dict.fromkeys(task for life in lives for task in life.curves.tasks))
    rows, columns = shape(len(tasks) if 1 < len(tasks) <= MOST else 0)
    kinds = KINDS if any(np.nanmax(life.curves.returns, initial=0) > 1 for life in lives) else KINDS[:1]
    widths = [WIDE] * len(kinds) + ([SMALL[0] * columns] if columns else [])
    figure = Figure(figsize=(sum(widths), 4), layout="constrained")
    grid = figure.add_gridspec(1, len(widths), width_ratios=widths)
    main = [figure.add_subplot(grid[place]) for place in range(len(kinds))]
    notes = meanings(groups, letters_below(main[0]))
    found = [
        row
        for axes, (what, kind) in zip(main, kinds, strict=True)
        for row in draw_curves(axes, groups, what, kind=kind, notes=notes if axes is main[0] else ())
    ]
    if columns:
        panels = grid[len(kinds)].subgridspec(rows, columns).subplots(sharex=True, sharey=True, squeeze=False)
        draw_tasks(list(panels.flat), tasks, groups, main[0])
    heading(figure, f"Learning curves{': mean over tasks, and each task by itself' if columns else ''}", lives)
    fit(figure, height=max(4.0, SMALL[1] * rows - 1))
    singly = [row for kind in kinds for task in tasks for group in groups for row in rows_of(task, group, *kind)]
    save(figure, found + singly, out)


def recoloured(groups: Sequence[Group]) -> list[Group]:
    """Groups with colours that can be told apart, also those of one agent."""
    colours = told_apart([colour(group.agent) for group in groups])
    return [replace(group, shade=shade) for group, shade in zip(groups, colours, strict=True)]


def shape(tasks: int) -> tuple[int, int]:
    """Rows and columns of small panels: not fewer columns than rows, and few places left over."""
    if not tasks:
        return 0, 0
    least = int(np.ceil(np.sqrt(tasks)))
    columns = min(range(least, least + 3), key=lambda columns: -tasks % columns)
    return -(-tasks // columns), columns


def draw_tasks(panels: Sequence[Any], tasks: Sequence[str], groups: Sequence[Group], main: Any) -> None:
    """A panel for each task, with the range of the main one or more; those that are left over are taken away."""
    columns = panels[0].get_subplotspec().get_gridspec().ncols
    for number, (axes, task) in enumerate(zip(panels, tasks, strict=False)):
        for group in groups:
            draw_task(axes, task, group)
        axes.set_title(safe(task), fontsize=6)
        axes.tick_params(labelsize=6, labelbottom=number + columns >= len(tasks))
    for axes in panels[len(tasks) :]:
        axes.remove()
    low, high = np.array([main.get_ylim(), *(axes.dataLim.intervaly for axes in panels[: len(tasks)])]).T
    panels[0].set_ylim(low.min(), high[np.isfinite(high)].max())


def draw_task(axes: Any, task: str, group: Group) -> None:
    """The mean of a group's lives in a task, and its interval."""
    curve = curve_of(task, group)
    if curve is None:
        return
    steps, mean, error = curve
    axes.plot(steps / 1000, mean, lw=1, **group.look)
    draw_band(axes, steps / 1000, mean, error, group, seeds=len(learnt(task, group.lives)))


def learnt(task: str, lives: Sequence[FinishedLife], what: str = "return") -> list[FinishedLife]:
    """Lives that tell how a task was learnt."""
    return [life for life in lives if task in life.told(what).tasks]


def curve_of(task: str, group: Group, what: str = "return") -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Steps, mean over the seeds that learnt a task, and its error; None if none has."""
    curves = [(life.told(what).steps, life.curve_of(task, what)) for life in learnt(task, group.lives, what)]
    return (curves[0][0], *over_seeds(curves)) if curves else None


def rows_of(task: str, group: Group, what: str, kind: str) -> list[Row]:
    """The curve of a task for the table."""
    curve, seeds = curve_of(task, group, what), len(learnt(task, group.lives, what))
    return [
        group.row(kind, float(value), steps=int(step), error=float(error), tasks=1, seeds=seeds, part=task)
        for step, value, error in zip(*(curve or ((), (), ())), strict=True)
        if not np.isnan(value)
    ]
