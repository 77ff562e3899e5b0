"""`modlife list`."""

import json
from pathlib import Path
from typing import Annotated, Literal

import tyro

from modlife.domains.graph import Discrete, ProblemGraph
from modlife.domains.grid2d.spec import World
from modlife.domains.robot.spec import INSTALL, RobotWorld, installed
from modlife.experiments.config import AGENTS


def run(
    world: World,
    domain: Literal["grid2d", "robot"] = "grid2d",
    picture: Path | None = None,
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> None:
    """Show the domains (factors, components, tasks) and the agents.

    A task is written as one component per factor with slashes between, for example wall/red/dynamics-2.

    Args:
        world: Which 2-D world; the defaults are the paper's.
        domain: Which domain to show.
        picture: Also draw every task into this PNG file.
        as_json: Print JSON for programs instead of text.
    """
    graph = world.graph if domain == "grid2d" else RobotWorld().graph
    print(json.dumps(as_dict(graph)) if as_json else as_text(graph))
    if picture:
        draw(world, domain, picture)
        if not as_json:
            print(f"\npicture of all tasks: {picture}")


def draw(world: World, domain: str, picture: Path) -> None:
    """Draws every task of a domain."""
    if domain == "robot":
        from modlife.cli.robot_drawing import draw_robot_tasks

        draw_robot_tasks(RobotWorld(), picture)
        return
    from modlife.runtime import start_jax

    start_jax()
    from modlife.cli.drawing import draw_tasks

    draw_tasks(world, picture)


def as_dict(graph: ProblemGraph) -> dict[str, object]:
    """The domain for programs."""
    return {
        "domain": graph.name,
        "factors": {factor.name: list(factor.components) for factor in graph.factors},
        "sees": {factor.name: list(factor.sees) for factor in graph.factors},
        "state": {part.name: list(part.shape) for part in graph.state},
        "actions": graph.actions.size,
        "tasks": [str(task) for task in graph.tasks],
        "agents": list(AGENTS),
        "domains": {"grid2d": {"installed": True}, "robot": {"installed": installed(), "install": INSTALL}},
    }


def as_text(graph: ProblemGraph) -> str:
    """The domain for people."""
    product = " x ".join(str(count) for count in graph.shape)
    actions = (
        f"{graph.actions.size} actions"
        if isinstance(graph.actions, Discrete)
        else f"{graph.actions.size} numbers to act"
    )
    lines = [f"domain {graph.name}: {product} = {graph.task_count} tasks, {actions}", "", "factors:"]
    lines += [f"  {factor.name:<9} {', '.join(factor.components)}" for factor in graph.factors]
    names = [str(task) for task in graph.tasks]
    width = max(map(len, names)) + 2
    columns = max(1, 100 // width)
    lines += ["", "tasks:"]
    for start in range(0, len(names), columns):
        lines.append("  " + "".join(f"{name:<{width}}" for name in names[start : start + columns]).rstrip())
    lines += ["", "domains:", "  grid2d    the discrete 2-D world: modlife list"]
    lines += [f"  robot     arms that lift objects, on MuJoCo: modlife list --domain robot ({robot_state()})"]
    lines += ["", "agents:"]
    lines += [f"  {name:<15} {what}" for name, what in AGENTS.items()]
    return "\n".join(lines)


def robot_state() -> str:
    """Whether the robot domain can be used, and how to get it."""
    return "installed" if installed() else f"not installed: {INSTALL}"
