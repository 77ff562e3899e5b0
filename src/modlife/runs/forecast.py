"""Follows a life, and foresees how long the rest of it will take (`outlook`)."""

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import jax

from modlife.lifelong.agent import Agent, AgentState, Facts
from modlife.lifelong.evaluation import Judge
from modlife.lifelong.foresight import Work, work_ahead
from modlife.lifelong.loop import Left, Moment, panel_of
from modlife.runs.config import LifeConfig
from modlife.runs.final import final_work
from modlife.runs.outlook import Part, Spell, compiling_left, seconds_left
from modlife.types import Curriculum, Task

EVALUATION, FINAL = "evaluation", "final evaluation"
RECENT = 256
"""Parts of a life that are remembered."""
OFTEN = 0.5
"""Seconds after which it is foreseen anew while a phase goes on."""

Clocks = Mapping[int, Mapping[str, float]]
"""Seconds spent on each phase when so many stages had ended."""


@dataclass(frozen=True)
class Slot:
    """A part of a life: a phase of learning some tasks, or an evaluation."""

    phase: str
    stage: int
    group: int
    """Which of the tasks, or groups of tasks that are learnt together."""


class Forecast:
    """Where a life stands, and what is known of how long its parts take."""

    def __init__(self, config: LifeConfig, agent: Agent, curriculum: Curriculum, *, often: float = OFTEN):
        self.config, self.agent, self.curriculum, self.often = config, agent, curriculum, often
        self.slots, self.groups = slots_of(agent, curriculum), groups_of(agent, curriculum)
        self.work, self.spells = [0.0] * len(self.slots), list[Spell]()
        self.at, self.share, self.before = 0, 0.0, 0
        self.saving, self.begun, self.kept = 0.0, 0, 0
        self.spent, self.newest, self.when = 0.0, Left(), -math.inf

    def begin(self, moment: Moment, clocks: Clocks, spent: float) -> None:
        """Where this process begins: with what earlier ones took for each stage, and in all."""
        facts, starts = moment.state.facts, [0, *itertools.accumulate(map(len, self.groups))]
        self.at, self.before, self.spent = place_of(self.slots, starts, moment), facts.done, spent
        self.begun = self.kept = self.at
        for group in range(self.slots[self.at].group):
            known = Facts(facts.met[: starts[group]], facts.structures[: starts[group + 1]])
            self.settle(group, work_ahead(self.agent, known, self.groups[group : group + 1]))
        self.look_ahead(moment.state)
        self.look_at_evaluations()
        self.look_to_the_end(moment.state)
        self.spells = past_spells(self.slots, self.work, clocks)

    def note(self, moment: Moment, seconds: float, compiling: float) -> Left:
        """What is left after something was done, which took so long, and beside that so long to compile."""
        where = (moment.phase, moment.told_of)
        ahead = range(self.at, len(self.slots))
        here = next((n for n in ahead if (self.slots[n].phase, self.slots[n].stage) == where), None)
        if here is None:
            return Left()  # an agent that has other phases in some tasks
        while self.at < here:
            self.go_on()
        share = moment.done / moment.length if moment.length else 1.0
        if self.before and moment.length:
            self.share, self.before = min(share, self.before / moment.length), 0
        self.add(seconds, compiling, share - self.share)
        self.share, self.spent = share, self.spent + seconds
        if moment.done == moment.length:
            self.go_on()
            self.look_ahead(moment.state)
            if moment.ended:
                self.look_to_the_end(moment.state)
        return self.left(anew=moment.done == moment.length)

    def saved(self, seconds: float) -> None:
        """It took so long to save what was noted: in each part about as long, however much work that is."""
        self.saving, self.spent, self.kept = self.saving + seconds, self.spent + seconds, self.at

    def saving_left(self) -> float:
        """Seconds that saving will take, by what it took in the parts that have ended; the last one is not saved."""
        return self.saving / max(self.kept - self.begun, 1) * (len(self.slots) - 1 - self.kept)

    def left(self, *, anew: bool) -> Left:
        """What is left now; foreseen anew, or as it was a moment ago."""
        now = time.perf_counter()
        if anew or now - self.when >= self.often:
            parts, self.when = self.parts(), now
            seconds = seconds_left(self.spells, parts)
            seconds = None if seconds is None else seconds + compiling_left(self.spells, parts) + self.saving_left()
            share = None if seconds is None else self.spent / max(self.spent + seconds, 1e-9)
            self.newest = Left(share if share is None else max(share, self.newest.share or 0.0), seconds)
        since = now - self.when
        return replace(self.newest, seconds=None if self.newest.seconds is None else self.newest.seconds - since)

    def parts(self) -> list[Part]:
        """What is still to do."""
        shares = [1 - self.share, *[1.0] * (len(self.slots) - self.at - 1)]
        rest = zip(self.slots[self.at :], self.work[self.at :], shares, strict=True)
        return [Part(slot.phase, work, share) for slot, work, share in rest]

    def add(self, seconds: float, compiling: float, share: float) -> None:
        """Some of the part in hand was done."""
        slot, last = self.slots[self.at], self.spells[-1] if self.spells else None
        if last is None or (last.phase, last.number) != (slot.phase, slot.group):
            last = Spell(slot.phase, slot.group, 0.0, 0.0, 0.0)
            self.spells = [*self.spells[-RECENT:], last]
        took = {"seconds": last.seconds + seconds, "compiling": last.compiling + compiling}
        self.spells[-1] = replace(last, work=self.work[self.at], share=last.share + max(0.0, share), **took)

    def go_on(self) -> None:
        """To the next part; the last one ends with the life."""
        if self.at + 1 < len(self.slots):
            self.at, self.share, self.before = self.at + 1, 0.0, 0

    def look_ahead(self, state: AgentState) -> None:
        """The work of the tasks in hand and of later ones, by what is known now."""
        group = self.slots[self.at].group
        if len(state.met) == sum(map(len, self.groups[:group])):
            self.settle(group, work_ahead(self.agent, state.facts, self.groups[group:]))

    def look_at_evaluations(self) -> None:
        """The work of evaluations after the stages: it is known from the beginning."""
        judge = Judge(self.agent.env, self.agent.network, self.agent.acting, self.config.episodes)
        every, met = self.curriculum.tasks, [*itertools.accumulate(map(len, self.curriculum.stages))]
        for number, slot in enumerate(self.slots):
            if slot.phase == EVALUATION:
                played = judge.played(len(panel_of(every[: met[slot.stage]], self.config.panel)))
                self.work[number] = float(played * self.agent.env.horizon)

    def look_to_the_end(self, state: AgentState) -> None:
        """The work of the last evaluation."""
        every = self.curriculum.tasks
        self.work[-1] = sum(final_work(self.agent, state, every, episodes=self.config.episodes))

    def settle(self, first: int, told: Sequence[Work]) -> None:
        """Notes the work of groups from a first one on."""
        for number, slot in enumerate(self.slots):
            if slot.phase not in (EVALUATION, FINAL) and first <= slot.group < first + len(told):
                usual = float(self.config.steps * len(self.groups[slot.group]))
                self.work[number] = float(told[slot.group - first].get(slot.phase, usual))


def groups_of(agent: Agent, curriculum: Curriculum) -> list[Sequence[Task]]:
    """The tasks that an agent learns at once: those of a stage, or single ones."""
    return [group for stage in curriculum.stages for group in ([stage] if agent.together else [[one] for one in stage])]


def slots_of(agent: Agent, curriculum: Curriculum) -> list[Slot]:
    """The parts of a life, one after the other."""
    names = [phase.name for phase in agent.phases(groups_of(agent, curriculum)[0], key=jax.random.key(0))]
    slots, group = [], 0
    for stage, tasks in enumerate(curriculum.stages):
        for _ in [tasks] if agent.together else tasks:
            slots += [Slot(name, stage, group) for name in names]
            group += 1
        slots.append(Slot(EVALUATION, stage, group - 1))
    return [*slots, Slot(FINAL, len(curriculum.stages) - 1, group - 1)]


def place_of(slots: Sequence[Slot], starts: Sequence[int], moment: Moment) -> int:
    """Where a moment stands: in a phase, before one, before an evaluation, or before the last one."""
    met, phase = len(moment.state.met), moment.state.facts.phase
    for number, slot in enumerate(slots):
        if slot.phase == EVALUATION:
            if slot.stage == moment.stage and starts[slot.group + 1] == met:
                return number
        elif slot.stage == moment.stage and starts[slot.group] == met and phase in ("", slot.phase):
            return number
    return len(slots) - 1


def past_spells(slots: Sequence[Slot], work: Sequence[float], clocks: Clocks) -> list[Spell]:
    """What earlier processes took, by the clocks at the ends of stages."""
    found = []
    for (before, then), (stage, now) in itertools.pairwise([(0, {}), *sorted(clocks.items())]):
        for phase in now:
            here = [n for n, slot in enumerate(slots) if slot.phase == phase and before <= slot.stage < stage]
            seconds = now[phase] - then.get(phase, 0.0)
            if here and 0 < seconds < math.inf:
                mean = sum(work[n] for n in here) / len(here)
                found.append(Spell(phase, slots[here[-1]].group, seconds / len(here), mean))
    return found
