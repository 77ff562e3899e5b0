"""The paper's Figure 2: multi-task learning. Learning curves, and zero-shot return on unseen combinations."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from modlife.analysis.groups import Group, counted, grouped
from modlife.analysis.lives import FinishedLife, Row, label, read_lives, save
from modlife.analysis.panels import MEASURES, draw_curves, draw_seeds, finish, sheet, with_intervals
from modlife.metrics import mean_and_error


def draw(paths: Sequence[Path], out: Path) -> None:
    """Learning curves, and zero-shot return against the number of training tasks."""
    lives = read_lives(paths)
    curves = partial(draw_curves, groups=grouped(lives, with_tasks))
    save(*sheet(lives, "Multi-task learning", curves, partial(draw_unseen, lives=lives)), out)


def with_tasks(life: FinishedLife) -> str:
    """An agent and how many tasks it learnt."""
    return f"{label(life.agent)}, {life.tasks} tasks"


def unseen(lives: Sequence[FinishedLife]) -> list[float]:
    """The mean return of each life on combinations it never met; of those that can be asked."""
    return [life.summary["unseen"]["mean_return"] for life in lives if "unseen" in life.summary]


def rows_at_the_end(groups: Sequence[Group]) -> list[Row]:
    """Returns on unseen combinations and on tasks learnt."""
    rows = []
    for group in groups:
        found = {
            "zero-shot": unseen(group.lives),
            "final": [life.summary["seen"]["mean_return"] for life in group.lives],
        }
        for what, values in found.items():
            if values:
                mean, error = mean_and_error(values)
                rows.append(group.row(what, mean, error=error, seeds=len(values)))
    return rows


def draw_unseen(axes: Any, lives: Sequence[FinishedLife]) -> list[Row]:
    """Return on unseen combinations, structure given; a line through lives that differ in the number of tasks alone."""
    every = set()
    for one in grouped(lives, lambda life: label(life.agent), but=("seed", "tasks")):
        counts = sorted({life.tasks for life in one.lives})
        by_tasks = {count: unseen([life for life in one.lives if life.tasks == count]) for count in counts}
        known = {count: values for count, values in by_tasks.items() if values}
        if known:
            means = [np.mean(values) for values in known.values()]
            seeds = sorted({len(values) for values in known.values()})
            every |= {*seeds}
            told = f"{one.label}, {counted(seeds[0]) if len(seeds) == 1 else f'{seeds[0]} to {counted(seeds[-1])}'}"
            axes.plot(list(known), means, marker=one.marker, label=told, **one.look)
            for count, values in known.items():
                draw_seeds(axes, count, values, capsize=3, color=one.colour)
    title = with_intervals("Zero-shot: tasks never trained on", "bars", every)
    finish(axes, title=title, xlabel="number of training tasks", ylabel=f"{MEASURES['return']}, mean over unseen tasks")
    return rows_at_the_end(grouped(lives, with_tasks))
