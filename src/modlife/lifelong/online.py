"""The online stage that all agents share: PPO updates until the budget of steps is spent."""

from collections.abc import Iterator

import jax
import numpy as np

from modlife.domains.env import PRNGKey
from modlife.learners.ppo import PPO, LearnerState
from modlife.learners.replay import Transition
from modlife.lifelong.loop import Curve


def update_count(ppo: PPO, steps: int) -> int:
    """Updates until each task has had at least this many environment steps."""
    return -(-steps // ppo.config.batch)


def updates(
    ppo: PPO, learner: LearnerState, *, done: int, steps: int, key: PRNGKey, spent: int = 0
) -> Iterator[tuple[LearnerState, Transition, Curve]]:
    """Updates from number `done` on, until each task has had at least this many steps; `spent` went before them."""
    for number in range(done, update_count(ppo, steps - spent)):
        learner, happened, progress = ppo.update(learner, key=jax.random.fold_in(key, number))
        report = jax.tree.map(np.asarray, progress)
        curve = Curve(
            spent + (number + 1) * ppo.config.batch,
            report.episode_return,
            report.success,
            report.episodes,
            report.entropy,
        )
        yield learner, happened, curve
