"""Progress & Compress: a fresh active column learns each task beside a frozen knowledge base, and is folded into it.

    progress    PPO on the active column, which sees what the knowledge base computes (`policies.columns`)
    compress    KL(active || base) over the task's last transitions + λ/2 Σᵢ Fᵢ (θᵢ - θ*ᵢ)², by the base's parameters;
                then F and θ* are renewed as in `ewc`

Schwarz et al. 2018; that compressing uses replay of the task is the paper's. The agent acts by its knowledge base.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import jax

from modlife.domains.env import PRNGKey
from modlife.learners.config import CompressConfig, DistillConfig
from modlife.learners.distill import Student
from modlife.learners.fisher import fisher, normalised, released_compress_fisher
from modlife.learners.ppo import PPO, Anchor
from modlife.learners.replay import Replay
from modlife.lifelong.agent import AgentState, Phase, Reports
from modlife.lifelong.agents import Plan
from modlife.lifelong.distilling import DistillingAgent, distilled
from modlife.lifelong.ewc import elastic
from modlife.lifelong.explore import is_kept
from modlife.policies.bank import Chain
from modlife.policies.columns import Columns, TwoColumns
from modlife.policies.modular import Monolithic
from modlife.types import Task


@dataclass(frozen=True)
class ProgressCompress(DistillingAgent):
    """A knowledge base, and an active column while a task is learnt."""

    config: CompressConfig = field(default_factory=CompressConfig)

    def fresh(self, state: AgentState, *, key: PRNGKey) -> Columns:
        """A fresh active column beside the knowledge base."""
        assert isinstance(self.ppo.network, TwoColumns)
        return Columns(self.ppo.network.fresh(key=key), self.parameters(state))

    def folding(self, task: Task, *, key: PRNGKey) -> Phase:
        """Compress."""
        return Compress(self, task, key)

    @property
    def distill_config(self) -> DistillConfig:
        """Of the divergence; what holds the base back is added."""
        return self.config.distilling

    def init(self, *, key: PRNGKey) -> AgentState:
        """A fresh knowledge base that nothing holds back."""
        return AgentState(elastic(self.network.init(key=key)))

    def parameters(self, state: AgentState) -> Chain:
        """Those of the knowledge base."""
        return state.params.now

    def problem(self, state: AgentState) -> str | None:
        """It has replay of the task in hand while that is compressed, and none else."""
        if state.structures or state.facts.spent:
            return "structures" if state.structures else "spent"
        explored, said = int(state.facts.phase == "offline"), self.env.graph.actions.size
        fits = all(is_kept(one, self.ppo, times=self.times, said=said) for one in state.memory)
        return None if len(state.memory) == explored and fits else "memory"


@dataclass(frozen=True)
class Compress:
    """The offline phase: the knowledge base learns to say what the active column said."""

    agent: ProgressCompress
    task: Task
    key: PRNGKey
    name: str = "offline"

    def begin(self, state: AgentState) -> Student:
        """The knowledge base as it is, drawn back in what earlier tasks need."""
        known, strength = state.params, self.agent.config.strength
        weights = jax.tree.map(lambda part: strength * part, known.importance)
        return self.agent.distiller.init(known.now, Anchor.at(known.anchor, weights))

    def length(self, state: AgentState) -> int:
        """Gradient steps."""
        return self.agent.distiller.steps

    def run(self, state: AgentState) -> Iterator[tuple[int, Student, Reports]]:
        """All gradient steps, with a report per epoch."""
        return distilled(self.agent, [self.task], state, key=self.key)

    def end(self, state: AgentState) -> tuple[AgentState, Reports]:
        """The knowledge base has learnt the task; what it needs of it is added to what others need."""
        now, agent, replay = state.work.params, self.agent, state.memory[-1].read()
        times = min(replay.times, -(-agent.config.samples // agent.ppo.config.envs))
        last = Replay(replay.rows[replay.times - times :], times, replay.taught[replay.times - times : replay.times])
        found = released_compress_fisher if agent.config.fisher == "released" else fisher
        new = found(agent.env, agent.network, now, agent.indices(self.task)[0], last)
        new = normalised(new) if agent.config.normalise else new
        return replace(state, params=state.params.after(now, new, decay=agent.config.decay), memory=()), ()


def build(plan: Plan) -> ProgressCompress:
    """Progress & Compress."""
    network, settings = Monolithic.usual(plan.env.graph, plan.modules), plan.settings
    ppo = PPO(plan.env, TwoColumns(network), settings.ppo, plan.devices)
    more = {"replay_size": settings.replay_size, "config": settings.compress}
    return ProgressCompress(plan.env, network, ppo, plan.steps, episodes=plan.episodes, **more)
