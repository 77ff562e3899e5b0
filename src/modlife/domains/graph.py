"""The problem graph: factors in order, their components, and what each factor's modules see.

Section 3 of the paper: tasks are combinations of shared subproblems. A *factor* is one depth of the module
chain, a *component* one choice for it, a *task* one component per factor. A policy is a path through the graph:
from the state, through one module per factor, to the actions.
"""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from modlife.checks import check_positive
from modlife.errors import InputError, unknown
from modlife.types import Task

PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Part:
    """A named part of the state."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Factor:
    """One depth of the module chain."""

    name: str
    components: tuple[str, ...]
    """What may be chosen; a component's place here is its index."""
    sees: tuple[str, ...]
    """The parts of the state that this factor's modules take as input."""


@dataclass(frozen=True)
class Discrete:
    """A finite set of actions."""

    names: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many actions there are."""
        return len(self.names)


@dataclass(frozen=True)
class Continuous:
    """A vector of real numbers, each within the same bounds."""

    size: int
    low: float = -1.0
    high: float = 1.0


@dataclass(frozen=True)
class ProblemGraph:
    """A domain's factors in chain order, the parts of its state, and its actions."""

    name: str
    factors: tuple[Factor, ...]
    state: tuple[Part, ...]
    actions: Discrete | Continuous
    highest_return: float = 1.0
    """The most that an episode can return: what is much or little is a share of it."""

    def __post_init__(self) -> None:
        check_names("domain", [self.name])
        check_names("factor", [factor.name for factor in self.factors])
        check_names("part of the state", [part.name for part in self.state])
        for factor in self.factors:
            check_names(f"component of factor '{factor.name}'", factor.components)
            check_view(factor, self.state)
        check_actions(self.actions)
        check_positive(self, "highest_return", most=1e9)
        ignored = {part.name for part in self.state} - {name for factor in self.factors for name in factor.sees}
        if ignored:
            raise InputError(f"No factor sees {sorted(ignored)} of the state; let one see it or leave it out.")

    @property
    def shape(self) -> tuple[int, ...]:
        """How many components each factor has."""
        return tuple(len(factor.components) for factor in self.factors)

    @property
    def task_count(self) -> int:
        """How many tasks the graph has: one per combination of components."""
        return math.prod(self.shape)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Every task, the last factor changing fastest."""
        return tuple(Task(names) for names in itertools.product(*(factor.components for factor in self.factors)))

    def indices(self, task: Task) -> tuple[int, ...]:
        """The task's component index in each factor: the structure that the graph itself gives."""
        if len(task.components) != len(self.factors):
            raise InputError(
                f"Task '{task}' has {len(task.components)} components, but '{self.name}' has "
                f"{len(self.factors)} factors: {'/'.join(factor.name for factor in self.factors)}."
            )
        return tuple(component_index(factor, name) for factor, name in zip(self.factors, task.components, strict=True))

    def named(self, indices: Sequence[int]) -> Task:
        """The task with these component indices."""
        return Task(tuple(factor.components[index] for factor, index in zip(self.factors, indices, strict=True)))

    def parse(self, text: str) -> Task:
        """The task written as its components with slashes between, for example `wall/red/dynamics-2`."""
        task = Task(tuple(text.split("/")))
        self.indices(task)
        return task

    def task(self, choice: Mapping[str, str | int]) -> Task:
        """The task with a component, or its index, named for each factor."""
        names = [factor.name for factor in self.factors]
        for name in choice:
            if name not in names:
                raise unknown("factor", name, names)
        missing = [name for name in names if name not in choice]
        if missing:
            raise InputError(f"A task of '{self.name}' needs a component for {missing}.")
        return self.named([component_index(factor, choice[factor.name]) for factor in self.factors])


def component_index(factor: Factor, choice: str | int) -> int:
    """The index of a component of a factor, given by its name or the index itself."""
    known = factor.components
    if isinstance(choice, str):
        if choice not in known:
            raise unknown(factor.name, choice, known)
        return known.index(choice)
    if not 0 <= choice < len(known):
        raise InputError(
            f"No {factor.name} {choice}: it has {len(known)} components, numbered from 0: {', '.join(known)}."
        )
    return choice


def check_names(kind: str, names: tuple[str, ...] | list[str]) -> None:
    """Names exist, differ, and can stand in a task's name, a file name and a command."""
    if not names:
        raise InputError(f"A problem graph needs at least one {kind}.")
    for name in names:
        if not PLAIN_NAME.fullmatch(name):
            raise InputError(f"The {kind} name '{name}' may hold only letters, digits, '-', '_' and '.'.")
        if names.count(name) > 1:
            raise InputError(f"The {kind} '{name}' stands twice; names must differ.")


def check_view(factor: Factor, state: tuple[Part, ...]) -> None:
    """A factor sees something, and only what exists."""
    if not factor.sees:
        raise InputError(f"Factor '{factor.name}' sees no part of the state; name at least one.")
    for name in factor.sees:
        if name not in (part.name for part in state):
            raise unknown("part of the state", name, [part.name for part in state])


def check_actions(actions: Discrete | Continuous) -> None:
    """There is something to choose."""
    if isinstance(actions, Discrete):
        check_names("action", actions.names)
    elif actions.size < 1 or not actions.low < actions.high:
        raise InputError(f"Continuous actions need a size of 1 or more and low < high; got {actions}.")
