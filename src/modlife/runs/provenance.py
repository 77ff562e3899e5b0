"""Where a life comes from: versions, commit, machine."""

import contextlib
import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from modlife import __version__
from modlife.runs.config import LifeConfig, life_json

SCHEMA = 3
"""Version of the run directory's layout."""

PACKAGES = ("jax", "jaxlib", "numpy", "optax", "equinox")


def manifest(config: LifeConfig, *, devices: int) -> dict[str, Any]:
    """What is written when a life begins."""
    command = ["modlife", *sys.argv[1:]]
    return {"schema": SCHEMA, "config": life_json(config), "command": command, **origin(devices=devices)}


def origin(*, devices: int) -> dict[str, Any]:
    """Where and when this process runs, and with which versions."""
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": {
            "modlife": __version__,
            "python": platform.python_version(),
            **{name: version_of(name) for name in PACKAGES},
        },
        "git": git_state(),
        "machine": {"cores": os.cpu_count(), "processor": processor(), "threads": devices},
    }


def version_of(package: str) -> str | None:
    """The version of a package; None where its metadata is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def conditions(record: dict[str, Any]) -> dict[str, str]:
    """What results may depend on, by name, from a manifest or an origin."""
    parts = (record.get(name) for name in ("versions", "git", "machine"))
    versions, git, machine = (part if isinstance(part, dict) else {} for part in parts)
    commit = f"{str(git.get('commit'))[:8]}{' and changes' if git.get('dirty') else ''}"
    return {**versions, "commit": commit, "processor": str(machine.get("processor"))}


def git_state() -> dict[str, Any] | None:
    """The commit of the source and whether it was changed since; None outside a checkout, or without git."""
    head, status = git("rev-parse", "HEAD"), git("status", "--porcelain", "--", ".")
    return None if head is None or status is None else {"commit": head, "dirty": bool(status)}


def git(*arguments: str) -> str | None:
    """What git says of the source; None where it says nothing, or is not installed."""
    try:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        out = subprocess.run(command, capture_output=True, text=True, errors="replace")
    except OSError:
        return None
    return None if out.returncode else out.stdout.strip()


def processor() -> str:
    """The processor's name."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
