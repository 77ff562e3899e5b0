"""Which module serves which tasks, how it was found, and what the search for it saw."""

from dataclasses import dataclass

import numpy as np

from modlife.analysis.report.charts import Chart, Range, Table, legend
from modlife.analysis.report.lines import Line, line_chart
from modlife.analysis.report.maps import heat_map
from modlife.analysis.report.sections import Part, Section, note, of_each, plural
from modlife.analysis.report.told import Study, Told
from modlife.lifelong.settings import SEARCHES
from modlife.metrics import structures

HOW = {"fresh": "new modules", "given": "told", "searched": "searched"}
"""How a structure came about."""
ABOUT = (
    "A task is solved by one module for each of its factors. Each row is a component, each column a module, and a cell "
    "counts the tasks with this component that the module serves. One strong colour in a row: the component has a "
    "module of its own."
)


@dataclass(frozen=True)
class Use:
    """A task with the modules that serve it."""

    task: str
    structure: tuple[int, ...]
    how: str

    @property
    def components(self) -> list[str]:
        """One for each factor."""
        return self.task.split("/")


def uses(told: Told) -> list[Use]:
    """The structures of tasks, in the order in which they were found."""
    found = [record for record in told.life.records if record["kind"] == "structure"]
    return [Use(told.stages[one["stage"]][0], tuple(one["structure"]), one["how"]) for one in found]


def panel(study: Study) -> Section | None:
    """For each modular life, which module serves which component."""
    parts = of_each(study, of_life)
    return Section("modules", "Which module serves which tasks?", "Modules", ABOUT, parts) if parts else None


def of_life(told: Told) -> list[Part]:
    """How modules were found, and whom they serve."""
    found = uses(told)
    if not found:
        return []
    return [note(in_words(told, found)), *(served(told, found, factor) for factor in range(len(found[0].structure)))]


def in_words(told: Told, found: list[Use]) -> str:
    """How structures were found."""
    counts = {how: sum(one.how == how for one in found) for how in dict.fromkeys(one.how for one in found)}
    text = ", ".join(f"{HOW.get(how, how)}: {plural(count, 'task')}" for how, count in counts.items())
    searched = structures(told.life.records)
    right = searched.get("searched") and (
        f" Of {searched['searched']} searched structures, {searched['as_expected']} take the modules that first learnt "
        "these components; others may do as well, since modules are shared."
    )
    return f"How they were found: {text}.{right or ''}"


def factor_name(told: Told, factor: int) -> str:
    """What the domain calls a factor."""
    return told.life.config.world.graph.factors[factor].name


def served(told: Told, found: list[Use], factor: int) -> Chart:
    """How many tasks with each component of a factor each of its modules serves."""
    name = factor_name(told, factor)
    components = list(dict.fromkeys(one.components[factor] for one in found))
    modules = range(max(one.structure[factor] for one in found) + 1)
    counts = np.zeros((len(components), len(modules)))
    for one in found:
        counts[components.index(one.components[factor]), one.structure[factor]] += 1
    rows = [(component, *map(int, line)) for component, line in zip(components, counts, strict=True)]
    limits = Range(0, max(1.0, float(counts.max())))
    busiest = int(counts.sum(axis=0).argmax())
    return heat_map(
        counts,
        limits,
        height=30 * len(components),
        title=f"Modules for {name}",
        about=f"Module {busiest} serves most tasks: {int(counts[:, busiest].sum())}.",
        say="{row} by module {column}: {value} tasks",
        table=Table([f"{name}, by module", *modules], rows),
        left=[((row + 0.5) / len(components), component) for row, component in enumerate(components)],
        bottom=[((module + 0.5) / len(modules), module) for module in modules],
        x=f"module for {name}",
        wide=True,
        size="third",
    )


def searches(study: Study) -> Section | None:
    """For each life that searched, how the structures that it tried did in each task."""

    def of_life(told: Told) -> list[Part]:
        chart = scores(told, study.colour(told))
        return [note(choosing(told)), chart] if chart else []

    parts = of_each(study, of_life)
    if not parts:
        return None
    about = (
        "Before a task is learnt, combinations of modules are tried for a few episodes each. In more episodes the one "
        "that is taken often does a little worse than in the few that it was chosen by."
    )
    return Section("search", "What did the search for modules see?", "Search", about, parts)


def choosing(told: Told) -> str:
    """How a life searches, and which combination it takes."""
    options = told.life.plan["settings"]["search"]
    entry = SEARCHES[options["search"]]
    takes = f" In the end {entry.takes}." if entry.takes else ""
    margin = options.get("margin")
    less = f" A combination that another task has already counts {margin:g} less than it returns." if margin else ""
    return f"The search ({entry.name}) {entry.about}.{takes}{less}"


def scores(told: Told, colour: str) -> Chart | None:
    """The best, middle and worst of the structures tried in each task, and the chosen one tried again."""
    sizes = np.cumsum([0, *(len(stage) for stage in told.stages)])
    found = [one for one in told.life.records if one["kind"] == "structure" and "returns" in one]
    if not found:
        return None
    before, x = told.life.zero_shot, np.array([float(sizes[one["stage"]]) for one in found])
    tried = [np.array(one["returns"], float) for one in found]
    again = np.array([before.get(int(seen), np.nan) for seen in x])
    lines = [
        Line("best tried", x, np.array([one.max() for one in tried]), f"{colour} d0"),
        Line("chosen, tried again", x, again, "now dots"),
        Line("middle", x, np.array([np.median(one) for one in tried]), f"{colour} d1"),
        Line("worst tried", x, np.array([one.min() for one in tried]), f"{colour} d2"),
    ]
    tasks = [told.stages[one["stage"]][0] for one in found]
    kept = [line for line in lines if np.isfinite(line.y).any()]
    return line_chart(
        kept,
        x,
        heads=["task", *tasks],
        title="Returns of the combinations of modules tried",
        about=f"{len(found)} tasks were searched for, {len(tried[-1])} combinations tried for the last.",
        say="{row} for {column}: return {value}",
        y="return",
        x="tasks seen before",
        legend=legend([(line.look, line.name) for line in kept]),
    )
