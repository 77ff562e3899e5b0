"""How far lives are that other processes live, as their run directories tell; and how long all of them still take."""

import contextlib
import heapq
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from modlife.errors import InputError
from modlife.runs.checkpoints import INDEX, Index
from modlife.runs.codec import from_json
from modlife.runs.config import LifeConfig
from modlife.runs.sealed import unsealed
from modlife.runs.store import MANIFEST, METRICS, RunDirectory, whole_lines

END = 2**16
"""Bytes at the end of the metrics that are looked at: the last lines."""
UNSAVED = 60.0
"""Seconds, at most, that a life is taken to have gone on since it was last saved."""
FIT = 5
"""Stages from which on the length of later ones is taken from how it grew; before, it is taken to be the mean."""
NEARLY = 0.95
"""A stage that takes longer than was thought has at least the rest of this share to go."""
ENOUGH = 2
"""Stages from which on they tell how long others take: the first has programs to compile."""
PHASES = {"structure": "search", "curve": "online", "offline": "offline", "evaluation": "evaluation"}


@dataclass(frozen=True)
class Glimpse:
    """How far a life is."""

    stage: int = 0
    """Stages that have ended."""
    stages: int = 0
    phase: str = ""
    mean: float | None = None
    """The newest mean return."""
    share: float = 0.0
    """Of the steps of the stage at hand, those that were taken."""
    points: tuple[tuple[int, float], ...] = ()
    """Stages that had ended after so many seconds."""
    since: float = 0.0
    """Seconds since the last of them."""

    @property
    def spent(self) -> float:
        """Seconds since it began."""
        return (self.points[-1][1] if self.points else 0.0) + self.since

    @property
    def done(self) -> float:
        """The share that is done of its stages, by the environment steps that were taken online."""
        return min(self.stage + self.share, self.stages) / max(self.stages, 1)


def glimpse(path: Path, config: LifeConfig, *, runs: bool = True) -> Glimpse:
    """What a run directory tells now, of a life that `runs` or waits; what cannot be read tells nothing."""
    found = Glimpse(stages=len(config.stages.stages))
    with contextlib.suppress(InputError, OSError):
        found = replace(found, **saved(path, runs=runs))
    with contextlib.suppress(OSError):
        found = told(found, last_records(path / METRICS), config.steps)
    return found


def saved(path: Path, *, runs: bool) -> dict[str, Any]:
    """What checkpoints tell: when stages ended, and how long ago that is; a life that waits has stood still since."""
    checkpoints = RunDirectory(path).checkpoints
    every = [(number, timed(checkpoints.path(number) / INDEX)) for number in checkpoints.numbers()]
    known = [(number, *one) for number, one in every if one is not None]
    if not known:
        return {"since": age_of(path / MANIFEST) if runs else 0.0}
    points = tuple((stage, seconds) for _, stage, ended, seconds in known if ended)
    newest, stage, _, seconds = known[-1]
    begun = points[-1][1] if points else 0.0
    ago = age_of(checkpoints.path(newest)) if runs else 0.0
    return {"stage": stage, "points": points, "since": seconds - begun + ago}


def age_of(path: Path) -> float:
    """Seconds since a file was written, as far as its life is taken to have gone on."""
    return min(max(time.time() - path.stat().st_mtime, 0.0), UNSAVED)


@lru_cache(maxsize=10_000)
def timed(path: Path) -> tuple[int, bool, float] | None:
    """What a checkpoint, which never changes, tells: its stage, whether one had just ended, and seconds so far."""
    try:
        facts = from_json(Index, unsealed(path)).description
    except InputError:
        return None
    return facts.stage, facts.ended, sum(facts.wall_seconds.values())


def last_records(path: Path) -> list[dict[str, Any]]:
    """The last lines of the metrics that are whole, and tables."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        size = os.fstat(handle).st_size
        lines = whole_lines(os.pread(handle, END, max(size - END, 0)))[1 if size > END else 0 :]
    finally:
        os.close(handle)
    found = []
    for line in lines:
        with contextlib.suppress(ValueError, RecursionError):
            found.append(json.loads(line))
    return [one for one in found if isinstance(one, dict)]


def told(found: Glimpse, records: Iterable[Mapping[str, Any]], steps: int) -> Glimpse:
    """A glimpse with what the last lines of metrics tell."""
    for record in records:
        phase = PHASES.get(str(record.get("kind")), found.phase)
        taken, means = record.get("steps"), record.get("return")
        if phase == "online" and isinstance(taken, int):
            found = replace(found, share=min(taken / steps, 1.0) if record.get("stage") == found.stage else 0.0)
        if isinstance(means, list):
            numbers = [one for one in means if isinstance(one, int | float)]
            found = replace(found, mean=sum(numbers) / len(numbers) if numbers else found.mean)
        found = replace(found, phase=phase)
    return found


def seconds_left(one: Glimpse) -> float | None:
    """How long a life still takes, by how long its stages took: they may get longer, as there is more to rehearse.

    None before enough of them have ended.
    """
    if one.stage < min(ENOUGH, one.stages) or not one.points:
        return None
    future = later(lengths_of(one.points), range(one.stage + 1, one.stages + 1))
    return sum(future) - min(one.since, NEARLY * future[0]) if future else 0.0


def lengths_of(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Stages, each with its seconds; where only every second end is known, both have the half."""
    found, before = [], (0, 0.0)
    for stage, seconds in points:
        each = (seconds - before[1]) / max(stage - before[0], 1)
        found += [(number, each) for number in range(before[0] + 1, stage + 1)]
        before = (stage, seconds)
    return found


def later(lengths: Sequence[tuple[int, float]], numbers: Sequence[int]) -> list[float]:
    """Seconds that later stages take; the first had programs to compile, and is no measure if there are others."""
    usual = lengths[1:] or lengths
    mean = sum(seconds for _, seconds in usual) / len(usual)
    if len(usual) < FIT:
        return [mean] * len(numbers)
    middle = sum(stage for stage, _ in usual) / len(usual)
    spread = sum((stage - middle) ** 2 for stage, _ in usual)
    slope = sum((stage - middle) * (seconds - mean) for stage, seconds in usual) / spread
    return [mean + max(slope, 0.0) * (number - middle) for number in numbers]


def whole_seconds(one: Glimpse) -> float | None:
    """How long a life takes from its beginning to its end."""
    left = seconds_left(one)
    return None if left is None else one.spent + left


def all_left(running: Sequence[float], waiting: Sequence[float], at_once: int) -> float:
    """How long lives take that go on so many at once: each that waits begins where there is room first."""
    ends = [*running, *[0.0] * (at_once - len(running))]
    heapq.heapify(ends)
    for seconds in waiting:
        heapq.heappush(ends, heapq.heappop(ends) + seconds)
    return max(ends, default=0.0)
