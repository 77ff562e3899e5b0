"""What a life came to, from its records: pure functions of the lines of metrics.jsonl.

Lives, tables and figures share them, so a new number can be computed for old results too. Records are dictionaries:

    {"kind": "curriculum", "stages": [[task, ...], ...]}        what is to be learnt; once more when a life grows
    {"kind": "structure", "structure": [...], "how": ...}       the structure of a stage's task, and how it was found
    {"kind": "curve", "steps": n, "return": [...], ...}         training returns of a stage's tasks
    {"kind": "evaluation", "when": ..., "tasks": [...], ...}    zero-shot, online: the task in hand; seen: all so far
    {"kind": "offline", "epoch": n, "tasks": n, ...}            losses of an epoch, by name
    {"kind": "retention", "round": n, "harmed": [...], ...}     what folding a task in did to old ones

Where parameters are drawn back, curve and offline have "norms": of the loss's gradient, and of the pull beside it,
and "terms": that loss, and the penalty.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from modlife.errors import InputError

Record = dict[str, Any]

PHASES = ("zero-shot", "online", "offline")
"""When a task is evaluated: before learning it, after learning it online, at the end of its stage."""


def summarise(records: Sequence[Record]) -> dict[str, Any]:
    """The numbers of a summary that follow from records; those that a life has no records for are left out."""
    found = {"by_phase": by_phase(records), "retention": retention(records), "structures": structures(records)}
    return {name: value for name, value in found.items() if value}


def stages_of(records: Iterable[Record]) -> list[list[str]]:
    """The tasks of each stage."""
    return [stage for record in records if record["kind"] == "curriculum" for stage in record["stages"]]


def by_phase(records: Sequence[Record], what: str = "return") -> dict[str, Any]:
    """Mean return (or success) over tasks before learning, after the online phase and after the offline phase.

    Only for agents that evaluate before they learn; the last is the task's return in the evaluation after its stage.
    """
    averages: dict[str, Any] = {}
    for when in ("zero-shot", "online"):
        values = [mean_of(record, what) for record in evaluations(records, when)]
        if values:
            averages[when] = averaged(values, what)
    if averages:
        averages["offline"] = averaged([record[what][-1] for record in evaluations(records, "seen")], what)
    return averages


def mean_of(evaluation: Record, what: str) -> float:
    """The mean over tasks of an evaluation's returns, as it tells it, or of its successes or lengths; NaN of none."""
    usual = float(np.mean(evaluation[what])) if evaluation[what] else float("nan")
    return evaluation.get(f"mean_{what}", usual)


def evaluations(records: Iterable[Record], when: str) -> list[Record]:
    """The evaluations of a kind; the first versions did not say when they evaluated all tasks so far."""
    return [record for record in records if record["kind"] == "evaluation" and record.get("when", "seen") == when]


def averaged(values: list[float], what: str) -> dict[str, Any]:
    """Returns (or successes) of tasks, and their mean."""
    return {what: values, f"mean_{what}": round(float(np.mean(values)), 4)}


def retention(records: Sequence[Record]) -> dict[str, Any]:
    """How a task's return changed from the end of its stage to its last evaluation on the way; negative is forgetting.

    The mean over all tasks that were evaluated in a later stage too, and the worst of them.
    """
    changes = changes_since(records)
    if not changes:
        return {}
    worst = min(changes, key=changes.__getitem__)
    mean = round(float(np.mean(list(changes.values()))), 4)
    return {"mean_change": mean, "worst_change": round(changes[worst], 4), "worst_task": worst}


def changes_since(records: Sequence[Record]) -> dict[str, float]:
    """The change of each task that was evaluated in a later stage too, since the end of its own."""
    first: dict[str, tuple[int, float]] = {}
    last: dict[str, tuple[int, float]] = {}
    for number, record in enumerate(evaluations(records, "seen")):
        for task, value in zip(record["tasks"], record["return"], strict=True):
            first.setdefault(task, (number, value))
            last[task] = (number, value)
    return {task: last[task][1] - value for task, (number, value) in first.items() if last[task][0] > number}


def forgetting(records: Sequence[Record]) -> float | None:
    """How much of its return a task loses after its stage; positive is lost, negative is gained.

    F = mean over tasks i of (return of i right after its stage - return of i in its last evaluation on the way)

    Over all tasks that were evaluated in a later stage too; None if there are none: minus the mean change of
    `retention`. Continual World also counts the last task, with 0 (`continual_world_forgetting`).
    """
    found = changes_since(records)
    return -float(np.mean(list(found.values()))) if found else None


def areas(records: Sequence[Record]) -> dict[str, float]:
    """The mean training return of each task over its steps: the area under its learning curve, per step.

    Curves are straight between updates, and flat before the first in which an episode ended.
    """
    found = curves(records)
    return {task: area(found.steps, curve) for task, curve in zip(found.tasks, found.returns, strict=True)}


def area(steps: Float[np.ndarray, " update"], returns: Float[np.ndarray, " update"]) -> float:
    """(1 / T) ∫ return d(steps) from 0 to T, the last step; NaN where no return is known."""
    known = ~np.isnan(returns)
    if not known.any():
        return float("nan")
    ends = np.concatenate([[0.0], steps])
    height = np.interp(ends, steps[known], returns[known])
    return float(np.trapezoid(height, ends) / ends[-1])


def transfer(own: Mapping[str, float], alone: Mapping[str, float]) -> float | None:
    """How much better tasks are learnt than alone, in units of return; positive is better.

    FT = mean over tasks i of (A_i - A_i_alone),   A: the area under the learning curve, per step (`areas`)

    Over the tasks of which both are known; None if there are none. Continual World divides each by what is
    missing to the highest return (`normalised_transfer`).
    """
    changes = [own[task] - alone[task] for task in own if not np.isnan(own[task] - alone.get(task, np.nan))]
    return float(np.mean(changes)) if changes else None


def structures(records: Sequence[Record]) -> dict[str, Any]:
    """Each task's structure, and how many searched ones are those that the modules' first components suggest."""
    stages = stages_of(records)
    found = [(stages[record["stage"]][0], record) for record in records if record["kind"] == "structure"]
    if not found:
        return {}
    owners = first_components((task.split("/"), record["structure"]) for task, record in found)
    searched = [(task, record["structure"]) for task, record in found if record["how"] == "searched"]
    return {
        "tasks": {task: record["structure"] for task, record in found},
        "searched": len(searched),
        "as_expected": sum(tuple(structure) == expected(owners, task.split("/")) for task, structure in searched),
    }


def first_components(tasks: Iterable[tuple[Sequence[str], Sequence[int]]]) -> dict[tuple[int, int], str]:
    """For (depth, module), the component of the first task that used the module; of components and structures."""
    owners: dict[tuple[int, int], str] = {}
    for components, structure in tasks:
        for depth, (module, component) in enumerate(zip(structure, components, strict=True)):
            owners.setdefault((depth, module), component)
    return owners


def expected(owners: Mapping[tuple[int, int], str], components: Sequence[str]) -> tuple[int, ...] | None:
    """For each factor, the first module whose first task had this component; None if there is none for one."""
    modules = []
    for depth, component in enumerate(components):
        same = [module for (at, module), owner in owners.items() if (at, owner) == (depth, component)]
        if not same:
            return None
        modules.append(min(same))
    return tuple(modules)


def zero_shot(records: Sequence[Record]) -> dict[int, float]:
    """Mean return before learning, by the number of tasks seen before."""
    sizes = [len(stage) for stage in stages_of(records)]
    return {sum(sizes[: record["stage"]]): record["mean_return"] for record in evaluations(records, PHASES[0])}


@dataclass(frozen=True)
class Curves:
    """Training returns against steps."""

    tasks: tuple[str, ...]
    steps: Float[np.ndarray, " update"]
    returns: Float[np.ndarray, "task update"]


def curves(records: Sequence[Record], what: str = "return") -> Curves:
    """The learning curves of all tasks at the steps of the first stage's updates; of none, where no curve is told.

    A search shifts a stage's curve: while it lasts, the mean return of its episodes counts; of successes it tells none.
    """
    plan, stages, searched = stages_of(records), dict[int, list[Record]](), dict[int, float]()
    for record in records:
        if record["kind"] == "curve" and what in record:
            stages.setdefault(record["stage"], []).append(record)
        elif record["kind"] == "structure" and "returns" in record and what == "return":
            searched[record["stage"]] = float(record.get("mean_return", np.mean(record["returns"])))
    if not stages:
        return Curves((), np.zeros(0), np.zeros((0, 0)))
    steps = np.array([record["steps"] for record in stages[min(stages)]], float)
    each = [on_grid(steps, of_stage, searched.get(stage), what) for stage, of_stage in sorted(stages.items())]
    for stage, found in zip(sorted(stages), each, strict=True):
        if len(found) != len(plan[stage]):
            raise InputError(f"Stage {stage} has {len(plan[stage])} tasks, but learning curves of {len(found)}.")
    return Curves(tuple(task for stage in sorted(stages) for task in plan[stage]), steps, np.concatenate(each))


def on_grid(
    steps: Float[np.ndarray, " update"], records: list[Record], before: float | None, what: str = "return"
) -> Float[np.ndarray, "task update"]:
    """The curves of a stage at the given steps; before its first update, the return of the search if it tells one."""
    own = np.array([record["steps"] for record in records], float)
    returns = np.array([record[what] for record in records], float).T
    if before is None and np.array_equal(own, steps):
        return returns
    return np.array([np.interp(steps, own, curve, left=np.nan if before is None else before) for curve in returns])
