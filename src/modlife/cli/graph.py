"""`modlife graph`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modlife.cli.choices import usual_world
from modlife.cli.words import check_file, whole_file
from modlife.domains.graph_svg import graph_svg


@dataclass(frozen=True)
class Options:
    """Draw the problem graph: one column of modules per factor, below it what they see, the actions last."""

    domain: str = "grid2d"
    """Of which domain."""
    out: Path = Path("graph.svg")
    """The SVG file to write."""
    task: str | None = None
    """Mark the path of this task, for example wall/red/dynamics-2."""
    world: Any = None
    """Which tasks there are."""


def usual(arguments: Sequence[str]) -> Options:
    """The options of the domain that the arguments name."""
    return Options(world=usual_world(arguments))


def run(options: Options) -> None:
    """Draws."""
    graph, out = options.world.graph, options.out
    check_file("graph", out, ".svg")
    svg = graph_svg(graph, task=None if options.task is None else graph.parse(options.task))
    with whole_file(out) as aside:
        out.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(svg)
    print(f"problem graph of {graph.name}: {out}")
