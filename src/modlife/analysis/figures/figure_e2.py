"""The paper's Figure E.2: lifelong learning with fewer and more modules than there are components."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from modlife.analysis.figures.figure_3 import draw_phases, values_after
from modlife.analysis.groups import Group, grouped
from modlife.analysis.lives import FinishedLife, Row, colour, label, read_lives, save
from modlife.analysis.panels import MEASURES, draw_curves, draw_seeds, finish, sheet, with_intervals
from modlife.errors import InputError
from modlife.metrics import mean_and_error

SHOWN = {"online": "--", "final": "-"}
"""Returns that are drawn against the number of modules, and how."""


def draw(paths: Sequence[Path], out: Path) -> None:
    """Learning curves and returns by phase for each number of modules, and returns against it."""
    lives = sorted(read_lives(paths), key=modules)
    groups = grouped(
        lives, lambda life: f"{label(life.agent)}, {modules(life)} module{'s' if modules(life) > 1 else ''}"
    )
    panels = [partial(one, groups=groups) for one in (draw_curves, draw_phases, draw_numbers)]
    title = "Lifelong learning with fewer and more modules than components"
    save(*sheet(lives, title, *panels, width=15), out)


def modules(life: FinishedLife) -> int:
    """Modules per factor of an agent that searches for structures."""
    count = getattr(life.config.settings, "module_count", None)
    if count is None:
        raise InputError(f"'{life.path}' is of '{life.agent}', which does not choose among a number of modules.")
    return count(life.config.world.graph)


def draw_numbers(axes: Any, groups: Sequence[Group]) -> list[Row]:
    """Mean return over tasks against modules per factor, after the online phase and at the end of the life."""
    rows = []
    for agent in dict.fromkeys(group.agent for group in groups):
        mine = [group for group in groups if group.agent == agent]
        for when, line in SHOWN.items():
            numbers = [modules(group.lives[0]) for group in mine]
            values = [values_after(group.lives, when) for group in mine]
            found = [mean_and_error(one) for one in values]
            look = {"linestyle": line, "marker": mine[0].marker, "ms": 4}
            axes.plot(
                numbers, [mean for mean, _ in found], label=f"{label(agent)}, {when}", color=colour(agent), **look
            )
            for number, own in zip(numbers, values, strict=True):
                draw_seeds(axes, number, own, capsize=3, color=colour(agent))
            rows += [
                group.row(f"{when} by modules", mean, error=error, part=str(number))
                for group, number, (mean, error) in zip(mine, numbers, found, strict=True)
            ]
    components = max(groups[0].lives[0].config.world.graph.shape)
    axes.axvline(components, color="gray", lw=0.8, ls=":", label=f"components of a factor: {components}")
    axes.set_xticks(sorted({components, *(modules(group.lives[0]) for group in groups)}))
    title = with_intervals("Return by number of modules", "thin lines", (len(group.lives) for group in groups))
    finish(axes, title=title, xlabel="modules per factor", ylabel=f"{MEASURES['return']}, mean over tasks")
    return rows
