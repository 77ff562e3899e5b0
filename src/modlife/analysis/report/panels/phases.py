"""What a task's return is before it is learnt, after each phase, and at the end."""

from typing import Any

import numpy as np

from modlife.analysis.figures.figure_3 import smooth, values_after, window_for, zero_shot
from modlife.analysis.groups import Group
from modlife.analysis.report.bars import Bar, bar_chart
from modlife.analysis.report.charts import Chart, Table, legend, number
from modlife.analysis.report.lines import Line, line_chart
from modlife.analysis.report.sections import Part, Section
from modlife.analysis.report.told import Study
from modlife.metrics import PHASES, mean_and_error

FINAL = "final"
WORDS = {"zero-shot": "before", "online": "practised", "offline": "folded in", FINAL: "at the end"}
"""What bars of the phases are called: zero-shot, online, offline, final."""
ABOUT = (
    "Each task is tried before the agent has practised it (zero-shot), after practice on a copy of the modules "
    "(online), after what was learnt is folded into the shared modules (offline), and at the end of the life (final)."
)


def panel(study: Study) -> Section | None:
    """Means by phase, and the return before learning as tasks accumulate."""
    after = [when for when in (*PHASES, FINAL) if any(values_after(group.lives, when) for group in study.groups)]
    parts: list[Part] = []
    if any(np.isfinite(values_after(group.lives, FINAL)).any() for group in study.groups):
        parts.append(by_phase(study, after))
    grows = before_learning(study)
    parts += [grows] if grows else []
    if not parts:
        return None
    about = ABOUT if len(after) > 1 else "Agents here are evaluated after learning only."
    return Section("phases", "How well does it do, and when?", "Phases", about, parts)


def bar_of(study: Study, group: Group, values: list[float]) -> Bar | None:
    """The mean of some lives of a group, with its error; None where none of them tells."""
    known = [value for value in values if np.isfinite(value)]
    if not known:
        return None
    mean, error = mean_and_error(known)
    return Bar(mean, study.look(group), error)


def with_error(bar: Bar | None) -> str:
    """A mean and its error for a table."""
    if bar is None:
        return ""
    return number(bar.value) + (f" ± {number(bar.error)}" if np.isfinite(bar.error) else "")


def bars(study: Study, columns: dict[str, dict[str, list[float]]], **about: Any) -> Chart:
    """Bars of each group under each name, from the values of its lives by name and group."""
    found = {
        name: [bar_of(study, group, values.get(group.label, [])) for group in study.groups]
        for name, values in columns.items()
    }
    rows = [
        (group.told(), *(with_error(group_bars[place]) for group_bars in found.values()))
        for place, group in enumerate(study.groups)
    ]
    every = [bar for group_bars in found.values() for bar in group_bars if bar]
    errors = any(np.isfinite(bar.error) for bar in every)
    about["y"] += "; lines: standard error over seeds" if errors else ""
    entries = [(f"{study.look(group)} thick", group.told()) for group in study.groups]
    return bar_chart(list(found.items()), table=Table(["lives", *found], rows), legend=legend(entries), **about)


def by_phase(study: Study, after: list[str]) -> Chart:
    """The mean return over tasks by phase."""
    columns = {WORDS[when]: {group.label: values_after(group.lives, when) for group in study.groups} for when in after}
    means = [
        f"{WORDS[when]} {number(value[0])}" for when in after if (value := values_after(study.groups[0].lives, when))
    ]
    return bars(
        study,
        columns,
        title="Mean return over tasks",
        about=f"{study.groups[0].label}: {', '.join(means)}.",
        say="{row}, {column}: return {value}",
        y="return, mean over tasks",
        x="when tasks were tried",
        size="half",
    )


def before_learning(study: Study) -> Chart | None:
    """The return of each task before it is learnt, by the number of tasks seen before, and running means."""
    known = [(group, found) for group in study.groups if (found := zero_shot(group.lives))]
    known = [(group, found) for group, found in known if len(found[0]) > 1]
    if not known:
        return None
    window, lines, dots = window_for(min(len(found[0]) for _, found in known)), [], []
    for group, (seen, lives) in known:
        look, mean = study.look(group), lives.mean(axis=0)
        if window > 1:
            name = f"{group.label}: mean of {window} tasks"
            lines.append(Line(name, smooth(seen, window), smooth(mean, window), look))
        dots.append(Line(f"{group.label}: one task", seen.astype(float), mean, f"{look} dots"))
    columns = max((line.x for line in dots), key=len)
    first, last = (lines or dots)[0].y[[0, -1]]
    return line_chart(
        [*dots, *lines],
        columns,
        heads=["tasks seen before", *(f"{column:.0f}" for column in columns)],
        title="Return before learning, as tasks accumulate",
        about=f"{known[0][0].label}: from {first:.2f} to {last:.2f}.",
        say="{row}, with {column} tasks seen before: return {value}",
        y="return before learning; dots: tasks" + (f", line: mean of {window}" if lines else ""),
        x="tasks seen before",
        legend=legend([(study.look(group), group.label) for group, _ in known]),
        height=220,
        size="half",
    )


def wrong_modules(study: Study) -> Section | None:
    """Tasks never met, and what a wrong module does, where a summary tells it."""
    columns: dict[str, dict[str, list[float]]] = {}
    for group in study.groups:
        for life in group.lives:
            told = {"tasks learnt": life.summary["seen"]["mean_return"]}
            if "unseen" in life.summary:
                told["tasks never met"] = life.summary["unseen"]["mean_return"]
            told |= {f"wrong {factor}": mean for factor, mean in life.summary.get("wrong_module", {}).items()}
            for name, value in told.items() if len(told) > 1 else ():
                columns.setdefault(name, {}).setdefault(group.label, []).append(value)
    if not columns:
        return None
    chart = bars(
        study,
        columns,
        title="Mean return with right and wrong modules",
        about="Modules that do their own job are missed where a wrong one stands in.",
        say="{row}, {column}: return {value}",
        y="return, mean over tasks",
    )
    about = "If modules have learnt each its part, combinations never met work at once, and a wrong module does harm."
    return Section("parts", "Does every module do its own part?", "Parts", about, [chart])
