"""Multi-task learning (MTL): all tasks of a stage at once, the structure of every task given."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from modlife.domains.env import Environment, PRNGKey, Pytree
from modlife.learners.acting import Rule
from modlife.learners.config import PPOConfig
from modlife.learners.ppo import PPO, LearnerState
from modlife.lifelong.loop import AgentState, Step, Structure, Work
from modlife.lifelong.online import update_count, updates
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

    @property
    def acting(self) -> Rule:
        """As PPO acts."""
        return Rule("actor")

    def init(self, *, key: PRNGKey) -> AgentState:
        """A fresh network."""
        return AgentState(self.network.init(key=key), met=())

    def learn(self, state: AgentState, stage: tuple[Task, ...], *, key: PRNGKey) -> Iterator[Step]:
        """Updates with data of every task of the stage, each with its own environments."""
        if set(stage) <= set(state.met):
            return
        key_init, key_learn = jax.random.split(key)
        ppo = self.learner
        work = state.work or Work("online", 0, (), 0, self.begin(state.params, stage, key=key_init))
        last = update_count(ppo, self.steps)
        learning = updates(ppo, work.data, done=work.number, steps=self.steps, key=key_learn)
        for number, (learner, _, curve) in enumerate(learning, start=work.number + 1):
            if number < last:
                state = replace(state, work=Work("online", number, (), 0, learner))
            else:
                state = AgentState(learner.params, (*state.met, *stage))
            yield state, (curve,)

    @property
    def learner(self) -> PPO:
        """PPO over all tasks of a stage."""
        return PPO(self.env, self.network, self.ppo, self.devices)

    def begin(self, params: Pytree, stage: tuple[Task, ...], *, key: PRNGKey) -> LearnerState:
        """The learner at the start of a stage."""
        tasks = jnp.array([self.env.graph.indices(task) for task in stage])
        return self.learner.init(params, tasks, tasks, key=key)

    def blank(self, state: AgentState, work: Work, stage: tuple[Task, ...]) -> Pytree:
        """A learner's shapes."""
        return jax.eval_shape(lambda key: self.begin(state.params, stage, key=key), jax.random.key(0))

    def structure(self, state: AgentState, task: Task) -> Structure:
        """Module i of a factor belongs to component i, for tasks learnt and for unseen combinations alike."""
        return self.env.graph.indices(task)
