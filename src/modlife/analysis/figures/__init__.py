"""The table of figures: run directories in, a picture and a table of its numbers out. One file each."""

from dataclasses import dataclass
from typing import Any

from modlife.registry import Table


@dataclass(frozen=True)
class Figure:
    """A figure by name. What is a string is `package.module:name`, imported when needed."""

    name: str
    about: str
    draw: str | Any
    """Takes run directories and the picture to write; writes it, and a CSV file beside it."""


PLACE = "modlife.analysis.figures"
FIGURES = Table(
    "figure",
    Figure("fig2", "the paper's Figure 2: multi-task learning curves, zero-shot returns", f"{PLACE}.figure_2:draw"),
    Figure(
        "fig3",
        "the paper's Figure 3: lifelong learning curves, zero-shot return as tasks accumulate, returns by phase",
        f"{PLACE}.figure_3:draw",
    ),
    Figure(
        "fig4",
        "the paper's Figure 4, robots: successes in lifelong learning, curves and by phase",
        f"{PLACE}.figure_4:draw",
    ),
    Figure(
        "figE1",
        "the paper's Figure E.1, ablations: the four below, as far as there are lives for them",
        f"{PLACE}.figure_e1:draw",
    ),
    Figure("figE1a", "multi-task returns with one module replaced by a wrong one", f"{PLACE}.figure_e1:draw_a"),
    Figure("figE1b", "zero-shot returns of multi-task agents, such as chained modules", f"{PLACE}.figure_e1:draw_b"),
    Figure(
        "figE1c",
        "learning curves of lifelong agents, such as CLEAR with modules and P&C with batch RL",
        f"{PLACE}.figure_e1:draw_c",
    ),
    Figure("figE1d", "the same agents' returns by phase", f"{PLACE}.figure_e1:draw_d"),
    Figure(
        "figE2",
        "the paper's Figure E.2: the searching agent with fewer and more modules than components",
        f"{PLACE}.figure_e2:draw",
    ),
    Figure(
        "figE3",
        "the paper's Figure E.3, robots: successes of P&C with batch RL, drawn as Figure 4",
        f"{PLACE}.figure_e3:draw",
    ),
    Figure("curves", "learning curves of any lives: mean over tasks, and each task", f"{PLACE}.curves:draw"),
    Figure(
        "stl",
        "single-task curves beside those of the authors' released code, in the 2-D world",
        f"{PLACE}.single_task:draw",
    ),
)
