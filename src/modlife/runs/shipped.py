"""The agent that comes with the package: a run directory like any other, without replay.

`scripts/ship_agent.py` makes it from a life; its manifest says from which one, and how to live that again.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import modlife

if TYPE_CHECKING:
    from modlife.runs.load import Run

SHIPPED = Path(modlife.__file__).parent / "data" / "agent"
"""Where it is. It has met three quarters of its world's tasks: the others show what it can do unseen."""


def introduction(run: "Run") -> str:
    """Who it is, for whoever gave no run directory."""
    tasks = len(run.agent.env.graph.tasks)
    return (
        f"The agent that comes with the package: {run.config.agent}, which has learnt {len(run.tasks)} of the {tasks} "
        f"tasks of '{run.domain.name}', {run.config.steps:,} steps each."
    )
