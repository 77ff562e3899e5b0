"""Curricula: what each promises, and that a seed settles it for ever."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modlife.domains import curricula
from modlife.domains.graph import Discrete, Factor, Part, ProblemGraph
from modlife.domains.grid2d.world import World
from modlife.errors import InputError
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
    tasks = curricula.paper_order(graph, seed=seed).tasks
    assert sorted(tasks) == sorted(graph.tasks)
    for place, factor in enumerate(graph.factors):
        first = [task.components[place] for task in tasks[: len(factor.components)]]
        assert sorted(first) == sorted(factor.components)


@given(SHAPES, SEEDS, st.data())
def test_a_split_trains_every_component_and_holds_out_the_rest(shape: list[int], seed: int, data: st.DataObject):
    graph = graph_of(shape)
    train = data.draw(st.integers(max(graph.shape), graph.task_count))
    split = curricula.held_out(graph, train=train, seed=seed)
    assert len(split.train) == train
    assert sorted(split.train + split.held_out) == sorted(graph.tasks)
    for place, factor in enumerate(graph.factors):
        assert {task.components[place] for task in split.train} == set(factor.components)


def test_training_sets_of_one_seed_are_nested():
    small = curricula.held_out(GRID, train=16, seed=3)
    large = curricula.held_out(GRID, train=48, seed=3)
    assert large.train[:16] == small.train


def test_random_order_meets_every_task_once_one_per_stage():
    curriculum = curricula.random_order(GRID, seed=1)
    assert sorted(curriculum.tasks) == sorted(GRID.tasks)
    assert all(len(stage) == 1 for stage in curriculum.stages)


def test_without_the_curriculum_first_tasks_do_share_components():
    shared = 0
    for seed in range(50):
        first = curricula.random_order(GRID, seed=seed).tasks[:4]
        shared += any(len({task.components[place] for task in first}) < 4 for place in range(3))
    # Four random tasks are disjoint with probability (64 * 27 * 8 * 1) / (64 * 63 * 62 * 61) < 0.1 %.
    assert shared >= 49


def test_multi_task_is_one_stage():
    assert curricula.multi_task(GRID.tasks).stages == (GRID.tasks,)


def test_seeds_settle_the_order_for_ever():
    """Recorded values: a change here changes every published life."""
    assert [str(task) for task in curricula.paper_order(GRID, seed=0).tasks[:6]] == PAPER_ORDER_0
    assert [str(task) for task in curricula.random_order(GRID, seed=0).tasks[:3]] == RANDOM_ORDER_0
    assert [str(task) for task in curricula.held_out(GRID, train=6, seed=0).train] == HELD_OUT_0
    assert curricula.paper_order(GRID, seed=0) != curricula.paper_order(GRID, seed=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: curricula.paper_order(GRID, seed=0, disjoint=5), "disjoint = 5, but at most 4 tasks can differ"),
        (lambda: curricula.held_out(GRID, train=3, seed=0), "train = 3 tasks, but a split of 'grid2d' needs 4"),
        (lambda: curricula.held_out(GRID, train=65, seed=0), "train = 65 tasks, but a split of 'grid2d' needs 4"),
        (lambda: curricula.random_order(GRID, seed=-1), "seed = -1, but a seed is 0 or more."),
        (lambda: curricula.multi_task([]), "A multi-task curriculum needs at least one task."),
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
