"""Curricula: what each promises, and that a seed settles it for ever."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modlife.domains import curricula
from modlife.domains.graph import Discrete, Factor, Part, ProblemGraph
from modlife.domains.grid2d.world import World
from modlife.errors import InputError
from modlife.runs.config import LifeConfig
from modlife.types import Task

GRID = World().graph
SEEDS = st.integers(0, 2**32)


SHAPES = st.lists(st.integers(1, 6), min_size=1, max_size=4)


def graph_of(shape: list[int]) -> ProblemGraph:
    factors = tuple(Factor(f"f{n}", tuple(f"c{c}" for c in range(count)), ("s",)) for n, count in enumerate(shape))
    return ProblemGraph("any", factors, (Part("s", (1,)),), Discrete(("a",)))


@given(SHAPES, SEEDS)
def test_the_papers_order_starts_disjoint_and_meets_every_task_once(shape: list[int], seed: int):
    graph = graph_of(shape)
    tasks = curricula.paper_order(graph, count=graph.task_count, seed=seed)
    assert sorted(tasks) == sorted(graph.tasks)
    for place, factor in enumerate(graph.factors):
        first = [task.components[place] for task in tasks[: len(factor.components)]]
        assert sorted(first) == sorted(factor.components)


@given(SHAPES, SEEDS, st.data())
def test_tasks_to_train_on_have_every_component_each_task_once(shape: list[int], seed: int, data: st.DataObject):
    graph = graph_of(shape)
    count = data.draw(st.integers(max(graph.shape), graph.task_count))
    tasks = curricula.with_every_component(graph, count=count, seed=seed)
    assert len(set(tasks)) == len(tasks) == count and set(tasks) <= set(graph.tasks)
    for place, factor in enumerate(graph.factors):
        assert {task.components[place] for task in tasks} == set(factor.components)


@pytest.mark.parametrize("order", curricula.CURRICULA.names)
def test_orders_of_one_seed_are_nested(order: str):
    small, large = (curricula.CURRICULA[order].tasks(GRID, count=count, seed=3, first=None) for count in (16, 48))
    assert large[:16] == small and len(large) == 48


def test_random_order_meets_every_task_once():
    assert sorted(curricula.random_order(GRID, count=64, seed=1)) == sorted(GRID.tasks)


def test_without_the_curriculum_first_tasks_do_share_components():
    shared = 0
    for seed in range(50):
        first = curricula.random_order(GRID, count=4, seed=seed)
        shared += any(len({task.components[place] for task in first}) < 4 for place in range(3))
    # Four random tasks are disjoint with probability (64 * 27 * 8 * 1) / (64 * 63 * 62 * 61) < 0.1 %.
    assert shared >= 49


def test_stages_are_one_task_each_or_all_together():
    one, together = (LifeConfig(agent=agent, tasks=5, steps=100_000) for agent in ("stl", "mtl"))
    assert one.stages.stages == tuple((task,) for task in one.chosen)
    assert together.stages.stages == (together.chosen,)
    grown = together.grown_to(8).grown_to(9)
    assert grown.stages.stages == (grown.chosen[:5], grown.chosen[5:8], grown.chosen[8:])


def test_seeds_settle_the_order_for_ever():
    """Recorded values: a change here changes every published life."""
    assert [str(task) for task in curricula.paper_order(GRID, count=6, seed=0)] == PAPER_ORDER_0
    assert [str(task) for task in curricula.random_order(GRID, count=3, seed=0)] == RANDOM_ORDER_0
    assert [str(task) for task in curricula.with_every_component(GRID, count=6, seed=0)] == HELD_OUT_0
    assert curricula.paper_order(GRID, count=64, seed=0) != curricula.paper_order(GRID, count=64, seed=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: curricula.paper_order(GRID, count=9, seed=0, first=5), "first = 5, but at most 4 tasks can differ"),
        (lambda: curricula.paper_order(GRID, count=65, seed=0), "tasks = 65, but it must be 1 to 64 in 'grid2d'."),
        (lambda: curricula.with_every_component(GRID, count=3, seed=0), "tasks = 3, but it must be 4 to 64 so that"),
        (lambda: curricula.with_every_component(GRID, count=65, seed=0), "tasks = 65, but it must be 4 to 64 so that"),
        (lambda: curricula.random_order(GRID, count=3, seed=-1), "seed = -1, but a seed is 0 or more."),
        (lambda: curricula.random_order(GRID, count=0, seed=0), "tasks = 0, but it must be 1 to 64 in 'grid2d'."),
    ],
)
def test_an_impossible_curriculum_is_refused(make, message: str):
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value).startswith(message)


def test_tasks_sort_and_hash_by_value():
    assert len({Task(("wall", "red", "dynamics-0")), Task(("wall", "red", "dynamics-0"))}) == 1


PAPER_ORDER_0 = [
    "floor/green/dynamics-0",
    "food/purple/dynamics-3",
    "wall/red/dynamics-1",
    "lava/blue/dynamics-2",
    "lava/red/dynamics-2",
    "lava/purple/dynamics-0",
]
RANDOM_ORDER_0 = ["lava/blue/dynamics-3", "floor/red/dynamics-3", "wall/green/dynamics-1"]
HELD_OUT_0 = [
    "wall/red/dynamics-3",
    "floor/purple/dynamics-1",
    "food/blue/dynamics-0",
    "lava/green/dynamics-2",
    "floor/blue/dynamics-3",
    "floor/green/dynamics-0",
]
