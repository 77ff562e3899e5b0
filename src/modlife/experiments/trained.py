"""Agents that a run directory holds, at work again."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from modlife.errors import InputError
from modlife.experiments.agents import build
from modlife.experiments.records import as_record
from modlife.experiments.restore import newest
from modlife.experiments.store import RunDirectory
from modlife.learners.config import Acting
from modlife.learners.distributions import noise
from modlife.lifelong.compositional import Compositional, expected_or_none
from modlife.lifelong.loop import Agent, AgentState, evaluate_agent
from modlife.types import Task

EVALUATION = 0x0E7A1
"""Sets the keys of evaluations apart from those of lives with the same seed."""


def load(path: Path) -> tuple[Agent, AgentState]:
    """The agent of a run directory as it was at the end."""
    run = RunDirectory.open(path)
    config = run.config()
    agent = build(config)
    state = newest(run, agent, config.curriculum).moment.state
    if not state.met:
        raise InputError(f"The agent of '{path}' has not learnt any task yet.")
    return agent, state


def evaluate_run(
    path: Path, names: tuple[str, ...], *, unseen: bool, episodes: int, acting: Acting | None, seed: int
) -> dict[str, Any]:
    """The agent of a run directory on tasks it learnt, on named ones, or on all unseen ones, as a record.

    Where the agent found structures by itself, the record has them, and those that its modules' first components
    suggest.
    """
    if episodes < 2:
        raise InputError(f"episodes = {episodes}, but an evaluation needs at least 2.")
    if names and unseen:
        raise InputError("Give either tasks or --unseen, not both.")
    agent, state = load(path)
    graph = agent.env.graph
    tasks = tuple(graph.parse(name) for name in names) or state.met
    if unseen:
        tasks = tuple(task for task in graph.tasks if task not in state.met)
        if isinstance(agent, Compositional):
            tasks = tuple(task for task in tasks if expected_or_none(agent, state, task) is not None)
        if not tasks:
            raise InputError(f"The agent of '{path}' has no unseen task whose components it has met.")
    key = jax.random.fold_in(jax.random.key(seed), EVALUATION)
    rule = agent.acting if acting is None else replace(agent.acting, name=acting)
    if rule.needs_q and not has_q(agent):
        raise InputError(f"Acting by '{rule.name}' takes a critic with a value per action, which this agent has not.")
    evaluation = evaluate_agent(agent, state, tasks, episodes=episodes, rule=rule, key=key)
    record = {**as_record(evaluation), "acting": rule.name}
    if isinstance(agent, Compositional):
        record["structure"] = [list(structure) for structure in evaluation.structures]
        record["expected"] = [expected_or_none(agent, state, task) for task in tasks]
    return record


def has_q(agent: Agent) -> bool:
    """Whether the agent's critic tells the value of each action."""
    return getattr(agent.network, "critic", 1) > 1


def sampled_act(agent: Agent, state: AgentState, task: Task) -> Callable[[Any, Any], Any]:
    """Draws actions as the agent does in a task."""
    policy = agent.network.pick(state.params, jnp.array(agent.structure(state, task)))

    def act(env_state: Any, key: Any) -> Any:
        observation = jax.tree.map(lambda leaf: leaf[None], agent.env.observe(env_state))
        policy_says = agent.acting(agent.network(policy, agent.env.parts(observation)))
        return policy_says.sample(noise(agent.env.graph.actions, (1,), key=key))[0]

    return act
