"""Lifelong reinforcement learning with neural modules.

    config = modlife.config("comp-search", tasks=8, steps=100_000)     # what `modlife train` takes as options
    modlife.live(config, "runs/a")                                     # lives it; `living` does it moment by moment
    run = modlife.load("runs/a")                                       # the agent of a run directory, at work again
    run.evaluate(run.unseen)                                           # returns on combinations it never met
    modlife.report("runs/a", out="report.html")                        # a page that shows the life

Importing the package registers its Gymnasium environments and loads nothing heavy: JAX comes with the first call that
computes. The algorithm stands in `modlife.lifelong.compositional`, the main loop in `modlife.lifelong.loop`.
"""

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium

if TYPE_CHECKING:
    from modlife.lifelong.loop import Moment
    from modlife.runs.config import LifeConfig
    from modlife.runs.life import Watch
    from modlife.runs.load import Run

__version__ = "0.1.0"
__all__ = ["config", "live", "living", "load", "register", "report", "resume"]

gymnasium.register(
    id="modlife/Grid2D-v0",
    entry_point="modlife.domains.grid2d.gym:Grid2DEnv",
    vector_entry_point="modlife.domains.grid2d.gym:Grid2DVectorEnv",
)
gymnasium.register(
    id="modlife/RobotLift-v0",
    entry_point="modlife.domains.robot.gym:RobotLiftEnv",
    vector_entry_point="modlife.domains.robot.gym:RobotLiftVectorEnv",
)


def __getattr__(name: str) -> Any:
    """`modlife.metrics`, when it is asked for."""
    if name != "metrics":
        raise AttributeError(f"module 'modlife' has no attribute '{name}'")
    import importlib

    return importlib.import_module("modlife.metrics")


def config(agent: str = "comp-search", *, domain: str = "grid2d", **options: Any) -> "LifeConfig":
    """The config of a life, from the options that `modlife train` has, with tables for groups of them.

    modlife.config("comp-search", tasks=8, steps=100_000, world={"size": 10}, ppo={"envs": 8}, offline={"epochs": 3})

    Every name and type is checked. `offline="name"` and `search="name"` choose others by name, as on the command line.
    """
    from modlife.runs.config import life_from_options

    return life_from_options(agent, domain, options)


def live(
    life: "LifeConfig", out: str | Path, *, watch: "Watch | None" = None, threads: int = 1, save_every: float = 30.0
) -> dict[str, Any]:
    """Lives a life into a new run directory and returns its summary; `watch.moment` is called after each step.

    Ctrl-C and SIGTERM save it and raise `modlife.runs.interrupts.Stopped`.
    """
    from modlife.runtime import start_jax

    _check_life(life, threads=threads, save_every=save_every)
    start_jax(threads=threads)
    from modlife.runs.life import run_life

    return run_life(life, Path(out), watch=watch, devices=threads, save_every=save_every)


def _check_life(life: Any, *, threads: Any, save_every: Any) -> None:
    from modlife.checks import MOST_THREADS, check_count, check_seconds, shown
    from modlife.errors import InputError
    from modlife.runs.config import LifeConfig

    if not isinstance(life, LifeConfig):
        raise InputError(f"life = {shown(life)}, which is not a config; modlife.config makes one.")
    check_count("threads", threads, MOST_THREADS)
    check_seconds("save_every", save_every)


def living(
    life: "LifeConfig | None", out: str | Path, *, threads: int | None = None, save_every: float = 30.0
) -> "Generator[Moment, None, dict[str, Any]]":
    """A life as an iterator over its moments; leave the loop, and it is saved. Without a config, the rest of one."""
    from modlife.errors import InputError
    from modlife.runs.store import RunDirectory
    from modlife.runtime import start_jax

    saved = None if life is not None else RunDirectory.open(Path(out))
    if saved is not None and threads not in (None, saved.threads()):
        raise InputError(
            f"The life in '{out}' runs on {saved.threads()} threads; on {threads} its results would differ."
        )
    threads = saved.threads() if saved else 1 if threads is None else threads
    _check_life(life or (saved and saved.config()), threads=threads, save_every=save_every)
    start_jax(threads=threads)
    from modlife.runs.life import living

    return living(life, Path(out), devices=threads, save_every=save_every)


def resume(
    out: str | Path, *, tasks: int | None = None, watch: "Watch | None" = None, save_every: float = 30.0
) -> dict[str, Any]:
    """Goes on with a life where it was interrupted, or with more tasks where it has ended; returns its summary."""
    from modlife.checks import check_seconds, fitted
    from modlife.runs.store import RunDirectory
    from modlife.runtime import start_jax

    tasks = fitted("tasks", int | None, tasks)
    check_seconds("save_every", save_every)
    run = RunDirectory.open(Path(out))
    threads = run.threads()
    start_jax(threads=threads)
    from modlife.runs.life import grow_life, run_life

    if tasks is not None and tasks != len(run.config().chosen):
        grow_life(Path(out), tasks)
    return run_life(None, Path(out), watch=watch, devices=threads, save_every=save_every)


def load(path: str | Path | None = None) -> "Run":
    """The agent of a run directory, whether its life has ended or still goes on: to act, evaluate, look inside.

    Without a path, the agent that comes with the package: it has learnt 48 of the 64 tasks of the 2-D world.

    What is wrong with the directory, but does not keep the agent from being read, is a warning.
    """
    import warnings

    from modlife.runtime import start_jax

    start_jax(threads=None)
    from modlife.runs.load import Run
    from modlife.runs.shipped import SHIPPED

    run = Run.load(SHIPPED if path is None else path)
    for complaint in run.complaints:
        warnings.warn(complaint, stacklevel=2)
    return run


def report(*runs: str | Path, out: str | Path = "report.html") -> Path:
    """Writes a page that shows the lives of run directories, or compares several; returns its path."""
    from modlife.analysis.report.page import write
    from modlife.analysis.report.told import read_all

    write(Path(out), read_all([Path(run) for run in runs]))
    return Path(out)


def register(*entries: Any) -> None:
    """Adds domains, agents, curricula, searches, consolidators or figures to the tables that all commands use.

    Entries are `Domain`, `AgentEntry`, `Order`, `SearchEntry`, `ConsolidatorEntry`, `Figure`: docs/extending.md.
    """
    from modlife.tables import add

    for entry in entries:
        add(entry)
