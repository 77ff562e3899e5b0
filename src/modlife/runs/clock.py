"""What a life spends its time on."""

import resource
import sys
import time
from collections import defaultdict, deque
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

NONE: Mapping[str, float] = MappingProxyType({})
COMPILING = "/jax/core/compile/"
"""How the names of events begin that tell of programs being traced, lowered and compiled."""
MANY = 10_000
"""Events that are remembered."""


class Clock:
    """Seconds spent on each phase, on the wall and of the processor, over all the processes of a life."""

    def __init__(self, wall: Mapping[str, float] = NONE, cpu: Mapping[str, float] = NONE, peak: float = 0):
        self.wall, self.cpu = defaultdict(float, wall), defaultdict(float, cpu)
        self.before, self.peak_before = (time.perf_counter(), time.process_time()), peak
        self.compiled = compiled()

    def tick(self, phase: str) -> tuple[float, float]:
        """The time since the last tick was spent on a phase: seconds of work, and those in which it was compiled."""
        now, start = (time.perf_counter(), time.process_time()), self.before[0]
        self.wall[phase] += now[0] - start
        self.cpu[phase] += now[1] - self.before[1]
        self.before = now
        compiling = seconds_within(self.compiled, start)
        return now[0] - start - compiling, compiling

    @property
    def peak(self) -> float:
        """Most memory that a process of this life has held, in megabytes."""
        scale = 1 if sys.platform == "darwin" else 1024
        return max(self.peak_before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e6)


def rounded(seconds: Mapping[str, float], digits: int) -> dict[str, float]:
    """Seconds for a file."""
    return {phase: round(value, digits) for phase, value in seconds.items()}


@cache
def compiled() -> deque[tuple[float, float]]:
    """When JAX was compiling in this process, from its first clock on: the newest starts and ends, the newest last."""
    import jax

    spans: deque[tuple[float, float]] = deque(maxlen=MANY)

    def note(event: str, duration_secs: float, **_: Any) -> None:
        if event.startswith(COMPILING):
            now = time.perf_counter()
            spans.append((now - duration_secs, now))

    jax.monitoring.register_event_duration_secs_listener(note)
    return spans


def seconds_within(spans: deque[tuple[float, float]], start: float) -> float:
    """Seconds since a time that are in any of some spans, which may lie within one another; in the order of ends."""
    total, until = 0.0, float("inf")
    for first, last in reversed(tuple(spans)):  # other threads may compile
        if last <= start:
            break
        first, last = max(first, start), min(last, until)
        if first < last:
            total, until = total + last - first, first
    return total
