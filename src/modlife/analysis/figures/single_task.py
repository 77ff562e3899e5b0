"""Single-task curves of each task, mean over seeds, beside those of the authors' released code."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from modlife.analysis.lives import Row, colour, read_lives, save
from modlife.metrics import mean_and_error

RELEASED_STEPS = (50, 100, 200, 300, 500, 700, 1000)
RELEASED = {
    "wall/red/dynamics-0": (0.186, 0.286, 0.418, 0.470, 0.428, 0.493, 0.577),
    "floor/purple/dynamics-3": (0.512, 0.828, 0.856, 0.867, 0.865, 0.872, 0.873),
    "lava/blue/dynamics-1": (0.223, 0.389, 0.466, 0.432, 0.654, 0.644, 0.728),
    "food/green/dynamics-2": (0.161, 0.471, 0.751, 0.787, 0.766, 0.801, 0.832),
}
"""Training return of the authors' released code, measured with one seed, at thousands of steps."""
HERE, THERE = "comp-search", "mtl-monolithic"
"""Agents whose colours stand for this program and the released one."""


def draw(paths: Sequence[Path], out: Path) -> None:
    """One panel for each task."""
    from matplotlib.figure import Figure

    lives = read_lives(paths)
    names = lives[0].names
    figure = Figure(figsize=(3.2 * len(names), 3.2), layout="constrained")
    rows = []
    for axes, (place, name) in zip(np.atleast_1d(figure.subplots(1, len(names))), enumerate(names), strict=True):
        curves = np.array([life.curves.returns[place] for life in lives])
        steps = lives[0].curves.steps / 1000
        for curve in curves:
            axes.plot(steps, curve, color=colour(HERE), alpha=0.25, lw=0.8)
        axes.plot(steps, curves.mean(axis=0), color=colour(HERE), label=f"here, {len(lives)} seeds")
        if name in RELEASED:
            axes.plot(RELEASED_STEPS, RELEASED[name], "o-", color=colour(THERE), ms=4, label="released code")
        axes.set(title=name, xlabel="thousand steps", ylim=(0, 1))
        axes.legend(fontsize=8, loc="lower right")
        mean, error = mean_and_error([life.summary["seen"]["return"][place] for life in lives])
        rows.append(Row("final", f"stl, {name}", 1, len(lives), mean, error=error))
    save(figure, rows, out)
