"""`modlife eval`."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from modlife.cli.choices import REQUIRED, Json
from modlife.errors import InputError
from modlife.types import Acting


@dataclass(frozen=True)
class Options:
    """Evaluate the agent that a run directory holds: on the tasks it learnt, or on others."""

    run: tyro.conf.Positional[Path]
    """A run directory made by `modlife train`."""
    task: tuple[str, ...] = ()
    """Only these tasks, each as one component per factor."""
    unseen: bool = False
    """All combinations that it never trained on (zero-shot), their structures by their components."""
    episodes: int = 1000
    """Episodes per task, each with a layout of its own."""
    acting: Acting | None = None
    """Act by this rule instead of the agent's own."""
    seed: int = 0
    """Layouts and actions follow from it; training used others."""
    as_json: Json = False
    """Print JSON for programs instead of a table."""


def usual(arguments: Sequence[str]) -> Options:
    """The options."""
    return Options(run=REQUIRED)


def run(options: Options) -> None:
    """Evaluates."""
    if options.task and options.unseen:
        raise InputError("Give either tasks or --unseen, not both.")
    from modlife.runtime import start_jax

    start_jax()
    from modlife.cli.tables import evaluation_table
    from modlife.runs.load import Run

    found = Run.load(options.run)
    for complaint in found.complaints:
        print(complaint, file=sys.stderr)
    tasks = options.task or (found.unseen if options.unseen else None)
    record = found.evaluate(tasks, episodes=options.episodes, acting=options.acting, seed=options.seed)
    print(json.dumps(record) if options.as_json else evaluation_table(record))
