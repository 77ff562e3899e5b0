"""Multi-task learning (MTL): all tasks of a stage at once, the structure of every task given."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax

from modlife.arrays import ints
from modlife.domains.env import PRNGKey
from modlife.learners.ppo import PPO
from modlife.lifelong.agent import AgentState, Facts, Phase, Reports
from modlife.lifelong.agents import Plan
from modlife.lifelong.evaluation import wrong_chains
from modlife.lifelong.explore import Explore, Exploring
from modlife.lifelong.foresight import Work
from modlife.lifelong.single_task import OnlineAgent
from modlife.policies.modular import Modular, Monolithic
from modlife.types import Pytree, Task


@dataclass(frozen=True)
class MultiTask(OnlineAgent):
    """PPO on the mean loss of all tasks. The network makes the difference: modular, chained or monolithic."""

    together: bool = True

    def phases(self, tasks: Sequence[Task], *, key: PRNGKey) -> tuple[Phase, ...]:
        """Updates with data of every task of the stage, each with its own environments."""
        key_init, key_learn = jax.random.split(key)
        indices = ints([self.env.graph.indices(task) for task in tasks])

        def start(state: AgentState) -> Any:
            return self.ppo.init(state.params, indices, indices, key=key_init)

        def finish(state: AgentState, work: Exploring) -> tuple[AgentState, Reports]:
            return replace(state, params=work.learner.params), ()

        return (Explore(self.ppo, self.steps, start, finish, key_learn),)

    def ahead(self, facts: Facts, groups: Sequence[Sequence[Task]]) -> list[Work]:
        """As much as there are tasks in a stage."""
        return [{"online": float(self.steps * len(group))} for group in groups]

    def policy(self, state: AgentState, task: Task) -> Pytree | None:
        """Module i of a factor belongs to component i, for tasks learnt and for unseen combinations alike."""
        return self.network.pick(state.params, ints(self.env.graph.indices(task)))

    def wrong_policies(self, state: AgentState, task: Task, factor: int) -> Sequence[Pytree]:
        """With each other module of the factor, where there are modules."""
        modular = isinstance(self.network, Modular)
        return wrong_chains(state.params, self.env.graph.indices(task), factor) if modular else ()


def modular(plan: Plan) -> MultiTask:
    """MTL with one module per component."""
    return of(plan, Modular.with_q(plan.env.graph, plan.env.graph.shape, plan.modules))


def chained(plan: Plan) -> MultiTask:
    """MTL with chained input."""
    return of(plan, Modular.with_q(plan.env.graph, plan.env.graph.shape, plan.domain.of("chained")))


def monolithic(plan: Plan) -> MultiTask:
    """MTL with one network and a task descriptor."""
    return of(plan, Monolithic.usual(plan.env.graph, plan.modules))


def of(plan: Plan, network: Modular | Monolithic) -> MultiTask:
    """MTL with a network."""
    return MultiTask(plan.env, network, PPO(plan.env, network, plan.settings.ppo, plan.devices), plan.steps)
