"""Reset & Distill: each task is learnt from scratch, with nothing old in the way, then distilled into one network.

Ahn et al. 2025 (ICLR). The closest there is to the compositional agent without modules: it too learns online on the
side, and folds what it learnt into what it knows offline, together with kept samples of old tasks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import jax

from modlife.domains.env import PRNGKey
from modlife.learners.config import DistillConfig
from modlife.learners.distill import Distiller, Student
from modlife.learners.ppo import PPO, LearnerState
from modlife.learners.replay import AnyReplay, Packing
from modlife.lifelong.agent import AgentState, Phase, Reports
from modlife.lifelong.agents import Plan
from modlife.lifelong.explore import Explore, Exploring, times_of
from modlife.lifelong.finetune import OneNetwork
from modlife.lifelong.reports import Consolidated
from modlife.policies.modular import Monolithic
from modlife.types import Pytree, Task


@dataclass(frozen=True)
class ResetDistill(OneNetwork):
    """A fresh learner for each task, and one network that knows all."""

    replay_size: int = 100_000
    config: DistillConfig = field(default_factory=DistillConfig)

    def phases(self, tasks: Sequence[Task], *, key: PRNGKey) -> tuple[Phase, ...]:
        """Try the task, learn it from scratch, distil."""
        key_learn, key_distill = jax.random.split(key)
        return (*super().phases(tasks, key=key_learn), Distill(self, tasks[0], key_distill))

    def begin(self, state: AgentState, task: Task, *, key: PRNGKey) -> LearnerState:
        """PPO on fresh parameters."""
        with jax.ensure_compile_time_eval():  # parameters are drawn on the host, also where only shapes are asked for
            key_fresh, key_start = jax.random.split(key)
            fresh = self.network.init(key=key_fresh)
        indices = self.indices(task)
        return self.ppo.init(fresh, indices, indices, key=key_start)

    def learnt(self, state: AgentState, explore: Explore, work: Exploring) -> tuple[AgentState, Pytree]:
        """What was explored, with what the learner says of it."""
        policy = self.network.pick(work.learner.params, work.learner.structures[0])
        replay = explore.replay(work, explore.length(state))
        taught = replace(replay, taught=self.distiller.said(replay, self.network, policy))
        return replace(state, memory=(*state.memory, taught)), policy

    @property
    def times(self) -> int:
        """Time steps that replay keeps of a task."""
        return times_of(self.ppo, self.steps, self.replay_size)

    @property
    def distiller(self) -> Distiller:
        """How to distil."""
        return Distiller(self.env, self.network, self.config, self.times * self.ppo.config.envs)

    def problem(self, state: AgentState) -> str | None:
        """It has replay of as many tasks, and as large, as it can be."""
        facts, explored = state.facts, len(state.met) + (state.facts.phase == "offline")
        if state.structures or facts.spent:
            return "structures" if state.structures else "spent"
        times = [self.old_times] * len(state.met) + [self.times] * (explored - len(state.met))
        fits = len(state.memory) == explored and all(map(self.is_replay, state.memory, times))
        return None if fits else "memory"

    def is_replay(self, replay: AnyReplay, times: int) -> bool:
        """Whether a replay can be of this agent, of so many time steps."""
        envs, words, said = self.ppo.config.envs, Packing.of(self.env).words, self.env.graph.actions.size
        rows = replay.times == times and replay.rows.shape == (times + 1, envs, words)
        return rows and replay.taught.shape == (times, envs, said) and not replay.measured.size

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
        learner, indices = self.agent.distiller, self.agent.env.graph.indices
        structures = [indices(task) for task in (*state.met, self.task)]
        steps = learner.run(structures, state.memory, state.work, done=state.facts.done, key=self.key)
        for number, work, losses in steps:
            told = () if losses is None else (Consolidated(number // learner.epoch_steps, len(structures), losses),)
            yield number, work, told

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
