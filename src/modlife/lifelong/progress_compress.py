"""Progress & Compress: a fresh active column learns each task beside a frozen knowledge base, and is folded into it.

    progress    PPO on the active column, which sees what the knowledge base computes (`policies.columns`)
    compress    KL(active || base) over the task's last transitions + λ/2 Σᵢ Fᵢ (θᵢ - θ*ᵢ)², by the base's parameters;
                then F and θ* are renewed as in `ewc`

Schwarz et al. 2018; that compressing uses replay of the task is the paper's. The agent acts by its knowledge base.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp

from modlife.domains.env import PRNGKey
from modlife.learners.config import CompressConfig
from modlife.learners.distill import Distiller, Student
from modlife.learners.fisher import fisher
from modlife.learners.ppo import PPO, Anchor, LearnerState
from modlife.learners.replay import AnyReplay, Packing, Replay
from modlife.lifelong.agent import AgentState, Phase, Reports
from modlife.lifelong.agents import Plan
from modlife.lifelong.ewc import elastic
from modlife.lifelong.explore import Explore, Exploring, times_of
from modlife.lifelong.finetune import OneNetwork
from modlife.lifelong.reports import Consolidated
from modlife.policies.bank import Chain
from modlife.policies.columns import Columns, TwoColumns
from modlife.policies.modular import Monolithic
from modlife.types import Pytree, Task


@dataclass(frozen=True)
class ProgressCompress(OneNetwork):
    """A knowledge base, and an active column while a task is learnt."""

    replay_size: int = 100_000
    config: CompressConfig = field(default_factory=CompressConfig)

    @property
    def columns(self) -> TwoColumns:
        """The network that PPO learns with."""
        assert isinstance(self.ppo.network, TwoColumns)
        return self.ppo.network

    def init(self, *, key: PRNGKey) -> AgentState:
        """A fresh knowledge base that nothing holds back."""
        return AgentState(elastic(self.network.init(key=key)))

    def parameters(self, state: AgentState) -> Chain:
        """Those of the knowledge base."""
        return state.params.now

    def phases(self, tasks: Sequence[Task], *, key: PRNGKey) -> tuple[Phase, ...]:
        """Try the task, progress, compress."""
        key_learn, key_compress = jax.random.split(key)
        return (*super().phases(tasks, key=key_learn), Compress(self, tasks[0], key_compress))

    def begin(self, state: AgentState, task: Task, *, key: PRNGKey) -> LearnerState:
        """PPO on a fresh active column."""
        with jax.ensure_compile_time_eval():  # parameters are drawn on the host, also where only shapes are asked for
            key_fresh, key_start = jax.random.split(key)
            fresh = self.columns.fresh(key=key_fresh)
        indices = self.indices(task)
        return self.ppo.init(Columns(fresh, self.parameters(state)), indices, indices, key=key_start)

    def learnt(self, state: AgentState, explore: Explore, work: Exploring) -> tuple[AgentState, Pytree]:
        """What was explored, with what the active column says of it."""
        policy = self.columns.pick(work.learner.params, work.learner.structures[0])
        replay = explore.replay(work, explore.length(state))
        taught = replace(replay, taught=self.distiller.said(replay, self.columns, policy))
        return replace(state, memory=(taught,)), policy

    @property
    def times(self) -> int:
        """Time steps that are compressed."""
        return times_of(self.ppo, self.steps, self.replay_size)

    @property
    def distiller(self) -> Distiller:
        """How the knowledge base learns what the active column says."""
        return Distiller(self.env, self.network, self.config.distilling, self.times * self.ppo.config.envs)

    def problem(self, state: AgentState) -> str | None:
        """It has replay of the task in hand while that is compressed, and none else."""
        if state.structures or state.facts.spent:
            return "structures" if state.structures else "spent"
        explored = int(state.facts.phase == "offline")
        return None if len(state.memory) == explored and all(map(self.is_replay, state.memory)) else "memory"

    def is_replay(self, replay: AnyReplay) -> bool:
        """Whether a replay can be of this agent."""
        envs, said = self.ppo.config.envs, self.env.graph.actions.size
        rows = replay.rows.shape == (self.times + 1, envs, Packing.of(self.env).words)
        fits = rows and replay.times == self.times and not replay.measured.size
        return fits and replay.taught.shape == (self.times, envs, said)


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
        return self.agent.distiller.init(known.now, Anchor(known.anchor, weights, jnp.zeros(2)))

    def length(self, state: AgentState) -> int:
        """Gradient steps."""
        return self.agent.distiller.steps

    def run(self, state: AgentState) -> Iterator[tuple[int, Student, Reports]]:
        """All gradient steps, with a report per epoch."""
        learner, structure = self.agent.distiller, self.agent.env.graph.indices(self.task)
        steps = learner.run([structure], state.memory, state.work, done=state.facts.done, key=self.key)
        for number, work, losses in steps:
            told = () if losses is None else (Consolidated(number // learner.epoch_steps, 1, {"new": losses["new"]}),)
            yield number, work, told

    def end(self, state: AgentState) -> tuple[AgentState, Reports]:
        """The knowledge base has learnt the task; what it needs of it is added to what others need."""
        now, agent, replay = state.work.params, self.agent, state.memory[-1].read()
        times = min(replay.times, -(-agent.config.samples // agent.ppo.config.envs))
        last = Replay(replay.rows[replay.times - times :], times)
        structure = agent.indices(self.task)[0]
        new = fisher(agent.env, agent.network, now, structure, last)
        return replace(state, params=state.params.after(now, new, decay=agent.config.decay), memory=()), ()


def build(plan: Plan) -> ProgressCompress:
    """Progress & Compress."""
    network, settings = Monolithic.usual(plan.env.graph, plan.modules), plan.settings
    ppo = PPO(plan.env, TwoColumns(network), settings.ppo, plan.devices)
    more = {"replay_size": settings.replay_size, "config": settings.compress}
    return ProgressCompress(plan.env, network, ppo, plan.steps, episodes=plan.episodes, **more)
