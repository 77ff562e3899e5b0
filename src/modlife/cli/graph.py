"""`modlife graph`."""

from pathlib import Path

from modlife.domains.draw import graph_svg
from modlife.domains.grid2d.spec import World


def run(world: World, out: Path = Path("graph.svg"), task: str | None = None) -> None:
    """Draw the problem graph: one column of modules per factor, below it what they see, the actions last.

    Args:
        world: Which 2-D world; the defaults are the paper's.
        out: The SVG file to write.
        task: Mark the path of this task, for example wall/red/dynamics-2.
    """
    graph = world.graph
    svg = graph_svg(graph, task=graph.parse(task) if task else None)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(svg)
    print(f"problem graph of {graph.name}: {out}")
