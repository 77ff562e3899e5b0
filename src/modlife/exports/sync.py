"""Metrics of a run directory, copied to a tracker piece by piece: no point twice, and none that may be taken back.

While a life goes on, what its newest checkpoint knows of is copied: a resume begins there. How far a run was copied
stands beside the tracker's files, in `RUN.sync.json`, with the checksum of what was copied.
"""

import json
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from modlife.errors import InputError
from modlife.exports.points import Point, flat, points_of, points_of_summary
from modlife.runs.codec import from_json
from modlife.runs.durable import Disk, read_regular, replace_file
from modlife.runs.records import checked_records
from modlife.runs.sealed import MEGABYTE, File, unsealed_line
from modlife.runs.store import METRICS, RunDirectory, whole_lines


@dataclass(frozen=True)
class Life:
    """What a tracker should know of a run besides its points."""

    name: str
    started: str
    config: dict[str, Any]
    """Options by name, as plain numbers and words."""


@dataclass(frozen=True)
class Segment:
    """The points of some lines in a row; those of a line stay together."""

    life: Life
    number: int
    """How many came before it: a tracker can tell by it what it has got already."""
    first: int
    """How many lines came before it."""
    lines: list[list[Point]]


EMPTY = File.of(b"")

Write = Callable[[Path, Segment], None]
"""Adds a segment to a tracker's files in a directory. Asked twice for one, it has it once."""


@dataclass(frozen=True)
class State:
    """How far a run was copied."""

    started: str = ""
    """When the life began, which tells it from others of its name."""
    copied: File = EMPTY
    lines: int = 0
    """Of the metrics."""
    summary: int | None = None
    """For how many tasks the summary was, if it was copied."""
    segments: int = 0
    written: int = 0
    """Lines, with those that summaries made."""


def sync(path: Path, out: Path, write: Write) -> int:
    """Copies what is new; how many points that is."""
    run = RunDirectory.open(path)
    life, data = life_of(run), settled(run)
    state = read_state(out / f"{life.name}.sync.json")
    shorter = len(data) < state.copied.bytes  # a resumed life that has still to come so far again
    if state.started not in ("", life.started) or not (shorter or state.copied.begins(data)):
        raise InputError(
            f"'{out}' has points of another life that was called '{life.name}'; choose another --out, or remove them."
        )
    if shorter:
        return 0
    lines = lines_of(run, data)
    new, after = lines[state.lines :], replace(state, copied=File.of(data), lines=len(lines))
    summary = run.summary() if run.has_ended else None
    if summary is not None and state.summary != summary["tasks"]:
        new, after = [*new, list(points_of_summary(summary))], replace(after, summary=summary["tasks"])
    if not new:
        return 0
    after = replace(after, started=life.started, segments=state.segments + 1, written=state.written + len(new))
    out.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of packages among themselves
        write(out, Segment(life, state.segments, state.written, new))
    replace_file(Disk(), out / f"{life.name}.sync.json", json.dumps(asdict(after)).encode() + b"\n")
    return sum(map(len, new))


def lines_of(run: RunDirectory, data: bytes) -> list[list[Point]]:
    """The points of each line of the metrics, which are these bytes."""
    path, stages, lines = run.path / METRICS, list[list[str]](), list[list[Point]]()
    for record in checked_records((unsealed_line(path, line, sealed=False) for line in whole_lines(data)), path):
        stages += record["stages"] if record["kind"] == "curriculum" else []
        lines.append(list(points_of(record, stages)))
    return lines


def life_of(run: RunDirectory) -> Life:
    """What a tracker should know of a run."""
    manifest = run.manifest()
    options = {
        name: value if isinstance(value, int | float | str) else json.dumps(value)
        for name, value in flat(manifest["config"])
    }
    return Life(run.path.resolve().name, str(manifest.get("started", "")), options)


def settled(run: RunDirectory) -> bytes:
    """The metrics, as far as nothing takes them back."""
    data, known = run.known_bytes(METRICS), run.known_files().get(METRICS)
    if known is not None:
        return data[: known.bytes]
    return b"".join(whole_lines(data)) if run.has_ended else b""


def read_state(path: Path) -> State:
    """How far a run was copied, as its file says; from the beginning where there is none."""
    if not path.exists():
        return State()
    try:
        return from_json(State, json.loads(read_regular(path, most=MEGABYTE)), where=str(path))
    except ValueError as error:
        raise InputError(f"'{path}' does not say how far a run was copied: {error}") from error
