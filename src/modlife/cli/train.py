"""`modlife train`."""

import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modlife.checks import MOST_THREADS, check_count, check_seconds
from modlife.cli.choices import REQUIRED, Life, filed_life, given, usual_life
from modlife.cli.words import tell
from modlife.errors import Busy, InputError, plain
from modlife.runs.codec import flat, to_json
from modlife.runs.config import LifeConfig

if TYPE_CHECKING:
    from modlife.runs.life import Watch

LOOK = 1.0
"""Seconds between two looks at a run directory that is waited for."""


@dataclass(frozen=True)
class Options:
    """Let an agent learn tasks, into a new run directory; or go on with a life that was interrupted.

    A life may be killed at any moment. Ctrl-C and SIGTERM save it first. `--resume` goes on where it stood, to the
    same results as if it had never been interrupted. A life that has ended goes on with more tasks: `--resume
    --tasks 80`. Only options of the domain, agent, search and way to learn offline that are named stand below:
    `modlife train --agent ewc --help` shows those of another.
    """

    out: Path
    """The run directory to make, or to go on with."""
    life: Life
    domain: str = "grid2d"
    """Which domain; it decides on the options `--world`."""
    search: str | None = None
    """How to find structures, by name (`modlife list`); it decides on the options `--search`. By default what is usual:
    exhaustive in the 2-D world, halving with robots."""
    offline: str | None = None
    """How to learn offline, by name (`modlife list`); it decides on the options `--offline`. By default what is usual:
    bcq in the 2-D world, bounded with robots."""
    config: Path | None = None
    """A file with options (TOML; `modlife config RUN` prints a run's own), or a run directory; what is given beside it
    wins."""
    threads: int | None = None
    """Processor threads for this life, 1 by default; results depend on their number."""
    resume: bool = False
    """Go on with the life in `out`; its own options are taken, and need not be given again."""
    resume_or_begin: bool = False
    """Go on with the life in `out` if there is one, which must be that of these options; else begin it."""
    wait: float = 0
    """Seconds to wait for a run directory that another process is writing."""
    parent: int | None = None
    """The number of the process that starts this one: when it is gone, the life is saved and stops."""
    save_every: float = 30
    """Seconds between checkpoints; there is one after each phase and each task in any case."""


def usual(arguments: Sequence[str]) -> Options:
    """The options of the agent and domain that the arguments name; or of the life to go on with."""
    out, config = given(arguments, "out"), given(arguments, "config")
    if "--resume" in arguments and config is not None:
        raise InputError("--resume goes on with a life by its own options: leave --config out.")
    if config is not None:
        life, threads = filed_life(Path(config), arguments)
        return Options(REQUIRED, life, domain=life.domain.name, threads=threads)
    if "--resume" not in arguments or out is None:
        return Options(REQUIRED, usual_life(arguments))
    from modlife.runs.store import RunDirectory

    saved = RunDirectory.open(Path(out)).config()
    domain, agent = given(arguments, "domain") or saved.domain.name, given(arguments, "agent") or saved.agent
    if (domain, agent) != (saved.domain.name, saved.agent):
        name, one, other = (
            ("agent", saved.agent, agent) if agent != saved.agent else ("domain", saved.domain.name, domain)
        )
        raise contradiction(Path(out), name, one, other)
    tasks, met = given(arguments, "tasks") or "", len(saved.chosen)
    if tasks.isdecimal() and int(tasks) < met:
        raise InputError(f"The life in '{out}' is planned for {met} tasks; it cannot end with {tasks}.")
    return Options(REQUIRED, saved, domain=saved.domain.name)


def run(options: Options) -> None:
    """Trains."""
    config, threads = options.life, options.threads
    check_seconds("save_every", options.save_every)
    check_seconds("wait", options.wait)
    if options.parent not in (None, os.getppid()):
        raise InputError(f"--parent is {options.parent}, but the process that started this one is {os.getppid()}.")
    options = replace(options, resume=options.resume or (options.resume_or_begin and is_begun(options.out)))
    if threads is not None:
        check_count("threads", threads, MOST_THREADS)
    if options.resume:
        config, threads = resumed(options)
        if options.resume_or_begin and config != options.life:
            raise contradiction(options.out, "number of tasks", len(config.chosen), len(options.life.chosen))
    threads = threads or 1
    from modlife.runtime import start_jax

    start_jax(threads=threads)
    from modlife.cli.progress import progress_for
    from modlife.cli.tables import summary_text
    from modlife.runs.interrupts import Stopped
    from modlife.runs.life import grow_life

    if options.resume and config != options.life:
        config = grow_life(options.out, len(options.life.chosen))
        tell(f"going on with {len(config.chosen) - config.grown[-1]} more tasks, {len(config.chosen)} in all")
    try:
        with progress_for(config, is_new=not options.resume) as watch:
            summary = lived(options, config, watch, threads)
    except Stopped as stopped:
        go_on = f"modlife train --resume --out {options.out}"
        tell(f"stopped by {stopped}, and saved. Go on with: {go_on}")
        sys.exit(128 + signal.Signals(stopped.number))
    print(summary_text(summary, highest=config.world.graph.highest_return))
    print(f"run directory: {plain(options.out)}")


def lived(options: Options, config: LifeConfig, watch: "Watch", threads: int) -> dict[str, Any]:
    """The summary of the life, for whose run directory is waited if need be."""
    from modlife.runs.interrupts import Interrupts
    from modlife.runs.life import run_life

    until, resume = time.monotonic() + options.wait, options.resume
    more = {"watch": watch, "devices": threads, "save_every": options.save_every, "parent": options.parent}
    while True:
        try:
            return run_life(None if resume else config, options.out, **more)
        except Busy:
            if time.monotonic() >= until:
                raise
            Interrupts(options.parent).check()
            time.sleep(LOOK)
        except InputError:  # somebody else may have begun it just now
            if resume or not (options.resume_or_begin and is_begun(options.out)):
                raise
            resumed(options)
            resume = True


def is_begun(out: Path) -> bool:
    """Whether there is a run directory."""
    from modlife.runs.store import MANIFEST

    return (out / MANIFEST).is_file()


def resumed(options: Options) -> tuple[LifeConfig, int]:
    """The config and threads of the life to go on with; options that were given again must be the same."""
    from modlife.runs.store import RunDirectory

    run = RunDirectory.open(options.out)
    saved, threads = run.config(), run.threads()
    asked = replace(options.life, tasks=saved.tasks)
    before, now = flat(to_json(saved)), flat(to_json(asked))
    for name in before:
        if now.get(name) != before[name]:
            raise contradiction(options.out, name, before[name], now.get(name))
    if options.threads not in (None, threads):
        raise InputError(
            f"The life in '{options.out}' runs on {threads} threads; on {options.threads} its results would differ."
        )
    return saved if len(options.life.chosen) != len(saved.chosen) else options.life, threads


def contradiction(out: Path, name: str, saved: object, given: object) -> InputError:
    """The error for an option that is not that of the life to go on with."""
    return InputError(
        f"--resume goes on with the life in '{out}', whose {name} is {saved}, not {given}. Leave the option out, or "
        "begin a new life with another --out."
    )
