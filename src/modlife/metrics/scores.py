"""Everything that metrics are computed from, as a plain value: of one's own lives, or of anybody's numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from modlife.checks import check_once
from modlife.errors import InputError
from modlife.metrics.records import Record, area, curves, evaluations, stages_of, structures

PerTask = Float[np.ndarray, " task"]
"""A number for each task; NaN where it is not known."""


@dataclass(frozen=True)
class Curve:
    """A learning curve: returns, NaN where none is known, against environment steps in the task."""

    steps: Float[np.ndarray, " update"]
    returns: Float[np.ndarray, " update"]

    def until(self, end: float) -> "Curve":
        """The curve up to a step, at which it is cut."""
        known = ~np.isnan(self.returns)
        if end >= self.steps[-1] or not known.any():
            return self
        at_end = np.interp(end, self.steps[known], self.returns[known])
        inside = self.steps < end
        return Curve(np.append(self.steps[inside], end), np.append(self.returns[inside], at_end))

    @property
    def area(self) -> float:
        """The mean height, `modlife.metrics.area`."""
        return area(self.steps, self.returns)

    @property
    def start(self) -> float:
        """The first known return."""
        known = self.returns[~np.isnan(self.returns)]
        return float(known[0]) if len(known) else float("nan")


@dataclass(frozen=True)
class Search:
    """A search for the structure of a task."""

    returns: Sequence[float]
    """Of each structure that was tried, as the search saw it."""
    reached: float
    """Of the chosen one, in fresh episodes."""
    steps: int
    """Environment steps that it took."""


@dataclass(frozen=True)
class Scores:
    """How one agent did in all tasks over one life; higher is better. Nothing but `tasks` and `after` need be known."""

    tasks: tuple[str, ...]
    after: Float[np.ndarray, "stages+1 task"]
    """R[j, i]: the return of task i after stage j, NaN where it was not evaluated; R[0]: before anything is learnt."""
    stage: tuple[int, ...] = ()
    """The stage, from 1 on, in which each task is learnt; by default one task in each, in their order."""
    online: PerTask | None = None
    """After learning a task online, before consolidation."""
    final: PerTask | None = None
    """At the end of the life; by default the last row of `after`."""
    curves: Mapping[str, Curve] = field(default_factory=dict)
    """The learning curve of each task."""
    alone: Mapping[str, Curve] = field(default_factory=dict)
    """That of an agent which learns the task from scratch."""
    structures: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The module of each factor that serves a task, whose name is one component per factor, with / between them."""
    searches: Mapping[str, Search] = field(default_factory=dict)
    """How structures were found."""
    cost: Mapping[str, float] = field(default_factory=dict)
    """What the life took, by name (`resources`)."""
    highest: float = 1.0
    """The most that a task can return, H: what is much or little is a share of it."""

    def __post_init__(self) -> None:
        count = len(self.tasks)
        check_once("tasks", self.tasks)
        object.__setattr__(self, "stage", tuple(self.stage) or tuple(range(1, count + 1)))
        shape = np.shape(self.after)
        if len(shape) != 2 or shape[1] != count or not count:
            raise InputError(f"A table of returns has the shape {shape}, but there are {count} tasks.")
        if len(self.stage) != count or not all(1 <= stage < shape[0] for stage in self.stage):
            raise InputError(f"{count} tasks are learnt in stages {self.stage}, but stages are 1 to {shape[0] - 1}.")

    @property
    def last_stage(self) -> int:
        """The number of the last stage."""
        return len(self.after) - 1

    @property
    def learnt(self) -> PerTask:
        """R[i, i]: after a task's own stage."""
        return self.after[list(self.stage), range(len(self.tasks))]

    @property
    def before(self) -> PerTask:
        """R[i - 1, i]: after the stage before a task's own."""
        return self.after[[stage - 1 for stage in self.stage], range(len(self.tasks))]

    @property
    def last(self) -> PerTask:
        """R[N, i]: after the last stage."""
        return self.after[-1]

    @property
    def end(self) -> PerTask:
        """At the end of the life: `final`, where it is known."""
        return self.last if self.final is None else np.where(np.isnan(self.final), self.last, self.final)


def scores_of(
    records: Sequence[Record],
    summary: Mapping[str, Any] | None = None,
    alone: Mapping[str, Curve] | None = None,
    *,
    highest: float = 1.0,
) -> Scores:
    """The scores of a life from its records; from its summary, returns at the end and what it took.

    A task's evaluation before it is learnt is R[i - 1, i]; where structures are searched for, it is after the search.
    """
    stages = stages_of(records)
    tasks = tuple(task for stage in stages for task in stage)
    place = {task: number for number, task in enumerate(tasks)}
    after = np.full((len(stages) + 1, len(tasks)), np.nan)
    online, final = np.full(len(tasks), np.nan), np.full(len(tasks), np.nan)
    for when, row, shift in (("zero-shot", after, 0), ("seen", after, 1)):
        for record in evaluations(records, when):
            enter(row[record["stage"] + shift], record, place)
    for record in evaluations(records, "online"):
        enter(online, record, place)
    if summary is not None:
        enter(final, summary["seen"], place)
    found = curves(records)
    return Scores(
        tasks,
        after,
        tuple(number for number, stage in enumerate(stages, start=1) for _ in stage),
        online=online,
        final=final,
        curves={task: Curve(found.steps, found.returns[n]) for n, task in enumerate(found.tasks)},
        alone=alone or {},
        structures={task: tuple(own) for task, own in structures(records).get("tasks", {}).items()},
        searches=searches_of(records),
        cost=resources(summary or {}),
        highest=highest,
    )


def enter(row: PerTask, record: Mapping[str, Any], place: Mapping[str, int]) -> None:
    """Writes the returns of an evaluation into a row."""
    for task, value in zip(record["tasks"], record["return"], strict=True):
        if task not in place:
            raise InputError(f"'{task}' was evaluated, but is in no stage.")
        row[place[task]] = np.nan if value is None else value


def searches_of(records: Sequence[Record]) -> dict[str, Search]:
    """The searches whose choice was evaluated in fresh episodes."""
    stages = stages_of(records)
    fresh = {record["stage"]: record["return"][0] for record in evaluations(records, "zero-shot")}
    return {
        stages[record["stage"]][0]: Search(record["returns"], fresh[record["stage"]], record.get("steps", 0))
        for record in records
        if record["kind"] == "structure" and record.get("returns") and record["stage"] in fresh
    }


def resources(summary: Mapping[str, Any]) -> dict[str, float]:
    """What a life took, from its summary: hours, processor hours, megabytes of memory, steps per second.

    Model and sample storage, and compute, as Díaz-Rodríguez et al. 2018 ask for; what is not known is left out.
    """
    processor = summary.get("cpu_seconds")
    found = {
        "hours": summary["seconds"] / 3600 if "seconds" in summary else None,
        "processor hours": sum(processor.values()) / 3600 if processor else None,
        "megabytes": summary.get("peak_megabytes"),
        "steps per second": summary.get("steps_per_second"),
    }
    return {name: float(value) for name, value in found.items() if value is not None}


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """The mean of those curves that tell anything, at all of their steps, as far as all of them go.

    Each is straight between what is known of it, and flat before and after: the area under the mean is the mean area
    up to there.
    """
    telling = [curve for curve in curves if not np.isnan(curve.returns).all()] or curves
    end = min(curve.steps[-1] for curve in telling)
    steps = np.unique(np.concatenate([curve.steps[curve.steps <= end] for curve in telling]))
    known = [(curve, ~np.isnan(curve.returns)) for curve in telling]
    rows = [np.interp(steps, curve.steps[at], curve.returns[at]) for curve, at in known if at.any()]
    return Curve(steps, np.mean(rows, axis=0) if rows else np.full(len(steps), np.nan))
