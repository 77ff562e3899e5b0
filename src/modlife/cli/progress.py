"""Progress of a life: a live bar on a terminal, plain lines elsewhere."""

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import Progress, ProgressColumn, TaskID
from rich.progress import Task as Bars
from rich.table import Column
from rich.text import Text

from modlife.analysis.estimates import seconds
from modlife.cli.words import tell
from modlife.errors import plain
from modlife.lifelong.loop import Left, Moment
from modlife.lifelong.reports import Curve
from modlife.runs.config import LifeConfig
from modlife.runs.forecast import EVALUATION, FINAL
from modlife.runs.life import Watch
from modlife.timing import foreseen

SECONDS_BETWEEN_LINES = 10.0
WIDE = 100
"""Columns from which on there is room for a long bar and a name."""
RECENT = 5.0
"""Seconds, about, over which the speed of stepping is taken."""


@contextmanager
def progress_for(config: LifeConfig, *, is_new: bool = True) -> Iterator[Watch]:
    """Bar or lines, whichever the output can show."""
    meter = Meter(config, seconds(config) if is_new else None)
    if not sys.stderr.isatty():
        yield Lines(meter)
        return
    console = Console(stderr=True)
    with Progress(Said(meter, console), console=console, transient=True) as bars:
        yield Bar(meter, bars, bars.add_task(config.agent, total=1.0))


class Said(ProgressColumn):
    """A bar, and what a meter says whenever it is drawn: the time left goes on between two moments.

    What matters most comes first: a narrow terminal cuts off the rest.
    """

    def __init__(self, meter: "Meter", console: Console):
        is_plain = console.options.ascii_only
        super().__init__(Column(no_wrap=True, overflow="crop" if is_plain else "ellipsis"))
        self.meter, self.is_wide = meter, console.width >= WIDE
        self.signs = "#." if is_plain else "\u2501\u2500"

    def render(self, task: Bars) -> Text:
        """In one line."""
        cells = 20 if self.is_wide else 8
        done, rest = math.floor(cells * task.percentage / 100) * self.signs[0], cells * self.signs[1]
        line = self.meter.line("share", "left", "doing", "latest", "speed")
        name = f"{task.description} " if self.is_wide else ""
        return Text.assemble(name, (done, "bar.complete"), (rest[len(done) :], "bar.back"), f" {line}")


@dataclass
class Meter:
    """How much of a life is done, what is being done, and how long the rest will take."""

    config: LifeConfig
    usual: float | None = None
    """Seconds that lives like it take; None if it goes on from somewhere."""
    done: str = ""
    """What was done last, ..."""
    doing: str = "beginning"
    """... and what is being done now."""
    now: Left = field(default_factory=Left)
    told: float = field(default_factory=time.perf_counter)
    """When that was."""
    mean: float = math.nan
    stepping: list[tuple[float, int]] = field(default_factory=list)
    """When updates of the phase in hand ended, and how many environment steps had been taken; none outside of such."""

    def __post_init__(self) -> None:
        self.stages, self.begun = self.config.stages.stages, self.told

    def note(self, moment: Moment) -> None:
        """What happened."""
        self.told, self.now = time.perf_counter(), moment.left
        goes_on = moment.done < moment.length
        part = f" {moment.done / moment.length:.0%}" if goes_on and moment.done else ""
        self.done = self.named(moment.told_of, moment.phase + part)
        self.doing = self.done if goes_on else self.named(*self.after(moment))
        curves = [report for report in moment.reports if isinstance(report, Curve)]
        if not curves or not goes_on:
            self.stepping = []
        for curve in curves:
            steps = curve.steps * len(self.stages[moment.told_of])
            self.stepping = [*self.stepping[-100:], (self.told, steps)]
            self.mean = self.mean if math.isnan(curve.mean_return) else curve.mean_return

    def named(self, stage: int, what: str) -> str:
        """Something that is done in a stage, with its number and its task; what is done at the end is for all."""
        if what.startswith(FINAL):
            return what
        tasks = self.stages[stage]
        name = str(tasks[0]) if len(tasks) == 1 else f"{len(tasks)} tasks"
        return plain(f"{stage + 1}/{len(self.stages)} {name} {what}")

    def after(self, moment: Moment) -> tuple[int, str]:
        """The stage and the phase that begin when a phase has ended."""
        last = len(self.stages) - 1
        if moment.stage > last:
            return last, FINAL
        met = all(task in moment.state.met for task in self.stages[moment.stage])
        return moment.stage, moment.state.facts.phase or (EVALUATION if met else "beginning")

    def line(self, *what: str) -> str:
        """What is asked for, of that which there is to say."""
        return "  ".join(said for said in (getattr(self, name) for name in what) if said)

    @property
    def share(self) -> str:
        """Of the work of the whole life."""
        return " -%" if self.now.share is None else f"{math.floor(100 * self.now.share):>2}%"

    @property
    def left(self) -> str:
        """The time left, in words; before this life tells, what recorded rates say of lives like it."""
        now = time.perf_counter()
        if self.now.seconds is not None:
            return f"{foreseen(self.now.seconds - (now - self.told))} left"
        if self.usual is None or self.usual <= now - self.begun:
            return "- left"
        return f"perhaps {foreseen(self.usual - (now - self.begun)).removeprefix('about ')} left"

    @property
    def speed(self) -> str:
        """Environment steps per second of late, while there are any."""
        recent = [one for one in self.stepping if self.stepping[-1][0] - one[0] <= RECENT]
        if len(recent) < 2 or recent[-1][0] <= recent[0][0]:
            return ""
        return f"{(recent[-1][1] - recent[0][1]) / (recent[-1][0] - recent[0][0]):,.0f} steps/s"

    @property
    def latest(self) -> str:
        """The newest mean return, if there was one."""
        return "" if math.isnan(self.mean) else f"return {self.mean:.3f}"


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
            self.last = now
            self.say(self.meter.line("done", "share", "left", "latest", "speed"))

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
        self.meter.note(moment)
        self.bars.update(self.bar, completed=moment.left.share or 0.0)

    def say(self, sentence: str) -> None:
        """Prints it above the bar."""
        self.bars.console.print(plain(sentence), markup=False)
