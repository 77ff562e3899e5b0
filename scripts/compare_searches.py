"""How good searches for structures are, in the bank of a recorded life before each of its tasks.

    python scripts/compare_searches.py RUN --out results/search.json

Each search chooses a structure for each task that the life searched one for, and of which a checkpoint was kept
(all in lives of up to 128 tasks); exhaustive search does so twice, with
other luck. What they chose is then evaluated in the same fresh episodes. Regret is what it lacks to the best of them.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from modlife.lifelong.agent import AgentState
from modlife.lifelong.compositional import Compositional
from modlife.lifelong.halving import Halving
from modlife.lifelong.search import ChooseStructure, Exhaustive
from modlife.lifelong.settings import ExhaustiveConfig, HalvingConfig
from modlife.runs.provenance import origin
from modlife.runs.restore import acting_state
from modlife.runs.store import RunDirectory
from modlife.runtime import start_jax
from modlife.types import Task

SEARCHES: dict[str, Any] = {
    "exhaustive": Exhaustive(ExhaustiveConfig()),
    "exhaustive again": Exhaustive(ExhaustiveConfig()),
    "halving": Halving(HalvingConfig(margin=0.0)),
}
NEAR = 0.05
"""A regret that does not matter."""


def banks(run: RunDirectory) -> Iterator[tuple[Compositional, AgentState, Task]]:
    """The agent after each task, and the next task, if it needs a search."""
    config = run.config()
    for number in run.checkpoints.numbers():
        saved = run.checkpoints.read(run.checkpoints.path(number))
        facts = saved.index.description
        if facts.ended and facts.stage < len(config.chosen):
            agent, state = acting_state(config, saved)
            if not isinstance(agent, Compositional):
                return
            if agent.known(state, config.chosen[facts.stage]) is None:
                yield agent, state, config.chosen[facts.stage]


def compared(agent: Compositional, state: AgentState, task: Task, *, episodes: int, key: jax.Array) -> dict[str, Any]:
    """What each search chose for a task, with how many steps, and how good it is."""
    key_fresh, *keys = jax.random.split(key, 1 + len(SEARCHES))
    chosen = {}
    for (name, search), one in zip(SEARCHES.items(), keys, strict=True):
        phase = ChooseStructure(task, agent.judge, agent.known, search, one, key_fresh)
        after = replace(state, work=phase.begin(state))
        for _, found, _ in phase.run(after):
            after = replace(after, work=found)
        chosen[name] = phase.end(after)[0].facts
    judge = replace(agent.judge, episodes=episodes)
    scores = {
        structure: float(judge.evaluate([task], [state.params.pick(structure)], key=key_fresh).returns.mean())
        for structure in {facts.structures[-1] for facts in chosen.values()}
    }
    best = max(scores.values())
    return {
        name: {
            "structure": list(facts.structures[-1]),
            "steps": facts.spent,
            "return": round(scores[facts.structures[-1]], 4),
            "regret": round(best - scores[facts.structures[-1]], 4),
        }
        for name, facts in chosen.items()
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Over tasks: mean regret with its standard error, share of choices that are near the best, steps."""
    result = {}
    for name in SEARCHES:
        regrets, steps = (np.array([row[name][what] for row in rows]) for what in ("regret", "steps"))
        result[name] = {
            "mean_regret": round(float(regrets.mean()), 4),
            "standard_error": round(float(regrets.std(ddof=1) / np.sqrt(len(regrets))), 4),
            f"within_{NEAR}": round(float((regrets <= NEAR).mean()), 3),
            "steps": round(float(steps.mean())),
        }
    share = result["halving"]["steps"] / result["exhaustive"]["steps"]
    return {"tasks": len(rows), **result, "share_of_steps": round(share, 3)}


def main() -> None:
    """Compares, and writes all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    start_jax(threads=1)
    run, rows = RunDirectory.open(options.run), []
    for agent, state, task in banks(run):
        key = jax.random.fold_in(jax.random.key(options.seed), len(state.met))
        rows.append({"task": str(task), **compared(agent, state, task, episodes=options.episodes, key=key)})
        print(json.dumps(rows[-1]), flush=True)
    if len(rows) < 2:
        raise SystemExit(f"'{options.run}' has too few tasks with searched structures.")
    told = {"run": options.run.name, "episodes": options.episodes, "seed": options.seed, **origin(devices=1)}
    options.out.write_text(json.dumps({**told, "summary": summary(rows), "choices": rows}, indent=1) + "\n")
    print(json.dumps(summary(rows), indent=1))


if __name__ == "__main__":
    main()
