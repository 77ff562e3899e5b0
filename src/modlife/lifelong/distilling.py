"""What agents share that learn each task with fresh parameters, and then fold it into the network they act by."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import jax

from modlife.domains.env import PRNGKey
from modlife.learners.asking import numbers, said
from modlife.learners.config import DistillConfig
from modlife.learners.distill import Distiller, Student
from modlife.learners.ppo import LearnerState
from modlife.learners.replay import Replay
from modlife.lifelong.agent import AgentState, Phase, Reports
from modlife.lifelong.explore import Explore, Exploring, times_of
from modlife.lifelong.finetune import OneNetwork
from modlife.lifelong.reports import Consolidated
from modlife.policies.modular import Monolithic
from modlife.types import Pytree, Task


@dataclass(frozen=True)
class FreshLearner(OneNetwork, ABC):
    """A fresh learner for each task; what it did last is folded into the network."""

    network: Monolithic
    replay_size: int = 100_000

    @abstractmethod
    def fresh(self, state: AgentState, *, key: PRNGKey) -> Pytree:
        """The parameters that PPO begins a task with."""

    @abstractmethod
    def folding(self, task: Task, *, key: PRNGKey) -> Phase:
        """The phase after the online one."""

    def phases(self, tasks: Sequence[Task], *, key: PRNGKey) -> tuple[Phase, ...]:
        """Try the task, learn it with fresh parameters, fold it in."""
        key_learn, key_fold = jax.random.split(key)
        return (*super().phases(tasks, key=key_learn), self.folding(tasks[0], key=key_fold))

    def begin(self, state: AgentState, task: Task, *, key: PRNGKey) -> LearnerState:
        """PPO on fresh parameters."""
        with jax.ensure_compile_time_eval():  # parameters are drawn on the host, also where only shapes are asked for
            key_fresh, key_start = jax.random.split(key)
            fresh = self.fresh(state, key=key_fresh)
        indices = self.indices(task)
        return self.ppo.init(fresh, indices, indices, key=key_start)

    def learnt(self, state: AgentState, explore: Explore, work: Exploring) -> tuple[AgentState, Pytree]:
        """What was explored, with what the next phase wants to know of it."""
        policy = self.ppo.network.pick(work.learner.params, work.learner.structures[0])
        replay = self.asked(explore.replay(work, explore.length(state)), policy)
        return replace(state, memory=(*state.memory, replay)), policy

    @abstractmethod
    def asked(self, replay: Replay, policy: Pytree) -> Replay:
        """Replay with what the learner, of which this is the policy, says of it."""

    @property
    def times(self) -> int:
        """Time steps that are kept of a task."""
        return times_of(self.ppo, self.steps, self.replay_size)


@dataclass(frozen=True)
class DistillingAgent(FreshLearner, ABC):
    """What the learner says of what it did last is distilled."""

    @property
    @abstractmethod
    def distill_config(self) -> DistillConfig:
        """How to distil."""

    def asked(self, replay: Replay, policy: Pytree) -> Replay:
        """With the numbers of the learner's distribution."""
        return replace(replay, taught=said(self.env, self.ppo.network, policy, replay, what=numbers))

    @property
    def distiller(self) -> Distiller:
        """How the network learns what learners say."""
        return Distiller(self.env, self.network, self.distill_config, self.times * self.ppo.config.envs)


def distilled(
    agent: DistillingAgent, tasks: Sequence[Task], state: AgentState, *, key: PRNGKey
) -> Iterator[tuple[int, Student, Reports]]:
    """The gradient steps of a phase over the replay that a state has of these tasks, with a report per epoch."""
    learner, structures = agent.distiller, [agent.env.graph.indices(task) for task in tasks]
    for number, work, losses in learner.run(structures, state.memory, state.work, done=state.facts.done, key=key):
        if losses is None:
            yield number, work, ()
        else:
            held = work.anchor and work.anchor.told
            yield number, work, (Consolidated(number // learner.epoch_steps, len(tasks), losses, held),)
