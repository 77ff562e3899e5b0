"""Several processes, or threads, want the same run directory at once: exactly one gets it, and it is whole."""

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lives import small

from modlife.errors import InputError, Sentence, StoreError
from modlife.runs.store import RunDirectory, RunWriter
from trials.bench import Bench, Tally, litter, parts_of
from trials.processes import environment

PER_UNIT = 100
AGENT = "stl"
SOON = 0.02
"""Seconds until all begin."""
PROGRAM = "import sys; sys.path[:0] = sys.argv[1:]; import trials.races as races; races.serve()"


@dataclass
class Runner:
    """One who wants a run directory; it keeps what it gets until it is told to let go."""

    writer: RunWriter | None = None
    said: list[str] = field(default_factory=list)

    def try_for(self, how: str, path: Path, at: float) -> str:
        """Tries at a moment: how it went."""
        config = small(AGENT)
        while time.time() < at:
            pass
        try:
            self.writer = RunWriter.create(path, config) if how == "create" else RunWriter.reopen(path)
        except (InputError, StoreError) as error:
            return f"lost: {error}"
        except Exception as error:  # noqa: BLE001  # whatever it is, it is a failure
            return f"crashed: {type(error).__name__}: {error}"
        return "won"

    def let_go(self) -> None:
        """Lets others in."""
        if self.writer:
            self.writer.close()
            self.writer = None


def serve() -> None:
    """A runner in a process of its own, told by lines of JSON what to do."""
    runner = Runner()
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["how"] == "let go":
            runner.let_go()
            print("gone", flush=True)
        else:
            print(json.dumps(runner.try_for(asked["how"], Path(asked["path"]), asked["at"])), flush=True)


@dataclass(frozen=True)
class Other:
    """A runner in another process."""

    process: subprocess.Popen[str]

    def tell(self, **asked: Any) -> None:
        """Says what to do."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        """What it says."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@contextmanager
def others(count: int) -> Iterator[list[Other]]:
    """Runners in other processes."""
    folders = [str(Path(__file__).parents[1])]
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *folders],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment(),
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            found.append(Other(process))
        for one in found:
            one.hear()
        yield found


def run(bench: Bench, unit: str) -> Tally:
    """Races one after the other: of processes, of threads; to make, to reopen, and both."""
    (_, count), rng, tally = parts_of(unit), bench.rng("races", unit), Tally()
    with bench.scratch("races", unit, tally=tally) as folder, others(4) as processes:
        for number in range(count):
            path = folder / f"run-{number}"
            kind, size = rng.choice(["create", "reopen", "both"]), rng.randint(2, 4)
            is_there = kind == "reopen" or (kind == "both" and rng.random() < 0.5)
            if is_there:
                RunWriter.create(path, small(AGENT)).close()
            hows = [kind] * size if kind != "both" else rng.choices(["create", "reopen"], k=size)
            fair = (is_there and "reopen" in hows) or (not is_there and "create" in hows)  # somebody can win
            who = rng.choice(["processes", "threads"])
            race = processes_race if who == "processes" else threads_race
            ends = race(processes, hows, path, rng)
            tally.trials += 1
            tally.seen[f"{size} {who}, {kind}"] += 1
            wrong = judged(ends, path, winners=int(fair))
            tally.fail(f"race {number}, {size} {who} ({', '.join(hows)})", *wrong)
    return tally


def processes_race(processes: list[Other], hows: list[str], path: Path, rng: random.Random) -> list[str]:
    """Processes race; how it went for each."""
    runners, at = processes[: len(hows)], time.time() + SOON
    for one, how in zip(runners, hows, strict=True):
        one.tell(how=how, path=str(path), at=at + rng.choice([0, 0, rng.uniform(0, 0.003)]))
    ends = [json.loads(one.hear() or '"crashed: it ended"') for one in runners]
    for one in runners:
        one.tell(how="let go")
        one.hear()
    return ends


def threads_race(processes: list[Other], hows: list[str], path: Path, rng: random.Random) -> list[str]:
    """Threads of this process race."""
    runners, at = [Runner() for _ in hows], time.time() + SOON
    ends: dict[int, str] = {}

    def race(number: int) -> None:
        ends[number] = runners[number].try_for(hows[number], path, at)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(len(hows))]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for one in runners:
        one.let_go()
    return [ends[number] for number in range(len(hows))]


def judged(ends: list[str], path: Path, *, winners: int) -> list[str]:
    """What is wrong with how a race ended."""
    wrong = [end for end in ends if end.startswith("crashed")]
    if ends.count("won") != winners:
        wrong.append(f"{ends.count('won')} won: {ends}")
    if not winners:
        return wrong
    try:
        run = RunDirectory.open(path)
        if run.config() != small(AGENT) or run.remarks() or run.metrics() or len(run.history()) != 1:
            wrong.append("the run directory is not whole")
        RunWriter.reopen(path).close()
    except Sentence as error:
        wrong.append(f"the run directory cannot be used: {error}")
    return wrong + [f"'{one}' was left behind" for one in litter(path.parent)]
