"""Lives that differ in nothing but the seed, and what figures call them: names that tell all groups apart."""

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from modlife.analysis.lives import FinishedLife, Row, colour
from modlife.runs.codec import flat

Lives = tuple[FinishedLife, ...]

LINES = ("-", "--", ":", "-.")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", "p", "*", "h", ">")
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "ooo", "---", "+++")
MARKS = 7
"""Markers on a long line, about."""
WAY = "search.search"
"""The option that chooses a way to search, which stands for the options of that way."""
LONGEST = 100
"""Letters of a label; one that would have to say more names a run instead."""


@dataclass(frozen=True)
class Group:
    """Lives that are alike, each with a seed of its own."""

    label: str
    lives: Lives
    place: int
    """How many of its agent's groups come after it; the last, with most tasks, is drawn plainly."""
    order: int = 0
    """Which of the agents it is of; markers and hatches tell agents apart for those who see no colours."""
    shade: str | None = None
    """A colour of its own, where that of the agent would say too little."""

    @property
    def agent(self) -> str:
        """Who learnt."""
        return self.lives[0].agent

    @property
    def tasks(self) -> int:
        """How many tasks were learnt."""
        return self.lives[0].tasks

    @property
    def colour(self) -> tuple[float, ...]:
        """Its own, or that of the agent, paler the more of its groups come after it."""
        from matplotlib.colors import to_rgb

        if self.shade is not None:
            return to_rgb(self.shade)
        strength = 0.3 + 0.7 * 0.8**self.place
        return tuple(1 - strength * (1 - part) for part in to_rgb(colour(self.agent)))

    @property
    def look(self) -> dict[str, Any]:
        """How its lines are drawn; where they meet, broken ones over whole ones."""
        line = LINES[self.place % len(LINES)]
        return {"color": self.colour, "linestyle": line, "zorder": 2 + self.place / 100}

    @property
    def marker(self) -> str:
        """What stands on its lines: that of the agent."""
        return MARKERS[self.order % len(MARKERS)]

    def marks(self, points: int) -> dict[str, Any]:
        """Some markers on a line of so many points, not in the same places as those of other agents."""
        apart = max(1, points // MARKS)
        return {"marker": self.marker, "ms": 4, "markevery": (self.order * apart // 5 % apart, apart)}

    @property
    def hatch(self) -> str:
        """How its bars are filled."""
        return HATCHES[(self.order + self.place) % len(HATCHES)]

    def told(self, seeds: int | None = None) -> str:
        """The label, with the number of seeds."""
        return f"{self.label}, {counted(len(self.lives) if seeds is None else seeds)}"

    def row(self, what: str, value: float, **more: Any) -> Row:
        """A line of a table: about all of its lives, unless it says otherwise."""
        about = {"tasks": self.tasks, "seeds": len(self.lives), "label": self.label, **more}
        return Row(what, self.agent, value=value, **about)


def counted(seeds: int) -> str:
    """How many seeds, in words."""
    return f"{seeds} seed{'s' if seeds != 1 else ''}"


def in_steps(steps: int) -> str:
    """A number of steps in words: as short as is exact."""
    return f"{steps // 1000}k steps" if steps % 1000 == 0 else f"{steps:,} steps"


def grouped(
    lives: Sequence[FinishedLife], usual: Callable[[FinishedLife], str], *, but: Collection[str] = ("seed",)
) -> list[Group]:
    """Lives whose whole config is the same but for some fields, by agent, tasks and steps, as they were given.

    `usual` is what a group is called; its label also names the consolidator and the way to search, where groups have
    different ones, and where that is not enough, what makes it different.
    """
    alike: dict[str, list[FinishedLife]] = {}
    for life in sorted(lives, key=lambda life: (life.agent, life.tasks, life.steps_per_task)):
        alike.setdefault(json.dumps(without(life.plan, but), sort_keys=True), []).append(life)
    kinds = [tuple(kind) for kind in alike.values()]
    labels, agents = [usual(kind[0]) for kind in kinds], [kind[0].agent for kind in kinds]
    labels = told_apart(kinds, with_ways(labels, [kind[0].consolidator or "" for kind in kinds]), but)
    searches = [flat(kind[0].plan).get(WAY) for kind in kinds]
    labels = with_ways(labels, [f"search {search}" if search else "" for search in searches])
    places = [agents[number + 1 :].count(agent) for number, agent in enumerate(agents)]
    orders = [list(dict.fromkeys(agents)).index(agent) for agent in agents]
    return [Group(*one) for one in zip(labels, kinds, places, orders, strict=True)]


def without(fields: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """All other fields."""
    return {name: value for name, value in fields.items() if name not in names}


def with_ways(labels: Sequence[str], ways: Sequence[str]) -> list[str]:
    """The labels; where lives do something in several ways, each with its own, unless it says that already."""
    if len({*ways} - {""}) < 2:
        return list(labels)
    told = [not way or re.search(rf"\b{re.escape(way)}\b", one) for one, way in zip(labels, ways, strict=True)]
    return [one if said else f"{one}, {way}" for one, way, said in zip(labels, ways, told, strict=True)]


def told_apart(kinds: Sequence[Lives], labels: Sequence[str], but: Collection[str]) -> list[str]:
    """The labels; where some are the same, with the options that differ between these."""
    found = list(labels)
    for name in set(labels):
        same = [number for number, one in enumerate(labels) if one == name]
        if len(same) > 1:
            texts = differences([flat(without(kinds[number][0].plan, but)) for number in same])
            short = len(set(texts)) == len(texts) and all(len(text) <= LONGEST for text in texts)
            for number, text in zip(same, texts, strict=True):
                found[number] = f"{name}, {text if short else f'as in {kinds[number][0].path}'}"
    return found


def differences(options: Sequence[dict[str, Any]]) -> list[str]:
    """For each of several sets of options, those that the others have otherwise or, if that says too little, lack.

    The way to search stands for its own options, if that says enough.
    """
    names = list(dict.fromkeys(name for each in options for name in each))
    differing = [name for name in names if len({json.dumps(each.get(name)) for each in options}) > 1]
    shared = [name for name in differing if all(name in each for each in options)]
    own = [name for name in shared if name.startswith("search.") and name != WAY] if WAY in shared else []
    for some in ([name for name in shared if name not in own], shared):
        short = [said(each, some) for each in options]
        if len(set(short)) == len(short):
            return short
    return [said(each, differing) for each in options]


def said(options: dict[str, Any], names: Sequence[str]) -> str:
    """Some options in words."""
    return ", ".join(in_words(name, options[name]) for name in names if name in options)


def in_words(name: str, value: Any) -> str:
    """An option in words."""
    words = {"steps": in_steps, "tasks": lambda tasks: f"{tasks} tasks"}
    text = " ".join(str(one) for one in value) if isinstance(value, list) else str(value)
    return words[name](value) if name in words else f"{'search' if name == WAY else name} {text}"


def over_seeds(curves: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error of curves, given with their steps, at the steps of the first, where all are known."""
    steps = curves[0][0]
    known = [curve if np.array_equal(own, steps) else at(steps, own, curve) for own, curve in curves]
    error = np.std(known, axis=0, ddof=1) / np.sqrt(len(known)) if len(known) > 1 else np.full(len(steps), np.nan)
    return np.mean(known, axis=0), error


def at(steps: np.ndarray, own: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """A curve at other steps than its own; outside of these it is not known."""
    return np.interp(steps, own, curve, left=np.nan, right=np.nan)
