"""The paper's Figure 2: multi-task learning. Curves, zero-shot return on unseen combinations, wrong modules."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from modlife.analysis.lives import FinishedLife, Row, colour, curve_rows, error_bar, grouped, label, read_lives, save
from modlife.metrics import mean_and_error

Groups = dict[tuple[str, int], list[FinishedLife]]
"""Lives by agent and number of tasks."""

ABLATION, MODULAR, ALONE = "mtl-chain", "mtl", "stl"


def draw(paths: Sequence[Path], out: Path) -> None:
    """Learning curves, zero-shot return against the number of training tasks, and wrong modules."""
    from matplotlib.figure import Figure

    groups = grouped(read_lives(paths), lambda life: (life.agent, life.tasks))
    figure = Figure(figsize=(13, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    rows = draw_curves(left, groups) + draw_zero_shot(middle, groups) + draw_wrong_modules(right, groups)
    save(figure, rows, out)


def draw_curves(axes: Any, groups: Groups) -> list[Row]:
    """Mean training return over tasks; lighter colours for fewer training tasks."""
    rows = []
    most = max(tasks for _, tasks in groups)
    for (agent, tasks), lives in groups.items():
        if agent == ABLATION:
            continue
        curves = np.array([life.mean_curve for life in lives])
        steps, mean = lives[0].curves.steps, curves.mean(axis=0)
        alpha = 1.0 if agent == ALONE else 0.3 + 0.7 * tasks / most
        axes.plot(steps / 1000, mean, color=colour(agent), alpha=alpha, label=f"{label(agent)}, {tasks} tasks")
        if len(lives) > 1:
            error = curves.std(axis=0, ddof=1) / np.sqrt(len(lives))
            axes.fill_between(steps / 1000, mean - error, mean + error, color=colour(agent), alpha=0.15, lw=0)
        rows += curve_rows(agent, tasks, len(lives), steps, mean)
    axes.set(xlabel="thousand steps per task", ylabel="training return", title="Learning curves", ylim=(0, 1))
    axes.legend(fontsize=7, loc="lower right")
    return rows


def draw_zero_shot(axes: Any, groups: Groups) -> list[Row]:
    """Return on unseen combinations, structure given."""
    rows, points = [], defaultdict(list)
    for (agent, tasks), lives in groups.items():
        found = [life.summary["unseen"]["mean_return"] for life in lives if "unseen" in life.summary]
        if found:
            mean, error = mean_and_error(found)
            points[agent].append((tasks, mean, error))
            rows.append(Row("zero-shot", agent, tasks, len(found), mean, error=error))
        seen, error = mean_and_error([life.summary["seen"]["mean_return"] for life in lives])
        rows.append(Row("final", agent, tasks, len(lives), seen, error=error))
    for agent, values in points.items():
        tasks, means, errors = np.array(values).T
        axes.errorbar(tasks, means, errors, color=colour(agent), marker="o", capsize=3, label=label(agent))
    axes.set(xlabel="training tasks", title="Zero-shot on unseen combinations", ylim=(0, 1))
    if points:
        axes.legend(fontsize=8, loc="lower right")
    return rows


def draw_wrong_modules(axes: Any, groups: Groups) -> list[Row]:
    """The modular agent with the most tasks, one module at a time replaced by a wrong one."""
    tasks = max((count for agent, count in groups if agent == MODULAR), default=None)
    if tasks is None:
        return []
    lives, rows = groups[MODULAR, tasks], []
    bars = {"all correct": [life.summary["seen"]["mean_return"] for life in lives]}
    for factor in lives[0].summary["wrong_module"]:
        bars[f"wrong {factor}"] = [life.summary["wrong_module"][factor] for life in lives]
    for name, values in bars.items():
        mean, error = mean_and_error(values)
        axes.bar(name, mean, yerr=error_bar(error), color=colour(MODULAR), capsize=3)
        rows.append(Row("modules", f"{MODULAR}, {name}", tasks, len(values), mean, error=error))
    axes.set(title=f"Wrong modules, {tasks} tasks", ylim=(0, 1))
    axes.tick_params(axis="x", labelsize=8)
    return rows
