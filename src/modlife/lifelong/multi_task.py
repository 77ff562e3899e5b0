"""Multi-task learning (MTL): all tasks of a stage at once, the structure of every task given."""

from collections.abc import Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from modlife.domains.env import Environment, PRNGKey
from modlife.learners.config import PPOConfig
from modlife.learners.ppo import PPO
from modlife.lifelong.loop import AgentState, Report, Structure
from modlife.lifelong.online import updates
from modlife.policies.networks import Chained, Modular, Monolithic
from modlife.types import Task


@dataclass(frozen=True)
class MultiTask:
    """PPO on the mean loss of all tasks. The network makes the difference: modular, chained or monolithic."""

    env: Environment
    network: Modular | Chained | Monolithic
    ppo: PPOConfig
    steps: int
    devices: int = 1

    def init(self, *, key: PRNGKey) -> AgentState:
        """A fresh network."""
        return AgentState(self.network.init(key=key), met=())

    def learn(self, state: AgentState, stage: tuple[Task, ...], *, key: PRNGKey) -> Iterator[tuple[AgentState, Report]]:
        """Updates with data of every task of the stage, each with its own environments."""
        key_init, key_learn = jax.random.split(key)
        ppo = PPO(self.env, self.network, self.ppo, self.devices)
        tasks = jnp.array([self.env.graph.indices(task) for task in stage])
        start = ppo.init(state.params, tasks, tasks, key=key_init)
        for learner, report in updates(ppo, start, steps=self.steps, key=key_learn):
            yield AgentState(learner.params, (*state.met, *stage)), report

    def structure(self, state: AgentState, task: Task) -> Structure:
        """Module i of a factor belongs to component i, for tasks learnt and for unseen combinations alike."""
        return self.env.graph.indices(task)
