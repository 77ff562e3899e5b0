"""Numbers over several lives: means, interquartile means, and intervals that resample whole lives.

The tasks of a life depend on each other: what one learnt, the next built on. An interval that draws tasks, or pairs of
life and task, as if they were independent is too narrow; here a life is drawn with all its tasks or not at all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Parts = Float[np.ndarray, " part"]
Counts = Float[np.ndarray, "resample life"]
Statistic = Callable[[Counts], Float[np.ndarray, " resample"]]
"""Takes how often each life was drawn."""

CONFIDENCE = 0.95
RESAMPLES = 2000
SEED = 0
AT_ONCE = 10**6
"""Numbers that are held at a time."""


@dataclass(frozen=True)
class Estimate:
    """A number over lives with its interval; the interval of one life is not known, and NaN."""

    value: float
    low: float
    high: float
    lives: int


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard error over seeds; the error of a single seed is not known."""
    data = np.array(values, float)
    return float(data.mean()), float(data.std(ddof=1) / np.sqrt(len(data))) if len(data) > 1 else float("nan")


def reach(lives: int, *, confidence: float = CONFIDENCE) -> float:
    """How many standard errors the interval of a mean over so many lives reaches to either side: Student's t.

    A bootstrap over whole lives gives the same but for its draws (`estimate`). One life has no interval.
    """
    from scipy.special import stdtrit

    return float(stdtrit(lives - 1, (1 + confidence) / 2)) if lives > 1 else float("nan")


def mean_over_lives(lives: Sequence[Parts], **options: float) -> Estimate:
    """The mean over lives of each life's mean over its parts, such as tasks; of lives of which anything is known."""
    known = known_parts(lives)
    means = np.array([parts.mean() for parts in known])
    return estimate(lambda counts: counts @ means / counts.sum(axis=1), len(known), **options)


def interquartile_mean_over_lives(lives: Sequence[Parts], **options: float) -> Estimate:
    """The interquartile mean of all parts of all lives, such as tasks; lives are drawn whole."""
    known = known_parts(lives)
    parts = np.concatenate([*known, np.zeros(0)])
    owner = np.repeat(np.arange(len(known)), [len(one) for one in known])
    order = np.argsort(parts, kind="stable")

    def statistic(counts: Counts) -> Float[np.ndarray, " resample"]:
        pieces = np.array_split(counts, -(-counts.shape[0] * len(parts) // AT_ONCE))
        return np.concatenate([trimmed_mean(parts[order], piece[:, owner[order]]) for piece in pieces])

    return estimate(statistic, len(known), **options)


def known_parts(lives: Sequence[Parts]) -> list[Parts]:
    """What is known of each life of which anything is."""
    known = [np.asarray(parts, float)[~np.isnan(parts)] for parts in lives]
    return [parts for parts in known if len(parts)]


def interquartile_mean(values: Parts) -> float:
    """The mean of the middle half: without the floor(n / 4) lowest and highest of n values (Agarwal et al. 2021)."""
    known = np.sort(values[~np.isnan(values)])
    return float(trimmed_mean(known, np.ones((1, len(known))))[0]) if len(known) else float("nan")


def trimmed_mean(values: Parts, weights: Float[np.ndarray, "resample part"]) -> Float[np.ndarray, " resample"]:
    """Interquartile means of sorted values, each counted as often as its weight says."""
    upto, whole = np.cumsum(weights, axis=1), weights.sum(axis=1, keepdims=True)
    cut = np.floor(whole / 4)
    inside = np.diff(np.clip(upto, cut, whole - cut), axis=1, prepend=cut)
    return inside @ values / inside.sum(axis=1)


def estimate(
    statistic: Statistic, lives: int, *, confidence: float = CONFIDENCE, resamples: float = RESAMPLES
) -> Estimate:
    """A statistic over lives, and its interval: a bootstrap over whole lives with Student's t.

        statistic +- t(n - 1) sqrt(n / (n - 1)) s,     s: standard deviation of the statistic over resamples of n lives

    For a mean this is, but for the draws, Student's interval, exact for normal values from two lives on (Hesterberg
    2015: the t interval with bootstrap standard error). The percentiles of the resamples would never leave the range of
    the lives: with three lives they cover a mean in at most 75 % of cases. The draws have a generator of their own.
    """
    if not lives:
        return Estimate(np.nan, np.nan, np.nan, 0)
    value = float(statistic(np.ones((1, lives)))[0])
    if lives == 1:
        return Estimate(value, np.nan, np.nan, 1)
    draws = np.random.default_rng(SEED).multinomial(lives, np.full(lives, 1 / lives), size=int(resamples))
    spread = np.std(statistic(draws.astype(float))) * np.sqrt(lives / (lives - 1))
    half = float(reach(lives, confidence=confidence) * spread)
    return Estimate(value, value - half, value + half, lives)
