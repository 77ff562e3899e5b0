"""Whether old tasks were harmed by folding in a new one: by stored rows, and by episodes where that is worth it.

Only tasks that share a module with the new one can be harmed. Each is asked in some of its stored rows how far its
policy is from its teacher, and compared with how far it was when it had just been folded in itself: no environment
steps. The more tasks there are, the fewer rows of each; those that seem to have moved most are asked again in all.
Those that did, a bounded number, are then evaluated: a policy may lose much by moving little, in the few states that
count. So as many rows are asked and episodes played in all, up to 2,048 tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from modlife.domains.env import PRNGKey, is_slow
from modlife.learners.offline import PROBE, Consolidator, Limits
from modlife.learners.replay import AnyReplay
from modlife.learners.replay_table import Lesson
from modlife.lifelong.evaluation import Evaluation, Judge
from modlife.policies.bank import Bank
from modlife.types import Task

NUMBERS = 3
"""Numbers of a mark."""
SUSPECTS = 16
"""Tasks, at most, that are evaluated at a time: as many as a call has room for."""
GLANCE, LEAST = 64 * PROBE, 8
"""Rows of all tasks together in a first look, about; and rows of one, at the least."""
AGAIN = SUSPECTS
"""Tasks that are asked again in all rows, where the first look was at some."""


@dataclass(frozen=True)
class Mark:
    """How well a task was done."""

    drift: float
    """How far its policy was from its teacher."""
    mean_return: float
    error: float
    """Of the mean return."""

    @staticmethod
    def of(replay: AnyReplay) -> "Mark":
        """What stands in a task's replay."""
        return Mark(*map(float, replay.measured))

    @staticmethod
    def measured(drift: float, evaluation: Evaluation, task: int) -> "Mark":
        """From a probe and an evaluation."""
        returns = evaluation.returns[task]
        return Mark(drift, float(returns.mean()), float(returns.std(ddof=1) / np.sqrt(len(returns))))

    @property
    def numbers(self) -> np.ndarray:
        """For replay."""
        return np.array([self.drift, self.mean_return, self.error], np.float32)


@dataclass(frozen=True)
class Suspect:
    """An old task that moved."""

    task: Task
    lesson: int
    """Its place among the lessons."""
    then: Mark
    """When it had just been folded in."""
    now: Mark

    def is_harmed(self, limits: Limits) -> bool:
        """Whether it moved too far, or lost too much."""
        noise = 2 * float(np.hypot(self.then.error, self.now.error))
        lost = self.then.mean_return - self.now.mean_return
        return self.now.drift - self.then.drift > limits.drift or lost > limits.drop + noise

    def record(self) -> dict[str, Any]:
        """For a line of metrics."""
        return {
            "task": str(self.task),
            "drift": [round(self.then.drift, 4), round(self.now.drift, 4)],
            "return": [round(self.then.mean_return, 4), round(self.now.mean_return, 4)],
        }


@dataclass(frozen=True)
class Retained:
    """Old tasks were looked at: before a round of repair of this number, or at the end."""

    round: int | None
    drifts: tuple[float, ...]
    """How much further from its teacher each is than at its own time."""
    harmed: tuple[Suspect, ...] = ()
    refused: bool = False
    """Whether modules stay as they were, since these could not be repaired."""

    def record(self) -> dict[str, Any]:
        """What moved, and what was harmed."""
        record = {
            "kind": "retention",
            "round": self.round,
            "tasks": len(self.drifts),
            "mean_drift": round(float(np.mean(self.drifts)), 4) if self.drifts else 0.0,
            "worst_drift": round(max(self.drifts, default=0.0), 4),
            "harmed": [one.record() for one in self.harmed],
        }
        return {**record, "refused": True} if self.refused else record


@dataclass(frozen=True)
class Retention:
    """Looks at old tasks, as `judge` evaluates them."""

    judge: Judge
    learner: Consolidator

    def look(
        self, bank: Bank, lessons: Sequence[Lesson], tasks: Sequence[Task], *, number: int | None, key: PRNGKey
    ) -> Retained:
        """What was harmed of the tasks of lessons, all but the last, by a bank as it is now; the worst first."""
        old = list(lessons[:-1])
        if not old:
            return Retained(number, ())
        excess = self.excess(bank, lessons)
        first, harmed = self.suspects(excess), []
        if first:
            policies = [bank.pick(old[n].structure) for n in first]
            evaluation = self.judge.evaluate([tasks[n] for n in first], policies, key=key)
            for place, n in enumerate(first):
                then = Mark.of(old[n].replay)
                now = Mark.measured(then.drift + float(excess[n]), evaluation, place)
                harmed.append(Suspect(tasks[n], n, then, now))
            harmed = [one for one in harmed if one.is_harmed(self.learner.limits)]
        return Retained(number, tuple(excess.tolist()), tuple(harmed))

    def suspects(self, excess: Float[np.ndarray, " n"]) -> list[int]:
        """Those that moved away most, which are evaluated; where steps are slow, only if they moved far."""
        least = self.learner.limits.drift / 2 if is_slow(self.judge.env) else 0.0
        return [int(n) for n in np.argsort(-excess, kind="stable")[:SUSPECTS] if excess[n] > least]

    def excess(self, bank: Bank, lessons: Sequence[Lesson]) -> Float[np.ndarray, " n"]:
        """How much further from its teacher each task but the last is than at its own time."""
        old = list(lessons[:-1])
        rows = glance(len(old))
        excess = self.moved(bank, old, rows=rows)
        if rows < PROBE:
            most = np.argsort(-excess, kind="stable")[:AGAIN]
            exact = self.moved(bank, [old[n] for n in most], rows=PROBE)
            excess = np.minimum(excess, exact.min())  # what was asked in few rows only is not suspected before these
            excess[most] = exact
        return excess

    def moved(self, bank: Bank, lessons: Sequence[Lesson], *, rows: int) -> Float[np.ndarray, " n"]:
        """The same, of these tasks, by so many rows of each."""
        return self.learner.drifts(bank, lessons, rows=rows) - np.array([Mark.of(one.replay).drift for one in lessons])

    def mark(self, bank: Bank, lesson: Lesson, task: Task, *, key: PRNGKey) -> Mark:
        """How well a task is done that has just been folded in."""
        evaluation = self.judge.evaluate([task], [bank.pick(lesson.structure)], key=key)
        return Mark.measured(float(self.learner.drifts(bank, [lesson], rows=PROBE)[0]), evaluation, 0)


def glance(tasks: int) -> int:
    """Rows of each of so many tasks in a first look: a power of two, so that few programs are compiled."""
    rows = PROBE
    while rows > LEAST and tasks * rows > GLANCE:
        rows //= 2
    return rows


def harm_of(excess: Sequence[float] | Float[np.ndarray, " n"]) -> float:
    """What repair should lessen: the sum of squares of how far tasks moved away, in which the worst count most."""
    return float(np.square(np.maximum(0, excess)).sum())
