"""Figures, one function each: run directories in, a picture and a table of its numbers out."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from modlife.experiments.figure_3 import figure_3
from modlife.experiments.results import COLOURS, LABELS, Life, mean_and_error, read_lives, row, save

RELEASED_STEPS = (50, 100, 200, 300, 500, 700, 1000)
RELEASED = {
    "wall/red/dynamics-0": (0.186, 0.286, 0.418, 0.470, 0.428, 0.493, 0.577),
    "floor/purple/dynamics-3": (0.512, 0.828, 0.856, 0.867, 0.865, 0.872, 0.873),
    "lava/blue/dynamics-1": (0.223, 0.389, 0.466, 0.432, 0.654, 0.644, 0.728),
    "food/green/dynamics-2": (0.161, 0.471, 0.751, 0.787, 0.766, 0.801, 0.832),
}
"""Training return of the authors' released code, measured with one seed, at thousands of steps."""


def by_agent_and_tasks(lives: Sequence[Life]) -> dict[tuple[str, int], list[Life]]:
    """Lives that differ in their seed only."""
    groups: dict[tuple[str, int], list[Life]] = defaultdict(list)
    for life in lives:
        groups[life.agent, life.tasks].append(life)
    return dict(sorted(groups.items()))


def figure_2(paths: Sequence[Path], out: Path) -> None:
    """Learning curves, zero-shot return against the number of training tasks, and wrong modules."""
    from matplotlib.figure import Figure

    groups = by_agent_and_tasks(read_lives(paths))
    figure = Figure(figsize=(13, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    rows = draw_curves(left, groups) + draw_zero_shot(middle, groups) + draw_wrong_modules(right, groups)
    save(figure, rows, out)


def draw_curves(axes: Any, groups: dict[tuple[str, int], list[Life]]) -> list[dict[str, Any]]:
    """Mean training return over tasks; lighter colours for fewer training tasks."""
    rows = []
    most = max(tasks for _, tasks in groups)
    for (agent, tasks), lives in groups.items():
        if agent == "mtl-chain":
            continue
        curves = np.array([np.nanmean(life.curves, axis=0) for life in lives])
        steps, mean = lives[0].steps, curves.mean(axis=0)
        alpha = 1.0 if agent == "stl" else 0.3 + 0.7 * tasks / most
        axes.plot(steps / 1000, mean, color=COLOURS[agent], alpha=alpha, label=f"{LABELS[agent]}, {tasks} tasks")
        if len(lives) > 1:
            error = curves.std(axis=0, ddof=1) / np.sqrt(len(lives))
            axes.fill_between(steps / 1000, mean - error, mean + error, color=COLOURS[agent], alpha=0.15, lw=0)
        rows += [
            row("curve", agent, tasks, len(lives), float(value), steps=int(step))
            for step, value in zip(steps, mean, strict=True)
        ]
    axes.set(xlabel="thousand steps per task", ylabel="training return", title="Learning curves", ylim=(0, 1))
    axes.legend(fontsize=7, loc="lower right")
    return rows


def draw_zero_shot(axes: Any, groups: dict[tuple[str, int], list[Life]]) -> list[dict[str, Any]]:
    """Return on unseen combinations, structure given."""
    rows, points = [], defaultdict(list)
    for (agent, tasks), lives in groups.items():
        found = [life.summary["unseen"]["mean_return"] for life in lives if "unseen" in life.summary]
        if found:
            mean, error = mean_and_error(found)
            points[agent].append((tasks, mean, error))
            rows.append(row("zero-shot", agent, tasks, len(found), mean, error=error))
        seen, error = mean_and_error([life.summary["seen"]["mean_return"] for life in lives])
        rows.append(row("final", agent, tasks, len(lives), seen, error=error))
    for agent, values in points.items():
        tasks, means, errors = np.array(values).T
        axes.errorbar(
            tasks, means, np.nan_to_num(errors), color=COLOURS[agent], marker="o", capsize=3, label=LABELS[agent]
        )
    axes.set(xlabel="training tasks", title="Zero-shot on unseen combinations", ylim=(0, 1))
    axes.legend(fontsize=8, loc="lower right")
    return rows


def draw_wrong_modules(axes: Any, groups: dict[tuple[str, int], list[Life]]) -> list[dict[str, Any]]:
    """The modular agent with the most tasks, one module at a time replaced by a wrong one."""
    tasks = max((count for agent, count in groups if agent == "mtl"), default=None)
    if tasks is None:
        return []
    lives, rows = groups["mtl", tasks], []
    right = [life.summary["seen"]["mean_return"] for life in lives]
    bars = {"all correct": right}
    for factor in lives[0].summary["wrong_module"]:
        bars[f"wrong {factor}"] = [life.summary["wrong_module"][factor] for life in lives]
    for name, values in bars.items():
        mean, error = mean_and_error(values)
        axes.bar(name, mean, yerr=np.nan_to_num(error), color=COLOURS["mtl"], capsize=3)
        rows.append(row("modules", f"mtl, {name}", tasks, len(values), mean, error=error))
    axes.set(title=f"Wrong modules, {tasks} tasks", ylim=(0, 1))
    axes.tick_params(axis="x", labelsize=8)
    return rows


def figure_stl(paths: Sequence[Path], out: Path) -> None:
    """Single-task curves of each task, mean over seeds, beside those of the released code."""
    from matplotlib.figure import Figure

    lives = read_lives(paths)
    names = lives[0].names
    figure = Figure(figsize=(3.2 * len(names), 3.2), layout="constrained")
    rows = []
    for axes, (place, name) in zip(np.atleast_1d(figure.subplots(1, len(names))), enumerate(names), strict=True):
        curves = np.array([life.curves[place] for life in lives])
        steps = lives[0].steps / 1000
        for curve in curves:
            axes.plot(steps, curve, color=COLOURS["mtl"], alpha=0.25, lw=0.8)
        axes.plot(steps, curves.mean(axis=0), color=COLOURS["mtl"], label=f"here, {len(lives)} seeds")
        if name in RELEASED:
            axes.plot(
                RELEASED_STEPS, RELEASED[name], "o-", color=COLOURS["mtl-monolithic"], ms=4, label="released code"
            )
        axes.set(title=name, xlabel="thousand steps", ylim=(0, 1))
        axes.legend(fontsize=8, loc="lower right")
        finals = [life.summary["seen"]["return"][place] for life in lives]
        mean, error = mean_and_error(finals)
        rows.append(row("final", f"stl, {name}", 1, len(finals), mean, error=error))
    save(figure, rows, out)


FIGURES = {"fig2": figure_2, "fig3": figure_3, "stl": figure_stl}
