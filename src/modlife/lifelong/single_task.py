"""Single-task learning (STL): a fresh network for each task, nothing shared; and what it shares with MTL."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax

from modlife.domains.env import Environment, PRNGKey
from modlife.learners.ppo import PPO
from modlife.learners.rollout import ACTOR
from modlife.lifelong.agent import AgentState, Phase, Reports
from modlife.lifelong.agents import Plan
from modlife.lifelong.explore import Explore, Exploring, begin_chain
from modlife.policies.acting import Rule
from modlife.policies.modular import Modular, Monolithic, OnePolicy
from modlife.types import Pytree, Structure, Task


@dataclass(frozen=True)
class OnlineAgent:
    """An agent that learns by PPO alone and knows nothing but parameters: a base for those that do so."""

    env: Environment
    network: Modular | Monolithic
    ppo: PPO
    steps: int
    together: bool = False
    acting: Rule = ACTOR

    def init(self, *, key: PRNGKey) -> AgentState:
        """A fresh network."""
        return AgentState(self.network.init(key=key))

    def grow(self, state: AgentState, *, key: PRNGKey) -> AgentState:
        """Nothing in it depends on how many tasks there will be."""
        return state

    def problem(self, state: AgentState) -> str | None:
        """It has no structures of its own, searches nothing and keeps no replay."""
        return nothing_but_params(state)

    def wrong_policies(self, state: AgentState, task: Task, factor: int) -> Sequence[Pytree]:
        """It has no modules that were meant for several tasks."""
        return ()

    def about(self, state: AgentState, tasks: Sequence[Task]) -> dict[str, Any]:
        """Nothing else."""
        return {}


def nothing_but_params(state: AgentState) -> str | None:
    """What a state has that an agent with parameters alone cannot have."""
    return "structures" if state.structures else "spent" if state.facts.spent else "memory" if state.memory else None


@dataclass(frozen=True)
class SingleTask(OnlineAgent):
    """A bank with a module of every factor for each task planned; task number t uses, and trains, modules number t."""

    network: Modular

    def grow(self, state: AgentState, *, key: PRNGKey) -> AgentState:
        """Fresh modules for further tasks."""
        more = self.network.sizes[0] - state.params.sizes[0]
        if more <= 0:
            return state
        fresh = replace(self.network, sizes=(more,) * len(self.network.sizes)).init(key=key)
        return replace(state, params=state.params.joined(fresh))

    def phases(self, tasks: Sequence[Task], *, key: PRNGKey) -> tuple[Phase, ...]:
        """PPO on the task's own modules."""
        (task,) = tasks
        key_init, key_learn = jax.random.split(key)

        def start(state: AgentState) -> Any:
            return begin_chain(self.ppo, state.params.pick(self.own(len(state.met))), task, key=key_init)

        def finish(state: AgentState, work: Exploring) -> tuple[AgentState, Reports]:
            return replace(state, params=state.params.place(self.own(len(state.met)), work.learner.params)), ()

        return (Explore(self.ppo, self.steps, start, finish, key_learn),)

    def own(self, number: int) -> Structure:
        """The structure of a task by its number."""
        return (number,) * len(self.network.sizes)

    def policy(self, state: AgentState, task: Task) -> Pytree | None:
        """The task's own modules; it shares nothing with which it could solve another."""
        return state.params.pick(self.own(state.met.index(task))) if task in state.met else None


def build(plan: Plan) -> SingleTask:
    """STL, with a state value as critic."""
    network = Modular(plan.env.graph, (plan.tasks,) * len(plan.env.graph.factors), 1, plan.modules)
    return SingleTask(plan.env, network, PPO(plan.env, OnePolicy(network), plan.settings.ppo, plan.devices), plan.steps)
