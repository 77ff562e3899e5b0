"""Metrics of lifelong learning by name: each a pure function of `Scores`, with its formula and who defines it.

Each gives an array of signed parts, nothing clipped: a number for each task, or for each pair of tasks. The metric is
the mean of those that are known (`known_mean`); NaN is what is not. Tasks i = 1..N are learnt in this order, R[j, i]
is the return of task i after stage j, A_i the area under the learning curve of task i per step, and A_i_alone that of
an agent which learns it from scratch. H is the highest return that a task can have: 1, unless a domain or a user says
otherwise. Where several tasks share a stage, "i" in R[i, i] is the stage of task i.

Sources: Continual World (Wolczyk et al. 2021), GEM (Lopez-Paz and Ranzato 2017), CORA (Powers et al. 2022), Taylor and
Stone 2009, and the paper (Mendez, van Seijen, Eaton 2022).
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from modlife.metrics.scores import Curve, PerTask, Scores

TOLERATED = 0.05
"""A loss of return that does not matter, as a share of the highest return."""


def known_mean(parts: Float[np.ndarray, " part"]) -> float:
    """The mean of what is known; NaN where nothing is."""
    known = parts[~np.isnan(parts)]
    return float(known.mean()) if len(known) else float("nan")


# The paper's bars


def zero_shot_bar(scores: Scores) -> PerTask:
    """R[i-1, i]: before a task is learnt; for agents that search, after the search. The paper, Figure 3, right."""
    return scores.before


def online_bar(scores: Scores) -> PerTask:
    """After learning a task online, before consolidation. The paper, Figure 3, right."""
    return scores.online if scores.online is not None else np.full(len(scores.tasks), np.nan)


def offline_bar(scores: Scores) -> PerTask:
    """R[i, i]: after a task's own stage. The paper, Figure 3, right."""
    return scores.learnt


def final_bar(scores: Scores) -> PerTask:
    """At the end of the life, with as many episodes as its last evaluation has. The paper, Figure 3, right."""
    return scores.end


def final_minus_offline(scores: Scores) -> PerTask:
    """B_i = final_i - R[i, i]: the paper's backward transfer; positive is gained, negative forgotten."""
    return scores.end - scores.learnt


# What is reached and kept


def average_performance(scores: Scores) -> PerTask:
    """P = 1/N Σ_i R[N, i]. Continual World's average performance, P(T); the same as GEM's ACC."""
    return scores.last


def continual_world_forgetting(scores: Scores) -> PerTask:
    """F_i = R[i, i] - R[N, i], over all tasks: the last adds 0. Continual World; positive is lost."""
    return scores.learnt - scores.last


def gem_backward_transfer(scores: Scores) -> PerTask:
    """BWT = 1/(N-1) Σ_{i<N} (R[N, i] - R[i, i]): tasks of the last stage do not count. GEM; positive is gained."""
    earlier = np.array(scores.stage) < scores.last_stage
    return np.where(earlier, scores.last - scores.learnt, np.nan)


def cora_forgetting(scores: Scores) -> Float[np.ndarray, " pair"]:
    """F_ij = (R[j-1, i] - R[j, i]) / |max_k R[k, i]| for stages j after that of task i. CORA's isolated forgetting."""
    stage, own = np.arange(1, len(scores.after))[:, None], np.array(scores.stage)[None]
    return -relative_changes(scores)[stage > own]


def relative_changes(scores: Scores) -> Float[np.ndarray, "stage task"]:
    """(R[j, i] - R[j-1, i]) / |max_k R[k, i]|: what a stage did to a task, relative to its best; NaN if that is 0."""
    best = np.abs(np.where(np.isnan(scores.after), -np.inf, scores.after).max(axis=0))
    return np.diff(scores.after, axis=0) / np.where(np.isfinite(best) & (best > 0), best, np.nan)


def worst_change(scores: Scores) -> Float[np.ndarray, " 1"]:
    """min_i (final_i - R[i, i]): the task that lost most; a mean can hide it."""
    changes = final_minus_offline(scores)
    return np.array([np.nan if np.isnan(changes).all() else np.nanmin(changes)])


def kept(scores: Scores) -> PerTask:
    """1 for tasks with final_i >= max_{j >= i} R[j, i] - .05 H, else 0: the mean is the share that kept their best."""
    since = np.arange(len(scores.after))[:, None] >= np.array(scores.stage)[None]
    best = np.where(since & ~np.isnan(scores.after), scores.after, -np.inf).max(axis=0)
    known = np.isfinite(best) & ~np.isnan(scores.end)
    return np.where(known, scores.end >= best - TOLERATED * scores.highest, np.nan)


# What earlier tasks give to later ones


def gem_forward_transfer(scores: Scores) -> PerTask:
    """FWT = 1/(N-1) Σ_{i>1} (R[i-1, i] - R[0, i]): tasks of the first stage do not count. GEM; R[0]: untrained."""
    later = np.array(scores.stage) > 1
    return np.where(later, scores.before - scores.after[0], np.nan)


def cora_zero_shot_transfer(scores: Scores) -> Float[np.ndarray, " pair"]:
    """Z_ij = (R[j, i] - R[j-1, i]) / |max_k R[k, i]| for stages j before that of task i. CORA's zero-shot transfer."""
    stage, own = np.arange(1, len(scores.after))[:, None], np.array(scores.stage)[None]
    return relative_changes(scores)[stage < own]


def areas_under_curves(scores: Scores) -> PerTask:
    """A_i = (1 / T) ∫ return d(steps) from 0 to T: mean training return of a task over its steps (`area`)."""
    return per_task(scores, lambda own, _: own.area)


def area_gain(scores: Scores) -> PerTask:
    """A_i - A_i_alone, in units of return, up to the last step that both curves have; positive is faster than alone."""
    return per_task(scores, gain, together=True)


def normalised_transfer(scores: Scores) -> PerTask:
    """FT_i = (A_i - A_i_alone) / (H - A_i_alone). Continual World's forward transfer, where H is 1.

    Over tasks with A_i_alone < H; their own code takes means over seeds first, as is done with the curves alone here.
    """

    def relative(own: Curve, other: Curve) -> float:
        room = scores.highest - other.until(own.steps[-1]).area
        return gain(own, other) / room if room > 0 else np.nan

    return per_task(scores, relative, together=True)


def jump_start(scores: Scores) -> PerTask:
    """First known return of the learning curve, minus that of the curve alone. Taylor and Stone 2009."""
    return per_task(scores, lambda own, other: own.start - other.start, together=True)


def gain(own: Curve, other: Curve) -> float:
    """The difference of the areas under two curves up to the last step that both have."""
    end = min(own.steps[-1], other.steps[-1])
    return own.until(end).area - other.until(end).area


def steps_to(curve: Curve, threshold: float) -> float:
    """The first step at which a return reaches a threshold; infinity if none does."""
    reached = np.flatnonzero(curve.returns >= threshold)
    return float(curve.steps[reached[0]]) if len(reached) else float("inf")


def steps_to_threshold(scores: Scores, threshold: float) -> PerTask:
    """The first step with a return of at least threshold times H. Taylor and Stone 2009, time to threshold.

    A task that never reaches it counts with all of its steps: look at the share that does, too.
    """
    return per_task(scores, lambda own, _: min(steps_to(own, threshold * scores.highest), float(own.steps[-1])))


def reaches_threshold(scores: Scores, threshold: float) -> PerTask:
    """1 for tasks whose learning curve reaches threshold times H, else 0."""
    return per_task(scores, lambda own, _: float(np.isfinite(steps_to(own, threshold * scores.highest))))


def per_task(scores: Scores, number: Callable[[Curve, Curve], float], *, together: bool = False) -> PerTask:
    """A number from each task's learning curve, and from that alone, where there is one; `together`: from both only."""
    found = []
    for task in scores.tasks:
        own = scores.curves.get(task)
        other = scores.alone.get(task, None if together else own)
        found.append(number(own, other) if own is not None and other is not None else np.nan)
    return np.array(found)
