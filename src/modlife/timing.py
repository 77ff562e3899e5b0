"""How fast something runs on this machine."""

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
