"""How fast something runs on this machine, and times in words."""

import statistics
import time
from collections.abc import Callable
from typing import Any

Record = dict[str, Any]
"""A line that `modlife bench` prints."""

REPEATS = 5
"""A case is timed in this many pieces; the median counts."""


def rate(run: Callable[[], object], steps: int, *, seconds: float) -> float:
    """Steps per second of a function that does `steps` of them: the median over pieces of equal length."""
    run()  # compiles
    rates = []
    for _ in range(REPEATS):
        start, calls = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - start) < seconds / REPEATS:
            run()
            calls += 1
        rates.append(steps * calls / elapsed)
    return statistics.median(rates)


def took(seconds: float) -> str:
    """How long something took, as exactly as it is long."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    return f"{hours} h {minutes_left} min" if hours else f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def foreseen(seconds: float) -> str:
    """How long something will take, no more precisely than that can be known."""
    if seconds < 5:
        return "a few seconds"
    if seconds < 55:
        return f"about {5 * round(seconds / 5)} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"about {minutes if minutes < 20 else 5 * round(minutes / 5)} min"
    hours = seconds / 3600
    if hours < 48:
        return f"about {hours:.1f} h" if hours < 10 else f"about {hours:.0f} h"
    return f"about {hours / 24:.0f} days"
