"""What agents can tell of the work that is ahead of them, so that the time it takes can be foreseen.

Work is counted in units that mean as much time in any task of a life, for each phase its own.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from modlife.lifelong.agent import Agent, Facts
from modlife.types import Structure, Task

Work = Mapping[str, float]
"""By phase; one that is not named always takes as long."""
GRANTED = 8.0
"""Searched tasks, beside those that there were, of which it is taken for granted that they share modules by chance."""


def work_ahead(agent: Agent, facts: Facts, groups: Sequence[Sequence[Task]]) -> Sequence[Work]:
    """The work of learning each of some groups of tasks, the one in hand first; an agent need not have an `ahead`."""
    told = getattr(agent, "ahead", None)
    return told(facts, groups) if told else [{} for _ in groups]


def sharing_counts(
    structures: Sequence[Structure], first: int, last: int, sizes: Sequence[int], *, fresh: int
) -> list[int]:
    """For each of some tasks, how many share a module with it when it has been learnt, itself included.

    Where structures are not known yet: none while modules are fresh; then such a share of earlier tasks as searched
    ones had so far. Lives differ in it, and the components of their tasks do not tell how.
    """
    table = np.array(structures, int).reshape(len(structures), len(sizes))
    known = np.tril((table[:, None] == table).any(axis=2), -1).sum(axis=1)
    searched = known[fresh:] / np.arange(fresh, max(fresh, len(known)))
    share = (GRANTED * by_chance(sizes) + searched.sum()) / (GRANTED + len(searched))
    numbers = np.arange(len(known), last)
    coming = np.where(numbers < fresh, 0, np.rint(share * numbers))
    return [1 + int(count) for count in (*known, *coming)[first:last]]


def by_chance(sizes: Sequence[int]) -> float:
    """How probable it is that two structures share a module, if all are as probable."""
    return 1 - math.prod(1 - 1 / size for size in sizes)
