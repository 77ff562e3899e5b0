"""What lives were made from: options, and where they come from."""

import json
import shlex
from typing import Any

from modlife.analysis.report.charts import Table
from modlife.analysis.report.markup import Markup
from modlife.analysis.report.sections import Fold, Part, Section, of_each, plural, shown_table
from modlife.analysis.report.told import Study, Told
from modlife.runs.codec import flat
from modlife.runs.config import in_full
from modlife.runs.provenance import conditions

BUT = ("seed", "grown")
"""Options that do not make a kind of life."""


def differences(study: Study) -> Section | None:
    """The options in which kinds of lives differ, and the lives of each."""
    if len(study.groups) < 2:
        return None
    plans = [flat(group.lives[0].plan) for group in study.groups]
    names = [name for name in dict.fromkeys(name for plan in plans for name in plan) if name not in BUT]
    differing = [name for name in names if len({json.dumps(plan.get(name)) for plan in plans}) > 1]
    shared = [name for name in differing if all(name in plan for plan in plans)]
    head = ["option", *(group.label for group in study.groups)]

    def table(names: list[str], caption: str) -> Markup:
        rows = [(name, *(said(plan[name]) if name in plan else "" for plan in plans)) for name in names]
        return shown_table(Table(head, rows), caption)

    parts: list[Part] = [table(shared, "Options that differ")]
    if len(shared) < len(differing):
        own = table([name for name in differing if name not in shared], "Options that only some of them have")
        parts.append(Fold("Options that only some of them have", [own]))
    about = (
        "Lives that differ in nothing but the seed are taken together. Kinds of lives differ in these options; where "
        "they have other numbers of steps or tasks, compare with care."
    )
    return Section("differences", "What differs between these lives?", "Differences", about, parts)


def panel(study: Study) -> Section:
    """The command, config, versions and machine of each life."""
    return Section(
        "origin",
        "Where does it come from?",
        "Origin",
        "What it takes to live the same life again.",
        of_each(study, of_life),
    )


def of_life(told: Told) -> list[Part]:
    """How a life was begun, and its config."""
    manifest = told.manifest
    words = manifest.get("command")
    command = shlex.join(map(str, words)) if isinstance(words, list) else ""
    rows: list[tuple[Any, ...]] = [
        ("run directory", told.life.path),
        ("command", command),
        ("begun", manifest.get("started", "")),
        ("lived in", plural(told.processes, "process", "processes")),
        *conditions(manifest).items(),
    ]
    config = flat(in_full(told.life.config, tasks=told.planned))
    beginning = shown_table(Table(["fact", "value"], rows), "How it was begun")
    options = shown_table(Table(["option", "value"], [(name, said(config[name])) for name in config]), "All options")
    return [beginning, Fold("All options", [options])]


def said(value: Any) -> str:
    """The value of an option in words."""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
