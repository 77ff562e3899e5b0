"""A life that is killed (SIGKILL) at random moments, and resumed each time, ends with the bytes of one left alone."""

import os
import random
import signal
from pathlib import Path

from lives import NAMES, small

from trials.bench import Bench, Tally, litter, parts_of
from trials.processes import Before, Home, damage_of, differences, last_line, moment_of, plan, wait_for_moment

PER_LIFE = 15
"""Kills of one life."""


def run(bench: Bench, unit: str) -> Tally:
    """One life: agents in turn, every third one on two threads."""
    number, count = parts_of(unit)
    agent, threads = NAMES[number % len(NAMES)], 2 if number % 3 == 2 else 1
    tally, rng = Tally(), bench.rng("kills", unit)
    reference = bench.reference(agent, threads)
    with bench.scratch("kills", unit, tally=tally) as folder:
        home = Home(small(agent), folder / "life", threads)
        last = max(int(path.name) for path in (reference / "checkpoints").iterdir())
        for when in plan(count, rng):
            kill(home, when, tally, stride=max(2, 2 * last // count), rng=rng)
            if tally.failures or (home.run / "summary.json").exists():
                break
        if not tally.failures:
            finish(home, reference, tally)
    tally.failures[:] = [f"{agent} on {threads} threads: {one}" for one in tally.failures]
    return tally


def kill(home: Home, when: str, tally: Tally, *, stride: int, rng: random.Random) -> None:
    """One process, killed at a moment, if it has not ended by then."""
    before = Before.of(home.run)
    with home.process() as process:
        wait_for_moment(process, home, when, stride=stride, rng=rng)
        seen = Before.of(home.run).newest
        process.kill()
        _, said = process.communicate()
    if process.returncode == 0:
        return
    tally.trials += 1
    moment = moment_of(home, before)
    tally.seen[f"killed {moment}"] += 1
    tally.seen["killed with something half written"] += bool(litter(home.run.parent))
    wrong = damage_of(home.run, at_least=max(before.newest, seen))
    if process.returncode != -signal.SIGKILL:
        wrong.append(f"it ended by itself with code {process.returncode}: {last_line(said)}")
    tally.fail(f"killed {moment}", *wrong)


def finish(home: Home, reference: Path, tally: Tally) -> None:
    """The life is left alone, and compared."""
    for aside in home.run.parent.glob("*.tmp"):
        os.utime(aside, (0, 0))  # a minute later
    with home.process() as process:
        _, said = process.communicate()
    if process.returncode:
        tally.fail("left alone", f"it could not be resumed, code {process.returncode}: {last_line(said)}")
        return
    tally.seen["lives that ended"] += 1
    left = [f"'{path}' was left behind" for path in litter(home.run.parent)]
    tally.fail("left alone", *differences(home.run, reference), *left)
