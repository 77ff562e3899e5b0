"""`modlife metrics`."""

import json
from dataclasses import dataclass
from pathlib import Path

import tyro

from modlife.checks import check_between, check_positive
from modlife.cli.choices import Json
from modlife.errors import InputError


@dataclass(frozen=True)
class Options:
    """Compute transfer, forgetting and the like, by the definitions of several authors, with intervals over lives.

    Of run directories, and of anybody's numbers: a CSV file with the columns run, stage, task, value, and if they are
    known kind, steps, agent, learnt (docs/metrics.md). Intervals resample whole lives.
    """

    paths: tyro.conf.Positional[tuple[Path, ...]]
    """CSV files, run directories, or results with the same files."""
    threshold: float = 0.5
    """The return that a task is to reach soon, as a share of the highest."""
    highest: float = 1.0
    """The most that a task of a CSV file can return; run directories say it themselves."""
    confidence: float = 0.95
    """The share of cases in which an interval should hold the true value."""
    out: Path | None = None
    """The same as a CSV file."""
    as_json: Json = False
    """Print JSON for programs instead of a table."""


def run(options: Options) -> None:
    """Prints the table."""
    if not options.paths:
        raise InputError("Give at least one CSV file or run directory.")
    if options.out is not None and (options.out.suffix != ".csv" or options.out.is_dir()):
        raise InputError(f"'{options.out}' must be a file that ends in .csv.")
    check_between(options, 0.5, 0.999, "confidence")
    check_between(options, -1e9, 1e9, "threshold")
    check_positive(options, "highest", most=1e9)
    if options.highest != Options.highest and not any(path.is_file() for path in options.paths):
        raise InputError("--highest is for CSV files: run directories say it themselves.")
    from modlife.analysis.metric_tables import as_text, measure
    from modlife.metrics import every_metric

    runs = [path for path in options.paths if not path.is_file()]
    if runs:
        from modlife.cli.figure import tell_remarks  # here: files of others need no JAX

        tell_remarks(runs)
    metrics = every_metric(options.threshold)
    rows = measure(options.paths, metrics, confidence=options.confidence, highest=options.highest)
    print(json.dumps(rows) if options.as_json else as_text(rows, metrics, confidence=options.confidence))
    if options.out is not None:
        from modlife.analysis.lives import as_csv, write_together

        write_together({options.out: as_csv(rows)})
