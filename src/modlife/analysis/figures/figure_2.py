"""The paper's Figure 2: multi-task learning. Curves, zero-shot return on unseen combinations, wrong modules."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from modlife.analysis.groups import Group, counted, grouped
from modlife.analysis.lives import FinishedLife, Row, label, read_lives, save
from modlife.analysis.panels import Bar, draw_bars, draw_curves, finish, fit, with_errors
from modlife.metrics import mean_and_error

MODULAR = "mtl"


def draw(paths: Sequence[Path], out: Path) -> None:
    """Learning curves, zero-shot return against the number of training tasks, and wrong modules."""
    from matplotlib.figure import Figure

    lives = read_lives(paths)
    groups = grouped(lives, lambda life: f"{label(life.agent)}, {life.tasks} tasks")
    figure = Figure(figsize=(13, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    rows = draw_curves(left, groups) + rows_at_the_end(groups) + draw_wrong_modules(right, groups)
    left.set_xlabel("thousand steps per task")
    draw_zero_shot(middle, grouped(lives, lambda life: label(life.agent), but=("seed", "tasks")))
    fit(figure, height=4)
    save(figure, rows, out)


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


def draw_zero_shot(axes: Any, series: Sequence[Group]) -> None:
    """Return on unseen combinations, structure given; a line through lives that differ in the number of tasks alone."""
    every = set()
    for one in series:
        by_tasks = {count: unseen([life for life in one.lives if life.tasks == count]) for count in counts(one.lives)}
        known = {count: values for count, values in by_tasks.items() if values}
        if known:
            means, errors = np.array([mean_and_error(values) for values in known.values()]).T
            seeds = sorted({len(values) for values in known.values()})
            every |= {*seeds}
            told = f"{one.label}, {counted(seeds[0]) if len(seeds) == 1 else f'{seeds[0]} to {counted(seeds[-1])}'}"
            axes.errorbar(list(known), means, errors, marker="o", capsize=3, label=told, **one.look)
    title = with_errors("Zero-shot on unseen combinations", "bars", every)
    finish(axes, title=title, xlabel="training tasks", ylabel="return, mean over unseen tasks")


def counts(lives: Sequence[FinishedLife]) -> list[int]:
    """The numbers of tasks that there are."""
    return sorted({life.tasks for life in lives})


def draw_wrong_modules(axes: Any, groups: Sequence[Group]) -> list[Row]:
    """The modular agent with the most tasks, one module at a time replaced by a wrong one."""
    able = [group for group in groups if group.agent == MODULAR and "wrong_module" in group.lives[0].summary]
    most = max((group.tasks for group in able), default=0)
    shown = [group for group in able if group.tasks == most]
    bars = [bar for group in shown for bar in modules_replaced(group)]
    drawn = draw_bars(axes, bars)
    title = f"Wrong modules, {most} tasks" if shown else "Wrong modules"
    title = with_errors(title, "bars", (len(bar.values) for bar in bars))
    finish(axes, title=title, ylabel="return, mean over training tasks")
    axes.tick_params(axis="x", labelsize=7.5)
    return [
        bar.group.row("modules", mean, error=error, seeds=len(bar.values), part=bar.name) for bar, mean, error in drawn
    ]


def modules_replaced(group: Group) -> list[Bar]:
    """The return with all modules, and with a wrong one of each factor."""
    summaries = [life.summary for life in group.lives if "wrong_module" in life.summary]
    right = Bar(group, "all correct", [summary["seen"]["mean_return"] for summary in summaries])
    wrong = [
        Bar(group, f"wrong {factor}", [summary["wrong_module"][factor] for summary in summaries])
        for factor in summaries[0]["wrong_module"]
        if all(factor in summary["wrong_module"] for summary in summaries)
    ]
    return [right, *wrong]
