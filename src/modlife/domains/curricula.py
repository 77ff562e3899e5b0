"""Curricula: in which order, and in which groups, an agent meets tasks. Each follows from a seed alone."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from modlife.checks import check_range
from modlife.domains.graph import Factor, ProblemGraph
from modlife.errors import InputError
from modlife.registry import Table
from modlife.types import Curriculum, Split, Task

T = TypeVar("T")


def paper_order(graph: ProblemGraph, *, seed: int, disjoint: int | None = None) -> Curriculum:
    """All tasks in random order, the first `disjoint` of them made of disjoint components.

    `disjoint` is the number of modules per factor (by default, the components of the largest factor), so that
    each module starts on a component of its own. A factor with fewer components than that first shows each of
    them once, then repeats.
    """
    largest = max(graph.shape)
    count = largest if disjoint is None else disjoint
    if not 0 <= count <= largest:
        raise InputError(f"disjoint = {count}, but at most {largest} tasks can differ in a factor of '{graph.name}'.")
    return lifelong(f"paper-order, seed {seed}", disjoint_first(graph, count, generator("paper-order", seed)))


def random_order(graph: ProblemGraph, *, seed: int) -> Curriculum:
    """All tasks in random order, whatever they share."""
    return lifelong(f"random-order, seed {seed}", shuffled(graph.tasks, generator("random-order", seed)))


def multi_task(tasks: Sequence[Task]) -> Curriculum:
    """All of these tasks at once, in one stage."""
    if not tasks:
        raise InputError("A multi-task curriculum needs at least one task.")
    return Curriculum(f"multi-task, {len(tasks)} tasks", (tuple(tasks),))


def lifelong(name: str, tasks: Sequence[Task]) -> Curriculum:
    """One task per stage, in this order."""
    return Curriculum(name, tuple((task,) for task in tasks))


def held_out(graph: ProblemGraph, *, train: int, seed: int) -> Split:
    """`train` random tasks in which every component occurs, nested for one seed; and all others, to test on unseen."""
    needed = max(graph.shape)
    if not needed <= train <= graph.task_count:
        raise InputError(
            f"train = {train} tasks, but a split of '{graph.name}' needs {needed} (so that every component occurs) "
            f"to {graph.task_count} (all there are)."
        )
    order = disjoint_first(graph, needed, generator("held-out", seed))
    return Split(train=tuple(order[:train]), held_out=tuple(order[train:]))


def disjoint_first(graph: ProblemGraph, count: int, rng: random.Random) -> list[Task]:
    """All tasks in random order, but first `count` that share no component as long as their factors have fresh ones."""
    columns = [fresh_components(factor, count, rng) for factor in graph.factors]
    first = [Task(tuple(names)) for names in zip(*columns, strict=True)]
    return [*first, *(task for task in shuffled(graph.tasks, rng) if task not in first)]


def fresh_components(factor: Factor, count: int, rng: random.Random) -> list[str]:
    """`count` components of a factor, all different until each was there once."""
    rounds = -(-count // len(factor.components))
    return [name for _ in range(rounds) for name in shuffled(factor.components, rng)][:count]


def shuffled(items: Sequence[T], rng: random.Random) -> list[T]:
    """The items in random order."""
    # Not by `shuffle`: only `random()` is promised to be the same in every Python version.
    places = sorted(range(len(items)), key=[rng.random() for _ in items].__getitem__)
    return [items[place] for place in places]


def generator(purpose: str, seed: int) -> random.Random:
    """A generator of its own for each purpose, so that curricula of one seed do not repeat each other."""
    if seed < 0:
        raise InputError(f"seed = {seed}, but a seed is 0 or more.")
    return random.Random(f"{purpose} {seed}")


@dataclass(frozen=True)
class Order:
    """A curriculum by name. Its orders of one seed are nested: a longer one begins with a shorter one."""

    name: str
    about: str
    tasks: Callable[..., tuple[Task, ...]]
    """Takes a graph, how many tasks (`count`), a `seed`, and how many first tasks should be disjoint (`first`)."""
    together: bool = False
    """Whether all tasks are one stage."""


def first_of_paper_order(graph: ProblemGraph, *, count: int, seed: int, first: int | None) -> tuple[Task, ...]:
    """The beginning of the paper's order."""
    return paper_order(graph, seed=seed, disjoint=first).tasks[: checked_count(graph, count)]


def first_of_random_order(graph: ProblemGraph, *, count: int, seed: int, first: int | None) -> tuple[Task, ...]:
    """The beginning of a random order."""
    return random_order(graph, seed=seed).tasks[: checked_count(graph, count)]


def with_every_component(graph: ProblemGraph, *, count: int, seed: int, first: int | None) -> tuple[Task, ...]:
    """Training tasks in which every component occurs."""
    check_range("tasks", count, max(graph.shape), graph.task_count, why="so that every component occurs")
    return held_out(graph, train=count, seed=seed).train


def checked_count(graph: ProblemGraph, count: int) -> int:
    """A number of tasks that there are."""
    check_range("tasks", count, 1, graph.task_count, why=f"in '{graph.name}'")
    return count


CURRICULA = Table(
    "curriculum",
    Order("paper", "one task after the other, the first ones with distinct components", first_of_paper_order),
    Order("random", "one task after the other in random order", first_of_random_order),
    Order("together", "all tasks at once, chosen so that every component occurs", with_every_component, together=True),
)
