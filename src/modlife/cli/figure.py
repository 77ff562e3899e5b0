"""`modlife figure`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from modlife.analysis.figures import FIGURES
from modlife.cli.words import tell
from modlife.errors import plain
from modlife.registry import resolve
from modlife.runs.store import OLD, RunDirectory


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


def run(options: Options) -> None:
    """Draws."""
    from modlife.analysis.lives import check_picture

    entry = FIGURES[options.which]
    check_picture(options.out)
    tell_remarks(options.runs)
    resolve(entry.draw)(options.runs, options.out)
    print(plain(f"{options.which}: {options.out}, {options.out.with_suffix('.csv')}"))


def tell_remarks(runs: Sequence[Path]) -> None:
    """What is wrong with run directories; and, once for all of them, what cannot be known."""
    opened = [RunDirectory.open(path) for path in runs]
    for complaint in dict.fromkeys(complaint for run in opened for complaint in run.complaints()):
        tell(complaint)
    old = [str(run.path) for run in opened if not run.is_sealed]
    if old:
        who = f"'{old[0]}' and {len(old) - 1} more are" if old[1:] else f"'{old[0]}' is"
        tell(f"{who} {OLD}: damage to what they tell of their lives may go unnoticed.")
