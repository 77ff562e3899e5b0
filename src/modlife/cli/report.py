"""`modlife report`."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from modlife.cli.counter import counting
from modlife.cli.words import check_file, tell
from modlife.errors import InputError, plain

EVERY = 5
"""Seconds between two looks at lives that go on, at least."""
SPARE = 4
"""How many times as long as it reads the watch rests: lives need the processor."""


@dataclass(frozen=True)
class Options:
    """Write a page that shows lives: curves, memory, modules, times; one file that any browser opens, without network.

    Several run directories are compared: lives that differ in nothing but the seed are averaged, all others are shown
    apart, and named by what differs. A life need not have ended.
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run directories, or results with the same files."""
    out: Path = Path("report.html")
    """The page to write."""
    watch: bool = False
    """Write it anew while lives go on; it shows itself anew in the browser."""
    film: tuple[str, ...] = ()
    """Tasks of which to show an episode; run directories must hold checkpoints."""


def run(options: Options) -> None:
    """Writes the page; of lives that go on, again and again if asked."""
    check_file("page", options.out, ".html", ".htm")
    if not options.runs:
        raise InputError("Give at least one run directory.")
    from modlife.analysis.report.page import write

    with counting():
        seen = looks(options.runs)
        study = next(seen)
        while options.watch and not study.has_ended:
            write(options.out, study, reload=EVERY)
            tell(f"{options.out}: {standing(study)}; Ctrl-C ends the watch.")
            study = next(seen)
        size = write(options.out, study, films(options, study))
    print(plain(f"{options.out}: {standing(study)}, {size / 1000:,.0f} kB; open it in a browser."))


def standing(study: Any) -> str:
    """How far lives are, in words."""
    done, planned = (sum(each) for each in zip(*((one.life.tasks, one.planned) for one in study.lives), strict=True))
    lives = "1 life" if len(study.lives) == 1 else f"{len(study.lives)} lives"
    return f"{lives}, {done} of {planned} tasks learnt"


def looks(runs: Sequence[Path]) -> Iterator[Any]:
    """Lives whenever they have more to tell. What cannot be read just now is said, and looked at again."""
    from modlife.analysis.report.told import read_all

    before = None
    while True:
        began = time.monotonic()
        try:
            study = read_all(runs)
        except InputError as error:
            if before is None:
                raise
            tell(str(error))
        else:
            if study != before:
                yield study
            before = study
        time.sleep(max(EVERY, SPARE * (time.monotonic() - began)))


def films(options: Options, study: Any) -> list[Any]:
    """An episode of each task that was asked for, of each life."""
    if not options.film:
        return []
    from modlife.runtime import start_jax

    start_jax()
    from modlife.analysis.report.films import filmed

    return [strip for told in study.lives for strip in filmed(told.life.path, options.film)]
