"""Single-task learning (STL): a fresh network for each task, nothing shared."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax

from modlife.domains.env import Environment, PRNGKey
from modlife.learners.config import PPOConfig
from modlife.learners.ppo import PPO
from modlife.lifelong.agent import AgentState, Phase, Reports
from modlife.lifelong.agents import Plan
from modlife.lifelong.explore import Explore, Exploring, begin_chain
from modlife.policies.acting import Rule
from modlife.policies.modular import Modular, Modules, OnePolicy
from modlife.types import Pytree, Structure, Task


@dataclass(frozen=True)
class SingleTask:
    """A bank with a module of every factor for each task; task number t uses, and trains, modules number t."""

    env: Environment
    modules: Modules
    ppo_config: PPOConfig
    steps: int
    planned: int
    """Tasks for which fresh modules are drawn at birth; `grow` draws more."""
    devices: int = 1
    together: bool = False

    @property
    def network(self) -> Modular:
        """The paper's chain, with a state value as critic."""
        return self.network_of(self.planned)

    def network_of(self, tasks: int) -> Modular:
        """With modules for so many tasks."""
        return Modular(self.env.graph, (tasks,) * len(self.env.graph.factors), 1, self.modules)

    @property
    def acting(self) -> Rule:
        """As PPO acts."""
        return Rule("actor")

    @property
    def ppo(self) -> PPO:
        """PPO on one chain of modules."""
        return PPO(self.env, OnePolicy(self.network), self.ppo_config, self.devices)

    def init(self, *, key: PRNGKey) -> AgentState:
        """Fresh modules for every task that is planned."""
        return AgentState(self.network.init(key=key))

    def grow(self, state: AgentState, *, key: PRNGKey) -> AgentState:
        """Fresh modules for further tasks."""
        more = self.planned - state.params.sizes[0]
        return replace(state, params=state.params.joined(self.network_of(more).init(key=key))) if more > 0 else state

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
        return (number,) * len(self.env.graph.factors)

    def problem(self, state: AgentState) -> str | None:
        """It has no structures, searches nothing and keeps no replay."""
        return nothing_but_params(state)

    def policy(self, state: AgentState, task: Task) -> Pytree | None:
        """The task's own modules; it shares nothing with which it could solve another."""
        return state.params.pick(self.own(state.met.index(task))) if task in state.met else None

    def wrong_policies(self, state: AgentState, task: Task, factor: int) -> Sequence[Pytree]:
        """Modules of other tasks were never meant to fit."""
        return ()

    def about(self, state: AgentState, tasks: Sequence[Task]) -> dict[str, Any]:
        """Nothing else."""
        return {}


def nothing_but_params(state: AgentState) -> str | None:
    """What a state has that an agent with parameters alone cannot have."""
    return "structures" if state.structures else "spent" if state.facts.spent else "memory" if state.memory else None


def build(plan: Plan) -> SingleTask:
    """STL."""
    return SingleTask(plan.env, plan.modules, plan.settings.ppo, plan.steps, plan.tasks, plan.devices)
