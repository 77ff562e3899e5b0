"""What a life spends its time on."""

import resource
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType

NONE: Mapping[str, float] = MappingProxyType({})


class Clock:
    """Seconds spent on each phase, on the wall and of the processor, over all the processes of a life."""

    def __init__(self, wall: Mapping[str, float] = NONE, cpu: Mapping[str, float] = NONE, peak: float = 0):
        self.wall, self.cpu = defaultdict(float, wall), defaultdict(float, cpu)
        self.before, self.peak_before = (time.perf_counter(), time.process_time()), peak

    def tick(self, phase: str) -> None:
        """The time since the last tick was spent on a phase."""
        now = (time.perf_counter(), time.process_time())
        self.wall[phase] += now[0] - self.before[0]
        self.cpu[phase] += now[1] - self.before[1]
        self.before = now

    @property
    def peak(self) -> float:
        """Most memory that a process of this life has held, in megabytes."""
        scale = 1 if sys.platform == "darwin" else 1024
        return max(self.peak_before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e6)


def rounded(seconds: Mapping[str, float], digits: int) -> dict[str, float]:
    """Seconds for a file."""
    return {phase: round(value, digits) for phase, value in seconds.items()}
