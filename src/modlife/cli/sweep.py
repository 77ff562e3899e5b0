"""`modlife sweep`."""

import contextlib
import itertools
import re
import shlex
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from modlife.checks import MOST_THREADS, check_count
from modlife.cli import train
from modlife.cli.plan import at_a_time, tell_plan
from modlife.cli.words import read_options, tell
from modlife.errors import InputError

if TYPE_CHECKING:
    from modlife.runs.many import Failed, Planned, Where

NUMBERS = re.compile(r"\{(\d+)\.\.(\d+)\}")
"""A range in a line, such as {0..5}: the line stands for one life with each of these numbers."""
RANGE = re.compile(r"(\d{1,9})(?:\.\.(\d{1,9}))?")
SETTING = re.compile(r"(?:--)?([A-Za-z][\w.-]*)=(.+)")
STRANGE = re.compile(r"[^\w.+=-]+")
"""What does not go into the name of a run directory."""
SETTLED = {"--out", "--resume", "--resume-or-begin", "--wait", "--parent", "--threads", "--save-every"}
"""Options of `modlife train` that a sweep settles itself."""
MOST_LIVES = 10_000


@dataclass(frozen=True)
class Options:
    """Live many lives, each in a process of its own with one core; the same command goes on after any interruption.

    Which lives: a file, or agents x settings x seeds. A file has a line for each life: the name of its run directory,
    then options of `modlife train`. A range in braces stands for several lives: `ewc-{0..5} --agent ewc --seed {0..5}`.
    What follows a # is not read. Without a file: `modlife sweep --agents comp-search stl --seeds 0..5 --set
    ppo.learning-rate=1e-3,3e-4 --out runs -- --tasks 8 --steps 100000`, where what follows the two dashes are options
    of `modlife train` for all lives.
    """

    lives: tyro.conf.Positional[tuple[str, ...]]
    """The file; or, after two dashes, options for all lives."""
    out: Path
    """A folder for run directories, and beside each what its process said (.log)."""
    agents: tuple[str, ...] = ()
    """A life of each of these agents, with each setting and seed."""
    seeds: tuple[str, ...] = ("0",)
    """Seeds, such as 3 7 or 0..5."""
    set: tuple[str, ...] = ()
    """Options of `modlife train` with several values each, such as ppo.learning-rate=1e-3,3e-4: every combination."""
    at_once: int | None = None
    """Lives at a time; by default as many as there are cores, or as a cluster has room for."""
    ray: str | None = None
    """The address of a Ray cluster (`auto`, or HOST:PORT) that shares `out`: the lives are lived there."""
    slurm: bool = False
    """Only print a script for Slurm's `sbatch`, an array with an element for each life."""
    dry_run: bool = False
    """Only tell which lives there are, which have ended, and about how long the others will take."""


def run(options: Options) -> None:
    """Lives what has not been lived."""
    if options.slurm and options.ray is not None:
        raise InputError("--slurm and --ray are two places for lives: give one of them.")
    if options.at_once is not None:
        check_count("at_once", options.at_once, MOST_THREADS)
    lives = lives_of(options)
    if options.dry_run:
        tell_plan(lives, options.at_once, "this sweep")
    elif options.slurm:
        from modlife.runs.many import to_live
        from modlife.runs.slurm import script

        print(script(to_live(lives, tell), options.at_once), end="")
    elif options.ray is not None:
        end_with(live_on_ray(lives, options.at_once, options.ray))
    else:
        end_with(live_together(lives, options.at_once))


def lives_of(options: Options) -> list["Planned"]:
    """The lives of the file, or of the command line."""
    if options.agents:
        return checked(crossed(options), options.out)
    if options.seeds != Options.seeds or options.set or len(options.lives) != 1:
        raise InputError("Give either a file with a line for each life, or --agents, with --seeds and --set.")
    file = Path(options.lives[0])
    if not file.is_file():
        raise InputError(f"'{file}' is not a file with lives.")
    return planned(file.read_text(errors="replace"), options.out)


def planned(text: str, out: Path) -> list["Planned"]:
    """The lives of a file, each checked before any begins."""
    lines = enumerate(text.splitlines(), start=1)
    found = checked(((f"Line {number}", words) for number, line in lines for words in expanded(line, number)), out)
    if not found:
        raise InputError("There is no life in the file: a line has a name, and options of `modlife train`.")
    return found


def checked(rows: Iterable[tuple[str, list[str]]], out: Path) -> list["Planned"]:
    """Lives of a name and options of `modlife train` each, and where they stand."""
    from modlife.runs.many import Planned

    found = []
    for where, (name, *options) in rows:
        if Path(name).name != name or name.startswith((".", "-")):
            raise InputError(f"{where} begins with '{name}', but it must begin with a name for its life.")
        if given := SETTLED.intersection(word.partition("=")[0] for word in options):
            raise InputError(f"{where} has {min(given)}, which a sweep settles itself: leave it out.")
        arguments = [*options, "--out", str(out / name)]
        read = read_options(train.Options, train.usual(arguments), prog=where.lower(), arguments=arguments)
        if read.threads not in (None, 1):
            raise InputError(f"{where} asks for {read.threads} threads; lives of a sweep have one each.")
        found.append(Planned(read.life, out / name))
    return found


def crossed(options: Options) -> list[tuple[str, list[str]]]:
    """Every agent with every combination of settings and every seed, as names and options."""
    settings = [values_of(word) for word in options.set]
    seeds = [str(seed) for word in options.seeds for seed in numbers_of(word)]
    combinations = itertools.product(options.agents, itertools.product(*settings), seeds)
    every = list(itertools.islice(combinations, MOST_LIVES + 1))
    if len(every) > MOST_LIVES:
        raise InputError(f"These are more than {MOST_LIVES:,} lives.")
    last = Counter(short(values[0][0]) for values in settings)
    found = []
    for agent, chosen, seed in every:
        parts = [f"{short(name) if last[short(name)] == 1 else name}={value}" for name, value in chosen]
        name = STRANGE.sub("_", "-".join([agent, *parts, seed]))
        words = [word for one in chosen for word in as_option(*one)]
        found.append((f"Life '{name}'", [name, "--agent", agent, *options.lives, *words, "--seed", seed]))
    return found


def short(name: str) -> str:
    """A setting's name without the group that it is in."""
    return name.rpartition(".")[2]


def values_of(word: str) -> list[tuple[str, str]]:
    """A setting with each of its values."""
    found = SETTING.fullmatch(word)
    if not found:
        raise InputError(f"--set '{word}' is no setting with values, such as ppo.learning-rate=1e-3,3e-4.")
    if found[1] in ("agent", "seed"):
        raise InputError(f"--set '{word}' is given by --{found[1]}s.")
    return [(found[1], value) for value in found[2].split(",")]


def as_option(name: str, value: str) -> list[str]:
    """An option of `modlife train`; one that is true or false is a word alone."""
    *group, last = name.split(".")
    if value in ("true", "false"):
        return ["--" + ".".join([*group, last if value == "true" else f"no-{last}"])]
    return [f"--{name}", *value.split()]


def numbers_of(word: str) -> range:
    """The seeds that a word stands for."""
    found = RANGE.fullmatch(word)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if not first <= last < first + MOST_LIVES:
        raise InputError(f"--seeds '{word}' is neither a number nor a range of at most {MOST_LIVES:,}, such as 0..5.")
    return range(first, last + 1)


def expanded(line: str, number: int) -> list[list[str]]:
    """The words of each life that a line stands for; of none, where it is empty."""
    ranges = {(int(first), int(last)) for first, last in NUMBERS.findall(line)}
    if len(ranges) > 1:
        raise InputError(f"Line {number} has different ranges: lives take their numbers from one.")
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        raise InputError(f"Line {number} cannot be read: {error}.") from None
    if not words or not ranges:
        return [words] if words else []
    ((first, last),) = ranges
    if not first <= last < first + MOST_LIVES:
        raise InputError(f"Line {number} has a range from {first} to {last}: give 1 to {MOST_LIVES:,} numbers.")
    return [[NUMBERS.sub(str(one), word) for word in words] for one in range(first, last + 1)]


def live_together(lives: Sequence["Planned"], at_once: int | None, where: "Where | None" = None) -> list["Failed"]:
    """Lives them, or the rest of them; ends the program where that was interrupted. Gives those that failed."""
    from modlife.cli.board import board_for
    from modlife.runs.interrupts import Stopped
    from modlife.runs.many import live_all

    count = at_a_time(at_once)
    try:
        with board_for(count) as (say, show):
            return live_all(lives, at_once=count, tell=say, show=show, where=where)
    except Stopped as stopped:
        tell(f"stopped by {stopped}; all lives are saved. Go on with the same command.")
        sys.exit(128 + signal.Signals(stopped.number))


def live_on_ray(lives: Sequence["Planned"], at_once: int | None, address: str) -> list["Failed"]:
    """Lives them on a Ray cluster; as many at once as it has cores, unless that is said."""
    from modlife.runs.ray_cluster import RayCluster

    with contextlib.closing(RayCluster(address)) as cluster:
        return live_together(lives, min(cluster.cores, MOST_THREADS) if at_once is None else at_once, cluster)


def end_with(failed: Sequence["Failed"]) -> None:
    """Names the lives that failed, and ends the program as a failure if there are any."""
    for one in failed:
        tell(str(one))
    if failed:
        sys.exit(1)
