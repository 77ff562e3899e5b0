"""How long lives will take: from recorded rates, put right by lives that have ended. An estimate, and no more.

    seconds = start + tasks * steps / online rate + sample-passes offline / offline rate + episodes * steps / their rate

Rates are the domain's, by its entry, and the agent's entry says how much slower it learns online. The online rate is
that of the usual number of epochs; those that an agent makes more, or fewer, are counted. What lives took, or the
beginning of one, over what was estimated, says how fast this machine is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from modlife.lifelong.foresight import by_chance
from modlife.metrics import evaluations
from modlife.runs.config import LifeConfig
from modlife.runs.many import Planned
from modlife.runs.store import RunDirectory

START = 25.0
"""Seconds until a process has loaded and compiled what it needs."""


@lru_cache(maxsize=10_000)
def seconds(config: LifeConfig) -> float:
    """What a life takes by recorded rates."""
    rates = config.domain.of("rates", config.world)
    tasks = len(config.chosen)
    ppo = getattr(config.settings, "ppo", None)
    longer = 1 + rates.learning * (getattr(ppo, "epochs", rates.epochs) / rates.epochs - 1)
    online = tasks * config.steps * config.entry.slower * longer / rates.online
    evaluated = sum(min(met, config.panel or met) for met in range(1, tasks + 1))
    episodes = config.episodes * (evaluated + 10 * tasks)
    acting = episodes * config.world.horizon / 2 / rates.evaluation
    return START + online + passes(config) / rates.offline + acting


def passes(config: LifeConfig) -> float:
    """Samples that go through networks in all offline phases: rows x epochs x tasks that are learnt from at a time."""
    settings, tasks = config.settings, len(config.chosen)
    kept = min(getattr(settings, "replay_size", 0), config.steps)
    way: Any = next(
        (found for name in ("offline", "compress", "distill") if (found := getattr(settings, name, None))), None
    )
    if way is None:
        return 0.0
    old = np.arange(tasks) * by_chance(config.world.graph.shape) if hasattr(settings, "offline") else np.zeros(tasks)
    at_once = np.minimum(1 + old, getattr(way, "tasks", None) or np.inf)
    return float(getattr(way, "epochs", 0) * kept * at_once.sum())


@dataclass(frozen=True)
class Forecast:
    """What is known of a life before it is lived."""

    life: Planned
    state: str
    """`ended`, `begun` or `to do`."""
    seconds: float
    """That it took; or, about, that it will still take."""


def forecasts(lives: Sequence[Planned]) -> list[Forecast]:
    """What lives took that have ended, and about what the others will take on this machine."""
    took = {life.out: taken(life) for life in lives if life.has_ended}
    guessed = sum(seconds(life.config) for life in lives if life.out in took)
    slower = sum(took.values()) / guessed if took else 1.0
    return [forecast(life, took.get(life.out), slower) for life in lives]


def taken(life: Planned) -> float:
    """Seconds that a life took."""
    summary = RunDirectory.open(life.out).summary()
    return summary["seconds"] if summary else 0.0


def forecast(life: Planned, took: float | None, slower: float) -> Forecast:
    """What a life took; or what is left of it, if it goes as slowly as others."""
    if took is not None:
        return Forecast(life, "ended", took)
    if not life.has_begun:
        return Forecast(life, "to do", slower * seconds(life.config))
    done = len(evaluations(RunDirectory.open(life.out).metrics(), "seen")) / len(life.config.stages.stages)
    return Forecast(life, "begun", slower * seconds(life.config) * (1 - done))


@lru_cache(maxsize=10_000)
def kind_of(config: LifeConfig) -> LifeConfig:
    """What lives have in common that differ by their seeds only."""
    return replace(config, seed=0)


def expected(
    config: LifeConfig, known: Mapping[LifeConfig, Sequence[float]], *, spent: float = 0.0, done: float = 0.0
) -> float:
    """What a life takes: as those of its kind that are `known`; else as estimated, and put right.

    If it has begun, by what it has `spent` on what is `done`; else by known lives of its domain, or by all known.
    """
    whole = seconds(config)
    if kin := known.get(kind_of(config)):
        return sum(kin) / len(kin)
    if done:
        return whole * spent / (START + done * (whole - START))
    near = {one: took for one, took in known.items() if one.domain == config.domain} or known
    guessed = sum(seconds(one) * len(took) for one, took in near.items())
    return whole * sum(map(sum, near.values())) / guessed if near else whole
