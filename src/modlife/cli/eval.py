"""`modlife eval`."""

import json
from pathlib import Path
from typing import Annotated

import tyro

from modlife.learners.config import Acting


def run(
    run: tyro.conf.Positional[Path],
    task: tuple[str, ...] = (),
    unseen: bool = False,
    episodes: int = 1000,
    acting: Acting | None = None,
    seed: int = 0,
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> None:
    """Evaluate the agent that a run directory holds: on the tasks it learnt, or on others.

    Args:
        run: A run directory made by `modlife train`.
        task: Only these tasks, each as one component per factor.
        unseen: All combinations that it never trained on (zero-shot), their structures by their components.
        episodes: Episodes per task, each with a layout of its own.
        acting: Act by this rule instead of the agent's own.
        seed: Layouts and actions follow from it; training used others.
        as_json: Print JSON for programs instead of a table.
    """
    from modlife.runtime import start_jax

    start_jax()
    from modlife.cli.tables import evaluation_table
    from modlife.experiments.trained import evaluate_run

    record = evaluate_run(run, task, unseen=unseen, episodes=episodes, acting=acting, seed=seed)
    print(json.dumps(record) if as_json else evaluation_table(record))
