"""The offline stage in pieces: BCQ on the replay of all tasks that share a module with the current one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from modlife.domains.env import PRNGKey
from modlife.learners.bcq import BCQ, BCQState
from modlife.lifelong.loop import Consolidated, Structure

Piece = tuple[int, BCQState, tuple[Consolidated, ...]]


def consolidate(
    bcq: BCQ,
    bank: tuple,
    structures: Sequence[Structure],
    memory: Sequence[np.ndarray],
    learner: BCQState,
    *,
    done: int,
    key: PRNGKey,
) -> Iterator[Piece]:
    """All gradient steps from number `done` on, with a report per epoch; the last task is the current one.

    Yields the number of steps done and the learner after each piece, of one to two seconds at most. How the steps
    are cut into pieces has no influence on what comes out.
    """
    lessons, patterns, todo = bcq.reader.open(bank, structures, memory)
    for task, depth in todo:
        lessons = jax.block_until_ready(bcq.reader.keep(lessons, task, depth=depth))
        yield done, learner, ()
    number, valued = done, False
    while number < bcq.steps:
        if number % bcq.config.target_period == 0:
            learner, valued = replace(learner, target=learner.own), False
        if not valued:
            for task, pattern in enumerate(patterns):
                lessons = jax.block_until_ready(bcq.reader.value(lessons, task, learner.target, pattern))
                yield number, learner, ()
            valued = True
        epoch, first = divmod(number, bcq.epoch_steps)
        count = bcq.steps_at_once(number, tasks=len(patterns))
        key_epoch = jax.random.fold_in(key, epoch)
        learner = bcq.train(learner, lessons, jnp.int32(first), jnp.int32(count), key=key_epoch)
        number += count
        reports = ()
        if number % bcq.epoch_steps == 0:
            td, likelihood, logits = (round(float(term) / bcq.epoch_steps, 6) for term in learner.losses)
            reports = (Consolidated(epoch + 1, len(patterns), td, likelihood, logits),)
            learner = replace(learner, losses=jnp.zeros(3))
        yield number, jax.block_until_ready(learner), reports
