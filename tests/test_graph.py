"""The problem graph: what it holds, and what it refuses."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from modlife.domains.graph import Continuous, Discrete, Factor, Part, ProblemGraph
from modlife.domains.graph_svg import PATH, graph_svg
from modlife.domains.grid2d.world import World
from modlife.errors import InputError
from modlife.types import Task

ROBOT = ProblemGraph(
    name="robot",
    factors=(
        Factor("obstacle", ("none", "wall", "door"), sees=("obstacle",)),
        Factor("object", ("can", "milk", "cereal", "bread"), sees=("object",)),
        Factor("robot", ("Sawyer", "IIWA", "Gen3", "Panda"), sees=("robot", "goal")),
    ),
    state=(Part("obstacle", (14,)), Part("object", (14,)), Part("robot", (32,)), Part("goal", (17,))),
    actions=Continuous(8),
)


def test_the_paper_has_64_and_48_tasks():
    assert World().graph.task_count == len(set(World().graph.tasks)) == 64
    assert ROBOT.task_count == len(set(ROBOT.tasks)) == 48


def test_indices_are_places_among_the_components():
    graph = World().graph
    assert graph.indices(graph.parse("food/purple/dynamics-1")) == (2, 3, 1)
    assert [graph.indices(task) for task in graph.tasks] == [
        (a, b, c) for a in range(4) for b in range(4) for c in range(4)
    ]


def test_a_task_by_names_and_by_numbers_is_the_same():
    graph = World().graph
    by_name = graph.task({"static": "lava", "target": "blue", "dynamics": "dynamics-3"})
    assert by_name == graph.task({"dynamics": 3, "target": 2, "static": 3}) == Task(("lava", "blue", "dynamics-3"))
    assert str(by_name) == "lava/blue/dynamics-3"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wall/rad/dynamics-0", "No target 'rad'. Did you mean 'red'? Known: red, green, blue, purple."),
        ("wall/red", "Task 'wall/red' has 2 components, but 'grid2d' has 3 factors: static/target/dynamics."),
        ("wall/red/dynamics-4", "No dynamics 'dynamics-4'. Did you mean 'dynamics-3'?"),
    ],
)
def test_an_unknown_task_is_answered_with_what_is_known(text: str, message: str):
    with pytest.raises(InputError) as caught:
        World().graph.parse(text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"static": "wall", "target": 4, "dynamics": 0}, "No target 4: it has 4 components, numbered from 0"),
        ({"static": "wall", "target": "red"}, "A task of 'grid2d' needs a component for ['dynamics']."),
        ({"statik": "wall"}, "No factor 'statik'. Did you mean 'static'?"),
    ],
)
def test_a_wrong_choice_of_components_is_refused(choice: dict[str, str | int], message: str):
    with pytest.raises(InputError) as caught:
        World().graph.task(choice)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"factors": ()}, "A problem graph needs at least one factor."),
        ({"factors": (ROBOT.factors[0],) * 2}, "The factor 'obstacle' stands twice; names must differ."),
        ({"factors": (Factor("a/b", ("x",), sees=("goal",)),)}, "The factor name 'a/b' may hold only letters"),
        (
            {"factors": (Factor("f", (), sees=("goal",)),)},
            "A problem graph needs at least one component of factor 'f'.",
        ),
        ({"factors": (Factor("f", ("x",), sees=()),)}, "Factor 'f' sees no part of the state"),
        ({"factors": (Factor("f", ("x",), sees=("gaol",)),)}, "No part of the state 'gaol'. Did you mean 'goal'?"),
        ({"factors": ROBOT.factors[1:]}, "No factor sees ['obstacle'] of the state; let one see it or leave it out."),
        ({"actions": Discrete(())}, "A problem graph needs at least one action."),
        ({"actions": Continuous(8, low=1, high=1)}, "Continuous actions need a size of 1 or more and low < high"),
    ],
)
def test_a_graph_that_makes_no_sense_is_refused(change: dict[str, object], message: str):
    with pytest.raises(InputError) as caught:
        replace(ROBOT, **change)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("graph", [World().graph, ROBOT], ids=["grid2d", "robot"])
def test_the_picture_shows_every_part_and_marks_one_path(graph: ProblemGraph):
    svg = graph_svg(graph, task=graph.tasks[-1])
    words = " ".join("".join(node.itertext()) for node in ElementTree.fromstring(svg))
    for factor in graph.factors:
        for name in (factor.name, *factor.components, *factor.sees):
            assert name in words
    depth = len(graph.factors)
    # One marked box and one marked line per module of the path.
    assert svg.count(PATH) == 2 * depth
    assert PATH not in graph_svg(graph)
