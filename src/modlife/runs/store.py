"""The run directory of one life.

    manifest.json    config, seed, command, versions, git commit, machine; written first
    metrics.jsonl    one JSON object a line, as things happen; the same bytes whenever a life is lived again
    history.jsonl    one line per process that lived a part of it: when, with which versions and commit
    checkpoints/     complete states of the life (`checkpoints.py`); replay/ holds the data they refer to
    summary.json     what the life came to; written last
    lock  lease-N.json    who writes here, or did last (`lease.py`)

Plain formats only: nothing that is loaded can run code.
"""

import contextlib
import errno
import fcntl
import glob
import hashlib
import os
import re
import secrets
import time
import weakref
from pathlib import Path
from typing import Any

from modlife.errors import InputError, StoreError, plain
from modlife.runs.checkpoints import Checkpoints, Description
from modlife.runs.codec import from_json, to_json
from modlife.runs.config import LifeConfig, life_from_json, life_json
from modlife.runs.durable import ASIDE, Disk, clear, make_parents, read_regular, reading, replace_file, saving, unsaved
from modlife.runs.lease import Guarded, Lease, claim, locked, take
from modlife.runs.provenance import SCHEMA, conditions, manifest, origin
from modlife.runs.records import Record, checked_records, checked_summary
from modlife.runs.sealed import MEGABYTE, File, as_bytes, damaged, read_body, sealed, sealed_line, unsealed_line

MANIFEST, METRICS, HISTORY, SUMMARY = "manifest.json", "metrics.jsonl", "history.jsonl", "summary.json"
MOST = {MANIFEST: MEGABYTE, METRICS: 1024 * MEGABYTE, HISTORY: 64 * MEGABYTE, SUMMARY: 64 * MEGABYTE}
"""More bytes than these files ever have."""
SEALED = 3
"""Run directories of this schema have checksums for everything; those of earlier ones for checkpoints only."""
OLD = "from an older version, without checksums"
TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
"""What renaming a directory says when another has the name already."""
LONG_AGO = 60.0
"""Seconds after which somebody who was about to lock something is not any more."""
OURS = re.compile(rf"\.[0-9a-f]{{8}}{re.escape(ASIDE)}")


class RunDirectory:
    """A directory that holds one life, for reading. What is damaged is said, and never read as if it were not."""

    def __init__(self, path: Path, disk: Disk | None = None):
        self.path, self.disk = path, disk or Disk()
        self.checkpoints = Checkpoints(path, self.disk)

    @staticmethod
    def open(path: Path) -> "RunDirectory":
        """An existing run directory."""
        with reading(path):
            is_run = (path / MANIFEST).is_file()
            some = None if is_run else next(path.glob(f"*/{MANIFEST}"), None)
        if not is_run:
            hint = f"It holds some: name '{some.parent}', for example." if some else "`modlife train` makes one."
            raise InputError(f"'{path}' is not a run directory: it has no {MANIFEST}. {hint}")
        return RunDirectory(path)

    def manifest(self) -> dict[str, Any]:
        """What was written when the life began."""
        path = self.path / MANIFEST
        data, has_seal = read_body(path, most=MOST[MANIFEST])
        if data.get("schema") not in range(1, SCHEMA + 1) or isinstance(data["schema"], bool):
            raise InputError(f"'{path}' is not of schema 1 to {SCHEMA}, which this version reads.")
        if data["schema"] >= SEALED and not has_seal:
            raise damaged(path, "it has no checksum")
        return data

    @property
    def is_sealed(self) -> bool:
        """Whether everything has a checksum."""
        return self.manifest()["schema"] >= SEALED

    def config(self) -> LifeConfig:
        """The config of the life, checked."""
        where = f"{self.path}/{MANIFEST}: config"
        try:
            return life_from_json(self.manifest().get("config"), where=where)
        except InputError as error:
            if str(self.path) in str(error):
                raise
            raise InputError(f"{where}: {error}") from error

    def threads(self) -> int:
        """The number of threads that the life runs on; schema 1 had it as text."""
        machine = self.manifest().get("machine")
        threads = machine.get("threads") if isinstance(machine, dict) else None
        text = str(threads) if type(threads) in (int, str) else ""
        if threads is not None and not re.fullmatch("[1-9][0-9]{0,3}", text):
            raise InputError(f"'{self.path}/{MANIFEST}' has {threads!r} for the number of threads.")
        return int(text or 1)

    def metrics(self) -> list[Record]:
        """The records so far; a last line that was torn by a kill is left out."""
        path = self.path / METRICS
        lines = [unsealed_line(path, line, sealed=False) for line in whole_lines(self.known_bytes(METRICS))]
        return list(checked_records(lines, path))

    def history(self) -> list[dict[str, Any]]:
        """One record for each process that lived a part of it."""
        path, has_seals = self.path / HISTORY, self.is_sealed
        with reading(path):
            if not has_seals and not path.exists():
                return []  # the first versions had none
        return [unsealed_line(path, line, sealed=has_seals) for line in whole_lines(self.known_bytes(HISTORY))]

    def known_bytes(self, name: str) -> bytes:
        """A file that grows; as much of it as the summary, or else the newest checkpoint, knows is as it was written.

        A life that has ended adds nothing.
        """
        known = self.known_files().get(name)
        data = read_regular(self.path / name, most=MOST[name])
        if known and not known.begins(data):
            raise not_as_written(self.path / name, known)
        if known and self.has_ended and len(data) > known.bytes:
            raise damaged(self.path / name, f"it goes on after the {known.bytes} bytes that were written")
        return data

    def known_files(self) -> dict[str, File]:
        """How far files that grow are known: by the summary, or by the newest checkpoint that can be read."""
        summary = self.summary() if self.has_ended else None
        if summary is not None and "files" in summary:
            found = {name: from_json(File, file) for name, file in summary["files"].items()}
            return {METRICS: found["metrics"], HISTORY: found["history"]}
        if summary is not None:
            return {}
        known = self.newest_description()
        return {} if known is None else {METRICS: known.metrics, HISTORY: known.history}

    def newest_description(self) -> Description | None:
        """What the newest checkpoint says that can be read; None where there is none."""
        for number in reversed(self.checkpoints.numbers()):
            with contextlib.suppress(InputError):  # damaged, or removed by its writer right now
                return self.checkpoints.verify(self.checkpoints.path(number))[0].description
        return None

    def begin_with(self, known: Description) -> None:
        """Metrics and history begin with what a checkpoint knows of them, or it is said that they do not."""
        for name, file in ((METRICS, known.metrics), (HISTORY, known.history)):
            if not file.begins(read_regular(self.path / name, most=MOST[name])):
                raise not_as_written(self.path / name, file)

    @property
    def has_ended(self) -> bool:
        """Whether all tasks that are planned were met."""
        summary = self.summary()
        return summary is not None and summary["tasks"] == len(self.config().chosen)

    def summary(self) -> Record | None:
        """What the life came to, if it has ended."""
        path = self.path / SUMMARY
        with reading(path):
            if not path.exists() and not path.is_symlink():
                return None
        data, has_seal = read_body(path, most=MOST[SUMMARY])
        if self.is_sealed and not has_seal:
            raise damaged(path, "it has no checksum")
        return checked_summary(data, path)

    def remarks(self) -> list[str]:
        """What is wrong with files that tell of the life, and what cannot be known."""
        old = f"'{self.path}' is {OLD}: damage to what it tells of its life may go unnoticed."
        return [*self.complaints(), *([] if self.is_sealed else [old])]

    def complaints(self) -> list[str]:
        """What is wrong with files that tell of the life."""
        found = []
        for read in (self.summary, self.metrics, self.history):
            try:
                read()
            except InputError as error:
                if str(error) not in found:
                    found.append(str(error))
        return found


def not_as_written(path: Path, known: File) -> InputError:
    """The error for a file that does not begin with what is known of it."""
    return damaged(path, f"its first {known.bytes} bytes are not those that were written")


def whole_lines(data: bytes) -> list[bytes]:
    """Lines that were written to their end."""
    return [line for line in data.splitlines(keepends=True) if line.endswith(b"\n")]


class RunWriter:
    """A run directory in the hands of its one writer, until it is closed; also as `with RunWriter...`."""

    def __init__(self, path: Path, disk: Disk | None = None, *, held: tuple[int, Lease] | None = None):
        self.lock: int | None
        self.lock, self.lease = held or hold(path)
        self.run = RunDirectory(path, Guarded(disk or Disk(), self.lease.keep()))
        self.path, self.disk, self.checkpoints = path, self.run.disk, self.run.checkpoints
        self.written, self.hasher = 0, hashlib.sha256()
        OPEN.add(self)

    @staticmethod
    def create(path: Path, config: LifeConfig, disk: Disk | None = None, *, devices: int = 1) -> "RunWriter":
        """A new run directory with its manifest; it must not exist yet. It appears whole or not at all, and locked."""
        with reading(path):
            if path.exists() or path.is_symlink():
                raise taken(path)
        aside, disk, lock = path.with_name(f"{path.name}.{secrets.token_hex(4)}{ASIDE}"), disk or Disk(), None
        lease = None
        try:
            make_parents(disk, path)
            sweep_beside(disk, path)
            disk.make(aside)
            lock = locked(aside)
            lease = claim(aside, 1)
            disk.write(aside / MANIFEST, sealed(manifest(config, devices=devices)))
            disk.write(aside / METRICS, b"")
            disk.write(aside / HISTORY, sealed_line(origin(devices=devices)))
            disk.sync(aside)
            disk.rename(aside, path)
        except BaseException as error:
            clear(disk, aside)
            if lease is not None:
                lease.forget()
            if lock is not None:
                os.close(lock)
            if not isinstance(error, OSError):
                raise
            raise (taken(path) if error.errno in TAKEN and path.exists() else unsaved(path, error)) from error
        lease.path = path / lease.path.name
        return RunWriter(path, disk, held=(lock, lease))

    @staticmethod
    def reopen(path: Path, disk: Disk | None = None) -> "RunWriter":
        """An existing run directory, to go on with."""
        RunDirectory.open(path)
        writer = RunWriter(path, disk)
        try:
            with saving(path):
                writer.run.manifest()
                writer.checkpoints.sweep()
                sweep_beside(writer.disk, path)
                writer.disk.sync(path.parent)
                writer.own()
        except BaseException:
            writer.close()
            raise
        return writer

    def own(self) -> None:
        """Files that are changed in place get a place of their own, if they share it with a copy (a hard link)."""
        for name in (METRICS, HISTORY):
            path = self.path / name
            if path.is_file() and not path.is_symlink() and path.stat().st_nlink > 1:
                replace_file(self.disk, path, read_regular(path, most=MOST[name]))

    def note(self, *, devices: int) -> None:
        """Notes in the history that this process lives a part of the life; not in a line that a kill tore."""
        path = self.path / HISTORY
        with saving(path):
            data = read_regular(path, most=MOST[HISTORY]) if path.exists() else b""
            if not data.endswith(b"\n") and data:
                self.disk.truncate(path, data.rfind(b"\n") + 1)
        line = sealed_line if self.run.is_sealed else as_bytes
        self.add(HISTORY, line(origin(devices=devices)))

    def __enter__(self) -> "RunWriter":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def grow(self, tasks: int) -> LifeConfig:
        """Plans further tasks for a life that has ended: its new config. What was lived stays as it is."""
        config, before = self.run.config().grown_to(tasks), self.run.manifest()
        replace_file(self.disk, self.path / MANIFEST, sealed({**before, "config": life_json(config)}))
        return config

    def records(self) -> list[Record]:
        """The lines of the metrics that belong to the life as it stands."""
        path = self.path / METRICS
        data = read_regular(path, most=MOST[METRICS])[: self.written]
        if hashlib.sha256(data).digest() != self.hasher.digest():
            raise not_as_written(path, File(self.written, self.hasher.hexdigest()))
        return [unsealed_line(path, line, sealed=False) for line in whole_lines(data)]

    def append(self, record: dict[str, Any]) -> None:
        """Adds a line to the metrics; it counts once a checkpoint has been saved after it."""
        line = as_bytes(record)
        self.add(METRICS, line)
        self.written += len(line)
        self.hasher.update(line)

    def add(self, name: str, line: bytes) -> None:
        """Adds a line to a file."""
        with saving(self.path / name):
            self.disk.append(self.path / name, line, sync=False)

    def sync(self) -> tuple[File, File]:
        """Makes metrics and history durable; what is known of them now."""
        for name in (METRICS, HISTORY):
            with saving(self.path / name):
                self.disk.append(self.path / name, b"", sync=True)
        history = read_regular(self.path / HISTORY, most=MOST[HISTORY])
        return File(self.written, self.hasher.hexdigest()), File.of(history)

    def rewind_metrics(self, known: File) -> None:
        """Cuts the metrics back to what a checkpoint knows of, which they begin with."""
        path = self.path / METRICS
        data = read_regular(path, most=MOST[METRICS])[: known.bytes]
        self.written, self.hasher = known.bytes, hashlib.sha256(data)
        with saving(path):
            self.disk.truncate(path, known.bytes)

    def differences(self, *, devices: int) -> str | None:
        """A sentence on what is not as it was when the life began, if anything."""
        began, now = conditions(self.run.manifest()), conditions(origin(devices=devices))
        changes = [f"{name} {began.get(name)} -> {now.get(name)}" for name in now if began.get(name) != now.get(name)]
        if not changes:
            return None
        return plain(f"Since this life began, {', '.join(changes)}: it may not end exactly as it would have.")

    def finish(self, summary: dict[str, Any]) -> dict[str, Any]:
        """Writes the summary, with what is known of the files that grew; returns it as it stands there."""
        metrics, history = self.sync()
        whole = {**summary, "files": {"metrics": to_json(metrics), "history": to_json(history)}}
        replace_file(self.disk, self.path / SUMMARY, sealed(whole))
        return whole

    def close(self) -> None:
        """Lets another writer in, even if a process that was forked off this one lives on."""
        if self.lock is not None:
            self.lease.give_back()
            fcntl.flock(self.lock, fcntl.LOCK_UN)
            self.forget()

    def forget(self) -> None:
        """Closes the lock's handle; the lock itself is free when nobody else has it."""
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None


OPEN: weakref.WeakSet[RunWriter] = weakref.WeakSet()
"""Writers of this process. A process that is forked off it holds no locks."""
os.register_at_fork(after_in_child=lambda: [writer.forget() for writer in OPEN] and None)


def hold(path: Path) -> tuple[int, Lease]:
    """The lock on a run directory, and the lease."""
    lock = locked(path)
    try:
        return lock, take(path, lock)
    except BaseException:
        os.close(lock)
        raise


def taken(path: Path) -> InputError:
    """The error for a place where a new run directory cannot be made."""
    if path.is_dir() and (path / MANIFEST).exists():
        return InputError(f"'{path}' exists already; go on with it by --resume, choose another --out, or remove it.")
    what = "a directory, but not a run" if path.is_dir() else "not a directory"
    return InputError(f"'{path}' exists already, and is {what}; choose another --out, or remove it.")


def sweep_beside(disk: Disk, path: Path) -> None:
    """Removes what killed processes left that were about to make this run directory: it is old, and not locked."""
    for aside in path.parent.glob(f"{glob.escape(path.name)}.*{ASIDE}"):
        ours = OURS.fullmatch(aside.name.removeprefix(path.name)) and not aside.is_symlink()
        with contextlib.suppress(StoreError, FileNotFoundError):  # somebody is still at it, or it got its own name
            if ours and time.time() - aside.stat().st_mtime > LONG_AGO:
                lock = locked(aside)
                clear(disk, aside)
                os.close(lock)
