"""Folds tasks of a life with `--offline bounded` in once more, from its checkpoints, with one choice made differently.

    python scripts/refold.py runs/comp-search-64-bounded-0 --stages 8 22 37 49 56 61 --into docs/refold.json

Every choice sees the same bank, the same old tasks and the same explored transitions, so that nothing but the choice
differs. Of the task itself 10,000 transitions are left, with what its policy said of them: its critic is cloned too
(`td` none). Tells the task's return online, and after it was folded in; how far its policy is from its teacher; and how
the returns of up to eight old tasks changed on the same layouts.
"""

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from modlife.learners.offline import PROBE, Consolidator
from modlife.learners.replay_table import Lesson, room_for
from modlife.lifelong.agent import AgentState
from modlife.lifelong.compositional import Compositional
from modlife.lifelong.consolidate import consolidator_of, lessons_of, sharing
from modlife.metrics import evaluations
from modlife.policies.bank import Bank
from modlife.runs.config import LifeConfig, build
from modlife.runs.restore import moment_of
from modlife.runs.store import RunDirectory
from modlife.runtime import start_jax

CHOICES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "4 tasks in a step": {"tasks": 4},
    "16 tasks in a step": {"tasks": 16},
    "1 epoch": {"epochs": 1},
    "10 epochs": {"epochs": 10},
    "actions cloned": {"clone": "actions"},
    "constant rate": {"anneal": 1.0},
    "new task at least .15": {"new_share": 0.15},
    "new task at least .25": {"new_share": 0.25},
}
OLD, EPISODES = 8, 200
"""Old tasks that are evaluated, and episodes of each."""


@dataclass(frozen=True)
class Phase:
    """An offline phase that can be gone through again."""

    agent: Compositional
    before: AgentState
    after: AgentState
    """At the end of the life: it knows the task's structure, and what is left of its replay."""

    @property
    def lessons(self) -> list[Lesson]:
        """The old tasks that share a module with the new one, and it."""
        number = len(self.before.met)
        return lessons_of(self.after.structures[: number + 1], (*self.before.memory, self.after.memory[number]))

    def learner(self, change: Mapping[str, Any]) -> Consolidator:
        """Bounded rehearsal with a choice made differently."""
        config = replace(self.agent.offline, td="none", repair=0, **change)
        layout = self.agent.layout(room_for(len(self.lessons)))
        return consolidator_of(config, layout, discount=self.agent.ppo.config.discount)

    def folded(self, learner: Consolidator) -> Bank:
        """The bank afterwards."""
        structure, bank = self.lessons[-1].structure, self.before.params
        first = learner.init(bank.pick(structure))
        *_, (_, state, _) = learner.run(bank, self.lessons, first, done=0, key=jax.random.key(7))
        return bank.place(structure, learner.modules(state))

    def returns(self, bank: Bank, lessons: list[int]) -> np.ndarray:
        """Mean returns of some of the tasks, as the agent acts after the offline phase."""
        tasks = [self.after.met[n] for n in sharing(self.after.structures[: len(self.before.met) + 1])]
        chains = [bank.pick(self.lessons[n].structure) for n in lessons]
        judge = replace(self.agent.judge, rule=self.agent.acting, episodes=EPISODES)
        return judge.evaluate([tasks[n] for n in lessons], chains, key=jax.random.key(3)).returns.mean(axis=1)

    def told(self, change: Mapping[str, Any]) -> dict[str, Any]:
        """What a choice comes to."""
        learner, begun, last = self.learner(change), time.process_time(), len(self.lessons) - 1
        bank, seconds = self.folded(learner), time.process_time() - begun
        some = np.random.default_rng(last).permutation(last)[:OLD].tolist()
        changes = self.returns(bank, some) - self.returns(self.before.params, some)
        drift = learner.drifts(bank, [self.lessons[last]], rows=PROBE)[0]
        return {
            "return": round(float(self.returns(bank, [last])[0]), 3),
            "drift": round(float(drift), 3),
            "old": round(float(changes.mean()), 3),
            "worst_old": round(float(changes.min()), 3),
            "seconds": round(seconds, 1),
        }


def phases(run: RunDirectory, config: LifeConfig, stages: Sequence[int]) -> Iterator[Phase]:
    """The offline phases of some stages."""
    ends, agent = {}, build(config)
    assert isinstance(agent, Compositional)
    for number in run.checkpoints.numbers():
        description = run.checkpoints.verify(run.checkpoints.path(number))[0].description
        if description.ended:
            ends[description.stage] = number
    after = state_of(run, config, ends[max(ends)])
    for stage in stages:
        yield Phase(agent, state_of(run, config, ends[stage]), after)


def state_of(run: RunDirectory, config: LifeConfig, number: int) -> AgentState:
    """The state of a checkpoint, with its replay."""
    saved = run.checkpoints.read(run.checkpoints.path(number))
    return moment_of(config, saved, run.checkpoints.memory(saved.index)).state


def main() -> None:
    """All choices in all stages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--stages", type=int, nargs="+", required=True)
    parser.add_argument("--into", type=Path, required=True)
    options = parser.parse_args()
    start_jax()
    run = RunDirectory.open(options.run)
    config, found = run.config(), []
    online = {record["tasks"][0]: record["return"][0] for record in evaluations(run.metrics(), "online")}
    for stage, phase in zip(options.stages, phases(run, config, options.stages), strict=True):
        task = str(phase.after.met[stage])
        about = {"life": run.path.name, "stage": stage, "task": task, "old_tasks": len(phase.lessons) - 1}
        for name, change in CHOICES.items():
            found.append({**about, "online": round(online[task], 3), "choice": name, **phase.told(change)})
            print(json.dumps(found[-1]), flush=True)
    options.into.write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n")


if __name__ == "__main__":
    main()
