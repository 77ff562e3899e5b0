"""CLEAR, with one network or modules: in every gradient step old tasks are rehearsed. Rolnick et al. 2019."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from modlife.domains.env import PRNGKey
from modlife.learners.clear import Clear
from modlife.learners.config import ClearConfig
from modlife.learners.ppo import PPO
from modlife.learners.replay import AnyReplay
from modlife.lifelong.agent import AgentState, Facts, Phase
from modlife.lifelong.agents import Plan
from modlife.lifelong.evaluation import wrong_chains
from modlife.lifelong.explore import Explore, Exploring, is_kept, times_of, update_count
from modlife.lifelong.finetune import OneNetwork
from modlife.lifelong.foresight import Work
from modlife.policies.modular import Modular, Monolithic
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
        if not structures:
            return None
        return Clear.of(self.config, structures, state.memory, self.ppo.share, apart=self.apart)

    def ahead(self, facts: Facts, groups: Sequence[Sequence[Task]]) -> list[Work]:
        """From the second task on, old ones take part in each gradient step."""
        alone, more = float(self.steps), float(self.steps * (1 + self.config.ratio))
        return [{"online": more if facts.met or number else alone} for number, _ in enumerate(groups)]

    @property
    def apart(self) -> bool:
        """Whether each old task has parameters of its own."""
        return False

    def learnt(self, state: AgentState, explore: Explore, work: Exploring) -> tuple[AgentState, Pytree]:
        """The network as it is, and what was seen and said last."""
        after, policy = super().learnt(state, explore, work)
        replay = explore.replay(work, explore.length(state))
        return replace(after, memory=(*state.memory, replay)), policy

    @property
    def times(self) -> int:
        """Time steps that replay keeps of a task; of whole pieces, where it keeps those."""
        times = times_of(self.ppo, self.steps, self.replay_size)
        if self.piece is None:
            return times
        there_are = update_count(self.ppo, self.steps) * (self.ppo.config.length // self.piece)
        return self.piece * min(max(1, times // self.piece), there_are)

    @property
    def piece(self) -> int | None:
        """Time steps of a piece, with the one that is only seen; None where the last steps are kept."""
        return self.config.unroll + 1 if self.config.keep == "reservoir" else None

    def in_order(self, replay: AnyReplay) -> bool:
        """Not where it keeps pieces."""
        return self.piece is None

    def problem(self, state: AgentState) -> str | None:
        """It has replay of as many tasks as it has met."""
        if state.structures or state.facts.spent:
            return "structures" if state.structures else "spent"
        said = self.env.graph.actions.size + 1
        fits = all(is_kept(one, self.ppo, times=self.times, said=said) for one in state.memory)
        return None if len(state.memory) == len(state.met) and fits else "memory"


@dataclass(frozen=True)
class ModularCLEAR(CLEAR):
    """The same with a module for each component: the structure of every task is given, all modules go on learning."""

    network: Modular

    @property
    def apart(self) -> bool:
        """Each has modules of its own."""
        return True

    def wrong_policies(self, state: AgentState, task: Task, factor: int) -> Sequence[Pytree]:
        """With each other module of the factor."""
        return wrong_chains(state.params, self.env.graph.indices(task), factor)


def build(plan: Plan) -> CLEAR:
    """CLEAR with one network."""
    return CLEAR(**parts(plan, Monolithic.usual(plan.env.graph, plan.modules)))


def modular(plan: Plan) -> ModularCLEAR:
    """CLEAR with modules."""
    return ModularCLEAR(**parts(plan, Modular.with_q(plan.env.graph, plan.env.graph.shape, plan.modules)))


def parts(plan: Plan, network: Modular | Monolithic) -> dict[str, Any]:
    """What either is made of."""
    settings = plan.settings
    return {
        "env": plan.env,
        "network": network,
        "ppo": PPO(plan.env, network, settings.ppo, plan.devices, keeps_said=True),
        "steps": plan.steps,
        "episodes": plan.episodes,
        "replay_size": settings.replay_size,
        "config": settings.clear,
    }
