"""The paper's Figure 3: lifelong learning. Curves, zero-shot return as tasks accumulate, and returns by phase."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from modlife.analysis.groups import Group, grouped, in_steps
from modlife.analysis.lives import FinishedLife, Row, label, read_lives, save
from modlife.analysis.panels import Bar, draw_bars, draw_curves, finish, fit, with_errors
from modlife.metrics import PHASES

WINDOW = 8
"""Tasks over which zero-shot returns are averaged at most: single tasks differ too much in difficulty."""
MARKERS = ("o", "^", "s", "D", "v", "P")


def draw(paths: Sequence[Path], out: Path) -> None:
    """Learning curves, zero-shot return against tasks seen, and the mean return after each phase of learning."""
    from matplotlib.figure import Figure

    groups = grouped(read_lives(paths), lambda life: f"{label(life.agent)}, {in_steps(life.steps_per_task)}")
    figure = Figure(figsize=(13, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    rows = draw_curves(left, groups) + draw_zero_shot(middle, groups) + draw_phases(right, groups)
    left.set_xlabel("thousand steps in a task, those of a search included")
    fit(figure, height=4)
    save(figure, rows, out)


def window_for(points: int) -> int:
    """Over how many tasks to average a line of so many points: not over all of them, so that a line remains."""
    return min(WINDOW, max(1, points // 2))


def draw_zero_shot(axes: Any, groups: Sequence[Group]) -> list[Row]:
    """Return before learning, by the number of tasks seen before."""
    told = [(group, found) for group in groups if (found := zero_shot(group.lives))]
    window, rows = window_for(min((len(found[0]) for _, found in told), default=1)), []
    for number, (group, (seen, mean, seeds)) in enumerate(told):
        marker = {"marker": MARKERS[number % len(MARKERS)], "ms": 3.5}
        axes.plot(seen, mean, color=group.colour, lw=0, alpha=0.4, **marker)
        axes.plot(smooth(seen, window), smooth(mean, window), **group.look)
        axes.plot([], [], label=group.told(seeds), **group.look, **marker)
        rows += [
            group.row("zero-shot", float(value), seeds=seeds, seen=int(before))
            for before, value in zip(seen, mean, strict=True)
        ]
    title = f"Zero-shot\n(dots: single tasks; line: mean of {window} task{'s' if window > 1 else ''})"
    finish(axes, title=title if told else "Zero-shot", xlabel="tasks seen before", ylabel="return before learning")
    return rows


def zero_shot(lives: Sequence[FinishedLife]) -> tuple[np.ndarray, np.ndarray, int] | None:
    """Numbers of tasks seen before, the mean return over seeds at each, and how many seeds; None if nobody tells."""
    found = [life.zero_shot for life in lives if life.zero_shot]
    if not found:
        return None
    seen = sorted(set.intersection(*(set(one) for one in found)))
    return np.array(seen), np.array([np.mean([one[before] for one in found]) for before in seen]), len(found)


def smooth(values: np.ndarray, window: int) -> np.ndarray:
    """Means of so many values in a row."""
    return np.convolve(values, np.ones(window) / window, mode="valid")


def draw_phases(axes: Any, groups: Sequence[Group]) -> list[Row]:
    """Mean return over tasks after each phase of their learning, and at the end of the life; errors over seeds."""
    every = [Bar(group, when, returns_after(group.lives, when)) for group in groups for when in (*PHASES, "final")]
    bars = [bar for bar in every if bar.values]
    title = with_errors("Mean return by phase", "bars", (len(bar.values) for bar in bars))
    drawn = draw_bars(axes, bars)
    finish(axes, title=title, ylabel="return, mean over tasks")
    if len(bars) < len(every):
        axes.set_xlabel("no bar: the agent has no such phase")
    return [bar.group.row(bar.name, mean, error=error, seeds=len(bar.values)) for bar, mean, error in drawn]


def returns_after(lives: Sequence[FinishedLife], when: str) -> list[float]:
    """The mean return of each life after a phase, or at its end; of those that tell it."""
    if when == "final":
        return [life.summary["seen"]["mean_return"] for life in lives]
    return [life.by_phase[when]["mean_return"] for life in lives if when in life.by_phase]
