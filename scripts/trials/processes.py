"""Real processes of `modlife train`, at moments that chance chooses, and what they leave behind."""

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import modlife
from modlife.errors import InputError
from modlife.runs.config import LifeConfig
from modlife.runs.many import as_options
from modlife.runs.store import RunDirectory

MODLIFE = [sys.executable, "-c", "import sys; from modlife_command import main; sys.exit(main())"]
"""The console script."""
LONGEST = 900.0
"""Seconds that no process of a small life needs."""
TIMINGS = {"seconds", "steps_per_second", "wall_seconds", "cpu_seconds", "peak_megabytes", "files", "sha256"}
"""What a summary says that depends on the machine, or on how often a life was interrupted."""


def environment(**changes: str) -> dict[str, str]:
    """The environment of processes: they run the same source as this one."""
    source = str(Path(modlife.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]), **changes}


@dataclass(frozen=True)
class Home:
    """A life for processes to live: its config, where, on how many threads, saving how often."""

    config: LifeConfig
    run: Path
    threads: int = 1
    save_every: float = 0.0

    def command(self) -> list[str]:
        """Begins the life, or goes on with it."""
        options = [*as_options(self.config), "--threads", str(self.threads)]
        begun = ["--resume"] if self.run.exists() else options
        return [*MODLIFE, "train", *begun, "--save-every", str(self.save_every), "--out", str(self.run)]

    @contextlib.contextmanager
    def process(self, **changes: str) -> Iterator[subprocess.Popen[str]]:
        """A process that lives on; none is left behind."""
        process = subprocess.Popen(
            self.command(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=environment(**changes),
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()

    @property
    def stages(self) -> int:
        """How many it has."""
        return len(self.config.stages.stages)


def newest_of(run: Path) -> int:
    """The newest checkpoint of a life that may go on meanwhile; -1 before there is one."""
    with contextlib.suppress(OSError):
        return max((int(name) for name in os.listdir(run / "checkpoints") if name.isdecimal()), default=-1)
    return -1


def description_of(run: Path) -> dict[str, Any] | None:
    """What the newest checkpoint says; None before there is one."""
    for _ in range(3):
        with contextlib.suppress(OSError):  # the life goes on, and may remove it now
            path = run / f"checkpoints/{newest_of(run):08d}/checkpoint.json"
            return json.loads(path.read_text())["description"]
    return None


def size_of(path: Path) -> int:
    """The size of a file; 0 if there is none."""
    return path.stat().st_size if path.exists() else 0


def wait_for(process: subprocess.Popen[str], happened: Callable[[], bool], *, longest: float = LONGEST) -> None:
    """Until it happened, the process ended, or much too long."""
    end = time.monotonic() + longest
    while process.poll() is None and not happened() and time.monotonic() < end:
        time.sleep(0.002)


@dataclass(frozen=True)
class Before:
    """How a run directory was when a process began."""

    newest: int
    history: int

    @staticmethod
    def of(run: Path) -> "Before":
        """How it is now."""
        return Before(newest_of(run), size_of(run / "history.jsonl"))


def moment_of(home: Home, before: Before) -> str:
    """What a process was about, by what it has left."""
    run = home.run
    if not run.exists():
        return "before the run directory"
    if (run / "summary.json").exists():
        return "at the end"
    if newest_of(run) < 0:
        return "before the first checkpoint"
    if before.newest >= 0 and size_of(run / "history.jsonl") <= before.history:
        return "while resuming"
    said = description_of(run)
    if said is None:
        return "unknown"
    if said["stage"] == home.stages:
        return "final evaluation"
    return said["facts"]["phase"] or "between tasks (search, evaluation)"


WHENS = ("start", "first", "resume", "checkpoint", "final")


def wait_for_moment(process: subprocess.Popen[str], home: Home, when: str, *, stride: int, rng: random.Random) -> None:
    """Until a random moment of a kind; or the end of the process."""
    run, before = home.run, newest_of(home.run)
    if when == "start":  # imports
        time.sleep(rng.uniform(0, 3))
    elif when == "first":  # the run directory is made, the first programs are compiled
        wait_for(process, run.exists)
        time.sleep(rng.uniform(0, 1))
    elif when == "resume":
        lines = size_of(run / "history.jsonl")
        if rng.random() < 0.5:
            time.sleep(rng.uniform(0, 5))  # before, while and after it reads
        else:
            wait_for(process, lambda: size_of(run / "history.jsonl") != lines)
            time.sleep(rng.uniform(0, 0.2))
    elif when == "checkpoint":
        target = before + rng.randint(1, stride)
        wait_for(process, lambda: newest_of(run) >= target)
        time.sleep(rng.uniform(0, 0.1))
    else:
        wait_for(process, lambda: (description_of(run) or {}).get("stage") == home.stages)
        time.sleep(rng.uniform(0, 0.5))


def plan(count: int, rng: random.Random) -> list[str]:
    """When to interrupt a life: at its start, at its end, and mostly between."""
    middle = rng.choices(["resume", "checkpoint"], [1, 3], k=max(0, count - 4))
    return [*["start", "first"][: max(1, count - 1)], *middle, *["final"] * min(2, max(0, count - 1))][:count]


def damage_of(run: Path, *, at_least: int) -> list[str]:
    """What is wrong with the newest checkpoint after a process is gone; there was one of this number before."""
    if not run.exists():
        return [f"the run directory with checkpoint {at_least} is gone"] if at_least >= 0 else []
    checkpoints = RunDirectory(run).checkpoints
    try:
        number = max(checkpoints.numbers(), default=-1)
        if number < at_least:
            return [f"checkpoint {at_least} was there, and {number} is the newest now"]
        if number < 0:
            return []
        index, _ = checkpoints.verify(checkpoints.path(number))
        checkpoints.memory(index)
        RunDirectory(run).begin_with(index.description)
    except InputError as error:
        return [f"the newest checkpoint is not whole: {error}"]
    return []


def results(run: Path) -> dict[str, Any]:
    """All that a life comes to, except how long it took."""
    summary = json.loads((run / "summary.json").read_text())
    last = max(int(path.name) for path in (run / "checkpoints").iterdir() if path.name.isdecimal())
    return {
        "metrics": (run / "metrics.jsonl").read_bytes(),
        "state": (run / f"checkpoints/{last:08d}/state.safetensors").read_bytes(),
        "replay": RunDirectory(run).checkpoints.look(last).replay,
        "summary": {name: value for name, value in summary.items() if name not in TIMINGS},
        "known metrics": summary["files"]["metrics"],
    }


def differences(run: Path, reference: Path) -> list[str]:
    """In what the end of a life is not that of the reference."""
    one, other = results(run), results(reference)
    return [
        f"its {name} at the end is not that of the life that was left alone" for name in one if one[name] != other[name]
    ]


def last_line(text: str) -> str:
    """The last line of what a process said."""
    return text.strip().splitlines()[-1] if text.strip() else ""
