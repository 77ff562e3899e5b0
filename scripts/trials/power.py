"""Power is lost at any moment: whatever the disk had time for, a run directory opens with what was acknowledged.

A life is lived, killed and resumed while every call that changes files is written down. A moment of it leaves the disk
in one of many states, by the strict rules of POSIX: data of a file that was not synced may be missing or torn; names in
a directory that was not synced may be there or not, in any combination.
"""

import contextlib
import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lives import NAMES, small
from terminal import lenient

from modlife.errors import InputError, Sentence
from modlife.runs.checkpoints import Checkpoints
from modlife.runs.config import LifeConfig
from modlife.runs.life import run_life
from modlife.runs.restore import newest
from modlife.runs.store import RunDirectory, RunWriter
from trials.bench import Bench, Tally, parts_of
from trials.reading import remembered
from trials.shim import Shim, Writing

PER_UNIT = 500
OUT = Path("deep/er/run")
"""The run directory; the program makes all folders above it."""


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Folder:
    """Names, as the program sees them; those that the disk has for sure; and changes since."""

    names: dict[str, "Folder | File"] = field(default_factory=dict)
    durable: dict[str, "Folder | File"] = field(default_factory=dict)
    pending: list[tuple[str | None, str | None, "Folder | File | None"]] = field(default_factory=list)
    """A name that goes, a name that comes, and what it is of."""

    def change(self, gone: str | None, new: str | None, what: "Folder | File | None") -> None:
        """Takes a name away, and gives one."""
        apply(self.names, gone, new, what)
        self.pending.append((gone, new, what))

    def sync(self) -> None:
        """Makes it durable."""
        self.durable, self.pending = dict(self.names), []


@dataclass
class File:
    """Bytes, likewise."""

    data: bytes = b""
    durable: bytes = b""
    pending: list[bytes] = field(default_factory=list)
    """What it was after each change."""

    def change(self, data: bytes) -> None:
        """Other bytes."""
        self.data = data
        self.pending.append(data)

    def sync(self) -> None:
        """Makes it durable."""
        self.durable, self.pending = self.data, []


def apply(names: dict[str, Any], gone: str | None, new: str | None, what: Any) -> None:
    """Changes names."""
    if gone is not None:
        names.pop(gone, None)
    if new is not None:
        names[new] = what


@dataclass
class Disk:
    """A disk from its first moment on, call by call."""

    root: Folder = field(default_factory=Folder)

    def at(self, path: str) -> Any:
        """What has a path."""
        found: Any = self.root
        for part in Path(path).parts:
            found = found.names[part]
        return found

    def happen(self, what: str, path: str, value: Any) -> None:
        """One call."""
        parent, name = (self.at(str(Path(path).parent)), Path(path).name) if path != "." else (self.root, ".")
        if what in ("create", "mkdir"):
            parent.change(None, name, Folder() if what == "mkdir" else File())
        elif what in ("unlink", "rmdir"):
            parent.change(name, None, None)
        elif what == "replace":
            parent.change(name, Path(value).name, parent.names[name])
        elif what == "write":
            self.at(path).change(self.at(path).data + value)
        elif what == "truncate":
            self.at(path).change(self.at(path).data[:value])
        elif what == "fsync":
            self.at(path).sync()


def written(folder: Folder, path: Path, rng: random.Random, keep: float) -> None:
    """One state in which power loss may leave a folder: each change is there with some chance."""
    names = dict(folder.durable)
    for gone, new, what in folder.pending:
        if rng.random() < keep:
            apply(names, gone, new, what)
    for name, what in names.items():
        if isinstance(what, Folder):
            (path / name).mkdir()
            written(what, path / name, rng, keep)
        else:
            (path / name).write_bytes(survived(what, rng, keep))


def survived(file: File, rng: random.Random, keep: float) -> bytes:
    """Bytes that power loss may leave: some changes, the last of them perhaps torn, or zeros."""
    data = file.durable
    for changed in file.pending:
        if rng.random() >= keep:
            break
        before, data = len(data), changed
        if len(data) > before and rng.random() < 0.3:
            end = rng.randint(before, len(data))
            return data[:end] + (bytes(len(data) - end) if rng.random() < 0.3 else b"")
    return data


class Recorder(Shim):
    """Writes down every call that changes files below a folder, and may kill the process after one of them."""

    def __init__(self, folder: Path, calls: list[tuple[str, str, Any]], *, kill_at: int = 0):
        super().__init__(folder)
        self.base, self.happened, self.kill_at, self.paths = folder, calls, kill_at, dict[int, str]()

    def note(self, what: str, path: str, value: Any = None) -> None:
        """One more."""
        self.happened.append((what, path, value))
        if len(self.happened) == self.kill_at:
            raise Killed

    def name(self, where: Any, options: dict[str, Any]) -> str:
        """The path of a call below the folder."""
        if isinstance(where, int):
            return self.paths[where]
        above = options.get("dir_fd")
        path = self.base / self.paths[above] / os.fspath(where) if above in self.paths else Path(where)
        return str(path.relative_to(self.base))

    def wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A call that is written down if it concerns the folder."""

        def call(where: Any = ".", *rest: Any, **options: Any) -> Any:
            if not self.concerns(where, options):
                return function(where, *rest, **options)
            path = self.name(where, options)
            is_new = name == "open" and rest and rest[0] & os.O_CREAT and not os.path.lexists(self.base / path)
            found = function(where, *rest, **options)
            if name == "open":
                self.handles.add(found)
                self.paths[found] = path
            if is_new:
                self.note("create", path)
            elif name in ("mkdir", "unlink", "rmdir", "fsync"):
                self.note(name, path)
            elif name == "replace":
                self.note(name, path, self.name(rest[0], {}))
            elif name in ("write", "ftruncate"):
                self.note(name.removeprefix("f"), path, rest[0])
            return found

        return call

    def open(self, path: Any, mode: str = "r", *rest: Any, opener: Any = None, **options: Any) -> Any:
        """Opens a file, and writes down what comes into it."""
        file = super().open(path, mode, *rest, opener=opener, **options)
        if not isinstance(file, Writing):
            return file
        relative = str(Path(path).relative_to(self.base))
        self.paths[file.fileno()] = relative
        if mode == "xb":
            self.note("create", relative)
        return Noting(file.file, self, partial(self.note, path=relative))


class Noting(Writing):
    """An open file; what is written and cut is written down."""

    def __init__(self, file: Any, shim: Shim, note: Callable[..., None]):
        super().__init__(file, shim)
        self.note = note

    def write(self, data: bytes) -> int:
        """Writes."""
        size = self.file.write(data)
        if data:
            self.note("write", value=data)
        return size

    def truncate(self, size: int) -> int:
        """Cuts."""
        size = self.file.truncate(size)
        self.note("truncate", value=size)
        return size


@contextlib.contextmanager
def acknowledging(calls: list[tuple[str, str, Any]]) -> Iterator[None]:
    """Writes down what the program promises, when it does."""

    def noted(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            found = function(*arguments, **options)
            calls.append((what, "", found))
            return found

        return call

    with (
        patch.object(RunWriter, "create", noted("created", RunWriter.create)),
        patch.object(Checkpoints, "save", noted("saved", Checkpoints.save)),
        patch.object(RunWriter, "finish", noted("finished", RunWriter.finish)),
    ):
        yield


def lived_and_written_down(config: LifeConfig, folder: Path, rng: random.Random) -> list[tuple[str, str, Any]]:
    """A life that is killed twice and resumed: all calls that changed files, and all promises."""
    calls: list[tuple[str, str, Any]] = []
    out, last = folder / OUT, 0
    for stretch in (rng.randint(12, 200), rng.randint(5, 150), 0):
        recorder = Recorder(folder, calls, kill_at=last + stretch if stretch else 0)
        with lenient(), acknowledging(calls), recorder.between(), contextlib.suppress(Killed):
            begun = (out / "manifest.json").exists()
            run_life(None if begun else config, out, save_every=0)
        last = len(calls)
    return [(what, path, None if what in ("created", "finished") else value) for what, path, value in calls]


def run(bench: Bench, unit: str) -> Tally:
    """One life; agents in turn; many states of the disk."""
    (number, count), rng, tally = parts_of(unit), bench.rng("power", unit), Tally()
    agent = NAMES[number % len(NAMES)]
    config = small(agent)
    with bench.scratch("power", unit, tally=tally) as folder, remembered():
        (folder / "life").mkdir()
        calls = lived_and_written_down(config, folder / "life", rng)
        moments = sorted(moment(calls, rng) for _ in range(count))
        disk, promises, done = Disk(), Promises(), 0
        for trial, end in enumerate(moments):
            for what, path, value in calls[done:end]:
                promises.happen(what, value) if not path else disk.happen(what, path, value)
            done, state = end, folder / "state"
            shutil.rmtree(state, ignore_errors=True)
            state.mkdir()
            written(disk.root, state, rng, rng.choice([0, 1, 0.5, rng.random()]))
            wrong = judged(state / OUT, config, promises)
            tally.trials += 1
            tally.seen[f"states {promises}"] += 1
            tally.fail(f"{agent}, state {trial}, after call {end} of {len(calls)}", *wrong)
    return tally


def moment(calls: list[tuple[str, str, Any]], rng: random.Random) -> int:
    """After how many calls power is lost: any; but often while the run directory is made, or right after a promise."""
    when = rng.choice(["any", "any", "first", "promised"])
    if when == "promised":
        return rng.choice([number for number, (_, path, _) in enumerate(calls, start=1) if not path])
    return rng.randrange(1, min(60, len(calls)) if when == "first" else len(calls) + 1)


@dataclass
class Promises:
    """What was acknowledged so far."""

    created: bool = False
    saved: int = -1
    finished: bool = False

    def happen(self, what: str, value: Any) -> None:
        """One more promise."""
        self.created = True
        self.saved = value if what == "saved" else self.saved
        self.finished = self.finished or what == "finished"

    def __str__(self) -> str:
        if not self.created:
            return "before the run directory was promised"
        return "after the end" if self.finished else "with a checkpoint" if self.saved >= 0 else "before a checkpoint"


def judged(out: Path, config: LifeConfig, promises: Promises) -> list[str]:
    """What is wrong with a run directory after power loss."""
    try:
        if not (out / "manifest.json").exists():
            if promises.created:
                return ["the run directory is gone"]
            RunWriter.create(out, config).close()  # nothing was promised: the life can begin anew
            return []
        with RunWriter.reopen(out) as writer:
            found = newest_number(writer.run, config)
        if found < promises.saved:
            return [f"checkpoint {promises.saved} was promised, {found} is the newest"]
        remarks = RunDirectory(out).remarks()
        if promises.finished and (RunDirectory(out).summary() is None or remarks):
            return [f"the summary was promised: {remarks}"]
    except Sentence as error:
        return [f"it does not open: {error}"]
    return []


def newest_number(run: RunDirectory, config: LifeConfig) -> int:
    """The number of the checkpoint from which a life goes on; -1 from its beginning."""
    numbers = run.checkpoints.numbers()
    if run.config() != config:
        raise InputError(f"'{run.path}' has another config.")
    if not numbers and run.metrics():
        raise InputError(f"'{run.path}' has metrics, but no checkpoints.")
    if not numbers:
        return -1
    description = newest(run, config).description
    return max(number for number in numbers if describes(run, number, description))


def describes(run: RunDirectory, number: int, description: Any) -> bool:
    """Whether a checkpoint is the one that was found."""
    try:
        return run.checkpoints.verify(run.checkpoints.path(number))[0].description == description
    except Sentence:
        return False
