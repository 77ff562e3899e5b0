"""`modlife figure`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from modlife.analysis.figures import FIGURES
from modlife.cli.choices import REQUIRED
from modlife.cli.words import check_file
from modlife.registry import resolve


@dataclass(frozen=True)
class Options:
    """Draw a figure from run directories, as PNG, SVG or PDF, with its numbers beside it as CSV."""

    which: tyro.conf.Positional[str]
    """Which figure; `modlife list` shows all."""
    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run directories, or results with the same files."""
    out: Path
    """The picture to write."""


def usual(arguments: Sequence[str]) -> Options:
    """The options."""
    return Options(which=REQUIRED, runs=(), out=REQUIRED)


def run(options: Options) -> None:
    """Draws."""
    check_file("figure", options.out, ".png", ".svg", ".pdf")
    resolve(FIGURES[options.which].draw)(options.runs, options.out)
    print(f"{options.which}: {options.out}, {options.out.with_suffix('.csv')}")
