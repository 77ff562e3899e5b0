"""Single-task curves of each task, mean over seeds, beside those of the authors' released code."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from modlife.analysis.groups import Group, counted, grouped, over_seeds
from modlife.analysis.lives import Row, label, read_lives, save
from modlife.analysis.panels import MEASURES, finish, fit, safe
from modlife.metrics import mean_and_error

RELEASED_STEPS = (50, 100, 200, 300, 500, 700, 1000)
RELEASED = {
    "wall/red/dynamics-0": (0.186, 0.286, 0.418, 0.470, 0.428, 0.493, 0.577),
    "floor/purple/dynamics-3": (0.512, 0.828, 0.856, 0.867, 0.865, 0.872, 0.873),
    "lava/blue/dynamics-1": (0.223, 0.389, 0.466, 0.432, 0.654, 0.644, 0.728),
    "food/green/dynamics-2": (0.161, 0.471, 0.751, 0.787, 0.766, 0.801, 0.832),
}
"""Training return of the authors' released code, measured with one seed, at thousands of steps."""
COLUMNS = 6


def draw(paths: Sequence[Path], out: Path) -> None:
    """One panel for each task that any life has learnt; in it, the lives that have."""
    from matplotlib.figure import Figure

    lives = read_lives(paths)
    groups = grouped(lives, lambda life: label(life.agent))
    tasks = list(dict.fromkeys(task for life in lives for task in life.names))
    columns = min(COLUMNS, len(tasks))
    panels = -(-len(tasks) // columns)
    figure = Figure(figsize=(3.2 * columns, 4), layout="constrained")
    every, rows = list(figure.subplots(panels, columns, squeeze=False).flat), []
    for task, axes in zip(tasks, every, strict=False):
        rows += draw_task(axes, task, groups)
    for axes in every[len(tasks) :]:
        axes.remove()
    several = any(len(group.lives) > 1 for group in groups)
    figure.suptitle(
        f"Tasks learnt alone{' (thin lines: single seeds; thick: their mean)' if several else ''}", fontsize=11
    )
    fit(figure, height=3.2, rows=panels)
    save(figure, rows, out)


def draw_task(axes: Any, task: str, groups: Sequence[Group]) -> list[Row]:
    """The curves of a task, and the released code's where it has one."""
    rows = []
    for group in groups:
        rows += draw_group(axes, task, group)
        finals = [life.finals[task] for life in group.lives if task in life.finals]
        if finals:
            mean, error = mean_and_error(finals)
            rows.append(group.row("final", mean, error=error, tasks=1, seeds=len(finals), part=task))
    if task in RELEASED:
        axes.plot(RELEASED_STEPS, RELEASED[task], "o-", color="black", ms=3, lw=1, label=f"released code, {counted(1)}")
        points = zip(RELEASED_STEPS, RELEASED[task], strict=True)
        told = {"tasks": 1, "seeds": 1, "label": "released code", "part": task}
        rows += [Row("curve", "stl", value=value, steps=1000 * steps, **told) for steps, value in points]
    finish(axes, title=safe(task), xlabel="thousand environment steps", ylabel=f"{MEASURES['return']}, while learning")
    return rows


def draw_group(axes: Any, task: str, group: Group) -> list[Row]:
    """The curve of each life of a group that has learnt a task, and their mean."""
    curves = [(life.curves.steps, life.curve_of(task)) for life in group.lives if task in life.curves.tasks]
    if not curves:
        return []
    if len(curves) > 1:
        for steps, curve in curves:
            axes.plot(steps / 1000, curve, color=group.colour, alpha=0.35, lw=0.7)
    steps, (mean, error) = curves[0][0], over_seeds(curves)
    axes.plot(steps / 1000, mean, label=group.told(len(curves)), **group.look)
    points = zip(steps, mean, error, strict=True)
    about = {"tasks": 1, "seeds": len(curves), "part": task}
    return [
        group.row("curve", value, error=wrong, steps=int(step), **about)
        for step, value, wrong in points
        if not np.isnan(value)
    ]
