"""`modlife sync`."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from modlife.checks import check_between
from modlife.errors import InputError, plain


@dataclass(frozen=True)
class Options:
    """Copy the metrics of run directories to a tracker's own files, when a life has ended or while it goes on.

    Nothing is sent anywhere. Repeated, it copies what is new: no point twice, also where a life was killed and resumed.
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run directories made by `modlife train`."""
    to: Literal["tensorboard", "wandb", "mlflow"]
    """Whose files: event files, an offline run of Weights & Biases, or a data base of MLflow."""
    out: Path | None = None
    """Where to write; by default a directory with the tracker's name."""
    watch: bool = False
    """Go on until all lives have ended."""
    every: float = 30.0
    """Seconds between two looks."""


def run(options: Options) -> None:
    """Copies."""
    check_between(options, 1.0, 86_400.0, "every")
    if options.every != Options.every and not options.watch:
        raise InputError("--every is for --watch: without it everything is copied once.")
    if not options.runs:
        raise InputError("Name one run directory at least.")
    names = [path.resolve().name for path in options.runs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"Several runs are called '{name}': give each an --out of its own.")
    from modlife.exports.sync import sync
    from modlife.exports.trackers import tracker
    from modlife.runs.store import RunDirectory

    write, out, left = tracker(options.to), options.out or Path(options.to), list(options.runs)
    while left:
        for path in left:
            count = sync(path, out, write)
            if count or not options.watch:
                print(plain(f"{path}: {count} points to {out}"), flush=True)
        left = [path for path in left if options.watch and not RunDirectory.open(path).has_ended]
        time.sleep(options.every if left else 0)
