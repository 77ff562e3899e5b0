"""The main loop: an agent meets the stages of a curriculum, and is evaluated on all tasks met so far.

Lifelong learning has one task per stage, multi-task learning one stage with all tasks, and single-task learning an
agent that starts afresh with each: the loop is the same. Learning can take long, so it goes in small steps: `live`
yields a `Moment` after each, and the caller may log, stop, or save in between.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import jax

from modlife.domains.env import PRNGKey
from modlife.lifelong.agent import Agent, AgentState, Reports, learn
from modlife.lifelong.evaluation import Evaluation, Judge
from modlife.lifelong.reports import Evaluated
from modlife.policies.acting import Rule
from modlife.types import Curriculum, Task


@dataclass(frozen=True)
class Left:
    """What is left of a life; None where nothing can be said yet."""

    share: float | None = None
    """How much of the work of the whole life is done, from 0 to 1."""
    seconds: float | None = None
    """To its end."""


@dataclass(frozen=True)
class Moment:
    """A point of a life at which it could be saved."""

    stage: int
    """Stages that have ended: the agent is in the stage of this number, or will be in it next."""
    state: AgentState
    reports: Reports = ()
    told_of: int = 0
    """The stage that the reports are of."""
    phase: str = ""
    """What was done since the moment before: a phase of learning, `evaluation`, or `final evaluation` after the last
    stage; nothing before the first."""
    done: int = 0
    """How far that phase has come, in steps, of how many."""
    length: int = 0
    left: Left = Left()
    """What is left of the life after it, as far as that is foreseen."""

    @property
    def ended(self) -> bool:
        """Whether a stage just ended, with its evaluation."""
        return self.phase == "evaluation"


def live(
    agent: Agent,
    curriculum: Curriculum,
    *,
    episodes: int,
    key: PRNGKey,
    start: Moment | None = None,
    panel: int | None = None,
    put_away: Callable[[AgentState], AgentState] = lambda state: state,
) -> Iterator[Moment]:
    """One life from its first moment, or the rest of one: learns stages in turn, evaluates tasks met after each.

    What is not needed soon may be put away after each stage.
    """
    key_init, key_life = jax.random.split(key)
    now = start or Moment(0, agent.init(key=key_init))
    yield now
    state = now.state
    for number in range(now.stage, len(curriculum.stages)):
        key_learn, key_evaluate = jax.random.split(jax.random.fold_in(key_life, number))
        for step in learn(agent, state, curriculum.stages[number], key=key_learn):
            state = step.state
            yield Moment(number, state, step.reports, number, step.phase, step.done, step.length)
        seen = evaluate_agent(agent, state, panel_of(state.met, panel), episodes=episodes, key=key_evaluate)
        state = put_away(state)
        yield Moment(number + 1, state, (Evaluated("seen", seen),), number, "evaluation", 1, 1)


def panel_of(met: Sequence[Task], size: int | None) -> Sequence[Task]:
    """Some of the tasks met, in their order: the first ones, some of the others in turn, and the newest one."""
    if size is None or len(met) <= size:
        return met
    first, turn = met[: size // 2], size - size // 2 - 1
    rest = met[len(first) : -1]
    every = 1 << (-(-len(rest) // max(1, turn)) - 1).bit_length()  # changes rarely, so that none is left out
    return (*first, *(rest[len(met) % every :: every] if turn else ()), met[-1])


def evaluate_agent(
    agent: Agent, state: AgentState, tasks: Sequence[Task], *, episodes: int, key: PRNGKey, rule: Rule | None = None
) -> Evaluation:
    """The agent on tasks that it has policies for, by its own rule of acting or another."""
    judge = Judge(agent.env, agent.network, rule or agent.acting, episodes)
    return judge.evaluate(tasks, [agent.policy(state, task) for task in tasks], key=key)
