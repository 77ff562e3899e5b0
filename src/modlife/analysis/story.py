"""What a life tells of itself, ended or not: its tasks one by one, what it lost, its modules, alarms and times.

Numbers and names only, from the files of a run directory; `show.py` makes text of them. No JAX here.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from modlife.errors import InputError
from modlife.metrics import Record, evaluations, stages_of, structures
from modlife.runs.codec import flat
from modlife.runs.config import LifeConfig, life_json
from modlife.runs.standing import Standing, standing
from modlife.runs.store import RunDirectory

SURE = 2
"""Standard errors of a difference beyond which it is taken for more than chance."""


@dataclass(frozen=True)
class Value:
    """A mean return over episodes, with its standard error."""

    mean: float
    error: float


@dataclass(frozen=True)
class TaskStory:
    """What became of a task."""

    task: str
    stage: int
    structure: tuple[int, ...] = ()
    """Its modules, where the agent uses such."""
    how: str = ""
    """How the structure was found: `fresh`, `given`, `searched`."""
    zero_shot: Value | None = None
    """Before it was learnt."""
    online: Value | None = None
    """After the online phase."""
    first: Value | None = None
    """At the end of its stage, after the offline phase."""
    last: Value | None = None
    """In its last evaluation on the way."""
    final: Value | None = None
    """At the end of the life, in more episodes."""
    evaluated: int = 0
    """How often it was evaluated at the end of a stage."""

    @property
    def now(self) -> Value | None:
        """What is known last: at the end of the life, or on the way."""
        return self.final or self.last

    @property
    def change(self) -> float | None:
        """What it gained since its stage, until the end or so far; negative is lost. None until evaluated again."""
        again = self.final or (self.last if self.evaluated > 1 else None)
        return again.mean - self.first.mean if self.first and again else None

    @property
    def is_sure(self) -> bool:
        """Whether the change is more than chance would give."""
        if self.change is None or not self.first or not self.now:
            return False
        return abs(self.change) > SURE * math.hypot(self.first.error, self.now.error)

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {**asdict(self), "change": None if self.change is None else round(self.change, 4)}


@dataclass(frozen=True)
class ModuleStory:
    """What a module is used for."""

    factor: str
    module: int
    tasks: tuple[str, ...]
    components: Mapping[str, int]
    """How many of these tasks have each component of its factor, most first."""
    made_for: str
    """The component of the first task that used it."""


@dataclass(frozen=True)
class Alarm:
    """An old task that a new one harmed."""

    stage: int
    new: str
    """The task that was folded in."""
    task: str
    """The task that was harmed."""
    before: float
    """Its return when it had just been folded in itself, ..."""
    after: float
    """... and in the last look of this stage that found it harmed."""
    left: bool
    """Whether it was so at the end of the stage, after all repair."""
    repaired: bool
    """Whether the look at the end of the stage found it well again."""
    refused: bool
    """Whether the new task's modules were not taken over for that."""


@dataclass(frozen=True)
class Story:
    """A life as its files tell it."""

    path: Path
    config: LifeConfig
    summary: Record | None
    records: list[Record]
    standing: Standing
    sealed: bool = True
    """Whether its files have checksums."""

    @cached_property
    def stages(self) -> list[list[str]]:
        """The tasks of each stage."""
        return stages_of(self.records)

    @cached_property
    def options(self) -> dict[str, Any]:
        """All options, by name."""
        return flat(life_json(self.config))

    @cached_property
    def seen(self) -> list[Record]:
        """Evaluations at the ends of stages."""
        return evaluations(self.records, "seen")

    @cached_property
    def tasks(self) -> list[TaskStory]:
        """What became of each task that was begun, in their order."""
        found = {one["stage"]: one for one in self.records if one["kind"] == "structure"}
        early = {when: by_task(evaluations(self.records, when)) for when in ("zero-shot", "online")}
        firsts, lasts = by_task(reversed(self.seen)), by_task(self.seen)
        counts = Counter(task for one in self.seen for task in one["tasks"])
        finals = by_task([self.summary["seen"]] if self.summary and self.standing.state == "ended" else [])
        begun = {one["stage"] for one in self.records if "stage" in one}
        return [
            TaskStory(
                task=task,
                stage=stage,
                structure=tuple(found[stage]["structure"]) if stage in found else (),
                how=found[stage]["how"] if stage in found else "",
                zero_shot=early["zero-shot"].get(task),
                online=early["online"].get(task),
                first=firsts.get(task),
                last=lasts.get(task),
                final=finals.get(task),
                evaluated=counts[task],
            )
            for stage, tasks in enumerate(self.stages)
            if stage in begun
            for task in tasks
        ]

    @cached_property
    def losses(self) -> list[TaskStory]:
        """Tasks that were evaluated again after their stage, those that lost most first."""
        again = [(one.change, place) for place, one in enumerate(self.tasks) if one.change is not None]
        return [self.tasks[place] for _, place in sorted(again)]

    @cached_property
    def modules(self) -> list[ModuleStory]:
        """What each module is used for that any task uses, by factor."""
        found: dict[tuple[int, int], list[str]] = {}
        for one in self.tasks:
            for depth, module in enumerate(one.structure):
                found.setdefault((depth, module), []).append(one.task)
        names = [factor.name for factor in self.config.world.graph.factors]
        return [module_story(names, *place, tasks) for place, tasks in sorted(found.items())]

    @cached_property
    def how(self) -> dict[str, Any]:
        """How structures were found, how many searched ones are as expected, and what searches cost; if there are."""
        records = [one for one in self.records if one["kind"] == "structure"]
        if not records:
            return {}
        searched = [one for one in records if one["how"] == "searched"]
        told = structures(self.records)
        return {
            "found": dict(Counter(one["how"] for one in records)),
            "searched": told["searched"],
            "as_expected": told["as_expected"],
            "steps_per_search": round(float(np.mean([one["steps"] for one in searched]))) if searched else 0,
        }

    @cached_property
    def alarms(self) -> list[Alarm]:
        """Old tasks that were found harmed, each once a stage, in the order of the life."""
        looks = [record for record in self.records if record["kind"] == "retention"]
        ends = [record for record in looks if record["round"] is None]
        over, refused = ({record["stage"] for record in some} for some in (ends, filter(is_refused, looks)))
        left = {(record["stage"], one["task"]) for record in ends for one in record["harmed"]}
        found: dict[tuple[int, str], Alarm] = {}
        for record in looks:
            stage = record["stage"]
            for one in record["harmed"]:
                place, (before, after) = (stage, one["task"]), one["return"]
                then = (place in left, stage in over and place not in left, stage in refused)
                found[place] = Alarm(stage, self.stages[stage][0], one["task"], before, after, *then)
        return list(found.values())

    @cached_property
    def looked(self) -> int:
        """How often old tasks were looked at, where there were any."""
        return sum(record["kind"] == "retention" and record["tasks"] > 0 for record in self.records)

    def mean(self, when: str) -> float | None:
        """The mean over tasks of one of their values, such as `zero_shot` or `final`; None where there is none."""
        known = [value.mean for one in self.tasks if (value := getattr(one, when)) is not None]
        return float(np.mean(known)) if known else None

    @property
    def now(self) -> float | None:
        """The mean return over the tasks met: at the end, or in the last evaluation."""
        if self.standing.state == "ended":
            return self.mean("final")
        return float(np.mean(self.seen[-1]["return"])) if self.seen else None

    @property
    def mean_change(self) -> float | None:
        """The mean over tasks of what each gained since its stage: the change of `modlife table`."""
        return float(np.mean([one.change or 0.0 for one in self.losses])) if self.losses else None

    def points(self, task: TaskStory) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """The learning curve of a task: steps, and training returns where an episode ended."""
        place = self.stages[task.stage].index(task.task)
        told = [(one["steps"], one["return"][place]) for one in self.curves.get(task.stage, ())]
        known = [(steps, value) for steps, value in told if value is not None]
        return np.array([steps for steps, _ in known], float), np.array([value for _, value in known], float)

    @cached_property
    def curves(self) -> dict[int, list[Record]]:
        """The points of learning curves, by stage."""
        found: dict[int, list[Record]] = {}
        for record in self.records:
            if record["kind"] == "curve":
                found.setdefault(record["stage"], []).append(record)
        return found

    def as_dict(self) -> dict[str, Any]:
        """All of it for programs."""
        means = {name: self.mean(name) for name in ("zero_shot", "online", "first", "last", "final")}
        return {
            "run": str(self.path),
            "agent": self.config.agent,
            "domain": self.config.domain.name,
            "seed": self.config.seed,
            "steps_per_task": self.config.steps,
            "standing": asdict(self.standing),
            "mean_return": self.now,
            "means": means,
            "mean_change": self.mean_change,
            "tasks": [one.as_dict() for one in self.tasks],
            "modules": [{**asdict(one), "components": dict(one.components)} for one in self.modules],
            "structures": self.how,
            "alarms": [asdict(one) for one in self.alarms],
            "options": self.options,
        }


def is_refused(look: Record) -> bool:
    """Whether modules stayed as they were after a look at old tasks."""
    return bool(look.get("refused"))


def by_task(records: Any) -> dict[str, Value]:
    """The value of each task in the last of some evaluations that has it."""
    found: dict[str, Value] = {}
    for record in records:
        for task, mean, error in zip(record["tasks"], record["return"], record["standard_error"], strict=True):
            found[task] = Value(mean, error)
    return found


def module_story(factors: Sequence[str], depth: int, module: int, tasks: Sequence[str]) -> ModuleStory:
    """What some tasks, in their order, have in common that use a module."""
    components = [task.split("/")[depth] for task in tasks]
    counted = dict(Counter(components).most_common())
    return ModuleStory(factors[depth], module, tuple(tasks), counted, components[0])


def read_story(path: Path) -> Story:
    """Reads one run directory, whether its life has ended or not; one that is being written may grow meanwhile."""
    run = RunDirectory.open(path)
    config, summary, records = run.config(), run.summary(), run.metrics()
    factors = len(config.world.graph.factors)
    if any(len(task.split("/")) != factors for stage in stages_of(records) for task in stage):
        raise InputError(f"'{path}' has metrics of tasks that are not of its world.")
    return Story(path, config, summary, records, standing(run), run.is_sealed)
