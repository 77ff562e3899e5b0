"""Grids of hyper-parameters, each with its source: what `modlife tune` tries. No JAX here."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modlife.registry import Table

ENVS = 16
"""Environments of PPO, as the authors ran it: what they call interactions per training step is shared by these."""

Setting = Mapping[str, float]
"""Values of options, by their names on the command line."""


@dataclass(frozen=True)
class Study:
    """A grid for one agent."""

    name: str
    about: str
    agent: str
    grid: Mapping[str, Sequence[float]]
    """For each option, the values that are tried."""
    source: str
    """Where the grid comes from."""
    seeds: int = 5
    tasks: int | None = 5
    """Tasks of a life: the first of its order; None for one with each component of the first factor."""

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All combinations, the last option's values fastest."""
        return tuple(dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values()))


LAMBDAS = (1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4)
STUDIES = Table(
    "study",
    Study(
        "ppo",
        "learning rate and environment steps per update of single-task learning",
        "stl",
        {
            "ppo.learning_rate": (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2),
            "ppo.length": tuple(steps // ENVS for steps in (256, 512, 1024, 2048, 4096, 8192)),
        },
        "the paper, appendix D.1; steps per update are length times 16 environments",
        seeds=1,
        tasks=None,
    ),
    Study("ewc", "lambda of online EWC", "ewc", {"ewc.strength": LAMBDAS}, "the paper, appendix D.1"),
    Study(
        "ewc-wide",
        "larger lambdas of online EWC",
        "ewc",
        {"ewc.strength": (1e4, 1e5, 1e6, 1e7, 1e8)},
        "ours: the paper's lambda goes with another count of information (docs/details.md, 44i)",
    ),
    Study("pc", "lambda of Progress & Compress", "pc", {"compress.strength": LAMBDAS}, "the paper, appendix D.1"),
    Study(
        "clear",
        "replay ratio of CLEAR",
        "clear",
        {"clear.ratio": (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)},
        "the paper, appendix D.1",
    ),
    Study(
        "clear-cloning",
        "cloning weights of CLEAR",
        "clear",
        {"clear.policy_weight": (0.01, 0.1, 1.0), "clear.value_weight": (0.005, 0.05, 0.5)},
        "ours: Rolnick et al. 2019 have 0.01 and 0.005, beside losses that are sums",
    ),
    Study(
        "reset-distill",
        "share of the new task in the loss of Reset & Distill, and what is kept of old ones",
        "reset-distill",
        {"distill.new_share": (0.25, 0.5, 0.75), "distill.old_rows": (1_000, 10_000, 100_000)},
        "ours: Ahn et al. 2025 give both halves the same weight",
    ),
)

TUNED: Mapping[str, Mapping[str, Any]] = {
    "ewc": {"ewc": {"strength": 0.1}},
    "pc": {"compress": {"strength": 100.0}},
    "clear": {"clear": {"ratio": 1.5}},
}
"""What was chosen for agents in the 2-D world, by groups of options: `docs/tuning/`, a table for each study. By default
agents have the paper's values: 10,000, 10 and 1.5."""
