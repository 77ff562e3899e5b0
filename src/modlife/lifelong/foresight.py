"""What agents can tell of the work that is ahead of them, so that the time it takes can be foreseen.

Work is counted in units that mean as much time in any task of a life, for each phase its own.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from modlife.lifelong.agent import Agent, Facts
from modlife.types import Structure, Task

Work = Mapping[str, float]
"""By phase; one that is not named always takes as long."""
CROWDED = 1.1
"""How many times as many tasks share a module as share a component, about: searches find good modules again."""


def work_ahead(agent: Agent, facts: Facts, groups: Sequence[Sequence[Task]]) -> Sequence[Work]:
    """The work of learning each of some groups of tasks, the one in hand first; an agent need not have an `ahead`."""
    told = getattr(agent, "ahead", None)
    return told(facts, groups) if told else [{} for _ in groups]


def sharing_counts(structures: Sequence[Structure], first: int, *, known: int) -> list[int]:
    """For each task from a number on, how many share a module with it when it has been learnt, itself included.

    Beyond the structures that are known, those that come of a search share more than what is foreseen of them.
    """
    table, counts = np.array(structures).reshape(len(structures), -1), []
    for number in range(first, len(table)):
        shares = (table[:number] == table[number]).any(axis=1)
        count = 1 + shares[:known].sum() + CROWDED * shares[known:].sum()
        counts.append(min(number + 1, round(float(count))))
    return counts


def foreseen_structures(
    known: Sequence[Structure], tasks: Sequence[Task], sizes: Sequence[int], *, fresh: int
) -> list[Structure]:
    """The structures of tasks: those known, and for the others fresh modules, then those made for their components."""
    found, homes, taken = list(known), dict[tuple[int, str], int](), set[tuple[int, int]]()
    for number, task in enumerate(tasks):
        if number >= len(found):
            usual = [number if number < fresh else number % size for size in sizes]
            made = [homes.get(one, usual[one[0]]) for one in enumerate(task.components)]
            found.append(tuple(usual if number < fresh else made))
        for depth, (module, component) in enumerate(zip(found[number], task.components, strict=True)):
            if (depth, module) not in taken:
                taken.add((depth, module))
                homes.setdefault((depth, component), module)
    return found
