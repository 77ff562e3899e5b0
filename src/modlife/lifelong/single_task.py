"""Single-task learning (STL): a fresh network for each task, nothing shared."""

from collections.abc import Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from modlife.domains.env import Environment, PRNGKey
from modlife.errors import InputError
from modlife.learners.config import PPOConfig
from modlife.learners.ppo import PPO
from modlife.lifelong.loop import AgentState, Report, Structure
from modlife.lifelong.online import updates
from modlife.policies.bank import pick, place
from modlife.policies.networks import Modular
from modlife.types import Task


@dataclass(frozen=True)
class SingleTask:
    """A bank with a module of every factor for each task; task number t uses, and trains, modules number t."""

    env: Environment
    ppo: PPOConfig
    steps: int
    capacity: int
    """How many tasks there will be."""
    devices: int = 1

    @property
    def network(self) -> Modular:
        """The paper's chain, with a state value as critic."""
        return Modular(self.env.graph, (self.capacity,) * len(self.env.graph.factors), critic=1)

    def init(self, *, key: PRNGKey) -> AgentState:
        """Fresh modules for every task."""
        return AgentState(self.network.init(key=key), met=())

    def learn(self, state: AgentState, stage: tuple[Task, ...], *, key: PRNGKey) -> Iterator[tuple[AgentState, Report]]:
        """Learns each task of the stage by itself."""
        for number, task in enumerate(stage):
            before = state
            for learnt, report in self.learn_one(before, task, key=jax.random.fold_in(key, number)):
                state = learnt
                yield state, report

    def learn_one(self, state: AgentState, task: Task, *, key: PRNGKey) -> Iterator[tuple[AgentState, Report]]:
        """PPO on the task's own modules."""
        key_init, key_learn = jax.random.split(key)
        depth = len(self.env.graph.factors)
        alone = PPO(self.env, Modular(self.env.graph, (1,) * depth, critic=1), self.ppo, self.devices)
        own, only = jnp.full(depth, len(state.met)), jnp.zeros(depth, jnp.int32)
        modules = jax.tree.map(lambda leaf: leaf[None], pick(state.params, own))
        tasks = jnp.array([self.env.graph.indices(task)])
        start = alone.init(modules, tasks, only[None], key=key_init)
        for learner, report in updates(alone, start, steps=self.steps, key=key_learn):
            bank = place(state.params, own, pick(learner.params, only))
            yield AgentState(bank, (*state.met, task)), report

    def structure(self, state: AgentState, task: Task) -> Structure:
        """The task's own modules."""
        if task not in state.met:
            raise InputError(
                f"The single-task agent has not learnt '{task}', and shares nothing it could solve it with."
            )
        return (state.met.index(task),) * len(self.env.graph.factors)
