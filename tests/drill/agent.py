"""An agent: one network that goes on learning, whatever the task."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax

from modlife.domains.env import Environment, PRNGKey
from modlife.learners.ppo import PPO, LearnerState
from modlife.lifelong.agent import AgentState, Phase, Reports
from modlife.lifelong.agents import Plan
from modlife.lifelong.explore import Explore, Exploring, begin_chain
from modlife.lifelong.single_task import nothing_but_params
from modlife.policies.acting import Rule
from modlife.policies.modular import Modular, OnePolicy
from modlife.types import Pytree, Task


@dataclass(frozen=True)
class CarryOn:
    """Its parameters are a single chain; learning a task is one phase, PPO on that chain."""

    env: Environment
    network: Modular
    ppo: PPO
    steps: int
    together: bool = False

    @property
    def acting(self) -> Rule:
        return Rule("actor")

    def init(self, *, key: PRNGKey) -> AgentState:
        return AgentState(self.network.init(key=key).pick((0,) * len(self.network.sizes)))

    def grow(self, state: AgentState, *, key: PRNGKey) -> AgentState:
        return state

    def phases(self, tasks: Sequence[Task], *, key: PRNGKey) -> tuple[Phase, ...]:
        key_start, key_learn = jax.random.split(key)

        def start(state: AgentState) -> LearnerState:
            return begin_chain(self.ppo, state.params, tasks[0], key=key_start)

        def finish(state: AgentState, work: Exploring) -> tuple[AgentState, Reports]:
            return replace(state, params=work.learner.params), ()

        return (Explore(self.ppo, self.steps, start, finish, key_learn),)

    def problem(self, state: AgentState) -> str | None:
        return nothing_but_params(state)

    def policy(self, state: AgentState, task: Task) -> Pytree | None:
        return state.params

    def wrong_policies(self, state: AgentState, task: Task, factor: int) -> Sequence[Pytree]:
        return ()

    def about(self, state: AgentState, tasks: Sequence[Task]) -> dict[str, Any]:
        return {}


def build(plan: Plan) -> CarryOn:
    network = Modular(plan.env.graph, (1,) * len(plan.env.graph.factors), 1, plan.modules)
    return CarryOn(plan.env, network, PPO(plan.env, OnePolicy(network), plan.settings.ppo, plan.devices), plan.steps)
