"""Fine-tuning: one network goes on from task to task, and nothing protects what it has learnt. The floor.

Also what all agents with one network share: it is told the task's components, so it has a policy for every task.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax

from modlife.arrays import ints
from modlife.domains.env import PRNGKey
from modlife.learners.ppo import PPO, LearnerState
from modlife.learners.rollout import ACTOR
from modlife.lifelong.agent import AgentState, Phase, Reports
from modlife.lifelong.agents import Plan
from modlife.lifelong.evaluation import Judge
from modlife.lifelong.explore import Explore, Exploring
from modlife.lifelong.reports import Evaluated
from modlife.lifelong.single_task import OnlineAgent
from modlife.policies.modular import Monolithic
from modlife.types import Pytree, Task


@dataclass(frozen=True)
class OneNetwork(OnlineAgent):
    """An agent with one network for all tasks, or modules that are given for each."""

    episodes: int = 1
    """Episodes of its evaluations of a task before and after the online phase."""

    def phases(self, tasks: Sequence[Task], *, key: PRNGKey) -> tuple[Phase, ...]:
        """Try the task, then learn it by PPO from what the network knows."""
        (task,) = tasks
        key_zero_shot, key_start, key_learn, key_evaluate = jax.random.split(key, 4)

        def start(state: AgentState) -> LearnerState:
            return self.begin(state, task, key=key_start)

        def finish(state: AgentState, work: Exploring) -> tuple[AgentState, Reports]:
            after, policy = self.learnt(state, explore, work)
            learner = replace(self.judge, network=self.ppo.network, rule=ACTOR)
            alone = learner.evaluate([task], [policy], key=key_evaluate)
            return after, (Evaluated("online", alone),)

        explore = Explore(self.ppo, self.steps, start, finish, key_learn, self.times, self.piece)
        return ZeroShot(task, self, key_zero_shot), explore

    def begin(self, state: AgentState, task: Task, *, key: PRNGKey) -> LearnerState:
        """The learner of a task."""
        indices = self.indices(task)
        return self.ppo.init(self.parameters(state), indices, indices, key=key)

    def learnt(self, state: AgentState, explore: Explore, work: Exploring) -> tuple[AgentState, Pytree]:
        """What is known after the online phase, and the policy that learnt."""
        params = work.learner.params
        return replace(state, params=params), self.network.pick(params, work.learner.structures[0])

    @property
    def times(self) -> int:
        """Time steps that are kept of the online phase for what comes after it."""
        return 0

    @property
    def piece(self) -> int | None:
        """Time steps of a piece, where pieces from all over the phase are kept; None where the last steps are."""
        return None

    @property
    def judge(self) -> Judge:
        """Evaluates as the agent acts."""
        return Judge(self.env, self.network, self.acting, self.episodes)

    def indices(self, task: Task) -> Any:
        """A single task, as PPO wants it."""
        return ints([self.env.graph.indices(task)])

    def parameters(self, state: AgentState) -> Any:
        """The network's parameters."""
        return state.params

    def policy(self, state: AgentState, task: Task) -> Pytree | None:
        """The network, told the task's components; also of tasks that were never seen."""
        return self.network.pick(self.parameters(state), ints(self.env.graph.indices(task)))


@dataclass(frozen=True)
class ZeroShot:
    """The task is tried before anything is learnt of it."""

    task: Task
    agent: OneNetwork
    key: PRNGKey
    name: str = "zero-shot"

    def begin(self, state: AgentState) -> Pytree:
        """No work."""
        return ()

    def length(self, state: AgentState) -> int:
        """No steps."""
        return 0

    def run(self, state: AgentState) -> Iterator[tuple[int, Pytree, Reports]]:
        """Nothing."""
        return iter(())

    def end(self, state: AgentState) -> tuple[AgentState, Reports]:
        """Tells how well it goes."""
        tried = self.agent.judge.evaluate([self.task], [self.agent.policy(state, self.task)], key=self.key)
        return state, (Evaluated("zero-shot", tried),)


def build(plan: Plan) -> OneNetwork:
    """Nothing protects what was learnt."""
    network = Monolithic.usual(plan.env.graph, plan.modules)
    ppo = PPO(plan.env, network, plan.settings.ppo, plan.devices)
    return OneNetwork(plan.env, network, ppo, plan.steps, episodes=plan.episodes)
