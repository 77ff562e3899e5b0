"""`modlife show`."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from modlife.cli.choices import Json
from modlife.cli.tables import terminal_width
from modlife.errors import InputError


@dataclass(frozen=True)
class Options:
    """See what run directories tell: curves, what was forgotten, which module serves which tasks, alarms, times.

    Of several, the options that differ between them, and their numbers, side by side. Lives need not have ended.
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run directories, or results with the same files."""
    every_task: bool = False
    """A line for every task, however many there are."""
    as_json: Json = False
    """Print JSON for programs instead of text: a list with an object per run directory."""


def run(options: Options) -> None:
    """Prints."""
    if not options.runs:
        raise InputError("Give at least one run directory.")
    from modlife.analysis.show import Page, show, side_by_side
    from modlife.analysis.sparks import ramp_for
    from modlife.analysis.story import read_story

    stories = [read_story(path) for path in options.runs]
    page = Page(terminal_width(), ramp_for(sys.stdout.encoding), options.every_task)
    if options.as_json:
        print(json.dumps([story.as_dict() for story in stories]))
    else:
        print(show(stories[0], page) if len(stories) == 1 else side_by_side(stories, page))
