"""The run directory: the only code that writes or reads runs.

    manifest.json    config, seed, command, versions, git commit, machine; written first
    metrics.jsonl    one JSON object a line, as things happen
    checkpoint/      arrays as safetensors, with a description in JSON; written at the end
    summary.json     what the life came to; written last

Plain formats only: nothing that is loaded can run code.
"""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from modlife import __version__
from modlife.errors import InputError
from modlife.experiments.config import LifeConfig, from_json, to_json

SCHEMA = 1
"""Version of the run directory's layout."""

PACKAGES = ("jax", "jaxlib", "numpy", "optax", "equinox")


class RunDirectory:
    """A directory that holds one life."""

    def __init__(self, path: Path):
        self.path = path

    @staticmethod
    def create(path: Path, config: LifeConfig) -> "RunDirectory":
        """A new run directory with its manifest; it must not exist yet."""
        if path.exists():
            raise InputError(f"'{path}' exists already; choose another --out, or remove it.")
        path.mkdir(parents=True)
        run = RunDirectory(path)
        write_json(path / "manifest.json", manifest(config))
        (path / "metrics.jsonl").touch()
        return run

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

    def append(self, record: dict[str, Any]) -> None:
        """Adds a line to the metrics, complete or not at all for readers that skip a torn last line."""
        with (self.path / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")

    def metrics(self) -> Iterator[dict[str, Any]]:
        """The records so far; a last line that was torn by a kill is left out."""
        for line in (self.path / "metrics.jsonl").read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                yield json.loads(line)

    def save(self, params: Any, description: dict[str, Any]) -> None:
        """Writes the checkpoint."""
        from safetensors.numpy import save_file

        aside = self.path / "checkpoint.tmp"
        aside.mkdir(exist_ok=True)
        save_file(named_arrays(params), aside / "params.safetensors")
        write_json(aside / "checkpoint.json", description)
        aside.rename(self.path / "checkpoint")

    def load(self, template: Any) -> tuple[Any, dict[str, Any]]:
        """The checkpoint's arrays in the place of the template's, and its description."""
        import jax
        import jax.numpy as jnp
        from safetensors.numpy import load_file

        folder = self.path / "checkpoint"
        if not folder.is_dir():
            raise InputError(f"'{self.path}' has no checkpoint: its life did not end. Train again with another --out.")
        saved, expected = load_file(folder / "params.safetensors"), named_arrays(template)
        for name, array in expected.items():
            if name not in saved or saved[name].shape != array.shape or saved[name].dtype != array.dtype:
                raise InputError(f"'{folder}/params.safetensors' does not fit the config: array '{name}' differs.")
        leaves = [jnp.asarray(saved[name]) for name in expected]
        return jax.tree.unflatten(jax.tree.structure(template), leaves), read_json(folder / "checkpoint.json")

    def finish(self, summary: dict[str, Any]) -> None:
        """Writes the summary."""
        write_json(self.path / "summary.json", summary)


def named_arrays(tree: Any) -> dict[str, Any]:
    """The arrays of a tree by their path in it."""
    import jax
    import numpy as np

    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def write_json(path: Path, data: Any) -> None:
    """Writes a file aside, then renames it: readers see all of it or none."""
    aside = path.with_suffix(".tmp")
    aside.write_text(json.dumps(data, indent=1) + "\n")
    aside.replace(path)


def read_json(path: Path) -> Any:
    """Reads a file, or says in one sentence that it is damaged."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"'{path}' cannot be read: {error}.") from error


def manifest(config: LifeConfig) -> dict[str, Any]:
    """Where a life comes from."""
    return {
        "schema": SCHEMA,
        "config": to_json(config),
        "command": ["modlife", *sys.argv[1:]],
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": {
            "modlife": __version__,
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in PACKAGES},
        },
        "git": git_state(),
        "machine": {"cores": os.cpu_count(), "processor": processor(), "threads": os.environ.get("NPROC")},
    }


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
