"""`modlife figure`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from modlife.analysis.figures import FIGURES
from modlife.cli.choices import REQUIRED
from modlife.registry import resolve


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
    resolve(entry.draw)(options.runs, options.out)
    print(f"{options.which}: {options.out}, {options.out.with_suffix('.csv')}")
