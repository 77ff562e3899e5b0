"""All metrics by name, and what several lives came to in each: what `modlife metrics` prints."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from modlife.metrics.definitions import (
    area_gain,
    areas_under_curves,
    average_performance,
    continual_world_forgetting,
    cora_forgetting,
    cora_zero_shot_transfer,
    final_bar,
    final_minus_offline,
    gem_backward_transfer,
    gem_forward_transfer,
    jump_start,
    kept,
    normalised_transfer,
    offline_bar,
    online_bar,
    reaches_threshold,
    steps_to_threshold,
    worst_change,
    zero_shot_bar,
)
from modlife.metrics.modules import recovery, reuse, search_regret, search_share
from modlife.metrics.scores import Scores
from modlife.metrics.statistics import interquartile_mean_over_lives, mean_over_lives

THRESHOLD = 0.5


@dataclass(frozen=True)
class Metric:
    """A number of a life: the mean of its parts."""

    name: str
    source: str
    formula: str
    of: Callable[[Scores], Float[np.ndarray, " part"]]
    better: str = "higher"
    digits: int = 3
    middle: bool = True
    """Whether an interquartile mean of the parts says anything: not of a single one, nor of yes and no."""


PAPER, WORLD, GEM, CORA, STONE = "the paper", "Continual World", "GEM", "CORA", "Taylor & Stone"
HERE, STORAGE = "modlife", "Díaz-Rodríguez et al."


def cost(scores: Scores, name: str) -> Float[np.ndarray, " 1"]:
    """One of the resources that a life took."""
    return np.array([scores.cost.get(name, np.nan)])


TRANSFER = (
    Metric("zero-shot", PAPER, "mean of R[i-1, i]; after the search, if any", zero_shot_bar),
    Metric("online", PAPER, "mean return after learning, before consolidation", online_bar),
    Metric("offline", PAPER, "mean of R[i, i]", offline_bar),
    Metric("final", PAPER, "mean return at the end of the life", final_bar),
    Metric("final minus offline", PAPER, "mean of final_i - R[i, i]", final_minus_offline),
    Metric("average performance", WORLD, "mean of R[N, i]; GEM's ACC", average_performance),
    Metric("forgetting", WORLD, "mean of R[i, i] - R[N, i]", continual_world_forgetting, "lower"),
    Metric("backward transfer", GEM, "mean of R[N, i] - R[i, i], i < N", gem_backward_transfer),
    Metric("isolated forgetting", CORA, "(R[j-1, i] - R[j, i]) / |max|, j > i", cora_forgetting, "lower"),
    Metric("worst change", HERE, "min of final_i - R[i, i]", worst_change, middle=False),
    Metric("kept their best", HERE, "share with final_i >= max R[j, i] - .05 H", kept, middle=False),
    Metric("forward transfer", WORLD, "(A - A_alone) / (H - A_alone)", normalised_transfer),
    Metric("area gained", HERE, "mean of A - A_alone", area_gain),
    Metric("zero-shot gain", GEM, "FWT: mean of R[i-1, i] - R[0, i], i > 1", gem_forward_transfer),
    Metric("zero-shot transfer", CORA, "(R[j, i] - R[j-1, i]) / |max|, j < i", cora_zero_shot_transfer),
    Metric("jump-start", STONE, "first return - first return alone", jump_start),
    Metric("area under curve", STONE, "A: mean training return over steps", areas_under_curves),
)
"""What is reached, kept, and given to later tasks."""
MODULES = (
    Metric("structure recovery", HERE, "mean of ARI_f: modules against components", recovery, middle=False),
    Metric("search regret", HERE, "best return in the search - fresh return", search_regret, "lower"),
    Metric("search share", HERE, "steps of the search / steps of its task", search_share, "lower"),
    Metric("tasks per module", HERE, "mean over modules that serve any", reuse, digits=1),
)
"""How modules serve tasks."""
COSTS = tuple(
    Metric(name, STORAGE, f"{what} of the life", partial(cost, name=name), better, digits, middle=False)
    for name, what, better, digits in (
        ("hours", "wall-clock", "lower", 2),
        ("processor hours", "processor time", "lower", 2),
        ("megabytes", "most memory", "lower", 0),
        ("steps per second", "environment steps per second", "higher", 0),
    )
)
"""What a life took."""


def speed(threshold: float) -> tuple[Metric, ...]:
    """How soon a return is reached that is worth reaching."""
    return (
        Metric(
            f"steps to {threshold:g}",
            STONE,
            f"first step with a return of {threshold:g} H; never: all",
            partial(steps_to_threshold, threshold=threshold),
            "lower",
            0,
        ),
        Metric(
            f"reached {threshold:g}",
            STONE,
            f"share whose training return gets to {threshold:g} H",
            partial(reaches_threshold, threshold=threshold),
            middle=False,
        ),
    )


def every_metric(threshold: float = THRESHOLD) -> tuple[Metric, ...]:
    """All metrics; the threshold is a return that is worth reaching, as a share of the highest."""
    return *TRANSFER, *speed(threshold), *MODULES, *COSTS


def measured(
    groups: Mapping[str, Sequence[Scores]], metrics: Sequence[Metric] | None = None, *, confidence: float = 0.95
) -> list[dict[str, Any]]:
    """A line for each group of lives and each metric of which anything is known: mean over lives and interval.

    Beside it the interquartile mean over all parts of all lives, with its own. None is what is not known.
    """
    rows = []
    for label, lives in groups.items():
        for metric in every_metric() if metrics is None else metrics:
            parts = [metric.of(scores) for scores in lives]
            mean = mean_over_lives(parts, confidence=confidence)
            if not mean.lives:
                continue
            middle = interquartile_mean_over_lives(parts if metric.middle else (), confidence=confidence)
            values = {"value": mean.value, "low": mean.low, "high": mean.high}
            values |= {"iqm": middle.value, "iqm_low": middle.low, "iqm_high": middle.high}
            about = {"source": metric.source, "better": metric.better, "formula": metric.formula}
            told = {name: None if np.isnan(value) else round(value, 6) for name, value in values.items()}
            rows.append({"label": label, "metric": metric.name, "lives": mean.lives, **told, **about})
    return rows
