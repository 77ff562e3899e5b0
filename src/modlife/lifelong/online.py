"""The online stage that all agents share: PPO updates until the budget of steps is spent."""

from collections.abc import Iterator

import jax
import numpy as np

from modlife.domains.env import PRNGKey
from modlife.learners.ppo import PPO, LearnerState
from modlife.lifelong.loop import Report


def updates(ppo: PPO, state: LearnerState, *, steps: int, key: PRNGKey) -> Iterator[tuple[LearnerState, Report]]:
    """Updates until each task has had at least this many environment steps."""
    for number in range(-(-steps // ppo.config.batch)):
        state, progress = ppo.update(state, key=jax.random.fold_in(key, number))
        report = jax.tree.map(np.asarray, progress)
        yield (
            state,
            Report(
                (number + 1) * ppo.config.batch,
                report.episode_return,
                report.success,
                report.episodes,
                report.entropy,
            ),
        )
