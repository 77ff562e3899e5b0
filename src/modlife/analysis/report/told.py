"""What run directories tell, of lives that have ended and of lives that go on."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from modlife import metrics
from modlife.analysis.groups import Group, grouped, in_steps
from modlife.analysis.lives import FinishedLife, label, read_life, without_copies
from modlife.errors import InputError
from modlife.metrics import Record
from modlife.pauses import counted
from modlife.runs.store import RunDirectory


@dataclass(frozen=True)
class Cost:
    """What a life took so far."""

    wall: dict[str, float]
    """Seconds of each phase."""
    cpu: dict[str, float]
    megabytes: float | None

    @property
    def seconds(self) -> float:
        """In all."""
        return sum(self.wall.values())


@dataclass(frozen=True)
class Told:
    """A life, and what stands beside its results."""

    life: FinishedLife
    """Of one that goes on, what it came to in the stages that have ended."""
    planned: int
    """How many tasks it is to learn."""
    has_ended: bool
    cost: Cost
    manifest: dict[str, Any]
    processes: int
    """How many lived a part of it."""
    current: tuple[Record, ...] = ()
    """Records of the stage that it is in."""
    remarks: tuple[str, ...] = ()
    """What is wrong with its files."""
    is_old: bool = False
    """Whether they have no checksums."""

    @property
    def name(self) -> str:
        """Its folder."""
        return self.life.path.resolve().name

    @cached_property
    def stages(self) -> list[list[str]]:
        """The tasks of all stages, also of those to come."""
        return metrics.stages_of(self.life.records)

    @property
    def was_seen_again(self) -> bool:
        """Whether there are evaluations after several stages."""
        return len(metrics.evaluations(self.life.records, "seen")) > 1

    @cached_property
    def kept(self) -> "list[Kept]":
        """What became of each task that was evaluated again, as all are at the end of a life."""
        seen: dict[str, list[float]] = {}
        for record in metrics.evaluations(self.life.records, "seen"):
            for task, value in zip(record["tasks"], record["return"], strict=True):
                seen.setdefault(task, []).append(value)
        again = {task: values for task, values in seen.items() if self.has_ended or len(values) > 1}
        return [Kept(task, values[0], self.life.finals[task]) for task, values in again.items()]


@dataclass(frozen=True)
class Kept:
    """The return of a task, then and now."""

    task: str
    first: float
    """After its stage."""
    last: float
    """At the end of the life, or so far."""

    @property
    def change(self) -> float:
        """Negative is forgetting."""
        return self.last - self.first


def read(path: Path) -> Told:
    """Reads a run directory, whether its life has ended or not."""
    run = RunDirectory.open(path)
    manifest, remarks = run.manifest(), tuple(run.complaints())
    if run.has_ended:
        life = read_life(path)
        told = {"life": life, "planned": life.tasks, "has_ended": True, "cost": cost_of(life.summary)}
    else:
        config, records, known = run.config(), run.metrics(), run.newest_description()
        life, current = so_far(path, config, records)
        spent = {} if known is None else {"wall_seconds": known.wall_seconds, "cpu_seconds": known.cpu_seconds}
        cost = cost_of({**spent, "peak_megabytes": known and known.peak_megabytes})
        told = {"life": life, "planned": len(config.chosen), "has_ended": False, "cost": cost, "current": current}
    about = {"remarks": remarks, "is_old": not run.is_sealed, "processes": len(run.history())}
    return Told(manifest=manifest, **about, **told)


def so_far(path: Path, config: Any, records: list[Record]) -> tuple[FinishedLife, tuple[Record, ...]]:
    """A life that goes on as if it had ended after its last whole stage; and the records since then."""
    ended = {record["stage"] for record in metrics.evaluations(records, "seen")}
    before = [record for record in records if record["kind"] == "curriculum" or record.get("stage") in ended]
    last: dict[str, dict[str, float]] = {}
    for record in metrics.evaluations(records, "seen"):
        for place, task in enumerate(record["tasks"]):
            last[task] = {name: record[name][place] for name in ("return", "success")}
    returns, success = ([one[name] for one in last.values()] for name in ("return", "success"))
    mean = round(float(np.mean(returns)), 4) if returns else float("nan")
    seen = {"tasks": list(last), "return": returns, "success": success, "mean_return": mean}
    now = tuple(record for record in records if record["kind"] != "curriculum" and record.get("stage") not in ended)
    return FinishedLife(path, config, {"tasks": len(last), "seen": seen}, before, goes_on=True), now


def cost_of(summary: dict[str, Any]) -> Cost:
    """What a summary says of times and memory; fields that nothing else reads may hold anything."""
    wall, cpu = (seconds_in(summary.get(name)) for name in ("wall_seconds", "cpu_seconds"))
    if not wall and is_number(summary.get("seconds")):
        wall = {"all": summary["seconds"]}
    most = summary.get("peak_megabytes")
    return Cost(wall, cpu, most if is_number(most) else None)


def seconds_in(times: Any) -> dict[str, float]:
    """Times by phase, where that is what they are."""
    known = times.items() if isinstance(times, dict) else ()
    return {phase: seconds for phase, seconds in known if isinstance(phase, str) and is_number(seconds)}


def is_number(value: Any) -> bool:
    """Whether a value is a number that can be drawn."""
    return type(value) in (int, float) and 0 <= value < 1e12


@dataclass(frozen=True)
class Study:
    """Lives that a page is about."""

    lives: tuple[Told, ...]
    groups: tuple[Group, ...]
    """Those that differ in nothing but the seed together; one that goes on is never with one that has ended."""

    @property
    def only(self) -> Told | None:
        """The life, if it is one."""
        return self.lives[0] if len(self.lives) == 1 else None

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will be told."""
        return all(life.has_ended for life in self.lives)

    def look(self, group: Group) -> str:
        """The classes of a group's colour and dashes."""
        place = self.groups.index(group)
        return f"g{place} d{place % 4}"

    def group(self, told: Told) -> Group:
        """The group of a life."""
        return next(group for group in self.groups if any(told.life is life for life in group.lives))

    def colour(self, told: Told) -> str:
        """The class of the colour of a life: that of its group."""
        return f"g{self.groups.index(self.group(told))}"

    def title(self, told: Told) -> str:
        """A life beside others: its folder, and of which kind it is."""
        return f"{told.name} ({self.group(told).label})" if len(self.groups) > 1 else told.name

    def told(self, group: Group) -> list[Told]:
        """The lives of a group."""
        return [one for one in self.lives if one.life in group.lives]


def read_all(paths: Sequence[Path]) -> Study:
    """Reads run directories, at least one; one that is given twice, or as a copy, is one life."""
    if not paths:
        raise InputError("Give at least one run directory.")
    different = {path.resolve(): path for path in reversed(paths)}
    return study_of([read(path) for path in counted([*reversed(different.values())], "lives read")])


def study_of(lives: Sequence[Told]) -> Study:
    """Lives in groups; a copy of one is left out."""
    kept = without_copies([one.life for one in lives])
    chosen = [one for one in lives if any(one.life is life for life in kept)]

    def usual(life: FinishedLife) -> str:
        name = f"{label(life.agent)}, {life.tasks} tasks, {in_steps(life.steps_per_task)}"
        return f"{name} so far" if life.goes_on else name

    return Study(tuple(chosen), tuple(grouped(kept, usual)))
