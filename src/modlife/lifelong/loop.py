"""The main loop: an agent meets the stages of a curriculum, and is evaluated on all tasks met so far.

An agent is a few verbs over a state that is never changed, only replaced. Learning can take long, so it is a sequence
of small steps: `learn` yields a state and reports after each, and the caller may log, stop, or save in between. A
state is complete: `learn`, called again with any state it once gave, goes on from there in exactly the same way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float, Int

from modlife.domains.env import Environment, PRNGKey, Pytree
from modlife.learners.acting import Rule
from modlife.lifelong.evaluation import Evaluation, evaluate_tasks
from modlife.policies.networks import Network
from modlife.types import Curriculum, Task

Structure = tuple[int, ...]


class Work(eqx.Module):
    """What an agent is in the middle of, between two steps of learning a stage."""

    phase: str = eqx.field(static=True)
    """`online` or `offline`."""
    number: int = eqx.field(static=True)
    """Steps done in this phase."""
    structure: Structure = eqx.field(static=True)
    """The structure of the task being learnt; empty where a stage has many."""
    spent: int = eqx.field(static=True)
    """Environment steps that the search for the structure took."""
    data: Pytree
    """The learner."""


class AgentState(eqx.Module):
    """What an agent knows between two steps of learning."""

    params: Any
    """Parameters of the agent's network; a module bank where it is modular."""
    met: tuple[Task, ...] = eqx.field(static=True)
    """Tasks in the order in which they were learnt."""
    structures: tuple[Structure, ...] = eqx.field(static=True, default=())
    """The structure of each task met, where the agent finds or is given them one by one."""
    memory: tuple[np.ndarray, ...] = ()
    """Replay of each task met, and of the one in the offline phase: rows [time, environment, word]."""
    work: Work | None = None
    """What it is in the middle of; nothing between stages."""


class Curve(eqx.Module):
    """How a step of online learning went; axis [task of the stage]."""

    steps: int = eqx.field(static=True)
    """Environment steps per task in this stage so far."""
    episode_return: Float[np.ndarray, " N"]
    success: Float[np.ndarray, " N"]
    episodes: Int[np.ndarray, " N"]
    entropy: Float[np.ndarray, " N"]


@dataclass(frozen=True)
class Chosen:
    """The structure that a task got."""

    structure: Structure
    how: str
    """`fresh` modules, `given`, or `searched`."""
    steps: int = 0
    """Environment steps that the search took."""
    returns: tuple[float, ...] = ()
    """Mean return of each structure, in the order of `search.all_structures`, where they were tried."""


@dataclass(frozen=True)
class Evaluated:
    """Tasks were evaluated: `zero-shot` or `online` the task in hand, `seen` all tasks met so far."""

    when: str
    evaluation: Evaluation


@dataclass(frozen=True)
class Consolidated:
    """How an epoch of the offline stage went: means of the three terms of its loss."""

    epoch: int
    tasks: int
    td: float
    likelihood: float
    logits: float


Report = Curve | Chosen | Evaluated | Consolidated
Step = tuple[AgentState, tuple[Report, ...]]


@runtime_checkable
class Agent(Protocol):
    """Something that learns tasks stage by stage."""

    @property
    def env(self) -> Environment:
        """The domain it lives in."""
        ...

    @property
    def network(self) -> Network:
        """The network that its parameters belong to."""
        ...

    @property
    def acting(self) -> Rule:
        """How it acts in tasks it has learnt."""
        ...

    def init(self, *, key: PRNGKey) -> AgentState:
        """The state before any task."""
        ...

    def learn(self, state: AgentState, stage: tuple[Task, ...], *, key: PRNGKey) -> Iterator[Step]:
        """Learns the tasks of a stage, in small steps, from wherever the state stands in it."""
        ...

    def blank(self, state: AgentState, work: Work, stage: tuple[Task, ...]) -> Pytree:
        """The shapes of what the agent's work holds at this point of a stage, to be filled from a checkpoint."""
        ...

    def structure(self, state: AgentState, task: Task) -> Structure:
        """Which policy of the network the agent uses for a task: with it, `network.pick` gives the policy."""
        ...


@dataclass(frozen=True)
class Moment:
    """A point of a life at which it could be saved."""

    stage: int
    """The stage that the agent is in, or will be in next."""
    state: AgentState
    reports: tuple[Report, ...] = ()
    ended: bool = False
    """A stage just ended, with its evaluation."""


def live(
    agent: Agent, curriculum: Curriculum, *, episodes: int, key: PRNGKey, start: Moment | None = None
) -> Iterator[Moment]:
    """One life from its first moment, or the rest of one: learns stages in turn, evaluates all tasks met after each."""
    key_init, key_life = jax.random.split(key)
    now = start or Moment(0, agent.init(key=key_init))
    yield now
    for number in range(now.stage, len(curriculum.stages)):
        key_learn, key_evaluate = jax.random.split(jax.random.fold_in(key_life, number))
        for state, reports in agent.learn(now.state, curriculum.stages[number], key=key_learn):
            now = Moment(number, state, reports)
            yield now
        evaluation = evaluate_agent(agent, now.state, now.state.met, episodes=episodes, key=key_evaluate)
        now = Moment(number + 1, now.state, (Evaluated("seen", evaluation),), ended=True)
        yield now


def evaluate_agent(
    agent: Agent, state: AgentState, tasks: Sequence[Task], *, episodes: int, key: PRNGKey, rule: Rule | None = None
) -> Evaluation:
    """The agent on tasks, each with the structure it uses for that task, by its own rule or another."""
    structures = [agent.structure(state, task) for task in tasks]
    return evaluate_tasks(
        agent.env,
        agent.network,
        state.params,
        tasks,
        structures,
        episodes=episodes,
        rule=rule or agent.acting,
        key=key,
    )
