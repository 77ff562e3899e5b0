"""Which lives a command would live, and about how long that takes: what `--dry-run` says."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from modlife.checks import MOST_THREADS, check_count
from modlife.errors import plain
from modlife.timing import foreseen, took

if TYPE_CHECKING:
    from modlife.runs.many import Planned


def at_a_time(at_once: int | None) -> int:
    """Lives at a time: as many as is said, or as there are cores."""
    count = len(os.sched_getaffinity(0)) if at_once is None else at_once
    check_count("at_once", count, MOST_THREADS)
    return count


def tell_plan(lives: Sequence["Planned"], at_once: int | None, what: str) -> None:
    """A line for each life, and how long those take that have not ended."""
    from modlife.analysis.estimates import forecasts
    from modlife.runs.glimpses import all_left

    at_once, found = at_a_time(at_once), forecasts(lives)
    for one in found:
        about = f"took {took(one.seconds)}" if one.state == "ended" else foreseen(one.seconds)
        print(plain(f"{one.state:<6} {one.life.out}  ({about})"))
    left = [one.seconds for one in found if one.state != "ended"]
    ended = len(found) - len(left)
    print(plain(f"{what}: {len(found)} {'life' if len(found) == 1 else 'lives'}, {ended} of them ended"))
    if left:
        source = f"from the {ended} that ended" if ended else "from rates of a 2.8 GHz server core"
        print(f"{foreseen(all_left([], left, at_once))} with {at_once} at a time: an estimate, {source}")
