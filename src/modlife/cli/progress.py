"""Progress of a life: a live bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from modlife.experiments import life
from modlife.experiments.config import LifeConfig
from modlife.lifelong.loop import Report

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


class Lines(life.Progress):
    """A line from time to time."""

    def __init__(self, config: LifeConfig):
        self.meter, self.last = Meter(config), 0.0

    def step(self, stage: int, stages: int, report: Report) -> None:
        """Prints if the last line is long ago, or a stage ends."""
        self.meter.step(stage, report.steps)
        now = time.perf_counter()
        if now - self.last > SECONDS_BETWEEN_LINES or report.steps >= self.meter.config.steps:
            self.last = now
            mean = mean_return(report)
            share = 100 * self.meter.done / self.meter.total
            print(
                f"stage {stage + 1}/{stages}  {report.steps:,} steps  {share:.0f}%  {self.meter.speed} steps/s  "
                f"return {mean:.3f}",
                file=sys.stderr,
                flush=True,
            )


class Bar(life.Progress):
    """A bar over the whole life."""

    def __init__(self, config: LifeConfig, bars: Progress):
        self.meter, self.bars = Meter(config), bars
        self.bar = bars.add_task(config.agent, total=self.meter.total, speed="-", mean="-")

    def step(self, stage: int, stages: int, report: Report) -> None:
        """Moves the bar."""
        self.meter.step(stage, report.steps)
        mean = mean_return(report)
        self.bars.update(
            self.bar,
            description=f"{self.meter.config.agent} stage {stage + 1}/{stages}",
            completed=self.meter.done,
            speed=self.meter.speed,
            mean=f"{mean:.3f}",
        )


def mean_return(report: Report) -> float:
    """Mean over the tasks in which an episode ended; NaN before any did."""
    return float(np.nanmean(report.episode_return)) if report.episodes.any() else float("nan")


class Meter:
    """How much of a life is done, and how fast."""

    def __init__(self, config: LifeConfig):
        self.config, self.start, self.done = config, time.perf_counter(), 0
        curriculum = config.curriculum
        self.sizes = [len(stage) for stage in curriculum.stages]
        self.total = sum(self.sizes) * config.steps

    def step(self, stage: int, steps: int) -> None:
        """Counts environment steps over all tasks."""
        self.done = sum(self.sizes[:stage]) * self.config.steps + self.sizes[stage] * min(steps, self.config.steps)

    @property
    def speed(self) -> str:
        """Environment steps per second since the start, compilation included."""
        return f"{self.done / (time.perf_counter() - self.start):,.0f}"
