"""Random damage to run directories of all agents: what is read is right, or it is said in a sentence what is wrong."""

import json
import os
import random
import resource
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lives import NAMES, everything

from modlife.runs.sealed import sealed
from trials.bench import Bench, Tally, parts_of
from trials.bits import copied, flipped
from trials.reading import Read, Reader, attempt, go_on_and_save, remembered

PER_UNIT = 100
HUGE = 20 * 10**9
MEMORY = 300_000
"""Kilobytes by which a process may grow while it reads damaged files."""
ESCAPE = "\x1b[31m\x1b]0;title\x07\r\u202e"
VALUES = [
    *(-1, 0, 10**30, 2**63, 1.5, 1e308, "", "x", "../../etc/passwd", "/etc/passwd", "\0", ESCAPE, "0" * 64),
    *(None, True, [], {}, [[]], [0], ["x"], [9, 9, 9], {"x": 1}, {ESCAPE: ESCAPE}, "x" * 5000),
]
ODD_NAMES = [
    "99999999",
    "09999999",
    "10000000",
    "00000099",
    "٠٠٠٠٠٠٩٩",
    f"{ESCAPE}.tmp",
    ESCAPE,
    "1" * 200,
    "-1",
]


@dataclass
class Place:
    """A run directory to damage, a folder beside it that must stay as it is, and chance."""

    run: Path
    outside: Path
    rng: random.Random
    forged: bool = False
    """Whether the damage has the right checksums, as only one who knows this program can make it."""
    renamed: bool = False
    """Whether folders have come that nobody made."""

    def files(self, ending: str = "") -> list[Path]:
        """Every plain file of the run."""
        return sorted(path for path in self.run.rglob("*") if path.is_file() and path.name.endswith(ending))

    def some(self) -> Path:
        """A file; small ones as often as large ones."""
        return self.rng.choice(self.files())


def flip(place: Place, path: Path) -> None:
    """One bit or a few are other ones."""
    data = path.read_bytes()
    for _ in range(place.rng.choice([1, 1, 1, 2, 8]) if data else 0):
        data = flipped(data, place.rng.randrange(len(data) * 8))
    path.write_bytes(data)


def cut(place: Place, path: Path) -> None:
    """The end is missing."""
    size = path.stat().st_size
    os.truncate(path, place.rng.choice([0, place.rng.randrange(size + 1), max(0, size - 1)]))


def extend(place: Place, path: Path) -> None:
    """Something was added."""
    data = path.read_bytes()
    more = [b"\n", b"\0" * 512, place.rng.randbytes(20), data[-100:], data, b'{"kind": "step"}\n', b"{}\n", b"{"]
    path.write_bytes(data + place.rng.choice(more))


def zero(place: Place, path: Path) -> None:
    """A part is zeros, as a disk leaves it that lost power."""
    data = bytearray(path.read_bytes())
    start = place.rng.randrange(len(data) + 1)
    end = min(len(data), start + place.rng.choice([1, 16, 512, 4096]))
    data[start:end] = bytes(end - start)
    path.write_bytes(data)


def swap(place: Place, path: Path) -> None:
    """Two files have each other's content."""
    other = place.some()
    one, two = path.read_bytes(), other.read_bytes()
    path.write_bytes(two)
    other.write_bytes(one)


def delete(place: Place, path: Path) -> None:
    """It is gone."""
    path.unlink()


def duplicate(place: Place, path: Path) -> None:
    """It stands in the place of another, or under another name too."""
    other = place.rng.choice([place.some(), path.with_name(path.name + "~"), path.with_name(path.name + ".tmp")])
    if other != path:
        shutil.copy(path, other)


def directory(place: Place, path: Path) -> None:
    """It is a directory, empty or not."""
    path.unlink()
    path.mkdir()
    if place.rng.random() < 0.5:
        (path / "file").write_text("x")


def link(place: Place, path: Path) -> None:
    """It is a link to a file or folder elsewhere; so may be a directory of the run."""
    if place.rng.random() < 0.3:
        path = path.parent if path.parent != place.run else path
    target = place.outside / f"{path.name}-moved"
    if place.rng.random() < 0.7 or path.is_dir():
        shutil.move(path, target)
    else:
        path.unlink()
        target = place.rng.choice([place.outside / "precious", place.outside / "nowhere", Path("/dev/zero"), path])
    path.symlink_to(target)


def hard_link(place: Place, path: Path) -> None:
    """It has a second name elsewhere, under which it must not change."""
    target = place.outside / f"{path.name}-linked"
    if place.rng.random() < 0.8:
        shutil.copy(path, target)
    else:
        target.write_text("precious")
    path.unlink()
    os.link(target, path)


def pipe(place: Place, path: Path) -> None:
    """It is a pipe that nobody writes to."""
    path.unlink()
    os.mkfifo(path)


def device(place: Place, path: Path) -> None:
    """It is a device: one without end, or one that is full."""
    path.unlink()
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, place.rng.choice([5, 7, 3])))
    except PermissionError:
        path.symlink_to("/dev/zero")


def huge(place: Place, path: Path) -> None:
    """It has 20 GB, all zeros at its end."""
    os.truncate(path, HUGE)


def edit(place: Place, path: Path) -> None:
    """A value in JSON is another one, as in an editor."""
    change_json(place, seal=False)


def forge(place: Place, path: Path) -> None:
    """The same with a new checksum."""
    place.forged = True
    change_json(place, seal=True)


def change_json(place: Place, *, seal: bool) -> None:
    """Changes a value in a JSON file, or in one of its lines."""
    rng = place.rng
    path = rng.choice(place.files(".json") if seal else [*place.files(".json"), *place.files(".jsonl")])
    lines = [path.read_bytes()] if path.suffix == ".json" else path.read_bytes().splitlines(keepends=True)
    number = rng.randrange(len(lines))
    body = json.loads(lines[number])
    table, key = rng.choice(list(cells(body)))
    table[key] = ESCAPE if rng.random() < 0.3 else rng.choice([one for one in VALUES if one != table[key]])
    if rng.random() < 0.2:
        body[ESCAPE] = ESCAPE
    inside = {name: one for name, one in body.items() if name != "sha256"} if seal else body
    indent = 1 if path.suffix == ".json" else None
    lines[number] = sealed(inside) if seal else json.dumps(body, indent=indent).encode() + b"\n"
    path.write_bytes(b"".join(lines))


def cells(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every table or list in JSON, with each of its keys."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from cells(value[key])


def names(place: Place, path: Path) -> None:
    """There are files and folders with names that nobody expects."""
    place.renamed = True
    folder = place.run / place.rng.choice(["checkpoints", "checkpoints", "replay", "."])
    odd = folder / place.rng.choice(ODD_NAMES)
    if odd.exists():
        return
    if place.rng.random() < 0.7:
        odd.mkdir()
    else:
        odd.write_text(ESCAPE)


DAMAGE: tuple[Callable[[Place, Path], None], ...] = (
    *(flip, cut, extend, zero, swap, delete, duplicate),
    *(directory, link, hard_link, pipe, device, huge),
    *(edit, forge, names),
)


def run(bench: Bench, unit: str) -> Tally:
    """One run directory, running or finished, damaged again and again; agents in turn."""
    (number, count), tally = parts_of(unit), Tally()
    agent, rng = NAMES[number % len(NAMES)], bench.rng("damage", unit)
    life = bench.life(agent)
    which = "finished" if number // len(NAMES) % 2 else "running"
    with bench.scratch("damage", unit, tally=tally) as folder, remembered():
        base = copied(life, folder / "base", which, rng.choice(sorted(life.phases()))).path
        right, older = Reader(fresh(base, folder)).all(), values_of_older(base, folder)
        saved = attempt(lambda: go_on_and_save(fresh(base, folder)))
        for trial in range(count):
            place = Place(fresh(base, folder), precious(folder), random.Random(f"{rng.random()}"))
            damage = place.rng.choice(DAMAGE)
            damage(place, place.some())
            before, size = everything(place.outside), memory()
            found = Reader(place.run).all()
            if place.renamed or place.rng.random() < 0.1:
                found["save"] = attempt(lambda run=place.run: go_on_and_save(run))
            wrong = judged(place, found, {**right, "save": saved}, older)
            wrong += ["something outside the run directory changed"] if everything(place.outside) != before else []
            wrong += [f"it took {(memory() - size) // 1000} MB"] if memory() - size > MEMORY else []
            tally.trials += 1
            tally.seen[f"damaged: {damage.__name__.replace('_', ' ')}"] += 1
            tally.seen["readings refused"] += sum(read.value is None for read in found.values())
            tally.seen["readings with a value"] += sum(read.value is not None for read in found.values())
            tally.fail(f"{agent}, {which}, damage {trial} ({damage.__name__})", *wrong)
    return tally


def fresh(base: Path, folder: Path) -> Path:
    """A copy that may be damaged."""
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(base, run)
    return run


def precious(folder: Path) -> Path:
    """A folder that must stay as it is."""
    outside = folder / "outside"
    shutil.rmtree(outside, ignore_errors=True)
    outside.mkdir()
    (outside / "precious").write_text("precious")
    return outside


def values_of_older(base: Path, folder: Path) -> dict[str, set[str | None]]:
    """What is read when newer checkpoints are not there, or their metrics are not."""
    older: dict[str, set[str | None]] = {}
    numbers = sorted(path.name for path in (base / "checkpoints").iterdir())
    for count in range(1, len(numbers)):
        run = fresh(base, folder)
        for name in numbers[-count:]:
            shutil.rmtree(run / "checkpoints" / name)
        found = {**Reader(run).all(), "save": attempt(lambda run=run: go_on_and_save(run))}
        for name in ("eval", "play", "resume", "save"):
            older.setdefault(name, set()).add(found[name].value)
    return older


Values = dict[str, set[str | None]]


def judged(place: Place, found: dict[str, Read], right: dict[str, Read], older: Values) -> list[str]:
    """What is wrong with what was read."""
    return [
        f"{name}: {problem}"
        for name, read in found.items()
        if (problem := read.wrong(right[name], place.run, older=older.get(name, set()), forged=place.forged))
    ]


def memory() -> int:
    """The most memory that this process has held, in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
