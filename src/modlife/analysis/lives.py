"""Finished lives as figures need them; and how a figure is saved."""

import csv
import io
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from modlife import metrics
from modlife.errors import InputError, StoreError
from modlife.lifelong.agents import AGENTS
from modlife.metrics import Curves
from modlife.runs.config import LifeConfig, in_full
from modlife.runs.store import RunDirectory

RESULTS = ("seen", "unseen", "wrong_module")
"""What a summary holds besides times and what follows from the records."""


@dataclass(frozen=True)
class FinishedLife:
    """What a finished run directory says."""

    path: Path
    config: LifeConfig
    summary: dict[str, Any]
    records: list[dict[str, Any]]
    goes_on: bool = False
    """Whether it has not ended, and this is what it came to so far."""

    @property
    def agent(self) -> str:
        """Who learnt."""
        return self.config.agent

    @property
    def steps_per_task(self) -> int:
        """Environment steps."""
        return self.config.steps

    @property
    def tasks(self) -> int:
        """How many were learnt."""
        return len(self.names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The tasks, in the order in which they were met."""
        return tuple(self.summary["seen"]["tasks"])

    @cached_property
    def plan(self) -> dict[str, Any]:
        """The whole config as JSON, but with what is usual written out: lives that are alike have the same.

        One that goes on is like none that has ended: its plan also has how many tasks are `planned`.
        """
        planned = {"planned": len(self.config.chosen)} if self.goes_on else {}
        return {**in_full(self.config, tasks=self.tasks), **planned}

    @property
    def consolidator(self) -> str | None:
        """How it learns offline, if it does."""
        return self.plan["settings"].get("offline", {}).get("consolidator")

    @cached_property
    def finals(self) -> dict[str, float]:
        """The return of each task at the end."""
        return dict(zip(self.names, self.summary["seen"]["return"], strict=True))

    @cached_property
    def curves(self) -> Curves:
        """Training return of each task."""
        return metrics.curves(self.records)

    @cached_property
    def success(self) -> Curves:
        """Share of training episodes of each task that succeeded."""
        return metrics.curves(self.records, "success")

    @cached_property
    def by_phase(self) -> dict[str, Any]:
        """Returns before learning, after the online and after the offline phase, where the agent tells them."""
        return metrics.by_phase(self.records)

    @cached_property
    def zero_shot(self) -> dict[int, float]:
        """Return before learning, by the number of tasks seen before."""
        return metrics.zero_shot(self.records)

    def told(self, what: str) -> Curves:
        """Training returns, or successes."""
        return {"return": self.curves, "success": self.success}[what]

    def mean_curve(self, what: str = "return") -> Float[np.ndarray, " update"]:
        """Mean training return (or success) over tasks, from where all of them that ever tell one have told one."""
        values = self.told(what).returns
        known = ~np.isnan(values)
        begun = np.logical_or.accumulate(known[known.any(axis=1)], axis=1).all(axis=0)
        return np.where(known, values, 0).sum(axis=0) / np.where(begun & known.any(axis=0), known.sum(axis=0), np.nan)

    def after(self, when: str, what: str = "return") -> float | None:
        """The mean return (or success) over tasks after a phase, or at the end (final); None where it is not told."""
        if when == "final":
            return metrics.mean_of(self.summary["seen"], what)
        found = metrics.by_phase(self.records, what)
        return found[when][f"mean_{what}"] if when in found else None

    def curve_of(self, task: str, what: str = "return") -> Float[np.ndarray, " update"]:
        """Training return (or success) of a task that has a curve."""
        told = self.told(what)
        return told.returns[told.tasks.index(task)]

    def came_to_the_same(self, other: "FinishedLife") -> bool:
        """Whether all results are those of another life."""
        same = all(self.summary.get(name) == other.summary.get(name) for name in RESULTS)
        return same and self.records == other.records


def read_life(path: Path) -> FinishedLife:
    """Reads one run directory."""
    run = RunDirectory.open(path)
    summary = run.summary()
    if summary is None:
        raise InputError(f"'{path}' has no summary.json: its life did not end.")
    config = run.config()
    planned = len(config.chosen)
    if summary["tasks"] != planned:
        raise InputError(f"'{path}' has met {summary['tasks']} of its {planned} tasks: its life did not end.")
    if (summary["agent"], summary["seed"], summary["steps_per_task"]) != (config.agent, config.seed, config.steps):
        raise InputError(f"'{path}' has a summary.json and a manifest.json of different lives.")
    life = FinishedLife(path, config, summary, list(run.metrics()))
    if len(set(life.names)) < planned:
        raise InputError(f"'{path}' has not {planned} different tasks: figures know a task by its name.")
    return life


def read_lives(paths: Sequence[Path]) -> list[FinishedLife]:
    """Reads run directories, at least one; one that is given twice, or as a copy, is one life."""
    if not paths:
        raise InputError("Give at least one run directory.")
    different: dict[Path, Path] = {}
    for path in paths:
        different.setdefault(path.resolve(), path)
    return without_copies([read_life(path) for path in different.values()])


def without_copies(lives: Sequence[FinishedLife]) -> list[FinishedLife]:
    """Each life once; two of one config and seed that came to different results cannot be told apart."""
    kept: list[FinishedLife] = []
    for life in lives:
        twin = next((one for one in kept if one.plan == life.plan), None)
        if twin is None:
            kept.append(life)
        elif not twin.came_to_the_same(life):
            raise InputError(
                f"'{twin.path}' and '{life.path}' have the same config and seed but different results: leave one out."
            )
    return kept


def label(agent: str) -> str:
    """What figures call an agent."""
    return AGENTS[agent].label


def colour(agent: str) -> str:
    """What figures draw an agent in."""
    return AGENTS[agent].colour


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
    label: str = ""
    """What the figure calls the lives; by default what it calls the agent."""
    part: str = ""
    """The one task, or the one module, that the value is of."""

    def cells(self) -> dict[str, Any]:
        """The line for a file; empty where nothing is known."""
        return {
            "what": self.what,
            "agent": self.agent,
            "label": self.label or label(self.agent),
            "part": self.part,
            "tasks": self.tasks,
            "seeds": self.seeds,
            "steps": "" if self.steps is None else self.steps,
            "seen": "" if self.seen is None else self.seen,
            "value": round(self.value, 4),
            "standard_error": "" if np.isnan(self.error) else round(self.error, 4),
        }


def check_picture(out: Path) -> None:
    """Says, before anything is drawn, that a picture cannot be written in the format that its name asks for."""
    from matplotlib.backend_bases import FigureCanvasBase

    endings = sorted({*FigureCanvasBase.get_supported_filetypes()} - {"pgf"})  # pgf needs LaTeX
    if out.suffix == ".csv":
        raise InputError(f"'{out}' is to be a picture, such as '{out.with_suffix('.png')}'; its numbers go beside it.")
    if out.suffix[1:].lower() not in endings:
        raise InputError(f"'{out}' must end in the format of a picture: .{', .'.join(endings)}.")
    if out.is_dir():
        raise InputError(f"'{out}' is a directory; name a file.")


def save(figure: Any, rows: Sequence[Row], out: Path) -> None:
    """Writes the picture and, beside it, its numbers: both whole, or neither. Text in an SVG is text."""
    check_picture(out)
    if not rows:
        raise InputError("None of these lives has anything that this figure shows.")
    from matplotlib import rc_context

    picture, kind = io.BytesIO(), out.suffix[1:].lower()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "modlife", "hatch.linewidth": 0.7}):
        figure.savefig(picture, dpi=110, format=kind, metadata={"Date": None} if kind == "svg" else None)
    write_together({out: picture.getvalue(), out.with_suffix(".csv"): as_csv([row.cells() for row in rows])})


def as_csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Lines with the same names as a file; empty where nothing is known."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def write_together(files: dict[Path, bytes]) -> None:
    """Writes files of one folder; nothing is replaced before all of them are written."""
    path = next(iter(files))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".modlife-", ignore_cleanup_errors=True) as aside:
            for path, data in files.items():
                Path(aside, path.name).write_bytes(data)
            for path in files:
                os.replace(Path(aside, path.name), path)
    except OSError as error:
        raise StoreError(f"'{path}' could not be written: {error.strerror or error}.") from error
