"""CLEAR: one network; in every gradient step of a new task old ones are rehearsed. Rolnick et al. 2019."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from modlife.domains.env import PRNGKey
from modlife.learners.clear import Clear
from modlife.learners.config import ClearConfig
from modlife.learners.ppo import PPO
from modlife.lifelong.agent import AgentState, Phase
from modlife.lifelong.agents import Plan
from modlife.lifelong.explore import Explore, Exploring, is_kept, times_of
from modlife.lifelong.finetune import OneNetwork
from modlife.policies.modular import Monolithic
from modlife.types import Pytree, Task


@dataclass(frozen=True)
class CLEAR(OneNetwork):
    """One network, and replay of every task."""

    replay_size: int = 10_000
    config: ClearConfig = field(default_factory=ClearConfig)

    def phases(self, tasks: Sequence[Task], *, key: PRNGKey) -> tuple[Phase, ...]:
        """Try the task, then learn it while old ones are rehearsed."""
        tried, explore = super().phases(tasks, key=key)
        assert isinstance(explore, Explore)
        return tried, replace(explore, rehearsing=self.rehearsal)

    def rehearsal(self, state: AgentState) -> Clear | None:
        """The replay of all old tasks; None before there are any."""
        structures = [self.env.graph.indices(task) for task in state.met]
        return Clear.of(self.config, structures, state.memory, self.ppo.share) if structures else None

    def learnt(self, state: AgentState, explore: Explore, work: Exploring) -> tuple[AgentState, Pytree]:
        """The network as it is, and what was seen and said last."""
        after, policy = super().learnt(state, explore, work)
        replay = explore.replay(work, explore.length(state))
        return replace(after, memory=(*state.memory, replay)), policy

    @property
    def times(self) -> int:
        """Time steps that replay keeps of a task."""
        return times_of(self.ppo, self.steps, self.replay_size)

    def problem(self, state: AgentState) -> str | None:
        """It has replay of as many tasks as it has met."""
        if state.structures or state.facts.spent:
            return "structures" if state.structures else "spent"
        said = self.env.graph.actions.size + 1
        fits = all(is_kept(one, self.ppo, times=self.times, said=said) for one in state.memory)
        return None if len(state.memory) == len(state.met) and fits else "memory"


def build(plan: Plan) -> CLEAR:
    """CLEAR."""
    network, settings = Monolithic.usual(plan.env.graph, plan.modules), plan.settings
    ppo = PPO(plan.env, network, settings.ppo, plan.devices, keeps_said=True)
    more = {"replay_size": settings.replay_size, "config": settings.clear}
    return CLEAR(plan.env, network, ppo, plan.steps, episodes=plan.episodes, **more)
