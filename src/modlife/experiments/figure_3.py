"""The paper's Figure 3: lifelong learning. Curves, zero-shot return as tasks accumulate, and returns by stage."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from modlife.experiments.results import COLOURS, LABELS, Life, mean_and_error, read_lives, row, save

WINDOW = 8
"""Tasks over which zero-shot returns are averaged: single tasks differ too much in difficulty."""

STAGES = ("zero-shot", "online", "offline", "final")


def figure_3(paths: Sequence[Path], out: Path) -> None:
    """Learning curves, zero-shot return against tasks seen, and the mean return at each stage of learning."""
    from matplotlib.figure import Figure

    groups: dict[tuple[str, int], list[Life]] = defaultdict(list)
    for life in read_lives(paths):
        groups[life.agent, life.summary["steps_per_task"]].append(life)
    figure = Figure(figsize=(13, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    rows = draw_curves(left, groups) + draw_zero_shot(middle, groups) + draw_stages(right, groups)
    save(figure, rows, out)


def name_of(group: tuple[str, int]) -> str:
    """The agent and its budget."""
    return f"{LABELS[group[0]]}, {group[1] // 1000}k steps"


def draw_curves(axes: Any, groups: dict[tuple[str, int], list[Life]]) -> list[dict[str, Any]]:
    """Mean training return over all tasks, at the same number of steps in each; steps of the search included."""
    rows = []
    for group, lives in groups.items():
        curves = np.array([np.nanmean(life.curves, axis=0) for life in lives])
        steps, mean = lives[0].steps, curves.mean(axis=0)
        axes.plot(steps / 1000, mean, color=COLOURS[group[0]], label=name_of(group))
        rows += [
            row("curve", name_of(group), lives[0].tasks, len(lives), float(value), steps=int(step))
            for step, value in zip(steps, mean, strict=True)
        ]
    axes.set(xlabel="thousand steps in a task", ylabel="training return, mean over tasks", ylim=(0, 1))
    axes.set_title("Learning curves")
    axes.legend(fontsize=8, loc="lower right")
    return rows


def draw_zero_shot(axes: Any, groups: dict[tuple[str, int], list[Life]]) -> list[dict[str, Any]]:
    """Return before learning, by the number of tasks seen before."""
    rows = []
    for group, lives in groups.items():
        found = [life.summary["stages"]["zero-shot"]["return"] for life in lives if "stages" in life.summary]
        if not found:
            continue
        mean = np.mean(found, axis=0)
        colour, seen = COLOURS[group[0]], np.arange(len(mean))
        axes.plot(seen, mean, ".", color=colour, alpha=0.35, ms=4)
        smooth = np.convolve(mean, np.ones(WINDOW) / WINDOW, mode="valid")
        axes.plot(seen[: len(smooth)] + (WINDOW - 1) / 2, smooth, color=colour, label=name_of(group))
        rows += [
            row("zero-shot", name_of(group), lives[0].tasks, len(found), float(value), steps=int(number))
            for number, value in enumerate(mean)
        ]
    axes.set(xlabel="tasks seen before", ylabel="return before learning", ylim=(0, 1))
    axes.set_title(f"Zero-shot (line: mean of {WINDOW} tasks)")
    axes.legend(fontsize=8, loc="lower right")
    return rows


def draw_stages(axes: Any, groups: dict[tuple[str, int], list[Life]]) -> list[dict[str, Any]]:
    """Mean return over tasks at each stage of their learning, and at the end of the life."""
    rows = []
    for number, (group, lives) in enumerate(groups.items()):
        bars = {
            when: [life.summary["stages"][when]["mean_return"] for life in lives if "stages" in life.summary]
            for when in STAGES[:-1]
        }
        bars["final"] = [life.summary["seen"]["mean_return"] for life in lives]
        width = 0.8 / len(groups)
        for place, when in enumerate(STAGES):
            if bars[when]:
                mean, error = mean_and_error(bars[when])
                label = name_of(group) if when == "final" else None
                axes.bar(place + (number + 0.5) * width - 0.4, mean, width, color=COLOURS[group[0]], label=label)
                rows.append(row(when, name_of(group), lives[0].tasks, len(bars[when]), mean, error=error))
    axes.set_xticks(range(len(STAGES)), STAGES)
    axes.set(ylim=(0, 1), title="Mean return by stage")
    axes.legend(fontsize=8, loc="lower right")
    return rows
