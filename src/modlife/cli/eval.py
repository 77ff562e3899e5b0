"""`modlife eval`."""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from modlife.checks import check_evaluation
from modlife.cli.choices import REQUIRED, Json
from modlife.cli.words import tell
from modlife.errors import InputError
from modlife.metrics import stages_of
from modlife.types import Acting

if TYPE_CHECKING:
    from modlife.runs.load import Run


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
        raise InputError(f"--task {' '.join(options.task)} beside --unseen: give either tasks or --unseen.")
    check_evaluation(options.task, episodes=options.episodes, acting=options.acting, seed=options.seed)
    from modlife.runtime import start_jax

    start_jax()
    from modlife.cli.tables import evaluation_table
    from modlife.runs.load import Run

    found = Run.load(options.run)
    for complaint in found.complaints:
        tell(complaint)
    tasks = options.task or (found.unseen if options.unseen else None)
    record = found.evaluate(tasks, episodes=options.episodes, acting=options.acting, seed=options.seed)
    print(json.dumps(record) if options.as_json else evaluation_table(record, searched=searched(found)))


def searched(found: "Run") -> set[str]:
    """The tasks whose structure was found by a search, as far as the metrics can tell."""
    with contextlib.suppress(InputError, LookupError, TypeError):  # metrics can be damaged, and need not be there
        records = found.records
        stages = stages_of(records)
        structures = [record for record in records if record["kind"] == "structure" and record["how"] == "searched"]
        return {task for record in structures for task in stages[record["stage"]]}
    return set()
