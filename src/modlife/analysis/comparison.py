"""Agents side by side, from finished lives: what they reached, what they kept, and what it cost."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from modlife import metrics
from modlife.analysis.groups import Group
from modlife.analysis.lives import FinishedLife, read_lives
from modlife.analysis.measures import curves_alone, groups_of, scores_of_life
from modlife.errors import plain
from modlife.metrics import Curve, Scores, known_mean, mean_and_error, mean_over_lives
from modlife.policies.bank import parameter_count
from modlife.runs.config import build

DIGITS = 6
"""Of numbers in a file: more than are shown, so that what is shown is as if it had been rounded once."""


@dataclass(frozen=True)
class Column:
    """A number of a life."""

    name: str
    about: str
    of: Callable[[FinishedLife, Scores], float | None]
    """Takes a life and its scores, which have the learning curve of each task learnt alone; NaN is not known either."""
    digits: int = 3


def of_scores(name: str, about: str, metric: Callable[[Scores], np.ndarray]) -> Column:
    """The mean of what is known of a metric."""
    return Column(name, about, lambda _, scores: known_mean(metric(scores)))


COLUMNS = (
    of_scores("return", "mean return over tasks at the end of the life", metrics.final_bar),
    of_scores("zero-shot", "mean return of each task before it is learnt", metrics.zero_shot_bar),
    of_scores(
        "transfer",
        "mean training return while a task is learnt, minus that of stl with as many steps and the same settings",
        metrics.area_gain,
    ),
    of_scores(
        "normalised",
        "the same over what was missing to the highest return: Continual World's forward transfer",
        metrics.normalised_transfer,
    ),
    of_scores(
        "change",
        "return at the end minus that after its stage, mean over tasks; negative is lost",
        metrics.final_minus_offline,
    ),
    of_scores(
        "worst", "return at the end minus that after its stage, of the task that lost most", metrics.worst_change
    ),
    of_scores("kept", "share of tasks that end within .05 times the highest return of their best", metrics.kept),
    Column("parameters", "numbers in the networks that the agent acts by", lambda life, _: parameters(life), digits=0),
    Column("hours", "wall-clock", lambda life, _: life.summary["seconds"] / 3600, digits=2),
    Column("megabytes", "most memory of its process", lambda life, _: life.summary.get("peak_megabytes"), digits=0),
)


def parameters(life: FinishedLife) -> int:
    """How many numbers the agent's networks have; what it holds only while it learns a task is not counted."""
    return parameter_count(build(life.config).network.init(key=jax.random.key(0)))


def compare(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """A line for each agent with its options: means over seeds, errors and intervals; None where nothing is known."""
    return compare_lives(read_lives(paths))


def compare_lives(lives: Sequence[FinishedLife]) -> list[dict[str, Any]]:
    """The same of lives that were read."""
    return [line(group, curves_alone(lives, group.lives[0])) for group in groups_of(lives)]


def line(group: Group, alone: Mapping[str, Curve]) -> dict[str, Any]:
    """The line of lives that are alike."""
    row: dict[str, Any] = {"label": group.label, "agent": group.agent, "seeds": len(group.lives)}
    scores = [scores_of_life(life, alone) for life in group.lives]
    for column in COLUMNS:
        values = [column.of(life, own) for life, own in zip(group.lives, scores, strict=True)]
        known = [value for value in values if value is not None and not np.isnan(value)]
        mean, error = mean_and_error(known) if known else (float("nan"), float("nan"))
        whole = mean_over_lives([np.array([value], float) for value in known])
        numbers = {"": mean, " +-": error, " low": whole.low, " high": whole.high}
        row |= {f"{column.name}{what}": None if np.isnan(one) else round(one, DIGITS) for what, one in numbers.items()}
    return row


def as_text(rows: Sequence[dict[str, Any]]) -> str:
    """The lines for people, and what the columns mean."""
    cells = [["agent", "seeds", *(column.name for column in COLUMNS)]]
    for row in rows:
        numbers = [told(row[column.name], row[f"{column.name} +-"], column.digits) for column in COLUMNS]
        cells.append([plain(row["label"]), str(row["seeds"]), *numbers])
    widths = [max(len(line[n]) for line in cells) for n in range(len(cells[0]))]
    lines = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in cells]
    about = [f"{column.name}: {column.about}" for column in COLUMNS]
    if any("+-" in line for line in lines):
        about.append("+-: standard error over seeds; 95 % intervals are in the CSV file (--out)")
    return "\n".join([*lines, "", *about])


def told(mean: float | None, error: float | None, digits: int) -> str:
    """A number with its standard error over seeds; a dash where it is not known."""
    if mean is None:
        return "-"
    return f"{mean:,.{digits}f}" + (f" +-{error:.{digits}f}" if error else "")
