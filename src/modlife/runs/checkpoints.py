"""Checkpoints: complete, verified states of a life, from which it goes on exactly.

    checkpoints/00000012/checkpoint.json      what it is: format, description, size and checksum of every file it needs
    checkpoints/00000012/state.safetensors    arrays of the agent's state
    replay/<sha-256>.safetensors              transitions of one task; written once, named by their content

A checkpoint is written aside, synced, read back and verified, and only then given its name. Loading checks every byte
against its checksum, reads arrays of the expected names, shapes and types, and nothing else: no code can come in.
"""

import contextlib
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from modlife.errors import InputError, ReadError
from modlife.runs.codec import from_json, to_json
from modlife.runs.durable import ASIDE, Disk, clear, read_regular, reading, replace_file, saving, sha256, unsaved
from modlife.runs.sealed import File, Named, sealed_densely, unsealed
from modlife.types import Facts

if TYPE_CHECKING:  # whoever only reads what a life tells need not wait for JAX
    from modlife.learners.replay import AnyReplay, Replay, Shelved

FORMAT, BEFORE = 4, 3
"""Versions of a checkpoint's layout: the one that is written, and one that is read too, with fields for texts."""
KEEP = 2
"""The newest checkpoints that are kept, besides those at the end of stages."""
STAGES = 128
"""Stages, about, at whose end checkpoints are kept; in longer lives every second one is, or every fourth, ..."""
IN_MEMORY, AT_HAND = 1 << 26, 8
"""Bytes of replay that stay in memory, the newest; and how many replays that were read from files last."""
NUMBER = re.compile("[0-9]{8}")
MOST = 10**7
"""More checkpoints than a life can have made."""
CHECKSUM = re.compile(r"[0-9a-f]{64}")
MORE = {"taught": np.zeros((0, 0, 0), np.float16), "measured": np.zeros(0, np.float32)}
"""Fields of replay that only some agents fill, as they are where nothing is in them."""
STATE, INDEX = "state.safetensors", "checkpoint.json"


@dataclass(frozen=True)
class Description:
    """What a checkpoint says besides arrays."""

    stage: int
    """The stage the agent is in, or will be in next."""
    ended: bool
    """Whether it was taken right after a stage ended."""
    planned: int
    """How many tasks the life was planned for."""
    facts: Facts
    """What the agent's state says besides arrays."""
    metrics: File
    """What belongs to this state of the metrics, ..."""
    history: File
    """... and of the history."""
    wall_seconds: dict[str, float]
    """Spent so far on each phase."""
    cpu_seconds: dict[str, float]
    peak_megabytes: float


@dataclass(frozen=True)
class Index:
    """The body of checkpoint.json."""

    format: int
    description: Description
    state: File
    replay: tuple[Named, ...]


class Checkpoints:
    """The checkpoints of one run directory."""

    def __init__(self, run: Path, disk: Disk):
        self.folder, self.replay, self.disk = run / "checkpoints", run / "replay", disk
        self.known: dict[tuple[int, ...], tuple[AnyReplay, Named]] = {}
        """Replay that stands in a file, by the identity of its arrays."""
        self.replay_of = lru_cache(maxsize=AT_HAND)(self.read_replay)
        self.looked: dict[int, Look] = {}
        """What was found in checkpoints, by their numbers."""

    def numbers(self) -> list[int]:
        """Those that have their final name, oldest first."""
        with reading(self.folder):
            no_link(self.folder)
            if not self.folder.is_dir():
                return []
            found = sorted(int(path.name) for path in self.folder.iterdir() if NUMBER.fullmatch(path.name))
        if found and found[-1] >= MOST - 1:
            raise InputError(f"'{self.path(found[-1])}' is not of this life, which cannot have so many. Move it away.")
        return found

    def path(self, number: int) -> Path:
        """Where a checkpoint is."""
        return self.folder / f"{number:08d}"

    def save(self, tree: Any, memory: "tuple[AnyReplay, ...]", description: Description) -> int:
        """Writes a checkpoint, verifies it, and removes those no longer needed; returns its number."""
        from safetensors.numpy import save

        number = max(self.numbers(), default=-1) + 1
        self.make_folders()
        replay = tuple(self.keep(one) for one in memory)
        self.known = {arrays_of(one): self.known[arrays_of(one)] for one in memory}
        state = save(named_arrays(tree))
        index = Index(FORMAT, description, File.of(state), replay)
        aside = self.folder / f"{number:08d}{ASIDE}"
        try:
            self.disk.make(aside)
            self.disk.write(aside / STATE, state)
            self.disk.write(aside / INDEX, sealed_densely(to_json(index)))
            self.disk.sync(aside)
            written, _ = self.verify(aside)
            self.disk.rename(aside, self.path(number))
        except OSError as error:
            clear(self.disk, aside)
            raise unsaved(aside, error) from error
        self.looked[number] = Look.of(written)
        self.prune(number)
        return number

    def make_folders(self) -> None:
        """Makes the directories, unless they are there."""
        with saving(self.folder):
            for folder in (self.folder, self.replay):
                if not folder.exists():
                    self.disk.make(folder)

    def keep(self, replay: "AnyReplay") -> Named:
        """Writes the replay of a task, unless it is there."""
        from safetensors.numpy import save

        from modlife.learners.replay import Replay

        if arrays_of(replay) in self.known:
            return self.known[arrays_of(replay)][1]
        assert isinstance(replay, Replay)
        more = {name: part for name in MORE if (part := getattr(replay, name)).size}
        data = save({"rows": replay.rows, "times": np.array([replay.times]), **more})
        file = Named.of(data)
        path = self.replay_path(file)
        if not intact(path, file):
            replace_file(self.disk, path, data)
        self.known[arrays_of(replay)] = (replay, file)
        return file

    def put_away(self, memory: "tuple[AnyReplay, ...]") -> "tuple[AnyReplay, ...]":
        """The same replay; what is too much for memory, the oldest first, stands in files and is read when needed."""
        return self.within_memory(reversed(memory))

    def within_memory(self, newest_first: "Iterable[AnyReplay]") -> "tuple[AnyReplay, ...]":
        """Replay, oldest first, of which only the newest is in memory."""
        from modlife.learners.replay import Replay

        kept, room = [], IN_MEMORY
        for one in newest_first:
            room -= one.size if isinstance(one, Replay) else 0
            kept.append(self.shelved(one) if isinstance(one, Replay) and room < 0 and kept else one)
        return tuple(reversed(kept))

    def shelved(self, replay: "Replay") -> "Shelved":
        """The replay, to be read from its file when it is needed."""
        from modlife.learners.replay import Shelved

        self.make_folders()
        file = self.keep(replay)
        shelved = Shelved(partial(self.replay_of, file), replay.times, replay.length, replay.measured)
        del self.known[arrays_of(replay)]
        self.known[arrays_of(shelved)] = (shelved, file)
        return shelved

    def replay_path(self, file: File) -> Path:
        """Where a replay file is."""
        return self.replay / f"{file.sha256}.safetensors"

    def prune(self, newest: int) -> None:
        """Removes all but the last few and those at the end of stages, and replay that only those removed need."""
        numbers = [number for number in self.numbers() if number <= newest]
        every = 1 << (self.look(newest).stage // STAGES).bit_length()
        for number in numbers[:-KEEP]:
            look = self.look(number)
            if not look.ended or look.stage % every:
                self.discard(number)

    def look(self, number: int) -> "Look":
        """What matters for keeping a checkpoint; only what is damaged is of no use."""
        if number in self.looked:
            return self.looked[number]
        look = look_at(self.path(number))
        if look.is_known:
            self.looked[number] = look
        return look

    def clocks(self) -> dict[int, dict[str, float]]:
        """Seconds spent on each phase until stages had ended, by their number, as far as checkpoints tell."""
        looks = [self.look(number) for number in self.numbers()]
        return {look.stage: dict(look.wall_seconds) for look in looks if look.ended and look.is_known}

    def discard(self, number: int) -> None:
        """Takes a checkpoint's name away first, so that a kill leaves no half of it under that name."""
        path, look = self.path(number), self.look(number)
        aside = path.with_name(path.name + ASIDE)
        self.looked.pop(number, None)
        with saving(path):
            self.disk.rename(path, aside)
            self.discard_replay(look)
            self.disk.remove(aside)

    def discard_replay(self, gone: "Look") -> None:
        """Removes replay that only a checkpoint that goes away needs; none, if of another it is not known."""
        others = [self.look(number) for number in reversed(self.numbers())]
        if all(one.is_known for one in others):
            for name in gone.replay:
                path = self.replay / f"{name}.safetensors"
                if not any(name in one.replay for one in others) and path.is_file():
                    self.disk.remove(path)

    def sweep(self) -> None:
        """Removes what killed writers left behind, and makes durable what they had no time to."""
        for folder in (self.folder.parent, self.folder, self.replay):
            with saving(folder):
                if folder != self.folder.parent:
                    no_link(folder)
                for path in folder.glob(f"*{ASIDE}") if folder.is_dir() else ():
                    if folder == self.folder:
                        self.discard_replay(look_at(path))
                    with contextlib.suppress(FileNotFoundError):  # of one who wanted the lease and removed it itself
                        self.disk.remove(path)
                if folder.is_dir():
                    self.disk.sync(folder)

    def verify(self, folder: Path) -> tuple[Index, bytes]:
        """A checkpoint's index and the bytes of its arrays, every byte checked; says which file is damaged, and how."""
        with reading(folder):
            no_link(folder)
        body = unsealed(folder / INDEX)
        if body.get("format") not in (FORMAT, BEFORE):
            raise InputError(
                f"'{folder / INDEX}' has format {body.get('format')!r}; this version reads {BEFORE} and {FORMAT}. "
                "Its metrics and summary can be read; to go on with it, use the version that its manifest names."
            )
        index = from_json(Index, body, where=str(folder / INDEX))
        return index, checked_bytes(folder / STATE, index.state)

    def read(self, folder: Path) -> "Saved":
        """All of a checkpoint but replay."""
        index, state = self.verify(folder)
        return Saved(folder, index, loaded(folder / STATE, state))

    def memory(self, index: Index) -> "tuple[AnyReplay, ...]":
        """The replay of each task, every byte checked; what is too much for memory stays in its file."""
        return self.within_memory(self.reread(file) for file in reversed(index.replay))

    def reread(self, file: Named) -> "Replay":
        """The replay of a task, known to stand in its file."""
        replay = self.read_replay(file)
        self.known[arrays_of(replay)] = (replay, file)
        return replay

    def read_replay(self, file: File) -> "Replay":
        """The replay of a task from its file, every byte checked."""
        from modlife.learners.replay import Replay

        path = self.replay_path(file)
        arrays = loaded(path, checked_bytes(path, file))
        rows, times = (arrays.get(name, np.zeros(0)) for name in ("rows", "times"))
        if (rows.ndim, rows.dtype, times.shape, times.dtype.kind) != (3, np.uint32, (1,), "i"):
            raise InputError(f"'{path}' holds no replay rows.")
        if odd := sorted({*arrays} - {"rows", "times", *MORE}):
            raise InputError(f"'{path}' holds '{odd[0]}', which is no part of replay. {OTHER_VERSION}")
        more = {name: usual if (found := arrays.get(name)) is None else found for name, usual in MORE.items()}
        if any((more[name].ndim, more[name].dtype) != (usual.ndim, usual.dtype) for name, usual in MORE.items()):
            raise InputError(f"'{path}' holds no replay: {', '.join(MORE)} are of other kinds.")
        return Replay(rows, int(times[0]), **more)


@dataclass(frozen=True)
class Look:
    """What matters for keeping a checkpoint and the replay that it needs."""

    ended: bool
    """Whether it was taken at the end of a stage, or may have been."""
    stage: int = 0
    """How many stages had ended."""
    replay: tuple[str, ...] = ()
    """The names of its replay files."""
    is_known: bool = True
    """Whether it could be read."""
    wall_seconds: tuple[tuple[str, float], ...] = ()
    """Spent on each phase until then."""

    @staticmethod
    def of(index: Index) -> "Look":
        """At a checkpoint that says this."""
        about, names = index.description, [one.sha256 for one in index.replay if CHECKSUM.fullmatch(one.sha256)]
        seconds = tuple(about.wall_seconds.items())
        return Look(about.ended, about.stage, tuple(map(sys.intern, names)), wall_seconds=seconds)


@dataclass(frozen=True)
class Saved:
    """A checkpoint that was read, without its replay."""

    folder: Path
    index: Index
    arrays: dict[str, np.ndarray]


def arrays_of(replay: "AnyReplay") -> tuple[int, ...]:
    """The identity of its arrays, which never change; or of what reads them."""
    from modlife.learners.replay import Shelved

    if isinstance(replay, Shelved):
        return (id(replay),)
    return id(replay.rows), id(replay.taught), id(replay.measured)


def look_at(folder: Path) -> Look:
    """What matters for keeping a checkpoint; if it cannot be read now, it may be another time."""
    try:
        return Look.of(from_json(Index, unsealed(folder / INDEX), where=str(folder / INDEX)))
    except ReadError:
        return Look(ended=True, is_known=False)
    except InputError:
        return Look(ended=False, is_known=False)


def no_link(folder: Path) -> None:
    """A directory of a run is not somewhere else."""
    if folder.is_symlink():
        raise InputError(f"'{folder}' is a link, not a directory of the run.")


def named_arrays(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree by their path in it."""
    import jax

    return {
        jax.tree_util.keystr(path): np.asarray(leaf, order="C")  # ascontiguousarray gives scalars an axis
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }


OTHER_VERSION = (
    "It may be of another version of modlife: go on with that one, or move the checkpoints of this phase away, to go "
    "on from the end of the one before."
)


def filled(template: Any, arrays: dict[str, np.ndarray], *, where: str) -> Any:
    """The template, of arrays or shapes, with these arrays; their names, shapes and types must be the same."""
    import jax

    leaves, structure = jax.tree_util.tree_flatten_with_path(template)
    names = [jax.tree_util.keystr(path) for path, _ in leaves]
    if set(names) != set(arrays):
        odd = sorted(set(names) ^ set(arrays))[0]
        raise InputError(
            f"'{where}' does not fit the config: array '{odd}' is in one and not in the other. {OTHER_VERSION}"
        )
    for name, (_, leaf) in zip(names, leaves, strict=True):
        if arrays[name].shape != leaf.shape or arrays[name].dtype != leaf.dtype:
            raise InputError(
                f"'{where}' does not fit the config: array '{name}' is {arrays[name].dtype}{arrays[name].shape} "
                f"instead of {leaf.dtype}{leaf.shape}. {OTHER_VERSION}"
            )
    return jax.tree.unflatten(structure, jax.device_put([arrays[name] for name in names]))


def loaded(path: Path, data: bytes) -> dict[str, np.ndarray]:
    """The arrays in a file's bytes, which may be anything, though with the right checksum."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return load(data)
    except (SafetensorError, KeyError, ValueError) as error:  # no such file, a type that NumPy has not, a wrong shape
        raise InputError(f"'{path}' holds no arrays that can be read ({error}).") from error


def checked_bytes(path: Path, file: File) -> bytes:
    """A file's bytes, if they are those that were written."""
    if not CHECKSUM.fullmatch(file.sha256):
        raise InputError(f"'{path.parent}' refers to a file by '{file.sha256}', which is not a checksum.")
    data = read_regular(path, size=file.bytes)
    if sha256(data) != file.sha256:
        raise InputError(f"'{path}' is damaged: its SHA-256 is {sha256(data)[:12]}... instead of {file.sha256[:12]}...")
    return data


def intact(path: Path, file: File) -> bool:
    """Whether a file is there as it should be."""
    try:
        checked_bytes(path, file)
    except InputError:
        return False
    return True
