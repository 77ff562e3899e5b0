"""Where a life comes from: versions, commit, machine."""

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

SCHEMA = 2
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
            **{name: importlib.metadata.version(name) for name in PACKAGES},
        },
        "git": git_state(),
        "machine": {"cores": os.cpu_count(), "processor": processor(), "threads": devices},
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
