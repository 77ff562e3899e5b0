"""Curricula: in which order, and in which groups, an agent meets tasks. Each follows from a seed alone."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from modlife.checks import check_range
from modlife.domains.graph import Factor, ProblemGraph
from modlife.errors import InputError
from modlife.registry import Table
from modlife.types import Task

T = TypeVar("T")


def paper_order(graph: ProblemGraph, *, count: int, seed: int, first: int | None = None) -> tuple[Task, ...]:
    """Tasks in random order, the first ones made of disjoint components.

    `first` is the number of modules per factor (by default, the components of the largest factor), so that each module
    starts on a component of its own. A factor with fewer components than that first shows each of them once, then
    repeats.
    """
    largest = max(graph.shape)
    disjoint = largest if first is None else first
    if not 0 <= disjoint <= largest:
        raise InputError(f"first = {disjoint}, but at most {largest} tasks can differ in a factor of '{graph.name}'.")
    check_range("tasks", count, 1, graph.task_count, why=f"in '{graph.name}'")
    return tuple(disjoint_first(graph, disjoint, generator("paper-order", seed))[:count])


def random_order(graph: ProblemGraph, *, count: int, seed: int, first: int | None = None) -> tuple[Task, ...]:
    """Tasks in random order, whatever they share."""
    check_range("tasks", count, 1, graph.task_count, why=f"in '{graph.name}'")
    return tuple(shuffled(graph.tasks, generator("random-order", seed))[:count])


def with_every_component(graph: ProblemGraph, *, count: int, seed: int, first: int | None = None) -> tuple[Task, ...]:
    """Random tasks in which every component occurs; all others are unseen combinations to test on."""
    check_range("tasks", count, max(graph.shape), graph.task_count, why="so that every component occurs")
    return tuple(disjoint_first(graph, max(graph.shape), generator("held-out", seed))[:count])


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


CURRICULA = Table(
    "curriculum",
    Order("paper", "one task after the other, the first ones with distinct components", paper_order),
    Order("random", "one task after the other in random order", random_order),
    Order("together", "all tasks at once, chosen so that every component occurs", with_every_component, together=True),
)
