"""Reset & Distill: each task is learnt from scratch, with nothing old in the way, then distilled into one network.

Ahn et al. 2025 (ICLR). The closest there is to the compositional agent without modules: it too learns online on the
side, and folds what it learnt into what it knows offline, together with kept samples of old tasks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from modlife.domains.env import PRNGKey
from modlife.learners.config import DistillConfig
from modlife.learners.distill import Student
from modlife.learners.ppo import PPO
from modlife.learners.replay import AnyReplay
from modlife.lifelong.agent import AgentState, Facts, Phase, Reports
from modlife.lifelong.agents import Plan
from modlife.lifelong.distilling import DistillingAgent, distilled
from modlife.lifelong.explore import is_kept
from modlife.lifelong.foresight import Work
from modlife.policies.bank import Chain
from modlife.policies.modular import Monolithic
from modlife.types import Task


@dataclass(frozen=True)
class ResetDistill(DistillingAgent):
    """A fresh learner for each task, and one network that knows all."""

    config: DistillConfig = field(default_factory=DistillConfig)

    def fresh(self, state: AgentState, *, key: PRNGKey) -> Chain:
        """A fresh network."""
        return self.network.init(key=key)

    def folding(self, task: Task, *, key: PRNGKey) -> Phase:
        """Together with samples of old tasks."""
        return Distill(self, task, key)

    def ahead(self, facts: Facts, groups: Sequence[Sequence[Task]]) -> list[Work]:
        """From the second task on, old ones take part in each gradient step."""
        steps = float(self.distiller.steps)
        return [{"offline": steps * (2 if facts.met or number else 1)} for number, _ in enumerate(groups)]

    @property
    def distill_config(self) -> DistillConfig:
        """As it is told."""
        return self.config

    def problem(self, state: AgentState) -> str | None:
        """It has replay of as many tasks, and as large, as it can be."""
        facts, explored = state.facts, len(state.met) + (state.facts.phase == "offline")
        if state.structures or facts.spent:
            return "structures" if state.structures else "spent"
        times, said = [self.old_times] * len(state.met) + [self.times], self.env.graph.actions.size
        pairs = zip(state.memory, times, strict=False)
        fits = all(is_kept(one, self.ppo, times=length, said=said) for one, length in pairs)
        return None if len(state.memory) == explored and fits else "memory"

    def in_order(self, replay: AnyReplay) -> bool:
        """Until it has been distilled; then only some is kept."""
        return replay.times > self.old_times or self.old_times == self.times

    @property
    def old_times(self) -> int:
        """Time steps that are kept of a task once it has been distilled."""
        return min(self.times, max(1, self.config.old_rows // self.ppo.config.envs))


@dataclass(frozen=True)
class Distill:
    """The offline phase: the network learns what the task's learner says, and goes on saying what it said of others."""

    agent: ResetDistill
    task: Task
    key: PRNGKey
    name: str = "offline"

    def begin(self, state: AgentState) -> Student:
        """The network as it is."""
        return self.agent.distiller.init(state.params)

    def length(self, state: AgentState) -> int:
        """Gradient steps."""
        return self.agent.distiller.steps

    def run(self, state: AgentState) -> Iterator[tuple[int, Student, Reports]]:
        """All gradient steps, with a report per epoch."""
        return distilled(self.agent, (*state.met, self.task), state, key=self.key)

    def end(self, state: AgentState) -> tuple[AgentState, Reports]:
        """The network has learnt the task; some of its transitions are kept."""
        kept = state.memory[-1].read().thinned(self.agent.old_times, key=self.key)
        return replace(state, params=state.work.params, memory=(*state.memory[:-1], kept)), ()


def build(plan: Plan) -> ResetDistill:
    """Reset & Distill."""
    network, settings = Monolithic.usual(plan.env.graph, plan.modules), plan.settings
    ppo = PPO(plan.env, network, settings.ppo, plan.devices)
    return ResetDistill(
        plan.env,
        network,
        ppo,
        plan.steps,
        episodes=plan.episodes,
        replay_size=settings.replay_size,
        config=settings.distill,
    )
