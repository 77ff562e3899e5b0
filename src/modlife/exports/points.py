"""What a life tells, as points that trackers draw: a name, a place on an axis, a number.

curve/return/TASK                    by environment steps in the task; `success` and `entropy` likewise
evaluation/WHEN/return/TASK          by stage; `mean_return` over the tasks that were evaluated
offline/TERM/TASK                    by epoch of the offline phase
structure/..., and what other lines an agent writes                by stage
summary/...                          seconds, memory and returns at the end, by the number of tasks

What is not a number, or not a finite one, is left out.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modlife.runs.records import Record

AXES = {"curve": "steps", "offline": "epoch"}
"""By what the lines of a kind go on within a stage; all others by stage."""
ASIDE = ("kind", "stage", "when", "episodes")
"""Fields that say what a line is about."""


@dataclass(frozen=True)
class Point:
    """A number."""

    name: str
    axis: str
    place: int
    value: float


def points_of(record: Record, stages: Sequence[Sequence[str]]) -> Iterator[Point]:
    """The points of a line of the metrics, given which tasks each stage has."""
    kind, stage = record["kind"], record.get("stage")
    if not isinstance(stage, int) or not 0 <= stage < len(stages):
        return
    axis, here = AXES.get(kind, "stage"), list(stages[stage])
    tasks = record["tasks"] if isinstance(record.get("tasks"), list) else here
    group = "/".join([kind, record["when"]] if isinstance(record.get("when"), str) else [kind])
    where = "" if axis == "stage" else f"/{here[0] if len(here) == 1 else f'stage-{stage}'}"
    place = record.get(axis, stage)
    for field, value in record.items():
        if field in ASIDE or field == axis:
            continue
        if is_number(value):
            yield Point(f"{group}/{field}{where}", axis, place, float(value))
        elif isinstance(value, list) and len(value) == len(tasks) and field not in ("tasks", "structure"):
            numbers = [(task, one) for task, one in zip(tasks, value, strict=True) if is_number(one)]
            yield from (Point(f"{group}/{field}/{task}", axis, place, float(one)) for task, one in numbers)


def is_number(value: Any) -> bool:
    """Whether it can be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def points_of_summary(summary: Mapping[str, Any]) -> Iterator[Point]:
    """What a life came to: its numbers, also those that stand in tables."""
    for name, value in flat(summary):
        if is_number(value) and name not in ("seed", "tasks") and not name.startswith(("files.", "structures.")):
            yield Point(f"summary/{name.replace('.', '/')}", "tasks", summary["tasks"], float(value))


def flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """The entries of a table and of tables in it, by names with dots."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
