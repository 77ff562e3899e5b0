"""`modlife reproduce`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from modlife.analysis.catalog import EXPERIMENTS, Experiment, Scale
from modlife.cli.plan import tell_plan
from modlife.cli.sweep import end_with, live_together
from modlife.cli.words import tell, whole_file
from modlife.errors import InputError, plain

if TYPE_CHECKING:
    from modlife.runs.many import Planned

ENDINGS = (".png", ".svg")


@dataclass(frozen=True)
class Options:
    """Live what a figure of the paper needs, then draw it: fig2, fig3, fig4, figE1, figE2, figE3.

    Lives that have ended are left alone, interrupted ones go on: the same command after any interruption goes on where
    it stood. `smoke` takes minutes, in tiny worlds, and shows that everything runs; `small` has a quarter of the
    paper's steps; `paper` has its steps and seeds. `--dry-run` says about how long that takes.
    """

    experiment: tyro.conf.Positional[str]
    """Which figure; `modlife list` shows all experiments."""
    scale: Scale = "smoke"
    """How much to live: smoke, small or paper."""
    out: Path = Path("runs")
    """A folder for run directories, what their processes said (.log), and the figure (.png, .svg, .csv)."""
    at_once: int | None = None
    """Lives at a time, each on one core; by default as many as there are cores."""
    dry_run: bool = False
    """Only tell which lives there are, which have ended, and about how long the others will take."""
    lives: Path | None = None
    """Only write the lives into this file, for `modlife sweep`."""


def run(options: Options) -> None:
    """Lives what is missing, and draws."""
    experiment = EXPERIMENTS[options.experiment]
    if options.lives is not None:
        if options.dry_run or options.at_once is not None or options.out != Options.out:
            raise InputError("--lives only writes a file: leave --dry-run, --at-once and --out out.")
        write_lives(experiment, options.scale, options.lives)
        return
    lives = experiment.planned(options.scale, options.out)
    if options.dry_run:
        tell_plan(lives, options.at_once, f"{options.experiment} at scale {options.scale}")
        print(plain(f"figure: {picture(options)}.png, .svg, .csv"))
        return
    domain = lives[0].config.domain
    if not domain.installed:
        raise InputError(f"The domain '{domain.name}' is not installed: {domain.install}.")
    failed = live_together(lives, options.at_once)
    draw(experiment, lives, options.scale, picture(options))
    end_with(failed)


def picture(options: Options) -> Path:
    """Where the figure goes, without an ending."""
    return options.out / f"{options.experiment}-{options.scale}"


def write_lives(experiment: Experiment, scale: Scale, path: Path) -> None:
    """Writes a line for each lot of lives."""
    about = f"# {experiment.name} at scale {scale}: {experiment.about}"
    text = "\n".join([about, *(lot.line() for lot in experiment.lots[scale]), ""])
    with whole_file(path) as aside:
        aside.write_text(text)
    print(plain(f"lives: {path}, for `modlife sweep {path} --out runs`"))


def draw(experiment: Experiment, lives: Sequence["Planned"], scale: Scale, place: Path) -> None:
    """Draws the lives that have ended, if any has."""
    from modlife.analysis.figures import FIGURES
    from modlife.registry import resolve

    ended = [life.out for life in lives if life.has_ended]
    if not ended:
        tell("No life has ended: there is nothing to draw.")
        return
    if len(ended) < len(lives):
        tell(f"The figure is of the {len(ended)} lives, of {len(lives)}, that have ended.")
    for ending in ENDINGS:
        resolve(FIGURES[experiment.figure].draw)(ended, place.with_name(place.name + ending))
    print(plain(f"{experiment.name}: {place}.png, {place}.svg, {place}.csv"))
    if scale == "smoke":
        print("At this scale agents learn next to nothing: the figure shows that everything runs, not who is better.")
