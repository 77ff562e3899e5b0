"""`modlife bench`."""

import json
from dataclasses import dataclass
from typing import Literal

import tyro

from modlife.checks import MOST_THREADS, check_count, check_positive
from modlife.domains.domain import DOMAINS
from modlife.errors import InputError


@dataclass(frozen=True)
class Options:
    """Measure speed on this machine and print one JSON object a line.

    `env` steps a domain with random actions, observations and restarts included, at batch sizes 1 to 4096, on one
    thread and on all; beside it what the domain is compared with: Farama's minigrid for the 2-D world, if it is
    installed, and MuJoCo's physics alone for robots. `ppo` trains a single-task agent: one life on one thread, one life
    on all, and as many lives side by side as there are cores. `search` tries all structures for 10 episodes each.
    `offline` learns from the replay of 1 to 37 tasks, as the paper does and with bounded rehearsal. `life` lives a
    small life of comp-search, 6 tasks of 100,000 steps, and tells the seconds of each phase. `agents` tells the online
    rate of every agent in the table, beside old tasks, and what share it is of comp-struct's. `sweep` lives 8 tiny
    lives one after the other and then as many at once as there are cores, and tells how many times as fast that is.
    """

    what: tyro.conf.Positional[Literal["env", "ppo", "search", "offline", "life", "agents", "sweep"]]
    """What to measure."""
    domain: str = "grid2d"
    """In which domain."""
    threads: int | None = None
    """Only this number of threads, or for `sweep` of lives at once; by default one and all for `env`, `ppo` and
    `offline`, one for `search`, `life` and `agents`."""
    seconds: float = 1.0
    """How long to measure each case."""


def run(options: Options) -> None:
    """Measures."""
    threads, seconds = options.threads, options.seconds
    if threads is not None:
        check_count("threads", threads, MOST_THREADS)
    check_positive(options, "seconds", most=3600)
    if options.what in ("life", "agents", "sweep") and seconds != Options.seconds:
        raise InputError(f"seconds = {seconds}, but `bench {options.what}` takes as long as it does: leave it out.")
    domain = DOMAINS[options.domain]
    from modlife.benchmarks import BENCHES

    for record in BENCHES[options.what](domain, threads=threads, seconds=seconds):
        print(json.dumps(record), flush=True)
