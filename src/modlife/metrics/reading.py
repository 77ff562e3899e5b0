"""Anybody's numbers from a CSV file with a line for each: docs/metrics.md describes it."""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from modlife.errors import InputError, ReadError, plain, unknown
from modlife.metrics.scores import Curve, Scores, mean_curve

NEEDED = ("run", "stage", "task", "value")
OPTIONAL = ("kind", "steps", "agent", "learnt")
KINDS = ("seen", "online", "final", "curve", "alone")
"""What a line is: a return after a stage (as is, where nothing is said), after learning online, at the end of the life,
a point of a learning curve, or of that of an agent which learns the task from scratch."""
MOST_STAGES, MOST_LINES = 10_000, 5_000_000
"""More is a slip of the finger."""


@dataclass(frozen=True)
class Line:
    """A line of the file."""

    where: str
    run: str
    agent: str
    task: str
    kind: str
    value: float
    stage: int | None
    learnt: int | None
    steps: float | None


def read_scores(path: Path) -> dict[str, list[Scores]]:
    """The scores of each run in a file, by agent."""
    lines = list(read_lines(path))
    lives: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if line.kind != "alone":
            lives.setdefault((line.agent, line.run), []).append(line)
    if not lives:
        raise InputError(f"'{path}' has no returns of any life.")
    check_orders(path, lives)
    alone = curves_alone(line for line in lines if line.kind == "alone")
    found: dict[str, list[Scores]] = {}
    for (agent, run), own in lives.items():
        found.setdefault(agent, []).append(scores_of_lines(own, alone, f"'{path}', run '{run}'"))
    return found


def check_orders(path: Path, lives: Mapping[tuple[str, str], list[Line]]) -> None:
    """Where nothing says in which stage tasks are learnt, all runs of an agent have them in the same order."""
    orders: dict[str, tuple[str, list[str]]] = {}
    for (agent, run), lines in lives.items():
        if all(line.learnt is None for line in lines):
            tasks = list(dict.fromkeys(line.task for line in lines))
            first, known = orders.setdefault(agent, (run, tasks))
            if [task for task in known if task in tasks] != [task for task in tasks if task in known]:
                raise InputError(
                    f"'{path}', runs '{first}' and '{run}' have the same tasks in different orders: say in a column "
                    "learnt in which stage each task is learnt."
                )


def read_lines(path: Path) -> Iterator[Line]:
    """The lines of a file that tell a value."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            check_columns(path, reader.fieldnames or ())
            for cells in reader:
                where = f"'{path}', line {reader.line_num}"
                if reader.line_num > MOST_LINES:
                    raise InputError(f"'{path}' has more than {MOST_LINES} lines.")
                if None in cells or None in cells.values():
                    raise InputError(f"{where} has not {len(reader.fieldnames or ())} cells, as the first line has.")
                if cells["value"].strip():
                    yield read_line({name: text.strip() for name, text in cells.items()}, where)
    except UnicodeDecodeError as error:
        raise InputError(f"'{path}' is not a text file in UTF-8.") from error
    except csv.Error as error:
        raise InputError(f"'{path}' is not a CSV file: {error}.") from error
    except OSError as error:
        raise ReadError(f"'{path}' could not be read: {error.strerror or error}.") from error


def check_columns(path: Path, names: Iterable[str]) -> None:
    """All columns that are needed are there, once, and no others than are known."""
    columns = list(names)
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        came = ", ".join(plain(name, 40) for name in columns[:20]) or "nothing"
        raise InputError(f"'{path}' has no column {', '.join(missing)}; its first line has: {came}.")
    for name in columns:
        if name not in (*NEEDED, *OPTIONAL):
            raise unknown("column", name, (*NEEDED, *OPTIONAL), hint=f"It stands in the first line of '{path}'.")
    if len(set(columns)) < len(columns):
        raise InputError(f"'{path}' has a column twice: {', '.join(columns)}.")


def read_line(cells: Mapping[str, str], where: str) -> Line:
    """The values of a line."""
    kind = cells.get("kind") or KINDS[0]
    if kind not in KINDS:
        raise unknown("kind", kind, KINDS, hint=f"It stands in {where}.")
    for name in ("run", "task"):
        if not cells[name]:
            raise InputError(f"{where}: {name} is empty.")
    line = Line(
        where,
        cells["run"],
        cells.get("agent", ""),
        cells["task"],
        kind,
        number(cells["value"], "value", where),
        whole(cells["stage"], "stage", where, low=0),
        whole(cells.get("learnt", ""), "learnt", where, low=1),
        number(cells["steps"], "steps", where) if cells.get("steps") else None,
    )
    if kind == "seen" and line.stage is None:
        raise InputError(f"{where}: stage is empty; it is the number of stages before, 0 if nothing was learnt yet.")
    if kind in ("curve", "alone") and (line.steps is None or line.steps <= 0):
        raise InputError(f"{where}: a point of a curve has its environment steps, more than 0, in the column steps.")
    return line


def number(text: str, name: str, where: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(
            f"{where}: {name} = '{plain(text, 40)}', which is not a finite number; leave unknown ones empty."
        )
    return value


def whole(text: str, name: str, where: str, *, low: int) -> int | None:
    """A whole number from a bound on; None if there is none."""
    if not text:
        return None
    value = number(text, name, where)
    if not value.is_integer() or not low <= value <= MOST_STAGES:
        raise InputError(f"{where}: {name} = '{plain(text, 40)}', but it is a whole number, {low} to {MOST_STAGES}.")
    return int(value)


def scores_of_lines(lines: list[Line], alone: Mapping[str, Curve], where: str) -> Scores:
    """The scores of one run."""
    stage = stages_of_tasks(lines, where)
    tasks = tuple(stage)
    place = {task: number for number, task in enumerate(tasks)}
    last = max([*stage.values(), *(line.stage or 0 for line in lines if line.kind == "seen")])
    after = np.full((last + 1, len(tasks)), np.nan)
    online, final = np.full(len(tasks), np.nan), np.full(len(tasks), np.nan)
    rows = {"online": online, "final": final}
    for line in lines:
        if line.kind != "curve":
            row = rows[line.kind] if line.kind in rows else after[line.stage or 0]
            if not np.isnan(row[place[line.task]]):
                raise InputError(
                    f"{line.where}: '{line.task}' has a return of this kind and stage in this run already."
                )
            row[place[line.task]] = line.value
    own = curves_by_task(line for line in lines if line.kind == "curve")
    return Scores(tasks, after, tuple(stage.values()), online=online, final=final, curves=own, alone=alone)


def stages_of_tasks(lines: list[Line], where: str) -> dict[str, int]:
    """The stage in which each task is learnt: as the lines say, or else the n-th task of the run in the n-th stage."""
    tasks = dict.fromkeys(line.task for line in lines)
    told = {line.task: line.learnt for line in lines if line.learnt is not None}
    if told:
        untold = next((task for task in tasks if task not in told), None)
        if untold is not None:
            raise InputError(f"{where}: the column learnt does not say in which stage '{untold}' is learnt.")
        wrong = next((line for line in lines if line.learnt not in (None, told[line.task])), None)
        if wrong is not None:
            raise InputError(
                f"{wrong.where}: '{wrong.task}' is learnt in stage {wrong.learnt}, and in {told[wrong.task]}."
            )
        return dict(sorted(told.items(), key=lambda one: one[1]))
    stages = {line.stage for line in lines if line.kind == "seen" and line.stage}
    if stages and max(stages) != len(tasks):
        raise InputError(
            f"{where} has {len(tasks)} tasks and stages up to {max(stages)}: say in a column learnt in which stage "
            "each task is learnt."
        )
    return {task: number for number, task in enumerate(tasks, start=1)}


def curves_by_task(lines: Iterable[Line]) -> dict[str, Curve]:
    """The learning curve of each task, from its points in any order."""
    points: dict[str, dict[float, float]] = {}
    for line in lines:
        own = points.setdefault(line.task, {})
        if (line.steps or 0.0) in own:
            raise InputError(f"{line.where}: the curve of '{line.task}' has a return at {line.steps:g} steps already.")
        own[line.steps or 0.0] = line.value
    return {
        task: Curve(np.array(sorted(own)), np.array([own[steps] for steps in sorted(own)]))
        for task, own in points.items()
    }


def curves_alone(lines: Iterable[Line]) -> dict[str, Curve]:
    """The mean curve over runs of each task that is learnt from scratch."""
    runs: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        runs.setdefault((line.agent, line.run), []).append(line)
    found: dict[str, list[Curve]] = {}
    for own in runs.values():
        for task, curve in curves_by_task(own).items():
            found.setdefault(task, []).append(curve)
    return {task: mean_curve(curves) for task, curves in found.items()}
