"""The run directory: the only code that writes or reads runs.

    manifest.json    config, seed, command, versions, git commit, machine; written first
    metrics.jsonl    one JSON object a line, as things happen; the same bytes whenever a life is lived again
    history.jsonl    one line per process that lived a part of it: when, with which versions and commit
    checkpoints/     complete states of the life (`checkpoints.py`); replay/ holds the data they refer to
    summary.json     what the life came to; written last

Plain formats only: nothing that is loaded can run code.
"""

import fcntl
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from modlife import __version__
from modlife.errors import InputError, StoreError
from modlife.experiments.checkpoints import Checkpoints
from modlife.experiments.config import LifeConfig, from_json, to_json
from modlife.experiments.disk import ASIDE, Disk, clear, read_regular, replace_file, save_error

SCHEMA = 1
"""Version of the run directory's layout."""

PACKAGES = ("jax", "jaxlib", "numpy", "optax", "equinox")


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
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise InputError(f"'{self.path}/manifest.json' is not of schema {SCHEMA}, which this version reads.")
        return data

    def config(self) -> LifeConfig:
        """The config of the life, checked."""
        return from_json(LifeConfig, self.manifest().get("config"), where=f"{self.path}/manifest.json: config")

    def threads(self) -> int:
        """The number of threads that the life runs on."""
        machine = self.manifest().get("machine")
        threads = machine.get("threads") if isinstance(machine, dict) else None
        if threads is not None and not (isinstance(threads, str) and re.fullmatch("[1-9][0-9]{0,3}", threads)):
            raise InputError(f"'{self.path}/manifest.json' has {threads!r} for the number of threads.")
        return int(threads or 1)

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


class RunWriter(RunDirectory):
    """A run directory in the hands of its one writer."""

    def __init__(self, path: Path, disk: Disk | None = None):
        super().__init__(path, disk)
        self.lock = locked(path)
        self.written, self.hasher = 0, hashlib.sha256()

    @staticmethod
    def create(path: Path, config: LifeConfig, disk: Disk | None = None) -> "RunWriter":
        """A new run directory with its manifest; it must not exist yet. It appears whole or not at all."""
        if path.exists():
            raise InputError(f"'{path}' exists already; go on with it by --resume, choose another --out, or remove it.")
        aside, disk = path.with_name(f"{path.name}.{os.getpid()}{ASIDE}"), disk or Disk()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            disk.make(aside)
            disk.write(aside / "manifest.json", as_json(manifest(config)))
            disk.write(aside / "metrics.jsonl", b"")
            disk.write(aside / "history.jsonl", json.dumps(origin()).encode() + b"\n")
            disk.sync(aside)
            disk.rename(aside, path)
        except OSError as error:
            clear(disk, aside)
            raise save_error(path, error) from error
        return RunWriter(path, disk)

    @staticmethod
    def reopen(path: Path, disk: Disk | None = None) -> "RunWriter":
        """An existing run directory, to go on with."""
        RunDirectory.open(path)
        run = RunWriter(path, disk)
        run.checkpoints.sweep()
        if run.summary() is None:
            run.add("history.jsonl", json.dumps(origin()).encode() + b"\n")
        return run

    def append(self, record: dict[str, Any]) -> None:
        """Adds a line to the metrics; it counts once a checkpoint has been saved after it."""
        line = json.dumps(record).encode() + b"\n"
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

    def differences(self) -> str | None:
        """A sentence on what is not as it was when the life began, if anything."""
        began, now = conditions(self.manifest()), conditions(origin())
        changes = [f"{name} {began.get(name)} -> {now.get(name)}" for name in now if began.get(name) != now.get(name)]
        if not changes:
            return None
        return f"Since this life began, {', '.join(changes)}: it may not end exactly as it would have."

    def finish(self, summary: dict[str, Any]) -> None:
        """Writes the summary."""
        replace_file(self.disk, self.path / "summary.json", as_json(summary))

    def close(self) -> None:
        """Lets another writer in."""
        os.close(self.lock)


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


def manifest(config: LifeConfig) -> dict[str, Any]:
    """Where a life comes from."""
    return {"schema": SCHEMA, "config": to_json(config), "command": ["modlife", *sys.argv[1:]], **origin()}


def origin() -> dict[str, Any]:
    """Where and when this process runs, and with which versions."""
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": {
            "modlife": __version__,
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in PACKAGES},
        },
        "git": git_state(),
        "machine": {"cores": os.cpu_count(), "processor": processor(), "threads": os.environ.get("NPROC")},
    }


def conditions(record: dict[str, Any]) -> dict[str, str]:
    """What results may depend on, by name, from a manifest or an origin."""
    versions, git, machine = (record.get(name) or {} for name in ("versions", "git", "machine"))
    commit = f"{str(git.get('commit'))[:8]}{' and changes' if git.get('dirty') else ''}"
    return {**versions, "commit": commit, "processor": str(machine.get("processor"))}


def git_state() -> dict[str, Any] | None:
    """The commit of the source and whether it was changed since; None outside a checkout."""
    command = ["git", "-C", str(Path(__file__).parent)]
    head = subprocess.run([*command, "rev-parse", "HEAD"], capture_output=True, text=True)
    if head.returncode:
        return None
    status = subprocess.run([*command, "status", "--porcelain", "--", "."], capture_output=True, text=True)
    return {"commit": head.stdout.strip(), "dirty": bool(status.stdout.strip())}


def processor() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
