"""`modlife train`."""

import dataclasses
import signal
import sys
from pathlib import Path

from modlife.errors import InputError
from modlife.experiments.config import LifeConfig


def run(
    config: LifeConfig, out: Path, threads: int | None = None, resume: bool = False, save_every: float = 30
) -> None:
    """Let an agent learn tasks, into a new run directory; or go on with a life that was interrupted.

    A life may be killed at any moment. Ctrl-C and SIGTERM save it first. `--resume` goes on where it stood, to the
    same results as if it had never been interrupted.

    Args:
        config: The life.
        out: The run directory to make, or to go on with.
        threads: Processor threads for this life, 1 by default; results depend on their number.
        resume: Go on with the life in `out`; its own options are taken, and need not be given again.
        save_every: Seconds between checkpoints; there is one after each search and each task in any case.
    """
    if resume:
        config, threads = resumed(config, out, threads)
    config.curriculum  # noqa: B018  # says what is wrong with it before JAX is loaded

    from modlife.runtime import start_jax

    threads = threads or 1
    start_jax(threads=threads)
    from modlife.cli.progress import progress_for
    from modlife.cli.tables import summary_text
    from modlife.experiments.life import Stopped, run_life

    try:
        with progress_for(config) as progress:
            summary = run_life(config, out, progress=progress, devices=threads, resume=resume, save_every=save_every)
    except Stopped as stopped:
        print(f"stopped by {stopped}, and saved. Go on with: modlife train --resume --out {out}", file=sys.stderr)
        sys.exit(128 + signal.Signals(stopped.number))
    print(summary_text(summary))
    print(f"run directory: {out}")


def resumed(config: LifeConfig, out: Path, threads: int | None) -> tuple[LifeConfig, int]:
    """The config and threads of the life to go on with; options that were given again must be the same."""
    from modlife.experiments.store import RunDirectory

    run = RunDirectory.open(out)
    saved, saved_threads = run.config(), run.threads()
    for field in dataclasses.fields(LifeConfig):
        given, default = getattr(config, field.name), getattr(LifeConfig(), field.name)
        if given not in (default, getattr(saved, field.name)):
            raise InputError(
                f"--resume goes on with the life in '{out}', whose {field.name} is {getattr(saved, field.name)}, "
                f"not {given}. Leave the option out, or begin a new life with another --out."
            )
    if threads not in (None, saved_threads):
        raise InputError(f"The life in '{out}' runs on {saved_threads} threads; on {threads} its results would differ.")
    return saved, saved_threads
