"""The run directory of one life.

    manifest.json    config, seed, command, versions, git commit, machine; written first
    metrics.jsonl    one JSON object a line, as things happen; the same bytes whenever a life is lived again
    history.jsonl    one line per process that lived a part of it: when, with which versions and commit
    checkpoints/     complete states of the life (`checkpoints.py`); replay/ holds the data they refer to
    summary.json     what the life came to; written last

Plain formats only: nothing that is loaded can run code.
"""

import fcntl
import hashlib
import json
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from modlife.errors import InputError, StoreError
from modlife.runs.checkpoints import Checkpoints
from modlife.runs.config import LifeConfig, life_from_json, life_json
from modlife.runs.durable import ASIDE, Disk, clear, read_regular, replace_file, save_error
from modlife.runs.provenance import SCHEMA, conditions, manifest, origin


class RunDirectory:
    """A directory that holds one life, for reading."""

    def __init__(self, path: Path, disk: Disk | None = None):
        self.path, self.disk = path, disk or Disk()
        self.checkpoints = Checkpoints(path, self.disk)

    @staticmethod
    def open(path: Path) -> "RunDirectory":
        """An existing run directory."""
        if not (path / "manifest.json").is_file():
            raise InputError(f"'{path}' is not a run directory: it has no manifest.json. `modlife train` makes one.")
        return RunDirectory(path)

    def manifest(self) -> dict[str, Any]:
        """What was written when the life began."""
        data = read_json(self.path / "manifest.json")
        if not isinstance(data, dict) or data.get("schema") not in (1, SCHEMA):
            raise InputError(f"'{self.path}/manifest.json' is not of schema 1 or {SCHEMA}, which this version reads.")
        return data

    def config(self) -> LifeConfig:
        """The config of the life, checked."""
        return life_from_json(self.manifest().get("config"), where=f"{self.path}/manifest.json: config")

    def threads(self) -> int:
        """The number of threads that the life runs on; schema 1 had it as text."""
        machine = self.manifest().get("machine")
        threads = machine.get("threads") if isinstance(machine, dict) else None
        text = str(threads) if type(threads) in (int, str) else ""
        if threads is not None and not re.fullmatch("[1-9][0-9]{0,3}", text):
            raise InputError(f"'{self.path}/manifest.json' has {threads!r} for the number of threads.")
        return int(text or 1)

    def metrics(self) -> Iterator[dict[str, Any]]:
        """The records so far; a last line that was torn by a kill is left out."""
        path = self.path / "metrics.jsonl"
        for line in read_regular(path).splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield parsed(path, line)

    def summary(self) -> dict[str, Any] | None:
        """What the life came to, if it has ended."""
        path = self.path / "summary.json"
        return read_json(path) if path.exists() or path.is_symlink() else None


class RunWriter:
    """A run directory in the hands of its one writer, until it is closed; also as `with RunWriter...`."""

    def __init__(self, path: Path, disk: Disk | None = None):
        self.run = RunDirectory(path, disk)
        self.path, self.disk, self.checkpoints = path, self.run.disk, self.run.checkpoints
        self.lock: int | None = locked(path)
        self.written, self.hasher = 0, hashlib.sha256()

    @staticmethod
    def create(path: Path, config: LifeConfig, disk: Disk | None = None, *, devices: int = 1) -> "RunWriter":
        """A new run directory with its manifest; it must not exist yet. It appears whole or not at all."""
        if path.exists():
            raise InputError(f"'{path}' exists already; go on with it by --resume, choose another --out, or remove it.")
        aside, disk = path.with_name(f"{path.name}.{os.getpid()}{ASIDE}"), disk or Disk()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            disk.make(aside)
            disk.write(aside / "manifest.json", as_json(manifest(config, devices=devices)))
            disk.write(aside / "metrics.jsonl", b"")
            disk.write(aside / "history.jsonl", as_line(origin(devices=devices)))
            disk.sync(aside)
            disk.rename(aside, path)
        except OSError as error:
            clear(disk, aside)
            raise save_error(path, error) from error
        return RunWriter(path, disk)

    @staticmethod
    def reopen(path: Path, disk: Disk | None = None, *, devices: int = 1) -> "RunWriter":
        """An existing run directory, to go on with."""
        RunDirectory.open(path)
        writer = RunWriter(path, disk)
        try:
            writer.checkpoints.sweep()
            if writer.run.summary() is None:
                writer.add("history.jsonl", as_line(origin(devices=devices)))
        except BaseException:
            writer.close()
            raise
        return writer

    def __enter__(self) -> "RunWriter":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def grow(self, tasks: int) -> LifeConfig:
        """Plans further tasks for a life that has ended: its new config. What was lived stays as it is."""
        config, before = self.run.config().grown_to(tasks), self.run.manifest()
        replace_file(self.disk, self.path / "manifest.json", as_json({**before, "config": life_json(config)}))
        return config

    def append(self, record: dict[str, Any]) -> None:
        """Adds a line to the metrics; it counts once a checkpoint has been saved after it."""
        line = as_line(record)
        self.add("metrics.jsonl", line)
        self.written += len(line)
        self.hasher.update(line)

    def add(self, name: str, line: bytes) -> None:
        """Adds a line to a file."""
        try:
            self.disk.append(self.path / name, line, sync=False)
        except OSError as error:
            raise save_error(self.path / name, error) from error

    def sync_metrics(self) -> tuple[int, str]:
        """Makes the metrics durable; their length and checksum."""
        try:
            self.disk.append(self.path / "metrics.jsonl", b"", sync=True)
        except OSError as error:
            raise save_error(self.path / "metrics.jsonl", error) from error
        return self.written, self.hasher.hexdigest()

    def rewind_metrics(self, size: int, checksum: str) -> None:
        """Cuts the metrics back to what a checkpoint knows of; they must begin with exactly that."""
        path = self.path / "metrics.jsonl"
        data = read_regular(path)[:size]
        self.written, self.hasher = size, hashlib.sha256(data)
        if len(data) < size or self.hasher.hexdigest() != checksum:
            raise InputError(f"'{path}' is damaged: its first {size} bytes are not those that were written.")
        try:
            self.disk.truncate(path, size)
        except OSError as error:
            raise save_error(path, error) from error

    def differences(self, *, devices: int) -> str | None:
        """A sentence on what is not as it was when the life began, if anything."""
        began, now = conditions(self.run.manifest()), conditions(origin(devices=devices))
        changes = [f"{name} {began.get(name)} -> {now.get(name)}" for name in now if began.get(name) != now.get(name)]
        if not changes:
            return None
        return f"Since this life began, {', '.join(changes)}: it may not end exactly as it would have."

    def finish(self, summary: dict[str, Any]) -> None:
        """Writes the summary."""
        replace_file(self.disk, self.path / "summary.json", as_json(summary))

    def close(self) -> None:
        """Lets another writer in."""
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None


def locked(path: Path) -> int:
    """The lock on a run directory, held until its handle is closed or the process ends."""
    try:
        handle = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except OSError as error:
        raise save_error(path / "lock", error) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(handle, 200, 0).decode(errors="replace").strip() or "which has just begun"
        os.close(handle)
        raise StoreError(f"'{path}' is being written by another process ({holder}).") from error
    try:
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
    except OSError as error:
        os.close(handle)
        raise save_error(path / "lock", error) from error
    return handle


def as_line(data: Any) -> bytes:
    """A line of JSON."""
    return json.dumps(data).encode() + b"\n"


def as_json(data: Any) -> bytes:
    """A small file that people may read."""
    return json.dumps(data, indent=1).encode() + b"\n"


def read_json(path: Path) -> Any:
    """Reads a file, or says in one sentence that it is damaged."""
    return parsed(path, read_regular(path))


def parsed(path: Path, data: bytes) -> Any:
    """What JSON of a file says."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"'{path}' cannot be read: {error}.") from error
