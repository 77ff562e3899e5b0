"""The paper's Figure 3: lifelong learning. Curves, zero-shot return as tasks accumulate, and returns by phase."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from modlife.analysis.groups import Group, grouped, in_steps
from modlife.analysis.lives import FinishedLife, Row, label, read_lives, save
from modlife.analysis.meanings import meanings
from modlife.analysis.panels import (
    MEASURES,
    Bar,
    draw_band,
    draw_bars,
    draw_curves,
    finish,
    letters_below,
    safe,
    sheet,
    with_bands,
    with_intervals,
)
from modlife.metrics import PHASES, mean_and_error

WINDOW = 9
"""Tasks over which zero-shot returns are averaged at most: single tasks differ too much in difficulty."""


def draw(paths: Sequence[Path], out: Path) -> None:
    """Learning curves, zero-shot return against tasks seen, and the mean return after each phase of learning."""
    lives = read_lives(paths)
    groups = by_steps(lives)
    panels = [partial(one, groups=groups) for one in (draw_curves, draw_zero_shot, draw_phases)]
    save(*sheet(lives, "Lifelong learning, task after task", *panels, width=15), out)


def by_steps(lives: Sequence[FinishedLife]) -> list[Group]:
    """Lives that are alike, named by their agent and steps."""
    return grouped(lives, lambda life: f"{label(life.agent)}, {in_steps(life.steps_per_task)}")


def window_for(points: int) -> int:
    """Over how many tasks to average a line of so many points: an odd number, and not all, so that a line remains."""
    half = max(1, points // 2)
    return min(WINDOW, half + 1 - half % 2)


def draw_zero_shot(axes: Any, groups: Sequence[Group]) -> list[Row]:
    """Return before learning, by the number of tasks seen before."""
    told = [(group, found) for group in groups if (found := zero_shot(group.lives))]
    window, rows = window_for(min((len(found[0]) for _, found in told), default=1)), []
    for group, (seen, lives) in told:
        marker = {"marker": group.marker, "ms": 3.5}
        axes.plot(seen, lives.mean(axis=0), color=group.colour, lw=0, alpha=0.4, **marker)
        mean, error = np.array([mean_and_error(column) for column in smooth(lives, window).T]).T
        axes.plot(smooth(seen, window), mean, **group.look)
        draw_band(axes, smooth(seen, window), mean, error, group, seeds=len(lives))
        axes.plot([], [], label=group.told(len(lives)), **group.look, **marker)
        found = [mean_and_error(column) for column in lives.T]
        rows += [
            group.row("zero-shot", value, error=error, seeds=len(lives), seen=int(before))
            for before, (value, error) in zip(seen, found, strict=True)
        ]
    title, noun = "Zero-shot: each task before it is learnt", "tasks" if window > 1 else "task"
    marks = f"markers: single tasks, mean over seeds; line: mean of {window} {noun}"
    title = with_bands(f"{title}\n({marks})" if told else title, (len(lives) for _, (_, lives) in told))
    finish(axes, title=title, xlabel="number of tasks seen before", ylabel="return before learning")
    return rows


def zero_shot(lives: Sequence[FinishedLife]) -> tuple[np.ndarray, np.ndarray] | None:
    """Numbers of tasks seen before, and the return of each life [life, number] at these; None if nobody tells."""
    found = [life.zero_shot for life in lives if life.zero_shot]
    if not found:
        return None
    seen = sorted(set.intersection(*(set(one) for one in found)))
    return np.array(seen), np.array([[one[before] for before in seen] for one in found])


def smooth(values: np.ndarray, window: int) -> np.ndarray:
    """Means of so many values in a row, along the last axis."""
    return np.lib.stride_tricks.sliding_window_view(values, window, axis=-1).mean(axis=-1)


def draw_phases(axes: Any, groups: Sequence[Group], what: str = "return") -> list[Row]:
    """Mean return (or success) over tasks after each phase of their learning, and at the end of the life."""
    times = (*PHASES, "final")
    every = [Bar(group, when, values_after(group.lives, when, what)) for group in groups for when in times]
    bars = [bar for bar in every if bar.values]
    title = with_intervals(
        "After each phase of learning: mean over tasks", "thin lines", (len(bar.values) for bar in bars)
    )
    drawn = draw_bars(axes, bars)
    said = remarks(groups, letters_below(axes), missing=len(bars) < len(every))
    axes.xaxis.label.set_fontsize(8)
    finish(axes, title=title, xlabel=said, ylabel=MEASURES[what])
    return [bar.group.row(bar.name, mean, error=error, seeds=len(bar.values)) for bar, mean, error in drawn]


def remarks(groups: Sequence[Group], letters: int, *, missing: bool) -> str:
    """What must be known to read the bars, what names of groups mean in lines of so many letters."""
    found = ["offline: at the end of the task's own stage", "final: all tasks, after the last one was learnt"]
    if any(record.get("how") == "searched" for group in groups for record in group.lives[0].records):
        found.append("zero-shot of agents that search: after the search")
    if missing:
        found.append("no bar: the agent tells of no such phase")
    return "\n".join([*found, *map(safe, meanings(groups, letters))])


def values_after(lives: Sequence[FinishedLife], when: str, what: str = "return") -> list[float]:
    """The mean return (or success) of each life after a phase, or at its end; of those that tell it."""
    return [value for life in lives if (value := life.after(when, what)) is not None]
