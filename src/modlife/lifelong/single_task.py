"""Single-task learning (STL): a fresh network for each task, nothing shared."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from modlife.domains.env import Environment, PRNGKey, Pytree
from modlife.errors import InputError
from modlife.learners.acting import Rule
from modlife.learners.config import PPOConfig
from modlife.learners.ppo import PPO, LearnerState
from modlife.lifelong.loop import AgentState, Step, Structure, Work
from modlife.lifelong.online import begin_chain, chain_learner, one_by_one, update_count, updates
from modlife.policies.bank import only_chain, place
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

    @property
    def acting(self) -> Rule:
        """As PPO acts."""
        return Rule("actor")

    def init(self, *, key: PRNGKey) -> AgentState:
        """Fresh modules for every task."""
        return AgentState(self.network.init(key=key), met=())

    def learn(self, state: AgentState, stage: tuple[Task, ...], *, key: PRNGKey) -> Iterator[Step]:
        """Learns each task of the stage by itself."""
        return one_by_one(self.learn_one, state, stage, key=key)

    def learn_one(self, state: AgentState, task: Task, *, key: PRNGKey) -> Iterator[Step]:
        """PPO on the task's own modules."""
        key_init, key_learn = jax.random.split(key)
        ppo, own = self.learner, jnp.array(self.own(state))
        work = state.work or Work("online", 0, (), 0, self.begin(state, task, key=key_init))
        last = update_count(ppo, self.steps)
        learning = updates(ppo, work.data, done=work.number, steps=self.steps, key=key_learn)
        for number, (learner, _, curve) in enumerate(learning, start=work.number + 1):
            if number < last:
                state = replace(state, work=Work("online", number, (), 0, learner))
            else:
                bank = place(state.params, own, only_chain(learner.params))
                state = AgentState(bank, (*state.met, task))
            yield state, (curve,)

    @property
    def learner(self) -> PPO:
        """PPO on one chain of modules."""
        return chain_learner(self.env, self.network, self.ppo, self.devices)

    def begin(self, state: AgentState, task: Task, *, key: PRNGKey) -> LearnerState:
        """The learner at the start of a task."""
        return begin_chain(self.learner, state.params, self.own(state), task, key=key)

    def own(self, state: AgentState) -> Structure:
        """The structure of the next task."""
        return (len(state.met),) * len(self.env.graph.factors)

    def blank(self, state: AgentState, work: Work, stage: tuple[Task, ...]) -> Pytree:
        """A learner's shapes."""
        return jax.eval_shape(lambda key: self.begin(state, stage[0], key=key), jax.random.key(0))

    def structure(self, state: AgentState, task: Task) -> Structure:
        """The task's own modules."""
        if task not in state.met:
            raise InputError(
                f"The single-task agent has not learnt '{task}', and shares nothing it could solve it with."
            )
        return (state.met.index(task),) * len(self.env.graph.factors)
