"""Many lives, each in a process of its own with one core, some at a time.

Lives that have ended are left alone and those that were interrupted go on, so the same call after any interruption goes
on where it stood. Ctrl-C and SIGTERM let every life save itself first. If this process is killed, its lives go on to
their ends; until then their run directories are locked, and others that want them are told so.
"""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from modlife.errors import InputError
from modlife.runs.codec import TABLE, flat, to_json
from modlife.runs.config import LifeConfig, usual_life
from modlife.runs.interrupts import Interrupts, Stopped
from modlife.runs.store import MANIFEST, RunDirectory

POLL = 0.1
"""Seconds between two looks at the processes."""


@dataclass(frozen=True)
class Planned:
    """A life to be lived."""

    config: LifeConfig
    out: Path
    """Its run directory."""

    @property
    def log(self) -> Path:
        """Where its process writes what it has to say: beside the run directory."""
        return self.out.with_name(f"{self.out.name}.log")

    @property
    def has_begun(self) -> bool:
        """Whether it has a run directory; one of another life is refused."""
        if not (self.out / MANIFEST).exists():
            return False
        found = RunDirectory.open(self.out).config()
        if found != self.config:
            before, now = (flat(to_json(one)) for one in (found, self.config))
            name = next(name for name in {**before, **now} if before.get(name) != now.get(name))
            raise InputError(
                f"'{self.out}' holds another life: its {name} is {before.get(name)}, not {now.get(name)}. Choose "
                "another folder, or remove it."
            )
        return True

    @property
    def has_ended(self) -> bool:
        """Whether there is nothing left to do."""
        return self.has_begun and RunDirectory.open(self.out).has_ended

    def command(self) -> list[str]:
        """The command that lives it, or the rest of it."""
        options = ["--resume"] if self.has_begun else as_options(self.config)
        return [sys.executable, "-m", "modlife", "train", *options, "--out", str(self.out)]


@dataclass(frozen=True)
class Failed:
    """A life whose process ended before the life did."""

    life: Planned
    code: int

    def __str__(self) -> str:
        how = f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        return f"'{self.life.out}' did not end ({how}): {last_line(self.life.log)}"


@dataclass
class Lives:
    """Lives that are being lived."""

    waiting: list[Planned]
    at_once: int
    tell: Callable[[str], None]
    command: Callable[[Planned], list[str]] = Planned.command
    running: dict[subprocess.Popen, Planned] = field(default_factory=dict)
    failed: list[Failed] = field(default_factory=list)

    def run(self) -> list[Failed]:
        """Lives them all; those that failed do not keep others from being lived."""
        with Interrupts() as interrupts, contextlib.closing(self.steps()) as steps:
            for _ in steps:
                if interrupts.wish:
                    self.waiting.clear()
                    self.stop()
                    raise Stopped(interrupts.wish)
        return self.failed

    def steps(self) -> Generator[None]:
        """Begins lives where there is room, and sees which have ended, until all have; stops them if nobody listens."""
        try:
            while self.waiting or self.running:
                while self.waiting and len(self.running) < self.at_once:
                    self.begin(self.waiting.pop(0))
                self.look()
                yield
                time.sleep(POLL)
        finally:
            self.stop()

    def begin(self, life: Planned) -> None:
        """Starts a process; signals from the keyboard do not reach it, but through here."""
        command = self.command(life)
        self.tell(f"{'going on with' if '--resume' in command else 'beginning'} {life.out.name}")
        life.log.parent.mkdir(parents=True, exist_ok=True)
        with life.log.open("ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.running[process] = life

    def look(self) -> None:
        """Notes the processes that have ended."""
        for process in [one for one in self.running if one.poll() is not None]:
            life = self.running.pop(process)
            if process.returncode:
                self.failed.append(Failed(life, process.returncode))
            self.tell(f"{life.out.name} {'FAILED' if process.returncode else 'ended'}, {self.left} to go")

    @property
    def left(self) -> int:
        """Lives that have not ended."""
        return len(self.waiting) + len(self.running)

    def stop(self) -> None:
        """Asks all processes to save and stop, and waits for them."""
        if self.running:
            self.tell(f"{len(self.running)} lives are being saved")
        for process in self.running:
            process.send_signal(signal.SIGTERM)
        for process in self.running:
            process.wait()
        self.running.clear()


def live_all(lives: Sequence[Planned], *, at_once: int, tell: Callable[[str], None] = print) -> list[Failed]:
    """Lives all lives that have not ended, so many at a time; gives those whose processes failed."""
    places = [life.out.resolve() for life in lives]
    if len(set(places)) < len(places):
        raise InputError("Two of the lives have the same run directory.")
    waiting = [life for life in lives if not life.has_ended]
    if len(waiting) < len(lives):
        tell(f"{len(lives) - len(waiting)} of {len(lives)} lives have ended before")
    return Lives(waiting, at_once, tell).run()


def as_options(config: LifeConfig) -> list[str]:
    """The command line that gives a config."""
    tables = {one.name: one.metadata[TABLE] for one in fields(config.settings) if TABLE in one.metadata}
    named = {name: table.of(getattr(config.settings, name)).name for name, table in tables.items()}
    chosen = {"domain": config.domain.name, "agent": config.agent, **named}
    usual = usual_life(config.agent, config.domain.usual_world(), named)
    before, now = (flat(to_json(one)) for one in (usual, config))
    changed = {name: value for name, value in now.items() if value != before[name]}
    return [word for name, value in {**chosen, **changed}.items() for word in as_words(name, value)]


def as_words(name: str, value: Any) -> list[str]:
    """An option on a command line."""
    *group, last = name.replace("_", "-").split(".")
    if isinstance(value, bool):
        return ["--" + ".".join([*group, last if value else f"no-{last}"])]
    values = value if isinstance(value, list) else [value]
    return ["--" + ".".join([*group, last]), *map(str, values)]


def last_line(path: Path) -> str:
    """The last thing that a process said."""
    with contextlib.suppress(OSError):
        lines = path.read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it said nothing"
    return "what it said cannot be read"
