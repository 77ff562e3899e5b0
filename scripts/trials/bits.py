"""Every bit of what a run directory tells of its life, flipped once: each flip is noticed, and none is a traceback."""

import contextlib
import itertools
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lives import Lived

from modlife.analysis.lives import read_life
from modlife.runs import store
from modlife.runs.checkpoints import Checkpoints, Description
from modlife.runs.durable import read_regular
from modlife.runs.store import RunDirectory
from trials.bench import Bench, Tally
from trials.reading import Read, attempt, same_configs

FILES = {
    "finished": ("manifest.json", "summary.json", "metrics.jsonl", "history.jsonl"),
    "running": ("manifest.json", "metrics.jsonl", "history.jsonl"),
}
AGENT = "comp-search"
PER_UNIT = 2000


def units(size: str) -> Iterator[str]:
    """Which life, which file, which bits: parts of all (`all`), or of every n-th (`1/n`); ends when files do."""
    stride = 1 if size == "all" else int(size.removeprefix("1/"))
    for life, files in FILES.items():
        for name in files:
            parts = range(MOST_BITS[name] // (stride * PER_UNIT) + 1)
            yield from (f"{life} {name} 1/{stride} {part}" for part in parts)


MOST_BITS = {"manifest.json": 16_000, "summary.json": 24_000, "metrics.jsonl": 80_000, "history.jsonl": 8_000}
"""As many as these files can have in a small life; units beyond the end of a file are empty."""


def run(bench: Bench, unit: str) -> Tally:
    """Some bits of one file."""
    which, name, share, part = unit.split()
    stride, tally, life = int(share.removeprefix("1/")), Tally(), bench.life(AGENT)
    with bench.scratch("bits", unit.replace("/", "-").replace(" ", "-"), tally=tally) as folder, known():
        directory = copied(life, folder / "run", which, "offline")
        reader = Telling(directory)
        right = reader.all()
        if said := [sentence for read in right.values() for sentence in read.said]:
            tally.fail("before any damage", *said)
        data = (directory.path / name).read_bytes()
        if len(data) * 8 > MOST_BITS[name]:
            tally.fail(name, "it has more bits than are tried")
        bits = range(0, len(data) * 8, stride)
        for bit in itertools.islice(bits, int(part) * PER_UNIT, (int(part) + 1) * PER_UNIT):
            (directory.path / name).write_bytes(flipped(data, bit))
            tally.trials += 1
            wrong = judged(reader.all(), right, directory.path)
            tally.fail(f"bit {bit} of {name} of a {which} life", *wrong)
    tally.seen[f"bits of {name} of a {which} life"] += tally.trials
    return tally


def copied(life: Lived, folder: Path, which: str, phase: str) -> RunDirectory:
    """A copy of a life that has ended, or in the middle of a phase."""
    if which == "running":
        return life.copy(folder, life.amid(phase))
    run = life.copy(folder, max(life.described()))
    shutil.copy(life.path / "summary.json", folder)
    return run


def flipped(data: bytes, bit: int) -> bytes:
    """The same bytes but for one bit."""
    return data[: bit // 8] + bytes([data[bit // 8] ^ (1 << bit % 8)]) + data[bit // 8 + 1 :]


@contextlib.contextmanager
def known() -> Iterator[None]:
    """What is not damaged is parsed once: JSON of the same bytes, and checkpoints, which are not touched here."""
    bodies: dict[tuple[Path, bytes], Any] = {}
    summaries: dict[int, Any] = {}

    def read_body(path: Path, *, most: int) -> Any:
        key = (path, read_regular(path, most=most))
        if key not in bodies:
            bodies[key] = store_read_body(path, most=most)
        return bodies[key]

    def checked_summary(body: Any, path: Path) -> Any:
        if id(body) not in summaries:
            summaries[id(body)] = store_checked_summary(body, path)
        return summaries[id(body)]

    store_read_body, store_checked_summary = store.read_body, store.checked_summary
    with (
        same_configs(),
        patch.object(store, "read_body", read_body),
        patch.object(store, "checked_summary", checked_summary),
        patch.object(Checkpoints, "verify", cache(Checkpoints.verify)),
    ):
        yield


class Telling:
    """What commands read besides checkpoints. Those are not damaged here: what they know is read once."""

    def __init__(self, run: RunDirectory):
        self.run = run
        checkpoints = run.checkpoints
        self.known: Description = checkpoints.verify(checkpoints.path(checkpoints.numbers()[-1]))[0].description

    def all(self) -> dict[str, Read]:
        """What each command reads."""
        return {"eval": attempt(self.eval), "resume": attempt(self.resume), "figure": attempt(self.figure)}

    def eval(self) -> tuple[str, tuple[str, ...]]:
        """As `modlife eval` and `modlife play`."""
        return repr(self.run.config()), tuple(self.run.remarks())

    def resume(self) -> tuple[str, tuple[str, ...]]:
        """As `modlife train --resume`."""
        value = f"{self.run.config()} {self.run.threads()} {self.run.has_ended}"
        if self.run.has_ended:
            return value, tuple(self.run.remarks())
        self.run.begin_with(self.known)
        return value, ()

    def figure(self) -> tuple[str, tuple[str, ...]]:
        """As `modlife figure`; a life that goes on has none, but is told of from Python."""
        if (self.run.path / "summary.json").exists():
            return repr(read_life(self.run.path)), ()
        return repr(self.run.metrics()), ()


def judged(found: dict[str, Read], right: dict[str, Read], run: Path) -> list[str]:
    """What is wrong with what was read: it crashed, read something else, or nobody noticed."""
    wrong = [
        f"{name}: {problem}"
        for name, read in found.items()
        if (problem := read.wrong(right[name], run, older=set(), forged=False))
    ]
    if not any(read.said or read.crash for name, read in found.items() if name in ("eval", "resume")):
        wrong.append("neither eval nor resume noticed")
    return wrong
