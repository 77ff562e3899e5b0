"""What an agent tells of its learning. Each report has its record: a line of metrics.jsonl, the same in every run."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from modlife.learners.ppo import Progress
from modlife.lifelong.evaluation import Evaluation
from modlife.types import Structure


@runtime_checkable
class Report(Protocol):
    """Something that happened."""

    def record(self) -> dict[str, Any]:
        """It as a JSON object, with the `kind` of report."""
        ...


@dataclass(frozen=True)
class Curve:
    """How a step of online learning went."""

    steps: int
    """Environment steps per task in this stage so far."""
    progress: Progress
    """On the host; axis [task of the stage]."""
    held: tuple[float, ...] | None = None
    """Where parameters are drawn back: norms of gradients of the loss and of that penalty, the loss, the penalty."""

    @property
    def mean_return(self) -> float:
        """Over the tasks in which an episode ended; NaN before any did."""
        return float(np.nanmean(self.progress.episode_return)) if self.progress.episodes.any() else math.nan

    def numbers(self) -> dict[str, Any]:
        """What must be finite: returns where an episode ended."""
        ended = self.progress.episodes > 0
        return {"return": self.progress.episode_return[ended], "entropy": self.progress.entropy}

    def record(self) -> dict[str, Any]:
        """A point of the learning curve."""
        progress = self.progress
        record = {
            "kind": "curve",
            "steps": self.steps,
            "return": rounded(progress.episode_return),
            "success": rounded(progress.success),
            "entropy": rounded(progress.entropy),
        }
        return {**record, **held_record(self.held)}


@dataclass(frozen=True)
class Chosen:
    """The structure that a task got."""

    structure: Structure
    how: str
    """`fresh` modules, `given`, or `searched`."""
    steps: int = 0
    """Environment steps that the search took."""
    returns: tuple[float, ...] = ()
    """Mean return of each structure that was tried, in the order of structures."""
    tied: tuple[Structure, ...] = ()
    """Others that may be as good, for all that the search can tell."""
    mean_return: float | None = None
    """Of all episodes of the search, where structures were not tried equally often."""

    def record(self) -> dict[str, Any]:
        """The structure, and what the search saw."""
        record = {"kind": "structure", "structure": list(self.structure), "how": self.how, "steps": self.steps}
        if self.mean_return is not None:
            record["mean_return"] = round(self.mean_return, 4)
        return {**record, "returns": [round(value, 4) for value in self.returns]} if self.returns else record


@dataclass(frozen=True)
class Evaluated:
    """Tasks were evaluated: `zero-shot` or `online` the task in hand, `seen` tasks met so far."""

    when: str
    evaluation: Evaluation

    def numbers(self) -> dict[str, Any]:
        """What must be finite."""
        return {"return": self.evaluation.returns}

    def record(self) -> dict[str, Any]:
        """Returns, successes and lengths."""
        return {"kind": "evaluation", "when": self.when, **evaluation_record(self.evaluation)}


@dataclass(frozen=True)
class Consolidated:
    """How an epoch of the offline phase went: means of the terms of its loss, by name."""

    epoch: int
    tasks: int
    losses: Mapping[str, float]
    held: tuple[float, ...] | None = None
    """As in `Curve`: means over the epoch."""

    def numbers(self) -> Mapping[str, float]:
        """What must be finite: all losses."""
        return self.losses

    def record(self) -> dict[str, Any]:
        """The losses."""
        losses = {name: round(value, 6) for name, value in self.losses.items()}
        return {"kind": "offline", "epoch": self.epoch, "tasks": self.tasks, **losses, **held_record(self.held)}


def held_record(held: tuple[float, ...] | None) -> dict[str, Any]:
    """What holds parameters back, for a JSON line, where anything does."""
    if held is None:
        return {}
    short = [float(f"{number:.4g}") for number in held]
    return {"norms": short[:2], "terms": short[2:]}


def evaluation_record(evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation for a JSON line."""
    returns = evaluation.returns
    return {
        "tasks": [str(task) for task in evaluation.tasks],
        "episodes": returns.shape[1],
        "mean_return": round(float(returns.mean()), 4),
        "return": rounded(returns.mean(axis=1)),
        "standard_error": rounded(returns.std(axis=1, ddof=1) / np.sqrt(returns.shape[1])),
        "success": rounded(evaluation.success.mean(axis=1)),
        "length": rounded(evaluation.length.mean(axis=1)),
    }


def rounded(values: Any) -> list[float | None]:
    """Numbers for JSON, which has no NaN."""
    return [None if math.isnan(value) else round(float(value), 4) for value in values]
