"""How fast tasks are learnt: training return against steps."""

import numpy as np

from modlife.analysis.groups import over_seeds
from modlife.analysis.report.charts import Chart, legend
from modlife.analysis.report.lines import Line, line_chart
from modlife.analysis.report.sections import Section
from modlife.analysis.report.told import Study, Told

COLUMNS = 40
"""Columns of the table, at most."""
ABOUT = (
    "A task's steps run from left to right, from the first with that task to the last. The return is the sum of "
    "rewards of an episode, as it was while the agent practised."
)


def panel(study: Study) -> Section | None:
    """Curves of all tasks of a life and their mean; or the mean of each kind of lives."""
    only = study.only
    lines = of_tasks(only) if only else of_groups(study)
    if not lines:
        return None
    last = " A search for modules comes first: while it lasts, the mean return of what it tries counts."
    about = ABOUT + (last if any(map(searches, study.lives)) else "")
    return Section("learning", "How fast does it learn?", "Learning", about, [chart(study, lines)])


def searches(told: Told) -> bool:
    """Whether any structure of a life was searched."""
    return any(record["kind"] == "structure" and "returns" in record for record in told.life.records)


def of_tasks(told: Told) -> list[Line]:
    """The mean over tasks, the task in hand of a life that goes on, and each task."""
    life, now = told.life, in_hand(told)
    lines = []
    if life.curves.tasks:
        lines.append(Line("mean over tasks", life.curves.steps, life.mean_curve(), "g0 d0"))
    lines += [now] if now else []
    for task, curve in zip(life.curves.tasks, life.curves.returns, strict=True):
        lines.append(Line(task, life.curves.steps, curve, "thin"))
    return [line for line in lines if np.isfinite(line.y).any()]


def in_hand(told: Told) -> Line | None:
    """The curve, so far, of the tasks that a life is learning: their mean."""
    found = [record for record in told.current if record["kind"] == "curve"]
    points = [(record["steps"], np.mean(known)) for record in found if (known := known_in(record["return"]))]
    if not points:
        return None
    steps, returns = np.array(points, float).T
    tasks = told.stages[found[0]["stage"]]
    return Line(f"now: {tasks[0]}" if len(tasks) == 1 else "now", steps, returns, "now")


def known_in(values: list[float | None]) -> list[float]:
    """Those that are known."""
    return [value for value in values if value is not None]


def of_groups(study: Study) -> list[Line]:
    """The mean over tasks and seeds of each kind of lives, with standard errors where there are several seeds."""
    lines = []
    for group in study.groups:
        curves = [(life.curves.steps, life.mean_curve()) for life in group.lives if life.curves.tasks]
        if curves:
            mean, error = over_seeds(curves)
            shown = error if len(curves) > 1 else None
            lines.append(Line(group.told(len(curves)), curves[0][0], mean, study.look(group), shown))
    return lines


def chart(study: Study, lines: list[Line]) -> Chart:
    """The curves; places of the table are steps at which the longest has a value."""
    steps = max((line.x for line in lines), key=lambda x: x[-1])
    columns = steps[np.unique(np.linspace(0, len(steps) - 1, min(COLUMNS, len(steps))).round().astype(int))]
    thick = [line for line in lines if "thin" not in line.look]
    thin = [("thin", "one task")] if len(thick) < len(lines) else []
    seeds = "; band: standard error over seeds" if any(line.error is not None for line in lines) else ""
    rise = f"The curve of {lines[0].name} goes from {value_at(lines[0], 0):.2f} to {value_at(lines[0], -1):.2f}."
    return line_chart(
        lines,
        columns,
        heads=["steps", *(f"{step:,.0f}" for step in columns)],
        title="Return while learning",
        about=rise,
        say="{row}, after {column} steps: return {value}",
        y=f"return{seeds}",
        x="steps with the task",
        legend=legend([*((line.look, line.name) for line in thick), *thin]),
    )


def value_at(line: Line, place: int) -> float:
    """The first or last value that is known."""
    return float(line.y[np.isfinite(line.y)][place])
