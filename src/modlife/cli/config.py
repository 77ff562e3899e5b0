"""`modlife config`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from modlife.cli.choices import Life, usual_life
from modlife.errors import InputError


@dataclass(frozen=True)
class Options:
    """Print the options of a life as a file: of one that was lived, or that options would give.

    `modlife config runs/a > life.toml`, then `modlife train --config life.toml --seed 1 --out runs/b`.
    """

    life: Life
    run: tyro.conf.Positional[Path | None] = None
    """The run directory of the life; without one, options of `modlife train` say what to print."""
    domain: str = "grid2d"
    """Which domain; it decides on the options `--world`."""
    search: str | None = None
    """How to find structures, by name."""
    offline: str | None = None
    """How to learn offline, by name."""
    beside: tyro.conf.Suppress[tyro.conf.Fixed[tuple[str, ...]]] = ()
    """Options that were given."""


def usual(arguments: Sequence[str]) -> Options:
    """The options of the agent and domain that the arguments name."""
    beside = [word.partition("=")[0] for word in arguments if word.startswith("--")]
    return Options(usual_life(arguments), beside=tuple(beside))


def run(options: Options) -> None:
    """Prints."""
    from modlife.runs.config_files import to_toml
    from modlife.runs.store import RunDirectory

    if options.run is None:
        print(to_toml(options.life), end="")
        return
    if options.beside:
        raise InputError(f"{options.beside[0]} beside '{options.run}': the life there has options of its own.")
    found = RunDirectory.open(options.run)
    print(to_toml(found.config(), threads=found.threads()), end="")
