"""A picture of any problem graph, as SVG: a column of modules per factor, what they see below, actions last."""

from html import escape

from modlife.domains.graph import Discrete, ProblemGraph
from modlife.types import Task

COLUMN, ROW, WIDTH, HEIGHT, MARGIN, TOP = 230, 44, 140, 30, 36, 84
INK, FAINT, PATH = "#1d2430", "#c9ced8", "#d1495b"
FILLS = {"state": "#e8eef7", "module": "#fdf3dc", "actions": "#e6f4e6"}

Point = tuple[float, float]


def graph_svg(graph: ProblemGraph, *, task: Task | None = None) -> str:
    """The problem graph; with a task, its path through the modules is marked."""
    chosen = graph.indices(task) if task else None
    tallest = max(graph.shape)
    width = x_of(len(graph.factors)) + WIDTH / 2 + MARGIN
    height = below_modules(graph) + max(len(factor.sees) for factor in graph.factors) * ROW
    title = f"{graph.name}: {graph.task_count} tasks" + (f", path of {task}" if task else "")
    body = [
        text((width / 2, 24), title, bold=True),
        *frames(graph, tallest),
        # Marked lines last, so that no other line crosses them.
        *sorted(chain(graph, chosen), key=lambda line: PATH in line),
        *modules(graph, chosen),
        *views(graph),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="sans-serif" font-size="13">\n'
        '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def frames(graph: ProblemGraph, tallest: int) -> list[str]:
    """A frame around each factor's modules, with its name."""
    x, y = WIDTH / 2 + 10, TOP - 34
    return [
        f'<rect x="{x_of(place) - x:g}" y="{y}" width="{2 * x:g}" height="{tallest * ROW + 40}" rx="10" '
        f'fill="none" stroke="{FAINT}" stroke-dasharray="5 4"/>' + text((x_of(place), y + 20), factor.name, bold=True)
        for place, factor in enumerate(graph.factors)
    ]


def modules(graph: ProblemGraph, chosen: tuple[int, ...] | None) -> list[str]:
    """A box per component, and one for the actions at the end of the chain."""
    boxes = [
        box(at, name, "module", marked=chosen is not None and chosen[place] == number)
        for place, factor in enumerate(graph.factors)
        for number, (at, name) in enumerate(zip(column(graph, place), factor.components, strict=True))
    ]
    kind = "actions" if isinstance(graph.actions, Discrete) else "action values"
    return [*boxes, box(column(graph, len(graph.factors))[0], f"{graph.actions.size} {kind}", "actions")]


def chain(graph: ProblemGraph, chosen: tuple[int, ...] | None) -> list[str]:
    """A line from each module to each module, or the actions, at the next depth."""
    ends = None if chosen is None else (*chosen, 0)
    return [
        edge(left, right, marked=ends is not None and (ends[place], ends[place + 1]) == (i, j))
        for place in range(len(graph.factors))
        for i, left in enumerate(column(graph, place))
        for j, right in enumerate(column(graph, place + 1))
    ]


def views(graph: ProblemGraph) -> list[str]:
    """Below each factor, the parts of the state that its modules see."""
    lines, top = [], below_modules(graph)
    for place, factor in enumerate(graph.factors):
        x = x_of(place)
        lines.append(f'<path d="M{x:g},{top} l0,-18 m-5,6 l5,-6 l5,6" fill="none" stroke="{INK}"/>')
        for row, name in enumerate(factor.sees):
            shape = "x".join(str(n) for part in graph.state if part.name == name for n in part.shape)
            lines.append(box((x, top + HEIGHT / 2 + row * ROW), f"state: {name} {shape}", "state"))
    return lines


def below_modules(graph: ProblemGraph) -> int:
    """Where the row of state parts begins."""
    return TOP + max(graph.shape) * ROW + 26


def x_of(place: int) -> float:
    """The centre of a column."""
    return MARGIN + WIDTH / 2 + place * COLUMN


def column(graph: ProblemGraph, place: int) -> list[Point]:
    """The centres of a factor's modules, one below the other; of the actions, behind the last factor."""
    count = graph.shape[place] if place < len(graph.factors) else 1
    middle = TOP + (max(graph.shape) - 1) * ROW / 2 + HEIGHT / 2
    return [(x_of(place), middle + (n - (count - 1) / 2) * ROW) for n in range(count)]


def edge(start: Point, end: Point, *, marked: bool) -> str:
    """A curve from the right side of one box to the left side of another."""
    (x1, y1), (x2, y2) = start, end
    x1, x2 = x1 + WIDTH / 2, x2 - WIDTH / 2
    bend = (x2 - x1) / 2
    curve = f"M{x1:g},{y1:g} C{x1 + bend:g},{y1:g} {x2 - bend:g},{y2:g} {x2:g},{y2:g}"
    look = f'stroke="{PATH}" stroke-width="2.5"' if marked else f'stroke="{FAINT}" stroke-width="1"'
    return f'<path d="{curve}" fill="none" {look}/>'


def box(at: Point, label: str, kind: str, *, marked: bool = False) -> str:
    """A labelled box."""
    x, y = at[0] - WIDTH / 2, at[1] - HEIGHT / 2
    line = f'stroke="{PATH}" stroke-width="2.5"' if marked else f'stroke="{INK}" stroke-width="1"'
    shape = f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{FILLS[kind]}" {line}/>'
    return shape + text((at[0], at[1] + 4.5), label)


def text(at: Point, words: str, *, bold: bool = False) -> str:
    """Centred text."""
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{at[0]:g}" y="{at[1]:g}" text-anchor="middle" fill="{INK}"{weight}>{escape(words)}</text>'
