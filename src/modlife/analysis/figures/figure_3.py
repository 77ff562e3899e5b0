"""The paper's Figure 3: lifelong learning. Curves, zero-shot return as tasks accumulate, and returns by phase."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from modlife.analysis.lives import FinishedLife, Row, colour, curve_rows, error_bar, grouped, label, read_lives, save
from modlife.metrics import PHASES, mean_and_error

WINDOW = 8
"""Tasks over which zero-shot returns are averaged: single tasks differ too much in difficulty."""

Groups = dict[tuple[str, int], list[FinishedLife]]
"""Lives by agent and steps per task."""


def draw(paths: Sequence[Path], out: Path) -> None:
    """Learning curves, zero-shot return against tasks seen, and the mean return after each phase of learning."""
    from matplotlib.figure import Figure

    groups = grouped(read_lives(paths), lambda life: (life.agent, life.steps_per_task))
    figure = Figure(figsize=(13, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    rows = draw_curves(left, groups) + draw_zero_shot(middle, groups) + draw_phases(right, groups)
    save(figure, rows, out)


def name_of(group: tuple[str, int]) -> str:
    """The agent and its budget."""
    return f"{label(group[0])}, {group[1] // 1000}k steps"


def draw_curves(axes: Any, groups: Groups) -> list[Row]:
    """Mean training return over all tasks, at the same number of steps in each; steps of the search included."""
    rows = []
    for group, lives in groups.items():
        steps, mean = lives[0].curves.steps, np.mean([life.mean_curve for life in lives], axis=0)
        axes.plot(steps / 1000, mean, color=colour(group[0]), label=name_of(group))
        rows += curve_rows(name_of(group), lives[0].tasks, len(lives), steps, mean)
    axes.set(xlabel="thousand steps in a task", ylabel="training return, mean over tasks", ylim=(0, 1))
    axes.set_title("Learning curves")
    axes.legend(fontsize=8, loc="lower right")
    return rows


def draw_zero_shot(axes: Any, groups: Groups) -> list[Row]:
    """Return before learning, by the number of tasks seen before."""
    rows = []
    for group, lives in groups.items():
        found = [life.by_phase["zero-shot"]["return"] for life in lives if life.by_phase]
        if not found:
            continue
        mean = np.mean(found, axis=0)
        shade, seen = colour(group[0]), np.arange(len(mean))
        axes.plot(seen, mean, ".", color=shade, alpha=0.35, ms=4)
        smooth = np.convolve(mean, np.ones(WINDOW) / WINDOW, mode="valid")
        axes.plot(seen[: len(smooth)] + (WINDOW - 1) / 2, smooth, color=shade, label=name_of(group))
        rows += [
            Row("zero-shot", name_of(group), lives[0].tasks, len(found), float(value), seen=int(number))
            for number, value in enumerate(mean)
        ]
    axes.set(xlabel="tasks seen before", ylabel="return before learning", ylim=(0, 1))
    axes.set_title(f"Zero-shot (line: mean of {WINDOW} tasks)")
    if rows:
        axes.legend(fontsize=8, loc="lower right")
    return rows


def draw_phases(axes: Any, groups: Groups) -> list[Row]:
    """Mean return over tasks after each phase of their learning, and at the end of the life; errors over seeds."""
    rows, names, width = [], (*PHASES, "final"), 0.8 / len(groups)
    for number, (group, lives) in enumerate(groups.items()):
        for place, when in enumerate(names):
            values = returns_after(lives, when)
            if not values:
                continue
            mean, error = mean_and_error(values)
            left, name = place + (number + 0.5) * width - 0.4, name_of(group)
            shown = {"color": colour(group[0]), "label": name if when == "final" else None}
            axes.bar(left, mean, width, yerr=error_bar(error), capsize=3, **shown)
            rows.append(Row(when, name, lives[0].tasks, len(values), mean, error=error))
    axes.set_xticks(range(len(names)), names)
    axes.set(ylim=(0, 1), title="Mean return by phase")
    axes.legend(fontsize=8, loc="lower right")
    return rows


def returns_after(lives: Sequence[FinishedLife], when: str) -> list[float]:
    """The mean return of each life after a phase, or at its end; of those that tell it."""
    if when == "final":
        return [life.summary["seen"]["mean_return"] for life in lives]
    return [life.by_phase[when]["mean_return"] for life in lives if life.by_phase]
