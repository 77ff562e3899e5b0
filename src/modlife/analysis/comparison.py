"""Agents side by side, from finished lives: what they reached, what they kept, and what it cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from modlife import metrics
from modlife.analysis.groups import Group, grouped, in_steps
from modlife.analysis.lives import FinishedLife, label, read_lives
from modlife.errors import plain
from modlife.metrics import mean_and_error
from modlife.policies.bank import parameter_count
from modlife.runs.config import build

ALONE = "stl"
"""The agent that learns every task by itself: what transfer is measured against."""


@dataclass(frozen=True)
class Column:
    """A number of a life."""

    name: str
    about: str
    of: Callable[[FinishedLife, dict[str, float]], float | None]
    """Takes a life, and the area under the learning curve of each task learnt alone."""
    digits: int = 3


COLUMNS = (
    Column(
        "return", "mean return over tasks at the end of the life", lambda life, _: life.summary["seen"]["mean_return"]
    ),
    Column("zero-shot", "mean return of each task before it is learnt", lambda life, _: phase(life, "zero-shot")),
    Column(
        "transfer",
        "mean training return while a task is learnt, minus that of stl with as many steps; positive is better",
        lambda life, alone: metrics.transfer(metrics.areas(life.records), alone),
    ),
    Column(
        "forgetting",
        "return of a task after its stage, minus that in its last evaluation on the way; positive is lost",
        lambda life, _: metrics.forgetting(life.records),
    ),
    Column("parameters", "numbers in the networks that the agent acts by", lambda life, _: parameters(life), digits=0),
    Column("hours", "wall-clock", lambda life, _: life.summary["seconds"] / 3600, digits=2),
    Column("megabytes", "most memory of its process", lambda life, _: life.summary.get("peak_megabytes"), digits=0),
)


def phase(life: FinishedLife, when: str) -> float | None:
    """The mean return at a time, where the agent tells it."""
    return life.by_phase[when]["mean_return"] if when in life.by_phase else None


def parameters(life: FinishedLife) -> int:
    """How many numbers the agent's networks have; what it holds only while it learns a task is not counted."""
    return parameter_count(build(life.config).network.init(key=jax.random.key(0)))


def alone_in(lives: Sequence[FinishedLife], like: FinishedLife) -> dict[str, float]:
    """For each task, the mean area under its learning curve over single-task lives of the same world and steps."""
    found: dict[str, list[float]] = {}
    for life in lives:
        same = (life.steps_per_task, life.config.world) == (like.steps_per_task, like.config.world)
        if life.agent == ALONE and same:
            for task, value in metrics.areas(life.records).items():
                found.setdefault(task, []).append(value)
    return {task: float(np.mean(values)) for task, values in found.items()}


def compare(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """A line for each agent with its options: means over seeds and their errors; None where nothing is known."""
    lives = read_lives(paths)
    groups = grouped(lives, lambda life: f"{label(life.agent)}, {life.tasks} tasks, {in_steps(life.steps_per_task)}")
    return [line(group, alone_in(lives, group.lives[0])) for group in groups]


def line(group: Group, alone: dict[str, float]) -> dict[str, Any]:
    """The line of lives that are alike."""
    row: dict[str, Any] = {"label": group.label, "agent": group.agent, "seeds": len(group.lives)}
    for column in COLUMNS:
        known = [value for life in group.lives if (value := column.of(life, alone)) is not None]
        mean, error = mean_and_error(known) if known else (float("nan"), float("nan"))
        row[column.name] = None if np.isnan(mean) else round(mean, 4)
        row[f"{column.name} +-"] = None if np.isnan(error) else round(error, 4)
    return row


def as_text(rows: Sequence[dict[str, Any]]) -> str:
    """The lines for people, and what the columns mean."""
    cells = [["agent", "seeds", *(column.name for column in COLUMNS)]]
    for row in rows:
        numbers = [told(row[column.name], row[f"{column.name} +-"], column.digits) for column in COLUMNS]
        cells.append([plain(row["label"]), str(row["seeds"]), *numbers])
    widths = [max(len(line[n]) for line in cells) for n in range(len(cells[0]))]
    lines = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in cells]
    errors = ["+-: standard error over seeds"] if any("+-" in line for line in lines) else []
    return "\n".join([*lines, "", *(f"{column.name}: {column.about}" for column in COLUMNS), *errors])


def told(mean: float | None, error: float | None, digits: int) -> str:
    """A number with its standard error over seeds; a dash where it is not known."""
    if mean is None:
        return "-"
    return f"{mean:,.{digits}f}" + (f" +-{error:.{digits}f}" if error else "")
