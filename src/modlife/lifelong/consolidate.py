"""The offline phase: what was explored is folded into the bank, over every task that shares a module with this one."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax

from modlife.domains.env import PRNGKey
from modlife.learners.offline import Consolidator
from modlife.learners.replay import AnyReplay, Replay
from modlife.learners.replay_table import Layout, Lesson, room_for
from modlife.lifelong.agent import AgentState, Reports
from modlife.lifelong.evaluation import Judge
from modlife.lifelong.reports import Consolidated
from modlife.lifelong.retention import NUMBERS, Retained, Retention, harm_of
from modlife.lifelong.settings import CONSOLIDATORS
from modlife.policies.acting import Rule
from modlife.policies.bank import Chain
from modlife.policies.modular import Pattern
from modlife.registry import resolve
from modlife.types import Pytree, Structure, Task


@dataclass(frozen=True)
class Consolidate:
    """Gradient steps on the replay of tasks concerned, for the task's own modules; the bank changes at the end.

    Where the learner has limits, old tasks are looked at afterwards, and repaired if they were harmed.
    """

    task: Task
    layout: Callable[[int], Layout]
    """The layout of a table with room for so many tasks."""
    learner: Callable[[Layout], Consolidator]
    judge: Judge
    """Evaluates as the agent acts."""
    key: PRNGKey
    name: str = "offline"

    def consolidator(self, state: AgentState) -> Consolidator:
        """The learner for as many tasks as are concerned."""
        return self.learner(self.layout(room_for(len(sharing(state.structures)))))

    def begin(self, state: AgentState) -> Pytree:
        """A learner of the modules of the task in hand."""
        return self.consolidator(state).init(state.params.pick(state.structures[-1]))

    def length(self, state: AgentState) -> int:
        """Gradient steps, and rounds of repair."""
        learner = self.consolidator(state)
        return learner.steps + learner.limits.rounds if learner.steps else 0

    def run(self, state: AgentState) -> Iterator[tuple[int, Pytree, Reports]]:
        """All gradient steps, with a report per epoch; then repairs, with a report of what was harmed before each."""
        learner, lessons, done = self.consolidator(state), lessons_of(state.structures, state.memory), state.facts.done
        work = state.work
        if done < learner.steps:
            for number, work, losses in learner.run(state.params, lessons, state.work, done=done, key=self.key):
                epoch = number // learner.epoch_steps
                reports = () if losses is None else (Consolidated(epoch, len(lessons), losses),)
                yield number, work, reports
        for number in range(max(0, done - learner.steps), learner.limits.rounds if learner.steps else 0):
            looked = self.look(state, learner.modules(work), number)
            if not looked.harmed:
                break
            harmed = [one.lesson for one in looked.harmed]
            after = learner.repaired(state.params, lessons, work, harmed=harmed, number=number, key=self.key)
            bank = state.params.place(state.structures[-1], learner.modules(after))
            if harm_of(self.retention(learner).excess(bank, lessons)) >= harm_of(looked.drifts):
                yield self.length(state), work, (looked,)
                return
            work = after
            yield learner.steps + number + 1, work, (looked,)
        yield self.length(state), work, ()

    def end(self, state: AgentState) -> tuple[AgentState, Reports]:
        """The bank with the task's modules as they are now, unless old tasks do not allow it; and what is kept."""
        learner, structure = self.consolidator(state), state.structures[-1]
        own, reports = learner.modules(state.work), ()
        if learner.limits.rounds:
            looked = self.look(state, own)
            if looked.harmed and learner.limits.refuse:
                own, looked = self.spared(state, own, looked)
            reports = (looked,)
        bank = state.params.place(structure, own)
        kept = learner.kept(state.memory[-1].read(), own, key=self.key)
        if learner.limits.rounds:
            mark = self.retention(learner).mark(bank, whole(structure, kept), self.task, key=self.key)
            kept = replace(kept, measured=mark.numbers)
        return replace(state, params=bank, memory=(*state.memory[:-1], kept)), reports

    def look(self, state: AgentState, own: Chain, number: int | None = None) -> Retained:
        """What was harmed, if the bank had these modules; before a round of repair, or at the end."""
        learner, numbers = self.consolidator(state), sharing(state.structures)
        bank = state.params.place(state.structures[-1], own)
        tasks = [(*state.met, self.task)[n] for n in numbers]
        key = self.key if number is None else jax.random.fold_in(self.key, number)
        lessons = lessons_of(state.structures, state.memory)
        return self.retention(learner).look(bank, lessons, tasks, number=number, key=key)

    def retention(self, learner: Consolidator) -> Retention:
        """What looks at tasks."""
        return Retention(self.judge, learner)

    def spared(self, state: AgentState, own: Chain, looked: Retained) -> tuple[Chain, Retained]:
        """The modules as they were where a task that was harmed shares them, until no more are; and a last look."""
        lessons, before = lessons_of(state.structures, state.memory), state.params.pick(state.structures[-1])
        given_back: set[int] = set()
        while True:
            patterns = [lessons[one.lesson].pattern for one in looked.harmed]
            more = {depth for pattern in patterns for depth, shared in enumerate(pattern) if shared} - given_back
            if not more:
                return own, replace(looked, refused=True)
            given_back |= more
            own = tuple(before[depth] if depth in given_back else new for depth, new in enumerate(own))
            looked = self.look(state, own)


def consolidator_of(config: Any, layout: Layout, *, discount: float) -> Consolidator:
    """The consolidator that a config is of."""
    return resolve(CONSOLIDATORS.of(config).build)(layout, config, discount)


def acting_of(config: Any) -> Rule:
    """How an agent acts whose parameters were learnt so."""
    return resolve(CONSOLIDATORS.of(config).acting)(config)


def keeps_finals(config: Any) -> bool:
    """Whether replay must tell what time limits cut off."""
    asks = CONSOLIDATORS.of(config).keeps_finals
    return bool(asks and resolve(asks)(config))


def is_replay(replay: AnyReplay, layout: Layout, learner: Consolidator, *, folded: bool) -> bool:
    """Whether a replay can be of an agent with these, of a task that has been folded in or not."""
    envs, (rows, *width) = layout.envs, replay.rows.shape
    taught = (replay.times, envs, learner.taught) if learner.taught else (0, 0, 0)
    marks = NUMBERS if folded and learner.limits.rounds else 0
    fits = width == [envs, layout.packing.words] and rows <= layout.extent[0]
    most = learner.kept_times if folded and learner.kept_times else layout.times
    times = 1 <= replay.times <= min(most, rows - 1)
    return fits and times and replay.taught.shape == taught and replay.measured.shape == (marks,)


def sharing(structures: Sequence[Structure]) -> list[int]:
    """The numbers of the tasks that share a module with the last one, itself included."""
    return [n for n, pattern in enumerate(patterns_of(structures)) if any(pattern)]


def lessons_of(structures: Sequence[Structure], memory: Sequence[AnyReplay]) -> list[Lesson]:
    """The tasks that share a module with the last one, itself included; and which of theirs are shared."""
    together = zip(structures, patterns_of(structures), memory, strict=True)
    return [Lesson(*one) for one in together if any(one[1])]


def patterns_of(structures: Sequence[Structure]) -> list[Pattern]:
    """Which of its modules each task shares with the last one."""
    return [tuple(a == b for a, b in zip(one, structures[-1], strict=True)) for one in structures]


def whole(structure: Structure, replay: Replay) -> Lesson:
    """The lesson of the task in hand."""
    return Lesson(structure, (True,) * len(structure), replay)
