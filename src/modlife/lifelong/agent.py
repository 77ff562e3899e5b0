"""What an agent is: a state that is never changed, only replaced, and phases of learning that can stop at any step.

An agent learns a task, or a group of tasks, in phases. `learn` is the one driver that runs them: it begins each, goes
through its steps, ends it, and yields a complete state after every step, from which it goes on in exactly the same way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax

from modlife.domains.env import Environment, PRNGKey
from modlife.learners.replay import AnyReplay
from modlife.lifelong.reports import Report
from modlife.policies.acting import Rule
from modlife.policies.modular import Network
from modlife.types import Facts, Pytree, Structure, Task

Reports = tuple[Report, ...]


class AgentState(eqx.Module):
    """What an agent knows between two steps of learning."""

    params: Any
    """What it has learnt: a module bank where it is modular."""
    facts: Facts = eqx.field(static=True, default=Facts())
    memory: tuple[AnyReplay, ...] = ()
    """Replay of each task met, and of the one in hand once it has been explored; where the agent keeps it."""
    work: Pytree = None
    """What the phase works on."""
    solved: bool | None = eqx.field(static=True, default=None)
    """Whether an episode met the goal of the task in hand before it is learnt: known between two phases only."""

    @property
    def met(self) -> tuple[Task, ...]:
        """Tasks in the order in which they were learnt."""
        return self.facts.met

    @property
    def structures(self) -> tuple[Structure, ...]:
        """The structure of each task met, and of the one in hand."""
        return self.facts.structures

    def noting(self, **facts: Any) -> "AgentState":
        """The state with other facts."""
        return replace(self, facts=replace(self.facts, **facts))


@runtime_checkable
class Phase(Protocol):
    """A part of learning a task: some steps over arrays, its work, that a checkpoint can hold."""

    @property
    def name(self) -> str:
        """`structure`, `online`, `offline`, ...: unique among an agent's phases."""
        ...

    def begin(self, state: AgentState) -> Pytree:
        """The work before the first step; its shapes are those of the work at any later step."""
        ...

    def length(self, state: AgentState) -> int:
        """How many steps the phase has."""
        ...

    def run(self, state: AgentState) -> Iterator[tuple[int, Pytree, Reports]]:
        """The steps from where the state stands: how many are done, the work, and what there is to tell."""
        ...

    def end(self, state: AgentState) -> tuple[AgentState, Reports]:
        """What the agent knows after the last step, and what there is to tell."""
        ...


@runtime_checkable
class Agent(Protocol):
    """Something that learns tasks."""

    @property
    def env(self) -> Environment:
        """The domain it lives in."""
        ...

    @property
    def network(self) -> Network:
        """The network that its policies belong to."""
        ...

    @property
    def acting(self) -> Rule:
        """How it acts in tasks it has learnt."""
        ...

    @property
    def together(self) -> bool:
        """Whether it learns the tasks of a stage at once, or one after the other."""
        ...

    def init(self, *, key: PRNGKey) -> AgentState:
        """The state before any task."""
        ...

    def grow(self, state: AgentState, *, key: PRNGKey) -> AgentState:
        """The state of a life that was planned for fewer tasks than this agent is made for."""
        ...

    def phases(self, tasks: Sequence[Task], *, key: PRNGKey) -> tuple[Phase, ...]:
        """How tasks are learnt: all of the stage, or a single one."""
        ...

    def problem(self, state: AgentState) -> str | None:
        """What of a state that came from a file cannot be, by name: `structures`, `spent` or `memory`."""
        ...

    def policy(self, state: AgentState, task: Task) -> Pytree | None:
        """The policy that it has for a task, learnt or not; None if it has none."""
        ...

    def wrong_policies(self, state: AgentState, task: Task, factor: int) -> Sequence[Pytree]:
        """Policies for a task it has learnt that differ in the module of one factor; none where that makes no sense."""
        ...

    def about(self, state: AgentState, tasks: Sequence[Task]) -> dict[str, Any]:
        """What else it knows of tasks, for tables: lists in the tasks' order, by name."""
        ...


@dataclass(frozen=True)
class Step:
    """A step of learning: where it led, and how far the phase that made it has come."""

    state: AgentState
    reports: Reports
    phase: str
    done: int
    length: int


def learn(agent: Agent, state: AgentState, stage: Sequence[Task], *, key: PRNGKey) -> Iterator[Step]:
    """Learns the tasks of a stage that have not been met, in small steps, from wherever the state stands."""
    if agent.together:
        if not set(stage) <= set(state.met):
            yield from run_phases(agent.phases(stage, key=key), state, stage)
        return
    for number, task in enumerate(stage):
        if task not in state.met:
            for step in run_phases(agent.phases([task], key=jax.random.fold_in(key, number)), state, [task]):
                state = step.state
                yield step


def run_phases(phases: Sequence[Phase], state: AgentState, tasks: Sequence[Task]) -> Iterator[Step]:
    """Runs phases to their end, from the one that the state is in; then the tasks have been met."""
    if not state.facts.phase:
        state = begun(phases[0], state)
    left = phases[[phase.name for phase in phases].index(state.facts.phase) :]
    for phase, after in zip(left, [*left[1:], None], strict=True):
        length, last = phase.length(state), ()
        for done, work, reports in phase.run(state):
            state = replace(state.noting(done=done), work=work)
            if done < length:
                yield Step(state, reports, phase.name, done, length)
            else:
                last = (*last, *reports)  # told with what the end of the phase has to tell
        ended, more = phase.end(state)
        state = begun(after, ended) if after else finished(ended, tasks)
        yield Step(state, (*last, *more), phase.name, length, length)


def begun(phase: Phase, state: AgentState) -> AgentState:
    """The state at the start of a phase."""
    state = state.noting(phase=phase.name, done=0)
    return replace(state, work=phase.begin(state), solved=None)


def finished(state: AgentState, tasks: Sequence[Task]) -> AgentState:
    """The state when tasks have been learnt."""
    return replace(state.noting(met=(*state.met, *tasks), spent=0, phase="", done=0), work=None)


def template(agent: Agent, state: AgentState, stage: Sequence[Task]) -> Pytree:
    """The shapes of the work of the phase that a state's facts name, to be filled from a checkpoint."""
    phase = phase_of(agent, state, stage)
    return jax.eval_shape(lambda: phase.begin(state)) if phase else None


def phase_of(agent: Agent, state: AgentState, stage: Sequence[Task]) -> Phase | None:
    """The phase that a state's facts name; None between tasks, and where there is none of that name."""
    left = [task for task in stage if task not in state.met]
    if not state.facts.phase or not left:
        return None
    phases = agent.phases(stage if agent.together else left[:1], key=jax.random.key(0))
    return next((phase for phase in phases if phase.name == state.facts.phase), None)
