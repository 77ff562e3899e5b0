"""`modlife table`."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from modlife.cli.figure import tell_remarks
from modlife.errors import InputError


@dataclass(frozen=True)
class Options:
    """Compare the agents of run directories: return, transfer, change since learnt, parameters, time and memory.

    Lives that differ in nothing but the seed are averaged, with standard errors. Transfer needs lives of `stl` with as
    many steps per task among the run directories. `modlife metrics` has further definitions of transfer and forgetting.
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run directories, or results with the same files."""
    out: Path | None = None
    """The same as a CSV file, with 95 % intervals that resample whole lives."""


def run(options: Options) -> None:
    """Prints the table."""
    if options.out is not None and (options.out.suffix != ".csv" or options.out.is_dir()):
        raise InputError(f"'{options.out}' must be a file that ends in .csv.")
    from modlife.runtime import start_jax

    start_jax()
    from modlife.analysis.comparison import as_text, compare
    from modlife.analysis.lives import as_csv, write_together

    tell_remarks(options.runs)
    rows = compare(options.runs)
    print(as_text(rows))
    if options.out is not None:
        write_together({options.out: as_csv(rows)})
