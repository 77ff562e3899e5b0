"""The paper's Figure E.1: ablations. (a) wrong modules, (b) chained modules, (c, d) other ways to keep old tasks.

Each panel shows the lives that are for it: (a) and (b) of multi-task agents, (c) and (d) of agents that learn one task
after the other. Panels that have none are left out.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from modlife.analysis.figures.figure_2 import draw_unseen, unseen, with_tasks
from modlife.analysis.figures.figure_3 import by_steps, draw_phases
from modlife.analysis.groups import Group, grouped
from modlife.analysis.lives import FinishedLife, Row, read_lives, save
from modlife.analysis.panels import MEASURES, Bar, draw_bars, draw_curves, finish, fit, heading, with_intervals
from modlife.errors import InputError

MODULAR = "mtl"
"""Whose modules are exchanged for wrong ones."""
Panel = Callable[[Any, Sequence[FinishedLife]], list[Row]]
WIDTH = 5.5
"""Inches of a panel."""


def draw(paths: Sequence[Path], out: Path, *, letters: str = "abcd") -> None:
    """All panels that there are lives for, or some."""
    save(*panels(paths, letters), out)


draw_a, draw_b, draw_c, draw_d = (partial(draw, letters=letter) for letter in "abcd")
"""Each panel alone."""


def panels(paths: Sequence[Path], letters: str) -> tuple[Any, list[Row]]:
    """The panels with these letters that there are lives for, side by side."""
    from matplotlib.figure import Figure

    lives = read_lives(paths)
    shown = {letter: found for letter in letters if (found := [life for life in lives if FOR[letter](life)])}
    if not shown:
        raise InputError("None of these lives is for this figure: `modlife list` says what it shows.")
    columns = min(2, len(shown))
    lines = -(-len(shown) // columns)
    figure, rows = Figure(figsize=(WIDTH * columns, 4), layout="constrained"), []
    every = list(figure.subplots(lines, columns, squeeze=False).flat)
    for axes, (letter, own) in zip(every, shown.items(), strict=False):
        rows += PANELS[letter](axes, own)
        axes.title.set_text(f"({letter}) {axes.get_title()}")
    for axes in every[len(shown) :]:
        axes.remove()
    heading(figure, "What the parts are good for", [life for own in shown.values() for life in own])
    fit(figure, height=4, rows=lines)
    return figure, rows


def draw_wrong_modules(axes: Any, lives: Sequence[FinishedLife]) -> list[Row]:
    """The modular agent with the most tasks, one module at a time replaced by a wrong one."""
    most = max(life.tasks for life in lives)
    groups = grouped([life for life in lives if life.tasks == most], with_tasks)
    bars = [bar for group in groups for bar in modules_replaced(group)]
    drawn = draw_bars(axes, bars)
    title = with_intervals(f"Wrong modules, {most} tasks", "thin lines", (len(bar.values) for bar in bars))
    finish(axes, title=title, xlabel="modules in use", ylabel=f"{MEASURES['return']}, mean over training tasks")
    axes.tick_params(axis="x", labelsize=8)
    return [
        bar.group.row("modules", mean, error=error, seeds=len(bar.values), part=bar.name) for bar, mean, error in drawn
    ]


def modules_replaced(group: Group) -> list[Bar]:
    """The return with all modules, and with a wrong one of each factor."""
    summaries = [life.summary for life in group.lives]
    right = Bar(group, "all correct", [summary["seen"]["mean_return"] for summary in summaries])
    wrong = [
        Bar(group, f"wrong {factor}", [summary["wrong_module"][factor] for summary in summaries])
        for factor in summaries[0]["wrong_module"]
        if all(factor in summary["wrong_module"] for summary in summaries)
    ]
    return [right, *wrong]


PANELS: dict[str, Panel] = {
    "a": draw_wrong_modules,
    "b": draw_unseen,
    "c": lambda axes, lives: draw_curves(axes, by_steps(lives)),
    "d": lambda axes, lives: draw_phases(axes, by_steps(lives)),
}
FOR: dict[str, Callable[[FinishedLife], bool]] = {
    "a": lambda life: life.agent == MODULAR and "wrong_module" in life.summary,
    "b": lambda life: life.config.order.together and bool(unseen([life])),
    "c": lambda life: not life.config.order.together,
    "d": lambda life: not life.config.order.together,
}
"""Which lives a panel shows."""
