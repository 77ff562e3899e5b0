"""The paper's Figure 4: lifelong learning with robots. How often tasks succeed, on the way and after each phase."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from modlife.analysis.figures.figure_3 import by_steps, draw_phases
from modlife.analysis.lives import Row, read_lives, save
from modlife.analysis.panels import draw_curves, sheet


def draw(paths: Sequence[Path], out: Path) -> None:
    """Successes while tasks are learnt, and after each phase of learning."""
    save(*successes(paths, "Success in lifelong learning, task after task"), out)


def successes(paths: Sequence[Path], title: str) -> tuple[Any, list[Row]]:
    """Both panels, under a title."""
    lives = read_lives(paths)
    groups = by_steps(lives)
    panels = [partial(one, groups=groups, what="success") for one in (draw_curves, draw_phases)]
    return sheet(lives, title, *panels)
