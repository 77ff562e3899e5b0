"""How modules serve tasks: whether structures are the true ones, how good searches are, how far modules are shared."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from modlife.errors import InputError
from modlife.metrics.scores import Scores


def adjusted_rand_index(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """How far two labellings of the same things group them alike, whatever the labels: 1 alike, 0 on average by chance.

    ARI = (S - E) / ((S_a + S_b) / 2 - E),   E = S_a S_b / C(n, 2)

    S: pairs of things that are together in both, S_a and S_b: in the one and in the other. Hubert and Arabie 1985. It
    can be negative; of labellings that are both one group, or both nothing but single things, it is 1.
    """
    if len(one) != len(other):
        raise InputError(f"Two labellings of the same things have {len(one)} and {len(other)} labels.")
    both = pairs(Counter(zip(one, other, strict=True)))
    first, second, every = pairs(Counter(one)), pairs(Counter(other)), len(one) * (len(one) - 1) / 2
    by_chance = first * second / every if every else 0.0
    most = (first + second) / 2
    return 1.0 if most == by_chance else (both - by_chance) / (most - by_chance)


def pairs(groups: Counter) -> float:
    """How many pairs of things are in the same group: Σ C(n, 2)."""
    return sum(count * (count - 1) / 2 for count in groups.values())


def structure_recovery(structures: Mapping[str, Sequence[int]]) -> dict[int, float]:
    """By factor, the adjusted Rand index of the modules that serve tasks and the tasks' true components.

    A task's name is one component per factor, with / between them: the i-th module should follow from the i-th one.
    """
    found: dict[int, tuple[list[str], list[int]]] = {}
    for task, structure in structures.items():
        if len(structure) != len(task.split("/")):
            raise InputError(f"{list(structure)} is no structure of '{task}'.")
        for factor, (component, module) in enumerate(zip(task.split("/"), structure, strict=True)):
            true, chosen = found.setdefault(factor, ([], []))
            true.append(component)
            chosen.append(module)
    return {factor: adjusted_rand_index(true, chosen) for factor, (true, chosen) in found.items()}


def tasks_per_module(structures: Mapping[str, Sequence[int]]) -> dict[tuple[int, int], int]:
    """How many tasks each module serves, by factor and module; modules that serve none are not told."""
    used = Counter((factor, one) for structure in structures.values() for factor, one in enumerate(structure))
    return dict(sorted(used.items()))


def regret(returns: Sequence[float], reached: float) -> float:
    """What a choice lacks to the best that there was: max(returns) - reached."""
    return max(returns) - reached


# The same of scores


def recovery(scores: Scores) -> Float[np.ndarray, " factor"]:
    """ARI_f of chosen modules and true components for each factor f; 1 is the true structure up to names."""
    return np.array(list(structure_recovery(scores.structures).values()))


def reuse(scores: Scores) -> Float[np.ndarray, " module"]:
    """The number of tasks that each used module serves."""
    return np.array(list(tasks_per_module(scores.structures).values()), float)


def search_regret(scores: Scores) -> Float[np.ndarray, " search"]:
    """max_s (return of s in the search) - return of the chosen structure in fresh episodes, for each search.

    The best of many noisy means is too high, and so is this: an upper bound. Where what searches chose was evaluated
    in the same fresh episodes, as scripts/compare_searches.py does, `regret` of those has no such bias.
    """
    return np.array([regret(one.returns, one.reached) for one in scores.searches.values()])


def search_share(scores: Scores) -> Float[np.ndarray, " search"]:
    """Environment steps of a search, over all steps of its task."""
    known = [
        (one.steps, scores.curves[task].steps[-1]) for task, one in scores.searches.items() if task in scores.curves
    ]
    return np.array([steps / every for steps, every in known])
