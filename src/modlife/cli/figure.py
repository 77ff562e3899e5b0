"""`modlife figure`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from modlife.analysis.figures import FIGURES
from modlife.cli.choices import REQUIRED
from modlife.registry import resolve
from modlife.runs.store import RunDirectory

MOST_REMARKS = 3


@dataclass(frozen=True)
class Options:
    """Draw a figure from run directories, with its numbers beside it as CSV.

    Lives that differ in nothing but the seed are averaged; all others are drawn apart, and named by what differs.
    """

    which: tyro.conf.Positional[str]
    """Which figure; `modlife list` shows all."""
    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run directories, or results with the same files."""
    out: Path
    """The picture to write; its ending says in which format: .png, .svg, .pdf, ..."""


def usual(arguments: Sequence[str]) -> Options:
    """The options."""
    return Options(which=REQUIRED, runs=(), out=REQUIRED)


def run(options: Options) -> None:
    """Draws."""
    from modlife.analysis.lives import check_picture

    entry = FIGURES[options.which]
    check_picture(options.out)
    tell_remarks(options.runs)
    resolve(entry.draw)(options.runs, options.out)
    print(f"{options.which}: {options.out}, {options.out.with_suffix('.csv')}")


def tell_remarks(runs: Sequence[Path]) -> None:
    """What is wrong with run directories, or cannot be known; once where many have the same."""
    remarks = [remark for path in runs for remark in RunDirectory.open(path).remarks()]
    for remark in remarks[:MOST_REMARKS]:
        print(remark, file=sys.stderr)
    if len(remarks) > MOST_REMARKS:
        print(f"... and {len(remarks) - MOST_REMARKS} more such remarks on other run directories.", file=sys.stderr)
