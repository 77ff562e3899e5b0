"""How often intervals over lives hold the true value, on simulated lives; prints the table of docs/metrics.md.

python scripts/interval_coverage.py
"""

import argparse

import numpy as np

from modlife.metrics import Estimate, interquartile_mean, interquartile_mean_over_lives, mean_over_lives

TASKS = np.linspace(0.3, 0.9, 16)
"""The mean return of each task: some are harder."""
LIVES = (2, 3, 6, 10, 20)


def simulated(lives: int, draws: np.random.Generator, *, skewed: bool) -> list[np.ndarray]:
    """Returns of all tasks in each life: a life's own luck in all of them, and each task's.

    The luck of a life is normal or, skewed, exponential: most lives are a little above the mean, some far below.
    """
    own = draws.exponential(1, (lives, 1)) - 1 if skewed else draws.normal(0, 1, (lives, 1))
    return list(TASKS - 0.04 * own + draws.normal(0, 0.05, (lives, len(TASKS))))


def percentiles(lives: list[np.ndarray], draws: np.random.Generator, resamples: int) -> Estimate:
    """What is usual: the middle 95 % of the means of resampled lives."""
    means, count = np.array([life.mean() for life in lives]), len(lives)
    drawn = draws.multinomial(count, np.full(count, 1 / count), size=resamples) @ means / count
    return Estimate(float(means.mean()), *map(float, np.percentile(drawn, [2.5, 97.5])), count)


def coverage(lives: int, *, skewed: bool, experiments: int, resamples: int) -> np.ndarray:
    """The share of intervals that hold the truth: of the mean, of the IQM, and of the mean by percentiles."""
    draws = np.random.default_rng(1)
    middle = interquartile_mean(np.concatenate(simulated(20_000, draws, skewed=skewed)))
    truth, hits = (float(TASKS.mean()), middle, float(TASKS.mean())), np.zeros(3)
    for _ in range(experiments):
        sample = simulated(lives, draws, skewed=skewed)
        found = (
            mean_over_lives(sample, resamples=resamples),
            interquartile_mean_over_lives(sample, resamples=resamples),
            percentiles(sample, draws, resamples),
        )
        hits += [one.low <= true <= one.high for one, true in zip(found, truth, strict=True)]
    return hits / experiments


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiments", type=int, default=2000)
    options = parser.parse_args()
    print("| luck of lives | lives | mean | IQM | mean, by percentiles |\n|---|---|---|---|---|")
    for skewed in (False, True):
        for lives in LIVES:
            shares = coverage(lives, skewed=skewed, experiments=options.experiments, resamples=1000)
            cells = " | ".join(f"{100 * share:.0f} %" for share in shares)
            print(f"| {'skewed' if skewed else 'normal'} | {lives} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
