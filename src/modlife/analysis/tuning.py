"""The paper's search for hyper-parameters: the lives that try settings, and the table that they come to.

    "We tuned the STL hyper-parameters via grid-search over the learning rate and the number of environment interactions
    per training step. [...] one task with each static object. [...] For lifelong agents, we tuned their main
    hyper-parameter by training on five tasks over five random seeds."                                  Appendix D.1

A setting is tried in one life per seed; its score is the mean return over the life's tasks at its end, so that what was
forgotten counts. Chosen is the setting with the highest mean over seeds; of equals the first in the grid.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from modlife.analysis.lives import read_life
from modlife.analysis.studies import Setting, Study
from modlife.domains.domain import DOMAINS
from modlife.domains.graph import ProblemGraph
from modlife.metrics import mean_and_error
from modlife.runs.config import LifeConfig, life_from_options
from modlife.runs.many import Planned

TABLE = "table.csv"
FIRST_SEED = 1000
"""Lives that are reported have small seeds: nothing is chosen on them."""


@dataclass(frozen=True)
class Trial:
    """A study at a scale: so many seeds, environment steps per task, and settings of the grid."""

    study: Study
    folder: Path
    steps: int
    seeds: int
    episodes: int
    settings: tuple[Setting, ...]

    def planned(self) -> list[Planned]:
        """Its lives: each setting with each seed, seed after seed, so that an early look sees all settings."""
        return [
            Planned(self.config(setting, seed), self.folder / f"{in_name(setting)}-{seed}")
            for seed in range(FIRST_SEED, FIRST_SEED + self.seeds)
            for setting in self.settings
        ]

    def config(self, setting: Setting, seed: int) -> LifeConfig:
        """The life that tries a setting with a seed."""
        options: dict[str, Any] = {"steps": self.steps, "episodes": self.episodes, "seed": seed}
        for name, value in setting.items():
            group, field = name.split(".")
            options.setdefault(group, {})[field] = value
        if self.study.tasks is None:
            graph = DOMAINS["grid2d"].usual_world().graph
            return life_from_options(self.study.agent, "grid2d", {**options, "only": one_of_each(graph, seed=seed)})
        return life_from_options(self.study.agent, "grid2d", {**options, "tasks": self.study.tasks})

    def scores(self) -> list[tuple[Setting, list[float]]]:
        """For each setting, the mean return of each of its lives at its end; of those that have ended."""
        found: dict[str, list[float]] = {in_name(setting): [] for setting in self.settings}
        for life in self.planned():
            if life.has_ended:
                found[life.out.name.rpartition("-")[0]].append(read_life(life.out).summary["seen"]["mean_return"])
        return [(setting, found[in_name(setting)]) for setting in self.settings]


def one_of_each(graph: ProblemGraph, *, seed: int) -> list[str]:
    """A task for each component of the first factor, its other components drawn by chance."""
    rng = np.random.default_rng(seed)
    first, *others = graph.factors
    return ["/".join([one, *(str(rng.choice(other.components)) for other in others)]) for one in first.components]


def some(settings: Sequence[Setting], most: int | None) -> tuple[Setting, ...]:
    """At most so many settings, from all over the grid."""
    if most is None or len(settings) <= most:
        return tuple(settings)
    return tuple(settings[n] for n in np.linspace(0, len(settings) - 1, most).round().astype(int))


def in_name(setting: Setting) -> str:
    """A setting in the name of a run directory."""
    return "-".join(f"{name.rpartition('.')[2]}={value:g}" for name, value in setting.items())


def chosen(scores: Sequence[tuple[Setting, Sequence[float]]]) -> Setting | None:
    """Of settings with as many ended lives as any has, that with the highest mean, of equals the first; or None."""
    most = max(len(found) for _, found in scores)
    known = [(setting, float(np.mean(found))) for setting, found in scores if found and len(found) == most]
    return max(known, key=lambda one: one[1])[0] if known else None


def table(trial: Trial) -> list[dict[str, Any]]:
    """A line for each setting: its values, lives, their mean return and its error, and whether it is chosen."""
    scores = trial.scores()
    best, rows = chosen(scores), []
    for setting, found in scores:
        mean, error = mean_and_error(found) if found else (float("nan"), float("nan"))
        numbers = [None if np.isnan(value) else round(value, 4) for value in (mean, error)]
        about = {"study": trial.study.name, "agent": trial.study.agent, "steps": trial.steps, **setting}
        rows.append(about | {"lives": len(found), "return": numbers[0], "standard_error": numbers[1]})
        rows[-1]["chosen"] = "yes" if setting is best else ""
    return rows
