"""Progress of a life: a live bar on a terminal, plain lines elsewhere."""

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from modlife.experiments import life
from modlife.experiments.config import LifeConfig
from modlife.lifelong.loop import Curve, Moment

SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def progress_for(config: LifeConfig) -> Iterator[life.Progress]:
    """Bar or lines, whichever the output can show."""
    if not sys.stderr.isatty():
        yield Lines(config)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%  {task.fields[speed]:>7} steps/s  return {task.fields[mean]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        yield Bar(config, bars)


class Watch(life.Progress, ABC):
    """Turns moments into what a person reads."""

    def __init__(self, config: LifeConfig):
        self.meter, self.mean, self.doing = Meter(config), float("nan"), "online"

    def moment(self, moment: Moment, stages: int) -> None:
        """Notes what happened, and shows it."""
        work = moment.state.work
        self.doing = work.phase if work else "evaluation" if moment.ended else "online"
        for report in moment.reports:
            if isinstance(report, Curve):
                self.meter.step(moment.stage, report.steps)
                self.mean = mean_return(report)
        self.show(min(moment.stage + 1, stages), stages, ended=moment.ended)

    @abstractmethod
    def show(self, stage: int, stages: int, *, ended: bool) -> None:
        """Shows it."""


class Lines(Watch):
    """A line from time to time."""

    last = 0.0

    def show(self, stage: int, stages: int, *, ended: bool) -> None:
        """Prints if the last line is long ago, or a stage ended."""
        now = time.perf_counter()
        if now - self.last > SECONDS_BETWEEN_LINES or ended:
            self.last = now
            share = 100 * self.meter.done / self.meter.total
            self.say(
                f"stage {stage}/{stages} {self.doing}  {share:.0f}%  {self.meter.speed} steps/s  return {self.mean:.3f}"
            )

    def say(self, sentence: str) -> None:
        """Prints it."""
        print(sentence, file=sys.stderr, flush=True)


class Bar(Watch):
    """A bar over the whole life."""

    def __init__(self, config: LifeConfig, bars: Progress):
        super().__init__(config)
        self.bars = bars
        self.bar = bars.add_task(config.agent, total=self.meter.total, speed="-", mean="-")

    def show(self, stage: int, stages: int, *, ended: bool) -> None:
        """Moves the bar."""
        self.bars.update(
            self.bar,
            description=f"{self.meter.config.agent} stage {stage}/{stages} {self.doing}",
            completed=self.meter.done,
            speed=self.meter.speed,
            mean=f"{self.mean:.3f}",
        )

    def say(self, sentence: str) -> None:
        """Prints it above the bar."""
        self.bars.console.print(sentence, markup=False)


def mean_return(report: Curve) -> float:
    """Mean over the tasks in which an episode ended; NaN before any did."""
    return float(np.nanmean(report.episode_return)) if report.episodes.any() else float("nan")


class Meter:
    """How much of a life is done, and how fast."""

    def __init__(self, config: LifeConfig):
        self.config, self.start, self.done = config, time.perf_counter(), 0
        self.before: int | None = None  # what was done when this process came in
        curriculum = config.curriculum
        self.sizes = [len(stage) for stage in curriculum.stages]
        self.total = sum(self.sizes) * config.steps

    def step(self, stage: int, steps: int) -> None:
        """Counts environment steps over all tasks."""
        self.done = sum(self.sizes[:stage]) * self.config.steps + self.sizes[stage] * min(steps, self.config.steps)
        if self.before is None:
            self.before, self.start = self.done, time.perf_counter()

    @property
    def speed(self) -> str:
        """Environment steps per second since this process's first ones, all phases included."""
        elapsed = time.perf_counter() - self.start
        return f"{(self.done - (self.before or 0)) / elapsed:,.0f}" if elapsed > 1 else "-"
