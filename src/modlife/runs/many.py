"""Many lives, each in a process of its own with one core, some at a time, here or on the machines of a cluster.

Lives that have ended are left alone and those that were interrupted go on, so the same call after any interruption goes
on where it stood. Ctrl-C and SIGTERM let every life save itself first. If this process is killed, its lives save
themselves and stop: they look whether the process that started them is still there.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Protocol

from modlife.errors import InputError
from modlife.runs.codec import TABLE, flat, to_json
from modlife.runs.config import LifeConfig, usual_life
from modlife.runs.interrupts import Interrupts, Stopped
from modlife.runs.store import MANIFEST, RunDirectory

POLL = 0.1
"""Seconds between two looks at the processes."""
PATIENCE = 120
"""Seconds that a life waits for its run directory, which one that was lost may still be saving to."""
AGAIN = (128 + signal.SIGINT, 128 + signal.SIGTERM)
"""Exit codes of lives that were stopped, and saved."""


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
    def is_there(self) -> bool:
        """Whether it has a run directory, of whatever life."""
        return (self.out / MANIFEST).exists()

    @property
    def has_begun(self) -> bool:
        """Whether it has a run directory; one of another life is refused."""
        if not self.is_there:
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
        parent = ["--parent", str(os.getpid())]
        return [sys.executable, "-m", "modlife", "train", *options, *parent, "--out", str(self.out)]

    def anywhere(self) -> list[str]:
        """Options of `modlife train` that live it, or the rest of it, on any machine that has its run directory."""
        out = ["--out", str(self.out.absolute())]
        return ["--resume-or-begin", "--wait", str(PATIENCE), *as_options(self.config), *out]


@dataclass(frozen=True)
class Failed:
    """A life whose process ended before the life did."""

    life: Planned
    code: int

    def __str__(self) -> str:
        how = f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        return f"'{self.life.out}' did not end ({how}): {last_line(self.life.log)}"


State = Literal["waiting", "running", "ended", "FAILED"]


@dataclass(frozen=True)
class Standing:
    """How it stands with a life."""

    life: Planned
    state: State


class Where(Protocol):
    """Where processes run."""

    tries: int
    """How often a life is begun again that was stopped, or whose machine was lost."""

    def begin(self, command: list[str], log: Path) -> Any:
        """Starts a process; what it is known by."""
        ...

    def code(self, process: Any) -> int | None:
        """The exit code of a process that has ended; negative where it was killed, or lost with its machine."""
        ...

    def stop(self, processes: Sequence[Any]) -> None:
        """Asks processes to save and stop, and waits for them."""
        ...


class Here:
    """Processes of this machine. Who stops them has a reason: none is begun again by itself."""

    tries = 0

    def begin(self, command: list[str], log: Path) -> subprocess.Popen:
        """Starts a process; signals from the keyboard do not reach it, but through here."""
        with log.open("ab") as file:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
            )

    def code(self, process: subprocess.Popen) -> int | None:
        """Its exit code, if it has ended."""
        return process.poll()

    def stop(self, processes: Sequence[subprocess.Popen]) -> None:
        """Asks all to save and stop, and waits for them."""
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait()


def unseen(standings: Sequence[Standing]) -> None:
    """Nobody looks."""


@dataclass
class Lives:
    """Lives that are being lived."""

    waiting: list[Planned]
    at_once: int
    tell: Callable[[str], None]
    command: Callable[[Planned], list[str]] = Planned.command
    where: Where = field(default_factory=Here)
    show: Callable[[Sequence[Standing]], None] = unseen
    """Shown how it stands, again and again."""
    running: dict[Any, Planned] = field(default_factory=dict)
    failed: list[Failed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.all, self.begun = tuple(self.waiting), Counter[Path]()

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
                self.show(self.standings)
                yield
                time.sleep(POLL)
        finally:
            self.stop()

    def begin(self, life: Planned) -> None:
        """Starts a process."""
        command = self.command(life)
        self.tell(f"{'going on with' if life.is_there else 'beginning'} {life.out.name}")
        life.log.parent.mkdir(parents=True, exist_ok=True)
        self.begun[life.out] += 1
        self.running[self.where.begin(command, life.log)] = life

    def look(self) -> None:
        """Notes the processes that have ended; those that were stopped or lost go on elsewhere, where there is one."""
        ends = [(process, code) for process in self.running if (code := self.where.code(process)) is not None]
        for process, code in ends:
            life = self.running.pop(process)
            if (code in AGAIN or code < 0) and self.begun[life.out] <= self.where.tries:
                self.waiting.insert(0, life)
                self.tell(f"{life.out.name} was stopped, and goes on")
                continue
            if code:
                self.failed.append(Failed(life, code))
            self.tell(f"{life.out.name} {'FAILED' if code else 'ended'}, {self.left} to go")

    @property
    def left(self) -> int:
        """Lives that have not ended."""
        return len(self.waiting) + len(self.running)

    @property
    def standings(self) -> list[Standing]:
        """How it stands with each of them."""
        states: dict[Path, State] = {one.life.out: "FAILED" for one in self.failed}
        states |= {life.out: "running" for life in self.running.values()}
        states |= {life.out: "waiting" for life in self.waiting}
        return [Standing(life, states.get(life.out, "ended")) for life in self.all]

    def stop(self) -> None:
        """Asks all processes to save and stop, and waits for them."""
        if self.running:
            self.tell(f"{len(self.running)} lives are being saved")
        self.where.stop(list(self.running))
        self.running.clear()


def live_all(
    lives: Sequence[Planned],
    *,
    at_once: int,
    tell: Callable[[str], None] = print,
    show: Callable[[Sequence[Standing]], None] = unseen,
    where: Where | None = None,
) -> list[Failed]:
    """Lives all lives that have not ended, so many at a time; gives those whose processes failed.

    They are processes of this machine, or, where another place is given, of that one.
    """
    waiting = to_live(lives, tell)
    if where is None:
        return Lives(waiting, at_once, tell, show=show).run()
    return Lives(waiting, at_once, tell, Planned.anywhere, where, show).run()


def to_live(lives: Sequence[Planned], tell: Callable[[str], None]) -> list[Planned]:
    """The lives that have not ended; each has a run directory of its own."""
    places = [life.out.resolve() for life in lives]
    if len(set(places)) < len(places):
        raise InputError("Two of the lives have the same run directory.")
    waiting = [life for life in lives if not life.has_ended]
    if len(waiting) < len(lives):
        tell(f"{len(lives) - len(waiting)} of {len(lives)} lives have ended before")
    return waiting


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
