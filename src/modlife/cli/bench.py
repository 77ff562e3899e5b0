"""`modlife bench`."""

import json
from typing import Literal

import tyro

from modlife.errors import InputError


def run(
    what: tyro.conf.Positional[Literal["env", "ppo", "search", "offline", "life"]],
    domain: Literal["grid2d", "robot"] = "grid2d",
    threads: int | None = None,
    seconds: float = 1.0,
) -> None:
    """Measure speed on this machine and print one JSON object a line.

    `env` steps the 2-D world with random actions, observations and restarts included, at batch sizes 1 to 4096, on
    one thread and on all, and the same task on Farama's minigrid package if that is installed. With `--domain robot`
    it steps robot arms, observations and rewards included, and beside them MuJoCo's physics alone: steps per second of
    processor time and core.

    `ppo` trains a single-task agent: one life on one thread, one life on all, and two lives side by side.

    `search` tries all 64 structures on a task, 10 episodes each. `offline` learns from the replay of 1 to 37 tasks.

    `life` lives a small life of comp-search, 6 tasks of 100,000 steps, and tells the seconds of each phase.

    Args:
        what: What to measure.
        domain: Which domain, for `env`; all else is measured in the 2-D world.
        threads: Only this number of threads; without it, one and all.
        seconds: How long to measure each case.
    """
    if seconds <= 0 or (threads is not None and threads < 1):
        raise InputError(f"threads = {threads}, seconds = {seconds}, but both must be more than 0.")

    if domain == "robot" and (what != "env" or threads is not None):
        raise InputError(
            "The robot domain has `modlife bench env --domain robot`, without --threads, and no other yet."
        )

    from modlife.experiments.bench import BENCHES

    options = {"domain": domain} if what == "env" else {}
    for record in BENCHES[what](threads=threads, seconds=seconds, **options):
        print(json.dumps(record), flush=True)
