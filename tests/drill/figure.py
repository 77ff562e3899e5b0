"""A figure: the return of every task at the end of each life."""

from collections.abc import Sequence
from pathlib import Path

from modlife.analysis.lives import Row, colour, label, read_lives, save


def draw(paths: Sequence[Path], out: Path) -> None:
    from matplotlib.figure import Figure

    figure, rows = Figure(figsize=(7, 4), layout="constrained"), []
    axes = figure.subplots()
    for life in read_lives(paths):
        final = life.summary["seen"]
        axes.plot(final["tasks"], final["return"], "o-", color=colour(life.agent), label=label(life.agent))
        rows += [
            Row(f"final of {task}", life.agent, life.tasks, 1, value)
            for task, value in zip(final["tasks"], final["return"], strict=True)
        ]
    axes.legend()
    save(figure, rows, out)
