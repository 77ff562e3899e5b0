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


FIGURES = Table(
    "figure",
    Figure(
        "fig2",
        "the paper's Figure 2 with ablations E.1a and E.1b: multi-task curves, zero-shot returns, wrong modules",
        "modlife.analysis.figures.figure_2:draw",
    ),
    Figure(
        "fig3",
        "the paper's Figure 3: lifelong learning curves, zero-shot return as tasks accumulate, returns by phase",
        "modlife.analysis.figures.figure_3:draw",
    ),
    Figure(
        "figE2",
        "the paper's Figure E.2: the searching agent with fewer and more modules than components",
        "modlife.analysis.figures.figure_e2:draw",
    ),
    Figure(
        "stl",
        "single-task curves beside those of the authors' released code, in the 2-D world",
        "modlife.analysis.figures.single_task:draw",
    ),
)
