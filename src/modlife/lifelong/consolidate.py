"""The offline phase: what was explored is folded into the bank, over every task that shares a module with this one."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import equinox as eqx
import jax

from modlife.domains.env import PRNGKey
from modlife.learners.offline import Consolidator
from modlife.learners.replay import Replay
from modlife.learners.replay_table import Layout, Lesson, room_for
from modlife.lifelong.agent import AgentState, Reports
from modlife.lifelong.reports import Consolidated
from modlife.types import Pytree, Structure


@dataclass(frozen=True)
class Consolidate:
    """Gradient steps on the replay of all tasks concerned, for the task's own modules; the bank changes at the end."""

    layout: Callable[[int], Layout]
    """The layout of a table with room for so many tasks."""
    learner: Callable[[Layout], Consolidator]
    key: PRNGKey
    name: str = "offline"

    def consolidator(self, state: AgentState) -> Consolidator:
        """The learner for as many tasks as are concerned."""
        return self.learner(self.layout(room_for(len(lessons_of(state.structures, state.memory)))))

    def begin(self, state: AgentState) -> Pytree:
        """A learner of the modules of the task in hand."""
        return self.consolidator(state).init(state.params.pick(state.structures[-1]))

    def length(self, state: AgentState) -> int:
        """Gradient steps."""
        return self.consolidator(state).steps

    def run(self, state: AgentState) -> Iterator[tuple[int, Pytree, Reports]]:
        """All gradient steps, with a report per epoch."""
        learner, lessons, done = self.consolidator(state), lessons_of(state.structures, state.memory), state.facts.done
        if learner.steps == 0:
            return
        layout = self.layout(room_for(len(lessons)))
        table = layout.fill(state.params, lessons)
        for task, lesson in enumerate(lessons):
            if int(table.slots[task]) >= 0:
                table = jax.block_until_ready(layout.keep_features(table, task, depth=lesson.pattern.index(True)))
                yield done, state.work, ()
        for number, work, losses in learner.run(table, state.work, done=done, key=self.key):
            reports = () if losses is None else (Consolidated(number // learner.epoch_steps, len(lessons), losses),)
            yield number, work, reports

    def end(self, state: AgentState) -> tuple[AgentState, Reports]:
        """The bank with the task's modules as they are now."""
        own = self.consolidator(state).modules(state.work)
        return eqx.tree_at(lambda s: s.params, state, state.params.place(state.structures[-1], own)), ()


def lessons_of(structures: Sequence[Structure], memory: Sequence[Replay]) -> list[Lesson]:
    """The tasks that share a module with the last one, itself included; and which of theirs are shared."""
    shared = [tuple(a == b for a, b in zip(one, structures[-1], strict=True)) for one in structures]
    return [Lesson(*one) for one in zip(structures, shared, memory, strict=True) if any(one[1])]
