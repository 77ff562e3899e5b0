"""Many lives at a glance: on a terminal a table that lives, a row for each; elsewhere a line from time to time."""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from modlife.analysis.estimates import expected, kind_of
from modlife.cli.words import tell
from modlife.errors import plain
from modlife.runs.config import LifeConfig
from modlife.runs.glimpses import NEARLY, Glimpse, all_left, glimpse, seconds_left, whole_seconds
from modlife.runs.many import Planned, Standing

SECONDS_BETWEEN_LOOKS = 1.0
SECONDS_BETWEEN_LINES = 60.0
GOING = ("running", "waiting")
STATES = {"running": "bold", "ended": "dim", "FAILED": "bold red", "waiting": ""}


@dataclass
class Board:
    """How it stands with many lives, and how long all of them still take."""

    at_once: int
    seen: dict[Planned, Glimpse] = field(default_factory=dict)
    known: dict[LifeConfig, list[float]] = field(default_factory=dict)
    """How long lives take of which that can be told, by their kind."""

    def look(self, standings: Sequence[Standing]) -> None:
        """Reads how far those are that run, or have run; those that have ended do not change."""
        for one in standings:
            before = self.seen.get(one.life)
            if one.life.is_there and (before is None or one.state == "running" or before.stage < before.stages):
                self.seen[one.life] = glimpse(one.life.out, one.life.config, runs=one.state == "running")
        self.known = times_of(self.seen)

    def left_of(self, one: Standing) -> float:
        """Seconds that a life still takes: as it went so far, or else as with others like it, or as estimated."""
        if one.state in ("ended", "FAILED"):
            return 0.0
        found = self.seen.get(one.life, Glimpse())
        left = seconds_left(found)
        if left is not None:
            return left
        whole = expected(one.life.config, self.known, spent=found.spent, done=found.done)
        return max(whole - found.spent, (1 - NEARLY) * whole)

    def left(self, standings: Sequence[Standing]) -> float:
        """Seconds until all have ended."""
        running, waiting = ([self.left_of(one) for one in standings if one.state == state] for state in GOING)
        return all_left(running, waiting, self.at_once)

    def summary(self, standings: Sequence[Standing]) -> str:
        """All of them in a line."""
        counts = {state: sum(one.state == state for one in standings) for state in STATES}
        told = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
        return f"{len(standings)} lives: {told}; left {shown(self.left(standings))}"

    def table(self, standings: Sequence[Standing], most: int) -> Group:
        """A row for each, or for those that matter most where there is not room for all; below it, all of them."""
        table = Table("life", "state", "stage", "phase", "last return", "left", box=None)
        for column in table.columns[-2:]:
            column.justify = "right"
        chosen = some(standings, most)
        for one in chosen:
            found = self.seen.get(one.life, Glimpse())
            ended = one.state == "ended"
            stage = f"{found.stages if ended else min(found.stage + 1, found.stages)}/{found.stages}"
            cells = (
                plain(one.life.out.name, 60),
                one.state,
                stage if found.stages else "-",
                "" if ended else found.phase,
                "-" if found.mean is None else f"{found.mean:.3f}",
                "" if one.state in ("ended", "FAILED") else shown(self.left_of(one)),
            )
            table.add_row(*(Text(cell, style=STATES[one.state]) for cell in cells))
        hidden = len(standings) - len(chosen)
        more = f" ({hidden} more, not shown)" if hidden else ""
        return Group(table, Text(f" {self.summary(standings)}{more}"))


def times_of(seen: Mapping[Planned, Glimpse]) -> dict[LifeConfig, list[float]]:
    """How long lives take of which that can be told, by their kind."""
    found = defaultdict(list)
    for life, one in seen.items():
        if (seconds := whole_seconds(one)) is not None:
            found[kind_of(life.config)].append(seconds)
    return found


def some(standings: Sequence[Standing], most: int) -> list[Standing]:
    """At most so many, in their order: those that run or failed before those that wait, and these before the ended."""
    order = ("running", "FAILED", "waiting", "ended")
    first = sorted(standings, key=lambda one: order.index(one.state))[: max(most, 1)]
    return [one for one in standings if one in first]


def shown(seconds: float) -> str:
    """A length of time as people read it."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


@dataclass
class Now:
    """Passes something on at most so often."""

    every: float
    last: float = -1e9

    def is_due(self) -> bool:
        """Whether it is time again."""
        if time.monotonic() - self.last < self.every:
            return False
        self.last = time.monotonic()
        return True


@contextmanager
def board_for(at_once: int) -> Iterator[tuple[Callable[[str], None], Callable[[Sequence[Standing]], None]]]:
    """Two ways to tell: a sentence, and how it stands; in a table or in lines, whichever the output can show."""
    board = Board(at_once)
    if not sys.stderr.isatty():
        yield tell, lines(board)
        return
    console, due = Console(stderr=True), Now(SECONDS_BETWEEN_LOOKS)
    with Live(console=console, refresh_per_second=4, transient=False) as live:

        def show(standings: Sequence[Standing]) -> None:
            if due.is_due() or all(one.state in ("ended", "FAILED") for one in standings):
                board.look(standings)
                live.update(board.table(standings, console.height - 4))

        yield (lambda sentence: console.print(Text(plain(sentence)))), show


def lines(board: Board) -> Callable[[Sequence[Standing]], None]:
    """How it stands, in a line from time to time."""
    due = Now(SECONDS_BETWEEN_LINES, time.monotonic())

    def show(standings: Sequence[Standing]) -> None:
        if due.is_due():
            board.look(standings)
            tell(board.summary(standings))

    return show
