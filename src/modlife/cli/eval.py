"""`modlife eval`."""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from modlife.checks import check_evaluation
from modlife.cli.choices import Json
from modlife.cli.counter import counting
from modlife.cli.words import tell
from modlife.errors import InputError
from modlife.metrics import stages_of
from modlife.runs.shipped import SHIPPED, introduction
from modlife.types import Acting

if TYPE_CHECKING:
    from modlife.runs.load import Run


@dataclass(frozen=True)
class Options:
    """Evaluate the agent that a run directory holds: on the tasks it learnt, or on others.

    Without a run directory, the agent that comes with the package: it has learnt 48 of the 64 tasks of the 2-D world.
    """

    run: tyro.conf.Positional[Path | None] = None
    """A run directory made by `modlife train`; without it, the agent that comes with the package."""
    task: tuple[str, ...] = ()
    """Only these tasks, each as one component per factor."""
    unseen: bool = False
    """All combinations that it never trained on (zero-shot): nothing is learnt; one that searches tries modules."""
    by_components: bool = False
    """Without that search: for each component of an unseen task the module that was first used for it."""
    episodes: int = 1000
    """Episodes per task, each with a layout of its own."""
    acting: Acting | None = None
    """Act by this rule instead of the agent's own. Greedy ones can do far worse: without memory it gets stuck."""
    seed: int = 0
    """Layouts and actions follow from it; training used others."""
    as_json: Json = False
    """Print JSON for programs instead of a table."""


def run(options: Options) -> None:
    """Evaluates."""
    if options.task and options.unseen:
        raise InputError(f"--task {' '.join(options.task)} beside --unseen: give either tasks or --unseen.")
    check_evaluation(options.task, episodes=options.episodes, acting=options.acting, seed=options.seed)
    from modlife.runtime import start_jax

    start_jax()
    from modlife.cli.tables import evaluation_table
    from modlife.domains.env import is_slow
    from modlife.runs.load import Run

    found = Run.load(options.run or SHIPPED)
    for sentence in (*([] if options.run else [introduction(found)]), *found.complaints):
        tell(sentence)
    tasks = options.task or (found.unseen if options.unseen else None)
    if options.by_components and not options.unseen and not {*map(str, tasks or ())} - {*map(str, found.tasks)}:
        raise InputError("--by-components is for tasks that were never learnt: name some with --task, or add --unseen.")
    asked = {name: getattr(options, name) for name in ("episodes", "acting", "seed", "by_components")}
    with counting():
        record = found.evaluate(tasks, **asked)
        note = "" if options.as_json else unlearnt(found, record["tasks"], by_components=options.by_components)
        untrained = found.untrained.evaluate(tasks, **asked) if note and not is_slow(found.agent.env) else None
    if options.as_json:
        print(json.dumps(record))
        return
    print(evaluation_table(record, searched=searched(found), untrained=untrained))
    if note:
        print(note)


def unlearnt(found: "Run", tasks: Sequence[str], *, by_components: bool) -> str:
    """That some tasks were never learnt, and where their structures come from; nothing where all were."""
    new = [task for task in tasks if task not in {str(one) for one in found.tasks}]
    if not new:
        return ""
    how = "it tried combinations of its modules in some episodes, took the best"
    if by_components or not any(found.found.values()):
        how = "its modules were taken by the tasks' components"
    which = f"{len(new)} of these {len(tasks)} tasks"
    if len(new) == len(tasks):
        which = "these tasks" if len(tasks) > 1 else "this task"
    return f"On {which} it was never trained: {how}, and learnt nothing."


def searched(found: "Run") -> set[str]:
    """The tasks whose structure was found by a search, as far as the metrics can tell."""
    with contextlib.suppress(InputError, LookupError, TypeError):  # metrics can be damaged, and need not be there
        records = found.records
        stages = stages_of(records)
        structures = [record for record in records if record["kind"] == "structure" and record["how"] == "searched"]
        return {task for record in structures for task in stages[record["stage"]]}
    return set()
