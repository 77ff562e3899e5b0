"""Progress of a life: a live bar on a terminal, plain lines elsewhere."""

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from modlife.cli.words import tell
from modlife.lifelong.loop import Moment
from modlife.lifelong.reports import Curve
from modlife.runs.config import LifeConfig
from modlife.runs.life import Watch

SECONDS_BETWEEN_LINES = 10.0
WIDE = 100
"""Columns that the whole bar takes."""


@contextmanager
def progress_for(config: LifeConfig) -> Iterator[Watch]:
    """Bar or lines, whichever the output can show."""
    if not sys.stderr.isatty():
        yield Lines(Meter(config))
        return
    console, meter = Console(stderr=True), Meter(config)
    with Progress(*columns_for(console.width), console=console) as bars:
        yield Bar(meter, bars, bars.add_task(config.agent, total=meter.total, doing="", speed="-", mean="-"))


def columns_for(width: int) -> tuple[ProgressColumn, ...]:
    """What the bar shows: in a narrow terminal only what is being done, how much is, and how long the rest takes."""
    left = TextColumn("left"), TimeRemainingColumn()
    if width < WIDE:
        return TextColumn("{task.fields[doing]}"), TextColumn("{task.percentage:>3.0f}%"), *left
    numbers = TextColumn("{task.percentage:>3.0f}%  {task.fields[speed]:>7} steps/s  return {task.fields[mean]}")
    return TextColumn("{task.description}"), BarColumn(), numbers, TimeElapsedColumn(), *left


@dataclass
class Meter:
    """How much of a life is done, how fast, and what is being done."""

    config: LifeConfig
    start: float = field(default_factory=time.perf_counter)
    done: int = 0
    before: int | None = None
    """What was done when this process came in."""
    mean: float = math.nan
    doing: str = "beginning"

    def __post_init__(self) -> None:
        self.sizes = [len(stage) for stage in self.config.stages.stages]
        self.total = sum(self.sizes) * self.config.steps

    def note(self, moment: Moment) -> None:
        """What happened."""
        part = f" {moment.done}/{moment.length}" if moment.length > 1 else ""
        self.doing = f"stage {moment.told_of + 1}/{len(self.sizes)} {moment.phase}{part}"
        for report in moment.reports:
            if isinstance(report, Curve):
                self.step(moment.told_of, report.steps)
                self.mean = report.mean_return

    def step(self, stage: int, steps: int) -> None:
        """Counts environment steps over all tasks."""
        self.done = sum(self.sizes[:stage]) * self.config.steps + self.sizes[stage] * min(steps, self.config.steps)
        if self.before is None:
            self.before, self.start = self.done, time.perf_counter()

    @property
    def speed(self) -> str:
        """Environment steps per second since this process's first ones, all phases included."""
        elapsed = time.perf_counter() - self.start
        done = self.done - (self.before or 0)
        return f"{done / elapsed:,.0f}" if elapsed > 1 and done else "-"

    @property
    def latest(self) -> str:
        """The newest mean return, if there was one."""
        return "-" if math.isnan(self.mean) else f"{self.mean:.3f}"


@dataclass
class Lines:
    """A line from time to time, and when a stage ended."""

    meter: Meter
    last: float = 0.0

    def moment(self, moment: Moment) -> None:
        """Prints if the last line is long ago, or a stage ended."""
        self.meter.note(moment)
        now = time.perf_counter()
        if now - self.last > SECONDS_BETWEEN_LINES or moment.ended:
            self.last, meter = now, self.meter
            share = 100 * meter.done / meter.total
            self.say(f"{meter.doing}  {share:.0f}%  {meter.speed} steps/s  return {meter.latest}")

    def say(self, sentence: str) -> None:
        """Prints it."""
        tell(sentence)


@dataclass
class Bar:
    """A bar over the whole life."""

    meter: Meter
    bars: Progress
    bar: TaskID

    def moment(self, moment: Moment) -> None:
        """Moves the bar."""
        meter = self.meter
        meter.note(moment)
        self.bars.update(
            self.bar,
            description=f"{meter.config.agent} {meter.doing}",
            doing=meter.doing,
            completed=meter.done,
            speed=meter.speed,
            mean=meter.latest,
        )

    def say(self, sentence: str) -> None:
        """Prints it above the bar."""
        self.bars.console.print(sentence, markup=False)
