"""Every task of a life with all that is known of it, in one table; and tasks of several lives side by side."""

import numpy as np

from modlife.analysis.report.charts import Chart, Table, number
from modlife.analysis.report.maps import heat_map, height_of, scale_key
from modlife.analysis.report.panels.memory import around
from modlife.analysis.report.panels.modules import HOW, uses
from modlife.analysis.report.sections import Fold, Part, Section, of_each, shown_table
from modlife.analysis.report.told import Study, Told
from modlife.metrics import evaluations

ABOUT = "Tasks in the order in which they were met. A structure names the module of each factor."
BESIDE = "A row is a task, a column a kind of life: the stronger the colour of a cell, the more is reached at the end."


def panel(study: Study) -> Section | None:
    """The table of each life; of kinds of lives, their returns side by side."""
    several = [side_by_side(study)] if len(study.groups) > 1 and any(told.life.names for told in study.lives) else []
    parts = [*several, *of_each(study, of_life)]
    about = f"{BESIDE} {ABOUT}" if several else ABOUT
    return Section("tasks", "What became of each task?", "Tasks", about, parts) if parts else None


def of_life(told: Told) -> list[Part]:
    """The table of a life, for those who want it."""
    if not told.life.names:
        return []
    return [Fold(f"All {told.life.tasks} tasks", [shown_table(table_of(told), "Every task")])]


def table_of(told: Told) -> Table:
    """A row for each task."""
    head = ["task", "met as", "structure", "modules", "before learning", "after practice", "after its stage"]
    head += ["at the end" if told.has_ended else "now", "goal met", "change since its stage"]
    before, after, ended = (told_by(told, when) for when in ("zero-shot", "online", "seen"))
    found, kept = {one.task: one for one in uses(told)}, {one.task: one for one in told.kept}
    success = dict(zip(told.life.names, told.life.summary["seen"]["success"], strict=True))
    rows = []
    for place, task in enumerate(told.life.names):
        use, own = found.get(task), kept.get(task)
        modules = ("-".join(map(str, use.structure)), HOW.get(use.how, use.how)) if use else ("", "")
        returns = (*(number(one.get(task)) for one in (before, after, ended)), number(told.life.finals[task]))
        change = f"{own.change:+.3f}" if own else ""
        rows.append((task, place + 1, *modules, *returns, f"{100 * success[task]:.0f} %", change))
    return Table(head, rows)


def told_by(told: Told, when: str) -> dict[str, float]:
    """The return of each task at a time of its own stage."""
    found = reversed(evaluations(told.life.records, when))  # the first counts
    return {task: value for one in found for task, value in zip(one["tasks"], one["return"], strict=True)}


def side_by_side(study: Study) -> Chart:
    """The mean return over seeds of each task at the end, by kind of life."""
    tasks = list(dict.fromkeys(task for group in study.groups for life in group.lives for task in life.names))
    values = np.full((len(tasks), len(study.groups)), np.nan)
    for column, group in enumerate(study.groups):
        for row, task in enumerate(tasks):
            known = [life.finals[task] for life in group.lives if task in life.finals]
            values[row, column] = np.mean(known) if known else np.nan
    limits, kinds = around(values[np.isfinite(values)]), len(study.groups)
    words = "; ".join(f"{place}: {group.label}" for place, group in enumerate(study.groups, start=1))
    rows = [(task, *(number(value) for value in line)) for task, line in zip(tasks, values, strict=True)]
    return heat_map(
        values,
        limits,
        height=height_of(len(tasks), least=60),
        title="Return of each task at the end",
        about=f"{words}.",
        say="{row}, {column}: return {value}",
        table=Table(["task", *(group.label for group in study.groups)], rows),
        left=[((row + 0.5) / len(tasks), task) for row, task in enumerate(tasks) if len(tasks) <= 72],
        bottom=[((place + 0.5) / kinds, str(place + 1)) for place in range(kinds)],
        x=words,
        legend=scale_key(limits),
        wide=True,
    )
