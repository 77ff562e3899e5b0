"""A life that is asked to stop (SIGINT, SIGTERM) at random moments is saved, says so, and can be resumed."""

import os
import random
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from lives import NAMES, small

from modlife.runs.config import LifeConfig, life_from_options
from trials.bench import Bench, Tally, parts_of
from trials.kills import finish
from trials.processes import (
    Before,
    Home,
    damage_of,
    last_line,
    moment_of,
    newest_of,
    plan,
    size_of,
    wait_for,
    wait_for_moment,
)

PER_LIFE = 8
"""Signals to one life."""
LONGEST = 15.0
"""Seconds within which a process ends."""
UNPROMISED = ("before the run directory", "before the first checkpoint", "while resuming", "at the end")
"""Moments at which a process may simply end: what was saved before it began is there."""
AFTER = 3
"""Checkpoints that a process may still save after it was asked: of the step that it is in, and of the stop."""


def run(bench: Bench, unit: str) -> Tally:
    """One life: agents in turn; every fifth one of full size, every fourth one with nothing compiled yet."""
    number, count = parts_of(unit)
    agent, is_full, is_cold = NAMES[number % len(NAMES)], number % 5 == 4, number % 4 == 3
    tally, rng = Tally(), bench.rng("signals", unit)
    with bench.scratch("signals", unit, tally=tally) as folder:
        cache = {"XDG_CACHE_HOME": str(folder / "cache")} if is_cold else {}
        if is_full:
            home = Home(full_size(agent), folder / "life", save_every=30.0)
            whens, stride = ["late", "start", *["late"] * count][:count], 2
        else:
            home, reference = Home(small(agent), folder / "life"), bench.reference(agent, 1)
            last = max(int(path.name) for path in (reference / "checkpoints").iterdir())
            whens, stride = plan(count, rng), max(2, 2 * last // count)
        for when in whens:
            ask(home, when, tally, stride=stride, rng=rng, cache=cache)
            if tally.failures or (home.run / "summary.json").exists():
                break
        if not tally.failures and not is_full:
            finish(home, bench.reference(agent, 1), tally)
    size = f"{'full' if is_full else 'small'} size{', not compiled' if is_cold else ''}"
    tally.failures[:] = [f"{agent}, {size}: {one}" for one in tally.failures]
    tally.seen[f"signals at {size}"] += tally.trials
    return tally


def full_size(agent: str) -> LifeConfig:
    """A life with all settings as they are by default; it takes a minute or more, and comes to each phase soon."""
    return life_from_options(agent, "grid2d", {"tasks": 16, "steps": 100_000})


def ask(home: Home, when: str, tally: Tally, *, stride: int, rng: random.Random, cache: dict[str, str]) -> None:
    """One process, asked to stop at a moment, if it has not ended by then."""
    before, number = Before.of(home.run), rng.choice([signal.SIGINT, signal.SIGTERM])
    with home.process(**cache) as process:
        wait_for_python(process)
        if when == "late":
            wait_for(process, lambda: size_of(home.run / "history.jsonl") != before.history, longest=60)
            time.sleep(rng.uniform(0, 25))
        else:
            wait_for_moment(process, home, when, stride=stride, rng=rng)
        if process.poll() is not None:
            judge_end(process, tally)
            return
        seen, asked, moment = newest_of(home.run), time.monotonic(), moment_of(home, before)
        process.send_signal(number)
        busy = wait_for_end(process)
        took = time.monotonic() - asked
        if process.poll() is None:
            process.kill()
        _, said = process.communicate()
    tally.trials += 1
    tally.seconds.append(round(took, 3))
    tally.seen[f"{number.name} {moment}"] += 1
    end = End(process.returncode, said, number, moment)
    wrong = [*judge(home, end, max(seen, before.newest)), *damage_of(home.run, at_least=seen)]
    if took > LONGEST:
        wrong.append(f"it took {took:.1f} s to end, {busy:.1f} s of processor time")
    ends = {128 + number: "stopped and saved", -number: "ended before anything was promised", 0: "lived to its end"}
    tally.seen[ends.get(process.returncode, "ended otherwise")] += 1
    tally.fail(f"{number.name} {moment}", *wrong)


def wait_for_end(process: subprocess.Popen[str]) -> float:
    """Until it has ended, or much too long; the seconds of processor time that it needed: machines may be busy."""
    first = last = processor_seconds(process)
    end = time.monotonic() + 4 * LONGEST
    while process.poll() is None and time.monotonic() < end:
        last = max(last, processor_seconds(process))
        time.sleep(0.005)
    return last - first


def processor_seconds(process: subprocess.Popen[str]) -> float:
    """What a process has used so far; 0 when it has ended."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for_python(process: subprocess.Popen[str]) -> None:
    """Until Python is up, and the program has begun: before, Ctrl-C is Python's business."""
    was_caught = False
    end = time.monotonic() + 2
    while process.poll() is None and time.monotonic() < end:
        status = Path(f"/proc/{process.pid}/status").read_text()
        caught = int(status.split("SigCgt:")[1].split()[0], 16) & (1 << (signal.SIGINT - 1))
        if was_caught and not caught:
            return
        was_caught = was_caught or bool(caught)
        time.sleep(0.001)


def judge_end(process: subprocess.Popen[str], tally: Tally) -> None:
    """A process that ended before it was asked to must have lived its life."""
    _, said = process.communicate()
    if process.returncode:
        tally.fail("before it was asked", f"it ended with code {process.returncode}: {last_line(said)}")


@dataclass(frozen=True)
class End:
    """How a process ended that was asked to stop, and what it was about then."""

    code: int
    said: str
    signal: signal.Signals
    moment: str


def judge(home: Home, end: End, seen: int) -> list[str]:
    """What is wrong with the way in which a process ended; `seen` is the newest checkpoint when it was asked."""
    wrong, now = [], newest_of(home.run)
    if "Traceback" in end.said or "Error" in end.said:
        wrong.append(f"it said: {end.said.strip()[-500:]}")
    if now > seen + AFTER:
        wrong.append(f"it went on: from checkpoint {seen} to {now}")
    is_over = (home.run / "summary.json").exists()
    promise = f"stopped by {end.signal.name}, and saved. Go on with: modlife train --resume --out {home.run}"
    if end.code == 128 + end.signal and last_line(end.said) == promise:
        wrong += [] if now >= 0 else ["it promised that it was saved, and is not"]
    elif end.code in (-end.signal, 128 + end.signal):
        fine = is_over or end.moment in UNPROMISED
        wrong += [] if fine else [f"it ended with code {end.code}, and did not say that it was saved"]
    elif end.code != 0 or not is_over:
        wrong.append(f"it ended with code {end.code}: {last_line(end.said)}")
    return wrong
