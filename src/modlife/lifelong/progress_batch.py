"""Progress & Compress with batch RL: as `pc`, but compressing is the offline phase of the agent with modules.

    progress    PPO on a fresh active column beside the frozen knowledge base
    compress    batch RL (BCQ) on the knowledge base over replay of all tasks seen, the new one included

The paper's ablation (appendix E): nothing holds parameters back, replay of all tasks does. The base's critic tells the
value of each action, since batch RL learns such a one and the agent acts by it; so does the active column's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from modlife.domains.env import PRNGKey
from modlife.learners.asking import numbers_and_values, said
from modlife.learners.config import BCQConfig
from modlife.learners.offline import Consolidator
from modlife.learners.ppo import PPO
from modlife.learners.replay import AnyReplay, Replay, in_order
from modlife.learners.replay_table import Layout, room_for
from modlife.lifelong.agent import AgentState, Facts, Phase, Reports
from modlife.lifelong.agents import Plan
from modlife.lifelong.consolidate import Consolidate, acting_of, consolidator_of, is_replay, keeps_finals
from modlife.lifelong.distilling import FreshLearner
from modlife.lifelong.foresight import Work
from modlife.policies.columns import Columns, TwoColumns
from modlife.policies.modular import Described, Monolithic, critic_of
from modlife.types import Pytree, Task


@dataclass(frozen=True)
class ProgressBatch(FreshLearner):
    """A knowledge base that learns by batch RL, and an active column while a task is learnt."""

    offline: Any = field(default_factory=BCQConfig)
    """The config of its consolidator."""

    def fresh(self, state: AgentState, *, key: PRNGKey) -> Columns:
        """A fresh active column beside the knowledge base."""
        assert isinstance(self.ppo.network, TwoColumns)
        return Columns(self.ppo.network.fresh(key=key), self.parameters(state))

    def folding(self, task: Task, *, key: PRNGKey) -> Phase:
        """Compress, by batch RL."""
        return CompressByBatch(self, task, Consolidate(task, self.layout, self.consolidator, self.judge, key))

    def asked(self, replay: Replay, policy: Pytree) -> Replay:
        """With what the active column said, where the consolidator wants to know it."""
        if not self.consolidator(self.layout(1)).taught:
            return replay
        return replace(replay, taught=said(self.env, self.ppo.network, policy, replay, what=numbers_and_values))

    def layout(self, room: int) -> Layout:
        """Tables of replay with room for so many tasks."""
        envs, finals = self.ppo.config.envs, self.ppo.keeps_reached
        return Layout(self.env, Described(self.network), room, self.times, envs, finals, self.ppo.share)

    def consolidator(self, layout: Layout) -> Consolidator:
        """How to learn offline."""
        return consolidator_of(self.offline, layout, discount=self.ppo.config.discount)

    def in_order(self, replay: AnyReplay) -> bool:
        """As its consolidator keeps it."""
        return in_order(self.consolidator(self.layout(1)), replay)

    def ahead(self, facts: Facts, groups: Sequence[Sequence[Task]]) -> list[Work]:
        """Compressing takes as long as the consolidator takes for all tasks."""
        counts = range(len(facts.met) + 1, len(facts.met) + 1 + len(groups))
        learners = [(count, self.consolidator(self.layout(room_for(count)))) for count in counts]
        return [{"offline": float(learner.steps * learner.load(count))} for count, learner in learners]

    def problem(self, state: AgentState) -> str | None:
        """It has replay of as many tasks, and as large, as it can be."""
        if state.structures or state.facts.spent:
            return "structures" if state.structures else "spent"
        explored, layout = len(state.met) + (state.facts.phase == "offline"), self.layout(1)
        learner = self.consolidator(layout)
        fits = [is_replay(one, layout, learner, folded=n < len(state.met)) for n, one in enumerate(state.memory)]
        return None if len(state.memory) == explored and all(fits) else "memory"


@dataclass(frozen=True)
class CompressByBatch:
    """The offline phase of an agent with modules, of which the knowledge base is one that all tasks share."""

    agent: ProgressBatch
    task: Task
    inner: Consolidate
    name: str = "offline"

    def modular(self, state: AgentState) -> AgentState:
        """The state as that phase knows states: a bank, and structures."""
        tasks = [self.agent.env.graph.indices(task) for task in (*state.met, self.task)]
        bank = Described(self.agent.network).bank(state.params, tasks, room=room_for(len(tasks)))
        return replace(state, params=bank).noting(structures=tuple((0, n) for n in range(len(tasks))))

    def begin(self, state: AgentState) -> Pytree:
        """A learner of the knowledge base."""
        return self.inner.begin(self.modular(state))

    def length(self, state: AgentState) -> int:
        """Gradient steps, and rounds of repair."""
        return self.inner.length(self.modular(state))

    def run(self, state: AgentState) -> Iterator[tuple[int, Pytree, Reports]]:
        """All of them."""
        return self.inner.run(self.modular(state))

    def end(self, state: AgentState) -> tuple[AgentState, Reports]:
        """The knowledge base as it is now, and what is kept of the task."""
        after, reports = self.inner.end(self.modular(state))
        base, _ = after.params.pick((0, 0))
        return replace(after, params=base).noting(structures=()), reports


def build(plan: Plan) -> ProgressBatch:
    """Progress & Compress with batch RL."""
    settings = plan.settings
    network = Monolithic.with_critic(plan.env.graph, plan.modules, critic_of(plan.env.graph, settings.critic))
    finals, acting = keeps_finals(settings.offline), acting_of(settings.offline)
    ppo = PPO(plan.env, TwoColumns(network), settings.ppo, plan.devices, keeps_reached=finals)
    more = {"replay_size": settings.replay_size, "offline": settings.offline}
    agent = ProgressBatch(plan.env, network, ppo, plan.steps, acting=acting, episodes=plan.episodes, **more)
    agent.consolidator(agent.layout(1))  # says at once what cannot be learnt so
    return agent
