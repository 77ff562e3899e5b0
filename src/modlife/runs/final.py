"""The evaluation at the end of a life: tasks learnt, unseen combinations, and wrong modules."""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from modlife.domains.env import is_slow
from modlife.lifelong.agent import Agent, AgentState
from modlife.lifelong.evaluation import Judge
from modlife.lifelong.loop import evaluate_agent
from modlife.lifelong.reports import evaluation_record
from modlife.types import Task

FINAL = 10
"""The evaluation at the end has this many times the episodes of those on the way."""
MOST_WRONG = 64
"""Tasks, at most, that are tried with wrong modules."""
SLOW_FINAL, SLOW_MOST = 3, 16
"""Where steps are slow: as many times the episodes, and at most so many unseen tasks; a quarter with wrong modules."""
ASKED = 8
"""Unseen tasks, about, of which it is asked beforehand whether there is a policy for them."""

Tell = Callable[[float, float], None]
"""Is told how much of the work is done, and of how much."""


def nobody(done: float, work: float) -> None:
    """Is told nothing."""


def final_evaluations(
    agent: Agent, state: AgentState, *, episodes: int, key: jax.Array, tell: Tell = nobody
) -> dict[str, Any]:
    """Tasks learnt; unseen combinations and deliberately wrong modules where the agent has policies for them."""
    key_seen, key_unseen, key_wrong = jax.random.split(key, 3)
    more, most = (SLOW_FINAL, SLOW_MOST) if is_slow(agent.env) else (FINAL, None)
    seen, unseen, wrong = final_work(agent, state, state.met, episodes=episodes)
    work = seen + unseen + wrong
    tell(0, work)

    def evaluated(tasks: Any, key: jax.Array) -> dict[str, Any]:
        return evaluation_record(evaluate_agent(agent, state, tasks, episodes=more * episodes, key=key))

    results: dict[str, Any] = {"seen": evaluated(state.met, key_seen)}
    tell(seen, work)
    rest = [task for task in agent.env.graph.tasks if task not in state.met and has_policy(agent, state, task)]
    if rest:
        results["unseen"] = evaluated(some_of(rest, most or len(rest)), key_unseen)
        tell(seen + unseen, work)
    found = wrong_modules(agent, state, episodes=episodes, key=key_wrong)
    return {**results, "wrong_module": found} if found else results


def final_work(agent: Agent, state: AgentState, met: Sequence[Task], *, episodes: int) -> tuple[float, float, float]:
    """The work with the tasks met in the end, with unseen ones, and with wrong modules: of evaluations on the way."""
    slow, tasks = is_slow(agent.env), agent.env.graph.tasks
    judge = Judge(agent.env, agent.network, agent.acting, (SLOW_FINAL if slow else FINAL) * episodes)
    seen, known = set(met), 0.0
    unseen = [task for task in tasks if task not in seen]
    asked = some_of(unseen, ASKED) if unseen else ()
    if asked and all(has_policy(agent, state, task) for task in asked):
        known = min(len(unseen), SLOW_MOST) if slow else len(unseen)
    few = len(some_of(met, SLOW_MOST // 4 if slow else MOST_WRONG)) if state.met else 0
    factors, horizon = range(len(agent.env.graph.factors) if few else 0), agent.env.horizon
    alone = Judge(agent.env, agent.network, agent.acting, episodes)
    wrong = sum(alone.played(few * len(agent.wrong_policies(state, state.met[0], n))) for n in factors)
    return float(judge.played(len(met)) * horizon), float(judge.played(int(known)) * horizon), float(wrong * horizon)


def some_of(tasks: Sequence[Any], most: int) -> Sequence[Any]:
    """At most so many tasks, from all over."""
    return tasks[:: -(-len(tasks) // most) or 1]


def has_policy(agent: Agent, state: AgentState, task: Any) -> bool:
    """Whether an agent has a policy for a task."""
    return agent.policy(state, task) is not None


def wrong_modules(agent: Agent, state: AgentState, *, episodes: int, key: jax.Array) -> dict[str, float]:
    """For each factor, the mean return when its module is replaced by each wrong one, over (some) tasks learnt."""
    judge, means = Judge(agent.env, agent.network, agent.acting, episodes), {}
    some = some_of(state.met, SLOW_MOST // 4 if is_slow(agent.env) else MOST_WRONG)
    for number, factor in enumerate(agent.env.graph.factors):
        pairs = [(task, policy) for task in some for policy in agent.wrong_policies(state, task, number)]
        if pairs:
            tasks, policies = zip(*pairs, strict=True)
            result = judge.evaluate(tasks, policies, key=jax.random.fold_in(key, number))
            means[factor.name] = round(float(result.returns.mean()), 4)
    return means
