"""The online stage that all agents share: PPO updates until the budget of steps is spent."""

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np

from modlife.domains.env import Environment, PRNGKey
from modlife.learners.config import PPOConfig
from modlife.learners.ppo import PPO, LearnerState
from modlife.learners.replay import Transition
from modlife.lifelong.loop import AgentState, Curve, Step, Structure
from modlife.policies.bank import bank_of_one, pick
from modlife.policies.networks import Modular
from modlife.types import Task


def one_by_one(
    learn_one: Callable[..., Iterator[Step]], state: AgentState, stage: tuple[Task, ...], *, key: PRNGKey
) -> Iterator[Step]:
    """Learns the tasks of a stage in turn, those already met left out; each has a key of its own."""
    for number, task in enumerate(stage):
        if task in state.met:
            continue
        for step in learn_one(state, task, key=jax.random.fold_in(key, number)):
            state = step[0]
            yield step


def chain_learner(env: Environment, network: Modular, config: PPOConfig, devices: int) -> PPO:
    """PPO on one chain of a network's modules."""
    return PPO(env, Modular(network.graph, (1,) * len(network.sizes), network.critic), config, devices)


def begin_chain(ppo: PPO, bank: tuple, structure: Structure, task: Task, *, key: PRNGKey) -> LearnerState:
    """The start of a task, on a copy of the modules that a structure picks."""
    tasks = jnp.array([ppo.env.graph.indices(task)])
    return ppo.init(bank_of_one(pick(bank, jnp.array(structure))), tasks, jnp.zeros_like(tasks), key=key)


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
