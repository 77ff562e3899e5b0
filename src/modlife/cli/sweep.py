"""`modlife sweep`."""

import os
import re
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from modlife.checks import MOST_THREADS, check_count
from modlife.cli import train
from modlife.cli.choices import REQUIRED
from modlife.cli.words import read_options, tell
from modlife.errors import InputError, plain

if TYPE_CHECKING:
    from modlife.runs.many import Failed, Planned

NUMBERS = re.compile(r"\{(\d+)\.\.(\d+)\}")
"""A range in a line, such as {0..5}: the line stands for one life with each of these numbers."""
SETTLED = {"--out", "--resume", "--threads", "--save-every"}
"""Options of `modlife train` that a sweep settles itself."""
MOST_LIVES = 10_000


@dataclass(frozen=True)
class Options:
    """Live many lives, each in a process of its own with one core; the same command goes on after any interruption.

    A file has a line for each life: the name of its run directory, then options of `modlife train`. A range in braces
    stands for several lives: `ewc-{0..5} --agent ewc --seed {0..5}`. What follows a # is not read.
    """

    file: tyro.conf.Positional[Path]
    """The lives."""
    out: Path
    """A folder for run directories, and beside each what its process said (.log)."""
    at_once: int | None = None
    """Lives at a time; by default as many as there are cores."""
    dry_run: bool = False
    """Only tell which lives there are, and which of them have ended."""


def usual(arguments: Sequence[str]) -> Options:
    """The options."""
    return Options(file=REQUIRED, out=REQUIRED)


def run(options: Options) -> None:
    """Lives what has not been lived."""
    if not options.file.is_file():
        raise InputError(f"'{options.file}' is not a file with lives.")
    lives = planned(options.file.read_text(errors="replace"), options.out)
    if options.dry_run:
        for life in lives:
            print(plain(f"{'ended' if life.has_ended else 'begun' if life.has_begun else 'to do':<6} {life.out}"))
    else:
        end_with(live_together(lives, options.at_once))


def planned(text: str, out: Path) -> list["Planned"]:
    """The lives of a file, each checked before any begins."""
    from modlife.runs.many import Planned

    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        for name, *options in expanded(line, number):
            if Path(name).name != name or name.startswith((".", "-")):
                raise InputError(f"Line {number} begins with '{name}', but it must begin with a name for its life.")
            if given := SETTLED.intersection(word.partition("=")[0] for word in options):
                raise InputError(f"Line {number} has {min(given)}, which a sweep settles itself: leave it out.")
            arguments = [*options, "--out", str(out / name)]
            read = read_options(train.Options, train.usual(arguments), prog=f"line {number}", arguments=arguments)
            found.append(Planned(read.life, out / name))
    if not found:
        raise InputError("There is no life in the file: a line has a name, and options of `modlife train`.")
    return found


def expanded(line: str, number: int) -> list[list[str]]:
    """The words of each life that a line stands for; of none, where it is empty."""
    ranges = {(int(first), int(last)) for first, last in NUMBERS.findall(line)}
    if len(ranges) > 1:
        raise InputError(f"Line {number} has different ranges: lives take their numbers from one.")
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        raise InputError(f"Line {number} cannot be read: {error}.") from None
    if not words or not ranges:
        return [words] if words else []
    ((first, last),) = ranges
    if not first <= last < first + MOST_LIVES:
        raise InputError(f"Line {number} has a range from {first} to {last}: give 1 to {MOST_LIVES:,} numbers.")
    return [[NUMBERS.sub(str(one), word) for word in words] for one in range(first, last + 1)]


def live_together(lives: Sequence["Planned"], at_once: int | None) -> list["Failed"]:
    """Lives them, or the rest of them; ends the program where that was interrupted. Gives those that failed."""
    from modlife.runs.interrupts import Stopped
    from modlife.runs.many import live_all

    at_once = len(os.sched_getaffinity(0)) if at_once is None else at_once
    check_count("at_once", at_once, MOST_THREADS)
    try:
        return live_all(lives, at_once=at_once, tell=tell)
    except Stopped as stopped:
        tell(f"stopped by {stopped}; all lives are saved. Go on with the same command.")
        sys.exit(128 + signal.Signals(stopped.number))


def end_with(failed: Sequence["Failed"]) -> None:
    """Names the lives that failed, and ends the program as a failure if there are any."""
    for one in failed:
        tell(str(one))
    if failed:
        sys.exit(1)
