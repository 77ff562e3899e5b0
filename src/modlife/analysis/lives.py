"""Finished lives as figures need them, in groups; and how a figure is saved."""

import csv
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float

from modlife import metrics
from modlife.errors import InputError
from modlife.lifelong.agents import AGENTS
from modlife.metrics import Curves
from modlife.runs.store import RunDirectory

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class FinishedLife:
    """What a finished run directory says."""

    agent: str
    tasks: int
    seed: int
    steps_per_task: int
    summary: dict[str, Any]
    records: list[dict[str, Any]]
    names: tuple[str, ...]

    @property
    def curves(self) -> Curves:
        """Training return of each task."""
        return metrics.curves(self.records)

    @property
    def by_phase(self) -> dict[str, Any]:
        """Returns before learning, after the online and after the offline phase, where the agent tells them."""
        return metrics.by_phase(self.records)

    @property
    def mean_curve(self) -> Float[np.ndarray, " update"]:
        """Mean training return over tasks; where no episode of any task ended, not known."""
        returns = self.curves.returns
        known = ~np.isnan(returns)
        return np.where(known, returns, 0).sum(axis=0) / np.where(known.any(axis=0), known.sum(axis=0), np.nan)


def read_life(path: Path) -> FinishedLife:
    """Reads one run directory."""
    run = RunDirectory.open(path)
    summary = run.summary()
    if summary is None:
        raise InputError(f"'{path}' has no summary.json: its life did not end.")
    return FinishedLife(
        summary["agent"],
        summary["tasks"],
        summary["seed"],
        summary["steps_per_task"],
        summary,
        list(run.metrics()),
        tuple(summary["seen"]["tasks"]),
    )


def read_lives(paths: Sequence[Path]) -> list[FinishedLife]:
    """Reads run directories; at least one."""
    if not paths:
        raise InputError("A figure needs at least one run directory.")
    return [read_life(path) for path in paths]


def grouped(lives: Sequence[FinishedLife], key: Callable[[FinishedLife], K]) -> dict[K, list[FinishedLife]]:
    """Lives that are alike, in the order of what makes them so."""
    groups: dict[K, list[FinishedLife]] = defaultdict(list)
    for life in lives:
        groups[key(life)].append(life)
    return {name: groups[name] for name in sorted(groups)}  # pyright: ignore[reportArgumentType]  # keys are tuples


def label(agent: str) -> str:
    """What figures call an agent."""
    return AGENTS[agent].label


def colour(agent: str) -> str:
    """What figures draw an agent in."""
    return AGENTS[agent].colour


def error_bar(error: float) -> float | None:
    """The error to draw; none where it is not known."""
    return None if np.isnan(error) else error


@dataclass(frozen=True)
class Row:
    """A line of a figure's table."""

    what: str
    agent: str
    tasks: int
    seeds: int
    value: float
    steps: int | None = None
    """Environment steps, in a curve."""
    seen: int | None = None
    """Tasks seen before, where that is what the value is drawn against."""
    error: float = float("nan")

    def cells(self) -> dict[str, Any]:
        """The line for a file; empty where nothing is known."""
        return {
            "what": self.what,
            "agent": self.agent,
            "tasks": self.tasks,
            "seeds": self.seeds,
            "steps": "" if self.steps is None else self.steps,
            "seen": "" if self.seen is None else self.seen,
            "value": round(self.value, 4),
            "standard_error": "" if np.isnan(self.error) else round(self.error, 4),
        }


def curve_rows(agent: str, tasks: int, seeds: int, steps: np.ndarray, values: np.ndarray) -> list[Row]:
    """The lines of a learning curve."""
    pairs = zip(steps, values, strict=True)
    return [Row("curve", agent, tasks, seeds, float(value), steps=int(step)) for step, value in pairs]


def save(figure: Any, rows: Sequence[Row], out: Path) -> None:
    """Writes the picture and, beside it, its numbers."""
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)
    with out.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0].cells()))
        writer.writeheader()
        writer.writerows(row.cells() for row in rows)
