"""The main loop: an agent meets the stages of a curriculum, and is evaluated on all tasks met so far.

An agent is three verbs over a state that is never changed, only replaced. Learning can take long, so it is a sequence
of small steps: `learn` yields a state and a report after each, and the caller may log, stop, or save in between.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float, Int

from modlife.domains.env import Environment, PRNGKey
from modlife.lifelong.evaluation import Evaluation, evaluate_tasks
from modlife.policies.networks import Network
from modlife.types import Curriculum, Task

Structure = tuple[int, ...]


class AgentState(eqx.Module):
    """What an agent knows between two steps of learning."""

    params: Any
    """Parameters of the agent's network; a module bank where it is modular."""
    met: tuple[Task, ...] = eqx.field(static=True)
    """Tasks in the order in which they were learnt."""


class Report(eqx.Module):
    """How a step of learning went; axis [task of the stage]."""

    steps: int = eqx.field(static=True)
    """Environment steps per task in this stage so far."""
    episode_return: Float[np.ndarray, " N"]
    success: Float[np.ndarray, " N"]
    episodes: Int[np.ndarray, " N"]
    entropy: Float[np.ndarray, " N"]


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

    def init(self, *, key: PRNGKey) -> AgentState:
        """The state before any task."""
        ...

    def learn(self, state: AgentState, stage: tuple[Task, ...], *, key: PRNGKey) -> Iterator[tuple[AgentState, Report]]:
        """Learns the tasks of a stage, in small steps."""
        ...

    def structure(self, state: AgentState, task: Task) -> Structure:
        """Which policy of the network the agent uses for a task: with it, `network.pick` gives the policy."""
        ...


@runtime_checkable
class Log(Protocol):
    """Who is told what happens."""

    def report(self, stage: int, tasks: tuple[Task, ...], report: Report) -> None:
        """A step of learning was made."""
        ...

    def evaluated(self, stage: int, evaluation: Evaluation) -> None:
        """All tasks met so far were evaluated after a stage."""
        ...


def live(agent: Agent, curriculum: Curriculum, *, log: Log, episodes: int, key: PRNGKey) -> AgentState:
    """One life: learns the stages in turn and evaluates every task met after each."""
    key_init, key_life = jax.random.split(key)
    state = agent.init(key=key_init)
    for number, stage in enumerate(curriculum.stages):
        key_learn, key_evaluate = jax.random.split(jax.random.fold_in(key_life, number))
        for learnt, report in agent.learn(state, stage, key=key_learn):
            state = learnt
            log.report(number, stage, report)
        log.evaluated(number, evaluate_agent(agent, state, state.met, episodes=episodes, key=key_evaluate))
    return state


def evaluate_agent(
    agent: Agent, state: AgentState, tasks: Sequence[Task], *, episodes: int, key: PRNGKey, greedy: bool = False
) -> Evaluation:
    """The agent on tasks, each with the structure it uses for that task."""
    structures = [agent.structure(state, task) for task in tasks]
    return evaluate_tasks(
        agent.env, agent.network, state.params, tasks, structures, episodes=episodes, greedy=greedy, key=key
    )
