"""`modlife list`."""

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modlife.analysis.catalog import EXPERIMENTS
from modlife.analysis.figures import FIGURES
from modlife.analysis.studies import STUDIES
from modlife.cli.choices import Json, usual_world
from modlife.cli.tables import terminal_width
from modlife.cli.words import check_file, whole_file
from modlife.domains.curricula import CURRICULA
from modlife.domains.domain import DOMAINS, Domain
from modlife.domains.graph import Discrete, ProblemGraph
from modlife.lifelong.agents import AGENTS
from modlife.lifelong.settings import CONSOLIDATORS, SEARCHES
from modlife.registry import Table

OTHERS: tuple[tuple[str, Table], ...] = (
    ("agents", AGENTS),
    ("curricula", CURRICULA),
    ("searches", SEARCHES),
    ("consolidators", CONSOLIDATORS),
    ("figures", FIGURES),
    ("experiments", EXPERIMENTS),
    ("studies", STUDIES),
)


@dataclass(frozen=True)
class Options:
    """Show a domain (factors, components, tasks), and what other domains, agents, figures, ... there are.

    A task is written as one component per factor with slashes between, for example wall/red/dynamics-2.
    """

    domain: str = "grid2d"
    """Which domain to show."""
    picture: Path | None = None
    """Draw every task into this PNG file; the text then says only what tasks are made of."""
    as_json: Json = False
    """Print JSON for programs instead of text."""
    world: Any = None
    """Which tasks there are."""


def usual(arguments: Sequence[str]) -> Options:
    """The options of the domain that the arguments name."""
    return Options(world=usual_world(arguments))


def run(options: Options) -> None:
    """Prints, and draws."""
    graph = options.world.graph
    if options.picture:
        check_file("picture", options.picture, ".png")
    if options.as_json:
        print(json.dumps(as_dict(graph)))
    elif options.picture:
        print(factors_text(graph))
    else:
        print(f"{factors_text(graph)}\n{tasks_text(graph)}\n{others_text()}")
    if options.picture:
        draw(DOMAINS[options.domain], options.world, options.picture)
        if not options.as_json:
            print(f"\npicture of all {graph.task_count} tasks: {options.picture}")


def draw(domain: Domain, world: Any, path: Path) -> None:
    """Draws every task of a domain."""
    from modlife.runtime import start_jax

    start_jax()
    from modlife.domains.domain import environment_of
    from modlife.domains.pictures import save_picture

    sheet = domain.of("pictures", environment_of(world)).sheet(0)
    with whole_file(path) as aside:
        save_picture(sheet, aside)


def as_dict(graph: ProblemGraph) -> dict[str, object]:
    """The domain, and what else there is, for programs."""
    return {
        "domain": graph.name,
        "factors": {factor.name: list(factor.components) for factor in graph.factors},
        "sees": {factor.name: list(factor.sees) for factor in graph.factors},
        "state": {part.name: list(part.shape) for part in graph.state},
        "actions": graph.actions.size,
        "tasks": [str(task) for task in graph.tasks],
        **{name: list(table.names) for name, table in OTHERS},
        "domains": {domain.name: {"installed": domain.installed, "install": domain.install} for domain in DOMAINS},
    }


def factors_text(graph: ProblemGraph) -> str:
    """What a domain's tasks are made of, and what an episode returns."""
    product = " x ".join(str(count) for count in graph.shape)
    kind = "actions" if isinstance(graph.actions, Discrete) else "numbers to act"
    lines = [f"domain {graph.name}: {product} = {graph.task_count} tasks, {graph.actions.size} {kind}", "", "factors:"]
    lines += [f"  {factor.name:<9} {', '.join(factor.components)}" for factor in graph.factors]
    returns = DOMAINS[graph.name].returns
    return "\n".join([*lines, "", *textwrap.wrap(returns, terminal_width())] if returns else lines)


def tasks_text(graph: ProblemGraph) -> str:
    """The names of all tasks, in columns."""
    names = [str(task) for task in graph.tasks]
    width = max(map(len, names)) + 2
    columns = max(1, terminal_width() // width)
    lines = ["", "tasks:"]
    for start in range(0, len(names), columns):
        lines.append("  " + "".join(f"{name:<{width}}" for name in names[start : start + columns]).rstrip())
    return "\n".join(lines)


def others_text() -> str:
    """What else there is: other domains, agents, figures, ..."""
    lines = ["", "domains:"]
    for one in DOMAINS:
        lines += wrapped(one.name, f"{one.about}: modlife list --domain {one.name}{availability(one)}")
    for title, table in OTHERS:
        lines += ["", f"{title}:", *(line for entry in table for line in wrapped(entry.name, entry.about))]
    return "\n".join(lines)


def wrapped(name: str, about: str) -> list[str]:
    """A name and what it is; in lines as long as a narrow terminal, in one line on any other."""
    width = terminal_width()
    return textwrap.wrap(
        f"  {name:<15} {about}",
        width if width < 100 else 1000,
        subsequent_indent=" " * 18,
        break_long_words=False,
        break_on_hyphens=False,
    )


def availability(domain: Domain) -> str:
    """Whether a domain that needs more than the base installation can be used, and how to get it."""
    if not domain.needs:
        return ""
    return " (installed)" if domain.installed else f" (not installed: {domain.install})"
