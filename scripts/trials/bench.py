"""What all trials have in common: where they work, what they count, and what they compare with."""

import contextlib
import fcntl
import random
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from lives import Lived, lived, small

from modlife.runs.many import as_options
from modlife.runs.store import RunDirectory
from trials.processes import MODLIFE, environment

ONE_AT_A_TIME = threading.Lock()
"""Lives of this process are lived one after the other."""


@dataclass
class Tally:
    """What one unit of a trial came to."""

    trials: int = 0
    failures: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    """How often what happened."""
    seconds: list[float] = field(default_factory=list)
    """How long it took to stop, where that is promised."""

    def fail(self, where: str, *wrong: str) -> None:
        """Notes a failure, if anything is wrong with a trial."""
        if wrong:
            self.failures.append(f"{where}: {'; '.join(wrong)}")


@dataclass(frozen=True)
class Bench:
    """Where trials work. Everything random follows from the seed, the trial and the unit."""

    folder: Path
    """What is made here may be removed at any time; only failures stay."""
    lives: Path
    """Small lives that were lived once, of every agent, with all their checkpoints."""
    seed: int = 0

    def rng(self, *names: object) -> random.Random:
        """Chance for one unit."""
        return random.Random("/".join(map(str, (self.seed, *names))))

    def life(self, agent: str) -> Lived:
        """The small life of an agent, never interrupted; lived when first asked for."""
        with ONE_AT_A_TIME:
            self.lives.mkdir(parents=True, exist_ok=True)
            return lived(agent, self.lives)

    def reference(self, agent: str, threads: int) -> Path:
        """The run directory of the life, never interrupted, on so many threads."""
        if threads == 1:
            return self.life(agent).path
        path = self.folder / "references" / f"{agent}-{threads}"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (path / "summary.json").exists():
                shutil.rmtree(path, ignore_errors=True)
                options = [*as_options(small(agent)), "--threads", str(threads), "--save-every", "0"]
                subprocess.run(
                    [*MODLIFE, "train", *options, "--out", str(path)],
                    check=True,
                    capture_output=True,
                    env=environment(),
                )
        return path

    @contextlib.contextmanager
    def scratch(self, *names: object, tally: Tally) -> Iterator[Path]:
        """An empty folder for a unit; it stays if something failed."""
        path = self.folder / "-".join(map(str, names))
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        yield path
        if not tally.failures:
            shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True)
class Trial:
    """One promise, tried again and again in units that can be repeated one by one."""

    name: str
    promise: str
    what: str
    """What is counted."""
    usual: str
    """How many, by the goals of the project: a number, `all`, or a share such as 1/40."""
    run: Callable[[Bench, str], Tally]
    units: Callable[[str], Iterator[str]]
    """The names of the units for a size, perhaps without end."""
    processes: bool = True
    """Whether units run in processes of their own; else they start some, and threads are enough."""


def batches(most: int) -> Callable[[str], Iterator[str]]:
    """Units by number without end, with so many trials each; or fewer, if fewer are asked for."""
    return lambda size: (f"{number}x{min(most, int(size))}" for number in count())


def parts_of(unit: str) -> tuple[int, int]:
    """The number of such a unit, and how many trials it has."""
    number, trials = unit.split("x")
    return int(number), int(trials)


def newest(run: Path) -> int:
    """The number of the newest checkpoint; -1 before there is one."""
    return max(RunDirectory(run).checkpoints.numbers(), default=-1)


def litter(folder: Path) -> list[str]:
    """What was being written, and is left."""
    return [str(path.relative_to(folder)) for path in folder.rglob("*.tmp")]
