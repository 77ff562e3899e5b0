"""One life, from its config to its run directory."""

import math
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from modlife.experiments.agents import build
from modlife.experiments.config import LifeConfig
from modlife.experiments.store import RunDirectory
from modlife.lifelong.evaluation import Evaluation, evaluate_tasks, wrong_structures
from modlife.lifelong.loop import Agent, AgentState, Report, evaluate_agent, live
from modlife.lifelong.multi_task import MultiTask
from modlife.policies.networks import Monolithic
from modlife.types import Curriculum, Task

FINAL = 10
"""The evaluation at the end has this many times the episodes of those on the way."""


class Progress:
    """What a life tells a person while it runs; the base class says nothing."""

    def step(self, stage: int, stages: int, report: Report) -> None:
        """A step of learning was made."""


class LifeLog:
    """Writes what happens to the run directory, and tells whoever watches."""

    def __init__(self, run: RunDirectory, curriculum: Curriculum, progress: Progress):
        self.run, self.curriculum, self.progress = run, curriculum, progress
        self.start = time.perf_counter()

    def report(self, stage: int, tasks: tuple[Task, ...], report: Report) -> None:
        """One line of a learning curve."""
        self.run.append(
            {
                "kind": "curve",
                "stage": stage,
                "steps": report.steps,
                "return": rounded(report.episode_return),
                "success": rounded(report.success),
                "entropy": rounded(report.entropy),
                "seconds": round(time.perf_counter() - self.start, 2),
            }
        )
        self.progress.step(stage, len(self.curriculum.stages), report)

    def evaluated(self, stage: int, evaluation: Evaluation) -> None:
        """One line with all tasks met so far."""
        self.run.append({"kind": "evaluation", "stage": stage, **as_record(evaluation)})


def run_life(config: LifeConfig, out: Path, *, progress: Progress, devices: int = 1) -> dict[str, Any]:
    """Lives a life into a new run directory and returns its summary."""
    curriculum, agent = config.curriculum, build(config, devices=devices)
    run = RunDirectory.create(out, config)
    log = LifeLog(run, curriculum, progress)
    run.append({"kind": "curriculum", "stages": [[str(task) for task in stage] for stage in curriculum.stages]})
    key_life, key_final = jax.random.split(jax.random.key(config.seed))
    state = live(agent, curriculum, log=log, episodes=config.episodes, key=key_life)
    seconds = time.perf_counter() - log.start
    run.save(state.params, {"met": [str(task) for task in state.met]})
    summary = {
        "agent": config.agent,
        "seed": config.seed,
        "tasks": len(curriculum.tasks),
        "steps_per_task": config.steps,
        "seconds": round(seconds, 1),
        "steps_per_second": round(len(curriculum.tasks) * config.steps / seconds),
        **final_evaluations(agent, state, episodes=FINAL * config.episodes, key=key_final),
    }
    run.finish(summary)
    return summary


def final_evaluations(agent: Agent, state: AgentState, *, episodes: int, key: jax.Array) -> dict[str, Any]:
    """Tasks learnt; unseen combinations and deliberately wrong modules where the agent can."""
    key_seen, key_unseen, key_wrong = jax.random.split(key, 3)
    results = {"seen": as_record(evaluate_agent(agent, state, state.met, episodes=episodes, key=key_seen))}
    if not isinstance(agent, MultiTask):
        return results
    unseen = [task for task in agent.env.graph.tasks if task not in state.met]
    if unseen:
        results["unseen"] = as_record(evaluate_agent(agent, state, unseen, episodes=episodes, key=key_unseen))
    if not isinstance(agent.network, Monolithic):
        results["wrong_module"] = wrong_modules(agent, state, episodes=max(2, episodes // FINAL), key=key_wrong)
    return results


def wrong_modules(agent: MultiTask, state: AgentState, *, episodes: int, key: jax.Array) -> dict[str, float]:
    """For each factor, the mean return when its module is replaced by each wrong one, over the tasks learnt."""
    means = {}
    for number, factor in enumerate(agent.env.graph.factors):
        pairs = [
            (task, wrong)
            for task in state.met
            for wrong in wrong_structures(agent.structure(state, task), number, len(factor.components))
        ]
        if pairs:
            tasks, structures = zip(*pairs, strict=True)
            result = evaluate_tasks(
                agent.env,
                agent.network,
                state.params,
                tasks,
                structures,
                episodes=episodes,
                greedy=False,
                key=jax.random.fold_in(key, number),
            )
            means[factor.name] = round(float(result.returns.mean()), 4)
    return means


def as_record(evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation for a JSON line."""
    return {
        "tasks": [str(task) for task in evaluation.tasks],
        "episodes": evaluation.returns.shape[1],
        "mean_return": round(float(evaluation.returns.mean()), 4),
        "return": rounded(evaluation.mean_return),
        "standard_error": rounded(evaluation.standard_error),
        "success": rounded(evaluation.success.mean(axis=1)),
        "length": rounded(evaluation.length.mean(axis=1)),
    }


def rounded(values: np.ndarray) -> list[float | None]:
    """Numbers for JSON, which has no NaN."""
    return [None if math.isnan(value) else round(float(value), 4) for value in values]
