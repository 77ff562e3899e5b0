"""`modlife tune`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from modlife.checks import check_between, check_episodes
from modlife.cli.plan import tell_plan
from modlife.cli.sweep import end_with, live_together
from modlife.errors import plain


@dataclass(frozen=True)
class Options:
    """Search for hyper-parameters as the paper did: one life per setting and seed, each in a process of its own.

    A setting's score is the mean return over the tasks of a life at its end; chosen is the highest mean over seeds,
    among settings of which as many lives have ended. The same command goes on where it was interrupted.
    """

    study: tyro.conf.Positional[str]
    """Which grid for which agent; `modlife list` shows all."""
    out: Path
    """A folder for run directories, what they said (.log), and the table (table.csv)."""
    steps: int = 250_000
    """Environment steps per task."""
    seeds: int | None = None
    """Lives of each setting; by default as many as the paper says."""
    settings: int | None = None
    """At most so many settings, from all over the grid; by default all."""
    episodes: int = 100
    """Episodes per task in evaluations; ten times as many at the end."""
    at_once: int | None = None
    """Lives at a time, each on one core; by default as many as there are cores."""
    dry_run: bool = False
    """Only tell which lives there are, which have ended, and about how long the others will take."""


def run(options: Options) -> None:
    """Lives what has not been lived, and shows the table."""
    from modlife.analysis import tuning
    from modlife.analysis.lives import as_csv, write_together
    from modlife.analysis.studies import STUDIES

    study = STUDIES[options.study]
    for name in ("seeds", "settings"):
        if getattr(options, name) is not None:
            check_between(options, 1, 1000, name)
    check_episodes(options.episodes, most=10**5)
    settings = tuning.some(study.settings, options.settings)
    trial = tuning.Trial(study, options.out, options.steps, options.seeds or study.seeds, options.episodes, settings)
    if options.dry_run:
        tell_plan(trial.planned(), options.at_once, f"the search '{study.name}'")
        return
    failed = live_together(trial.planned(), options.at_once)
    rows = tuning.table(trial)
    write_together({options.out / tuning.TABLE: as_csv(rows)})
    print(text_of(rows))
    print(f"source of the grid: {study.source}")
    print(plain(f"table: {options.out / tuning.TABLE}"))
    end_with(failed)


def text_of(rows: Sequence[dict]) -> str:
    """A table as text, a star beside what is chosen."""
    names = [name for name in rows[0] if name not in ("study", "agent", "steps", "chosen")]
    cells = [[("" if row[name] is None else f"{row[name]:g}") for name in names] for row in rows]
    widths = [max(len(name), *(len(line[n]) for line in cells)) for n, name in enumerate(names)]
    lines = ["  " + "  ".join(name.rjust(width) for name, width in zip(names, widths, strict=True))]
    for row, line in zip(rows, cells, strict=True):
        mark = "* " if row["chosen"] else "  "
        lines.append(mark + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    return "\n".join(lines)
