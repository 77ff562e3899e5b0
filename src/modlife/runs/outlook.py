"""How long the rest of a life will take: from what is still to do, and how long what was done took.

A life is a row of parts: phases of learning and evaluations. Each has an amount of work in units of its own, foreseen
before it begins and known better while it goes on. What is alike, and recent, tells most about how long a unit takes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from jaxtyping import Float

FADES = 0.9
"""How much less what was done for the task before tells than what was done for this one: machines change speed."""
ALIKE = 6
"""How much more a part tells of one with as much work: (less / more) to this power."""
BEGUN = 0.1
"""What less than this share is done of tells nothing yet, where there is more: a beginning takes its own time."""
ODD = 2.5
"""Paces that differ from the usual one by more than this factor are not believed: something else took the time."""
MORE = 1.2
"""A part is unlike all before if it has more than this many times the work."""
LIKE: Mapping[str, tuple[str, float]] = MappingProxyType(
    {"final evaluation": ("evaluation", 1.0), "evaluation": ("online", 0.1)}
)
"""For a phase that was never seen: another one, and how long its unit takes against one of that."""


@dataclass(frozen=True)
class Part:
    """Something that is still to do."""

    phase: str
    work: float
    share: float = 1.0
    """How much of it is left."""


@dataclass(frozen=True)
class Spell:
    """Something that was done."""

    phase: str
    number: int
    """For which task, or group of tasks, in the order of a life."""
    seconds: float
    work: float
    """Of the whole part; ..."""
    share: float = 1.0
    """... and how much of that was done."""
    compiling: float = 0.0
    """Seconds, beside those, in which programs were compiled."""


def seconds_left(spells: Sequence[Spell], parts: Sequence[Part]) -> float | None:
    """Seconds that parts will take, by what is known of those that were done; None if nothing is known of one."""
    total = 0.0
    for phase in {part.phase for part in parts}:
        here = [part for part in parts if part.phase == phase and part.work * part.share > 0]
        if not here:
            continue
        work = np.array([part.work for part in here])
        found = paces(spells, phase, work)
        if found is None:
            return None
        total += float((found * work) @ np.array([part.share for part in here]))
    return total


def compiling_left(spells: Sequence[Spell], parts: Sequence[Part]) -> float:
    """Seconds that compiling will take: as long as the last time that there was more to do than ever before, if again.

    The first tasks have nothing in common, for example: how to learn from others is compiled when the first of them is.
    """
    total = 0.0
    for phase in {part.phase for part in parts}:
        own = [one for one in spells if one.phase == phase]
        most = took = 0.0
        for one in own or [one for one in spells if one.phase == LIKE.get(phase, ("",))[0]]:
            if one.work > MORE * most:
                most, took = one.work, one.compiling
        if any(part.phase == phase and part.work > MORE * most for part in parts):
            total += took
    return total


def paces(spells: Sequence[Spell], phase: str, work: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"] | None:
    """Seconds per unit of parts of a phase with so much work: the mean over what is alike; None if none is known."""
    own = [one for one in spells if one.phase == phase and one.share * one.work > 0]
    if not own:
        other, factor = LIKE.get(phase, ("", 0.0))
        found = paces(spells, other, work) if other else None
        return None if found is None else factor * found
    own = [one for one in own if one.share >= BEGUN] or own
    done = np.array([one.work for one in own])
    share = np.array([one.share for one in own])
    pace = np.array([one.seconds for one in own]) / (done * share)
    age = own[-1].number - np.array([one.number for one in own])
    alike = (np.minimum.outer(work, done) / np.maximum.outer(work, done)) ** ALIKE
    weights = alike * share * FADES**age
    usual = middle(pace, weights)[:, None]
    believed = weights * ((pace <= ODD * usual) & (pace >= usual / ODD))
    return (believed * pace).sum(axis=1) / believed.sum(axis=1)


def middle(values: Float[np.ndarray, " n"], weights: Float[np.ndarray, "m n"]) -> Float[np.ndarray, " m"]:
    """Weighted medians: half of the weight is on values up to them."""
    order = np.argsort(values)
    sums = np.cumsum(weights[:, order], axis=1)
    return values[order][(sums < sums[:, -1:] / 2).sum(axis=1)]
