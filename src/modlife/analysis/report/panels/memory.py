"""Whether old tasks are remembered: their returns after every stage, the worst losses, and what was repaired."""

from typing import Any

import numpy as np
from jaxtyping import Float

from modlife.analysis.report.bars import lying_chart
from modlife.analysis.report.charts import Chart, Range, Table, legend, number, span
from modlife.analysis.report.maps import heat_map, height_of, scale_key
from modlife.analysis.report.markup import Markup
from modlife.analysis.report.sections import Part, Section, note, of_each, plural, shown_table
from modlife.analysis.report.told import Study, Told
from modlife.errors import InputError
from modlife.metrics import evaluations
from modlife.runs.records import check_table

WORST = 10
"""Losses that are drawn."""
MOST_COLUMNS = 128
"""Stages in a picture and its table, at most; of more, every second or third is shown."""
NAMES = 72
"""Rows that have names beside them, at most; of more, every so many."""
ABOUT = (
    "Each row is a task, from the moment it was learnt; each column is a moment of the life. A row that keeps its "
    "colour is remembered; one that fades is forgotten. Where a task was not evaluated again, its last value stands. "
    "What is said of the end of a life comes from one more evaluation, of more episodes: it differs a little from the "
    "last column."
)


def panel(study: Study) -> Section | None:
    """For each life in which tasks were evaluated again, how they did."""
    known = [returns_of(told)[2] for told in study.lives if told.was_seen_again]
    limits = around(np.concatenate([values[np.isfinite(values)] for values in known])) if known else Range(0, 1)

    def of_life(told: Told) -> list[Part]:
        charts = [matrix(told, limits), losses(told, study.colour(told))] if told.was_seen_again else []
        return [*charts, *alarms(told)]

    parts = of_each(study, of_life)
    return Section("memory", "Does it remember?", "Memory", ABOUT, parts) if parts else None


def around(values: Float[np.ndarray, " n"]) -> Range:
    """The range of values, in tenths."""
    low, high = np.floor(10 * values.min()) / 10, np.ceil(10 * values.max()) / 10
    return Range(float(low), float(max(high, low + 0.1)))


def returns_of(told: Told) -> tuple[list[str], list[int], Float[np.ndarray, "task stage"]]:
    """Tasks in the order in which they were met, stages, and the return of each task after each stage."""
    whole = evaluations(told.life.records, "seen")
    every = -(-len(whole) // MOST_COLUMNS)
    records = whole[(len(whole) - 1) % every :: every]  # the last is always among them
    tasks = list(dict.fromkeys(task for record in whole for task in record["tasks"]))
    places, found = {task: row for row, task in enumerate(tasks)}, np.full((len(tasks), len(records)), np.nan)
    for column, record in enumerate(records):
        found[[places[task] for task in record["tasks"]], column] = record["return"]
    return tasks, [record["stage"] for record in records], found


def matrix(told: Told, limits: Range) -> Chart:
    """The heat map of tasks by stages."""
    tasks, stages, values = returns_of(told)
    sizes = np.cumsum([len(stage) for stage in told.stages])
    learnt = [int(sizes[stage]) for stage in stages]
    step = max(1, -(-len(tasks) // NAMES))
    left = [((row + 0.5) / len(tasks), tasks[row]) for row in range(0, len(tasks), step)]
    gap = max(1, -(-len(stages) // 8))
    bottom = [((n + 0.5) / len(stages), learnt[n]) for n in range(gap - 1, len(stages), gap)]
    rows = [(task, *(number(value, 2) for value in line)) for task, line in zip(tasks, values, strict=True)]
    return heat_map(
        carried(values),
        limits,
        height=height_of(len(tasks), least=120),
        title="Return of each task after each stage of the life",
        about=remembered(told),
        say="{row}, when {column} tasks were learnt: return {value}",
        table=Table(["task, by tasks learnt", *learnt], rows),
        left=left,
        bottom=bottom,
        x="tasks learnt so far",
        legend=scale_key(limits),
        wide=True,
    )


def carried(values: Float[np.ndarray, "task stage"]) -> Float[np.ndarray, "task stage"]:
    """Values with the last known one where a task was not evaluated again after a stage."""
    places = np.where(np.isfinite(values), np.arange(values.shape[1]), 0)
    return np.take_along_axis(values, np.maximum.accumulate(places, axis=1), axis=1)


def remembered(told: Told) -> str:
    """How tasks changed, in a sentence."""
    worst, mean = min(told.kept, key=lambda one: one.change), float(np.mean([one.change for one in told.kept]))
    until = "the end of the life" if told.has_ended else "its last evaluation"
    return (
        f"From the end of its stage to {until}, a task's return changed by {mean:+.3f} on average, at worst by "
        f"{worst.change:+.3f} ({worst.task})."
    )


def losses(told: Told, colour: str) -> Chart:
    """The tasks that lost most: their return after their stage, and at the end or now."""
    when = "at the end" if told.has_ended else "now"
    worst = sorted(told.kept, key=lambda one: one.change)[:WORST]
    across = span([value for one in worst for value in (one.first, one.last)])
    rows = [(one.task, [(one.first, one.first, "then"), (one.last, one.last, colour)]) for one in worst]
    numbers = [(one.task, number(one.first), number(one.last), f"{one.change:+.3f}") for one in worst]
    return lying_chart(
        rows,
        across,
        title=f"Greatest losses first ({len(worst)} of {plural(len(told.kept), 'task')})",
        about=remembered(told),
        say="{row}, {column}: return {value}",
        table=Table(["task", "after its stage", when, "change"], numbers),
        x="return",
        legend=legend([("then thick", "after its stage"), (f"{colour} thick", when)]),
    )


def alarms(told: Told) -> list[Markup]:
    """What checks of old tasks found when a task was folded in, where the agent makes them."""
    looks = [checked(record, told) for record in told.life.records if record["kind"] == "retention"]
    checks = [one for one in looks if one["tasks"]]
    if not checks:
        return []
    found = [one for one in checks if one["harmed"]]
    refused = sum(one["refused"] for one in checks)
    text = (
        "While new tasks were folded in, old ones that share a module "
        f"were looked at {plural(len(checks), 'time')}; {plural(len(found), 'look')} found some that were harmed, "
        f"{plural(sum(one['round'] is not None for one in found), 'round')} of repair followed"
        + (f", and {plural(refused, 'time')} modules stayed as they were." if refused else ".")
    )
    if not found:
        return [note(text)]
    rows = [
        (one["stage"] + 1, outcome(one), one["tasks"], number(one["worst_drift"]), ", ".join(one["harmed"]))
        for one in found
    ]
    head = ["stage", "what followed", "tasks looked at", "furthest move", "harmed"]
    return [note(text), shown_table(Table(head, rows), "Old tasks that were harmed, and what followed")]


def checked(record: dict[str, Any], told: Told) -> dict[str, Any]:
    """A record of retention with the fields that are shown, whoever wrote it."""
    where = f"'{told.life.path}', retention"
    check_table(record, {"stage": int, "round": int | None, "tasks": int, "worst_drift": float, "harmed": list}, where)
    for one in record["harmed"]:
        check_table(one, {"task": str}, where)
    if len(record["harmed"]) > 10**4:
        raise InputError(f"{where}: {len(record['harmed'])} harmed tasks are too many.")
    return {**record, "harmed": [one["task"] for one in record["harmed"]], "refused": record.get("refused") is True}


def outcome(one: dict[str, Any]) -> str:
    """What a look at old tasks led to."""
    if one["refused"]:
        return "modules stayed as they were"
    return "left at the end" if one["round"] is None else f"repair, round {one['round'] + 1}"
