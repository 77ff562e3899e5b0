"""The paper's Figure 4: lifelong learning with robots. How often tasks succeed, on the way and after each phase."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from modlife.analysis.figures.figure_3 import by_steps, draw_phases
from modlife.analysis.lives import Row, read_lives, save
from modlife.analysis.panels import draw_curves, fit, heading


def draw(paths: Sequence[Path], out: Path) -> None:
    """Successes while tasks are learnt, and after each phase of learning."""
    save(*successes(paths, "Success in lifelong learning, task after task"), out)


def successes(paths: Sequence[Path], title: str) -> tuple[Any, list[Row]]:
    """Both panels, under a title."""
    from matplotlib.figure import Figure

    lives = read_lives(paths)
    groups = by_steps(lives)
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    rows = draw_curves(left, groups, "success") + draw_phases(right, groups, "success")
    heading(figure, title, lives)
    fit(figure, height=4)
    return figure, rows
