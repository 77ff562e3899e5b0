"""One life, from its config to its run directory; and the rest of one that was interrupted."""

import contextlib
import time
import warnings
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import jax

from modlife.errors import Diverged, InputError
from modlife.learners.replay import Packing
from modlife.lifelong.agent import Agent, AgentState
from modlife.lifelong.loop import Moment, live
from modlife.memory import check_memory, give_back
from modlife.metrics import stages_of, summarise
from modlife.pauses import pause, stopped_by
from modlife.runs.checkpoints import IN_MEMORY, Description
from modlife.runs.clock import Clock, rounded
from modlife.runs.config import LifeConfig, build
from modlife.runs.final import final_evaluations
from modlife.runs.forecast import FINAL, Forecast
from modlife.runs.interrupts import Interrupts, Stopped
from modlife.runs.numbers import check_numbers
from modlife.runs.restore import newest, tree_of
from modlife.runs.store import RunWriter


class Watch(Protocol):
    """What a life tells a person while it runs; by itself nothing of what is as it should be."""

    def moment(self, moment: Moment) -> None:
        """Something was done."""

    def say(self, sentence: str) -> None:
        """Something out of the ordinary happened."""
        warnings.warn(sentence, stacklevel=2)


class Silent(Watch):
    """Nobody watches."""


@dataclass
class Life:
    """A life that is being lived: its agent, its run directory, and when it was last saved."""

    config: LifeConfig
    writer: RunWriter
    devices: int = 1
    save_every: float = 30.0
    watch: Watch = field(default_factory=Silent)

    def __post_init__(self) -> None:
        self.curriculum, self.agent = self.config.stages, build(self.config, devices=self.devices)
        self.key_life, self.key_final = jax.random.split(jax.random.key(self.config.seed))
        self.clock, self.saved, self.fell_back = Clock(), time.perf_counter(), False
        self.forecast = Forecast(self.config, self.agent, self.curriculum)

    def resume(self) -> Moment | None:
        """Where the life stands; None if it was killed before anything was saved."""
        writer = self.writer
        if not writer.checkpoints.numbers():
            if writer.run.metrics():
                raise InputError(f"'{writer.path}' has metrics but no checkpoints: they are missing.")
            return None
        found = newest(writer.run, self.config, devices=self.devices)
        for sentence in (*found.complaints, writer.differences(devices=self.devices)):
            if sentence:
                self.watch.say(sentence)
        facts, self.fell_back = found.description, bool(found.complaints)
        writer.rewind_metrics(facts.metrics)
        self.clock = Clock(facts.wall_seconds, facts.cpu_seconds, facts.peak_megabytes)
        return found.moment

    def moments(self, start: Moment | None, interrupts: Interrupts) -> Iterator[Moment]:
        """Lives on, writes what happens, saves from time to time, and stops when asked to; or when nobody listens."""
        config = self.config
        life = live(
            self.agent,
            self.curriculum,
            episodes=config.episodes,
            key=self.key_life,
            start=start,
            panel=config.panel,
            put_away=self.put_away,
        )
        now = next(life)
        if start is None or self.fell_back:  # what newer checkpoints know of the metrics is not there any more
            self.save(now)
        self.announce()
        self.forecast.begin(now, self.writer.checkpoints.clocks(), sum(self.clock.wall.values()))
        try:
            yield now
            while (after := self.next_of(life, interrupts)) is not None:
                check_numbers(after, self.config)
                now = replace(after, left=self.forecast.note(after, *self.clock.tick(after.phase)))
                for report in now.reports:
                    self.writer.append({**report.record(), "stage": now.told_of})
                self.watch.moment(now)
                if self.is_due(now):
                    self.save(now)
                if now.done == now.length:
                    give_back()
                self.forecast.saved(sum(self.clock.tick(now.phase)))
                interrupts.check()
                yield now
        except (GeneratorExit, Stopped, Diverged):
            self.save(now)
            raise

    def next_of(self, life: Iterator[Moment], interrupts: Interrupts) -> Moment | None:
        """The next moment of a life, unless it is asked to stop on the way there; None at its end."""
        with stopped_by(interrupts.check):
            pause()  # it may have been asked before anything was compiled
            return next(life, None)

    def put_away(self, state: AgentState) -> AgentState:
        """The state with old replay in files, as far as it is too much for memory."""
        return replace(state, memory=self.writer.checkpoints.put_away(state.memory))

    def announce(self) -> None:
        """Writes what is to be learnt, unless it is written."""
        stages = [[str(task) for task in stage] for stage in self.curriculum.stages]
        told = len(stages_of(self.writer.records()))
        if told < len(stages):
            self.writer.append({"kind": "curriculum", "stages": stages[told:]})

    def is_due(self, moment: Moment) -> bool:
        """Whether to save now: after a stage, after a phase, or when the last time is long enough ago."""
        ended = moment.ended or moment.done == moment.length
        return ended or time.perf_counter() - self.saved >= self.save_every

    def save(self, moment: Moment) -> None:
        """Writes a checkpoint."""
        metrics, history = self.writer.sync()
        description = Description(
            stage=moment.stage,
            ended=moment.ended,
            planned=len(self.config.chosen),
            facts=moment.state.facts,
            metrics=metrics,
            history=history,
            wall_seconds=rounded(self.clock.wall, 3),
            cpu_seconds=rounded(self.clock.cpu, 3),
            peak_megabytes=round(self.clock.peak, 1),
        )
        self.writer.checkpoints.save(tree_of(moment.state), moment.state.memory, description)
        self.saved = time.perf_counter()

    def finish(self, state: AgentState) -> dict[str, Any]:
        """Evaluates at the end and writes the summary."""
        tasks, steps = len(self.curriculum.tasks), self.config.steps

        def tell(done: float, work: float) -> None:
            self.tell_final(state, int(done), int(work))

        final = final_evaluations(self.agent, state, episodes=self.config.episodes, key=self.key_final, tell=tell)
        pause()
        self.clock.tick("evaluation")
        seconds = sum(self.clock.wall.values())
        summary = {
            "agent": self.config.agent,
            "domain": self.config.domain.name,
            "seed": self.config.seed,
            "tasks": tasks,
            "steps_per_task": steps,
            "seconds": round(seconds, 1),
            "steps_per_second": round(tasks * steps / seconds),
            "wall_seconds": rounded(self.clock.wall, 1),
            "cpu_seconds": rounded(self.clock.cpu, 1),
            "peak_megabytes": round(self.clock.peak),
            **summarise(self.writer.records()),
            **final,
        }
        return self.writer.finish(summary)

    def tell_final(self, state: AgentState, done: int, length: int) -> None:
        """Tells how far the evaluation at the end has come."""
        stages = len(self.curriculum.stages)
        moment = Moment(stages, state, (), stages - 1, FINAL, done, length)
        self.watch.moment(replace(moment, left=self.forecast.note(moment, *self.clock.tick("evaluation"))))


def run_life(
    config: LifeConfig | None,
    out: Path,
    *,
    watch: Watch | None = None,
    devices: int = 1,
    save_every: float = 30.0,
    parent: int | None = None,
) -> dict[str, Any]:
    """Lives a life into a new run directory, or goes on with the one that is there, and returns its summary."""
    moments = living(config, out, watch=watch, devices=devices, save_every=save_every, parent=parent)
    while True:
        try:
            next(moments)
        except StopIteration as end:
            return end.value


def living(
    config: LifeConfig | None,
    out: Path,
    *,
    watch: Watch | None = None,
    devices: int = 1,
    save_every: float = 30.0,
    parent: int | None = None,
) -> Generator[Moment, None, dict[str, Any]]:
    """A life moment by moment, into a new run directory; without a config, the rest of the one that is there.

    Returns the summary. One who stops listening leaves a life that is saved and can be resumed. It also stops, saved,
    when this process has another parent than the one that is named.
    """
    watch = watch or Silent()
    if config:
        check_room(config, build(config, devices=devices))  # says what cannot be before anything is written
    with contextlib.ExitStack() as held:
        writer = held.enter_context(RunWriter.create(out, config, devices=devices) if config else RunWriter.reopen(out))
        if writer.run.has_ended:
            for remark in writer.run.remarks():
                watch.say(remark)
            return writer.run.summary() or {}
        interrupts = held.enter_context(Interrupts(parent))
        life = Life(config or writer.run.config(), writer, devices=devices, save_every=save_every, watch=watch)
        start = None if config else life.resume()
        if not config:
            check_room(life.config, life.agent)
            writer.note(devices=devices)
        state = start.state if start else None
        for moment in life.moments(start, interrupts):
            state = moment.state
            yield moment
        assert state is not None
        with stopped_by(interrupts.check):  # all is saved: it can be given up
            return life.finish(state)


def check_room(config: LifeConfig, agent: Agent) -> None:
    """There is memory for what an update collects and for the replay that is kept, twice: here and at the learner."""
    row = 4 * Packing.of(agent.env).words
    ppo, kept = getattr(config.settings, "ppo", None), getattr(config.settings, "replay_size", 0)
    together = max(map(len, config.stages.stages))
    if ppo is not None:
        out = f"Give fewer --ppo.envs (now {ppo.envs}) or a smaller --ppo.length (now {ppo.length})."
        check_memory(row * ppo.batch * together, "What an update collects", way_out=out)
    whole, old, copied = config.settings.rows(tasks=len(config.chosen), steps=config.steps)
    check_memory(
        row * (whole + copied) + min(IN_MEMORY, row * old),
        f"Replay of {len(config.chosen)} tasks",
        way_out=f"Give a smaller --replay-size (now {kept}), or fewer --tasks.",
    )


def grow_life(out: Path, tasks: int) -> LifeConfig:
    """Plans further tasks for a life that has ended."""
    with RunWriter.reopen(out) as writer:
        config = writer.run.config()
        if not writer.run.has_ended:
            raise InputError(
                f"The life in '{out}' has not met its {len(config.chosen)} tasks yet: let it end first, with --resume "
                "alone; then it can go on with more."
            )
        if tasks < len(config.chosen):
            raise InputError(
                f"The life in '{out}' is planned for {len(config.chosen)} tasks; it cannot end with {tasks}."
            )
        return writer.grow(tasks)
