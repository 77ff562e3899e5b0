"""The run store against damage, failing disks, crashes and hostile files; in one process, without training."""

import ast
import copy
import errno
import json
import os
import pickle
import random
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from threading import Timer
from typing import Any

import jax
import numpy as np
import pytest
from safetensors.numpy import save

import modlife
from modlife.errors import InputError, StoreError
from modlife.experiments.agents import build
from modlife.experiments.checkpoints import (
    FORMAT,
    INDEX,
    STATE,
    Checkpoints,
    Description,
    File,
    named_arrays,
    sealed,
    unsealed,
)
from modlife.experiments.config import LifeConfig, to_json
from modlife.experiments.disk import Disk, sha256
from modlife.experiments.life import Life, Progress
from modlife.experiments.restore import newest, tree_of
from modlife.experiments.store import RunDirectory, RunWriter
from modlife.learners.config import BCQConfig, PPOConfig
from modlife.learners.replay import Packing
from modlife.lifelong.compositional import Compositional
from modlife.lifelong.loop import Agent, AgentState, Work
from modlife.types import Task

CONFIG = LifeConfig(
    agent="comp-search",
    modules=2,
    tasks=3,
    steps=1000,
    search_episodes=1,
    ppo=PPOConfig(envs=4, length=32, minibatch=64),
    bcq=BCQConfig(replay_size=256, offline_batch=64),
)
TASKS = CONFIG.chosen_tasks()
FIRST, SECOND = (0, 0, 0), (1, 1, 1)
SECONDS = (1.0, 2.0, 3.0, 4.0)


# A life, written by hand


@pytest.fixture(scope="module")
def agent() -> Compositional:
    agent = build(CONFIG)
    assert isinstance(agent, Compositional)
    return agent


def replay(seed: int, agent: Compositional) -> np.ndarray:
    shape = (agent.times + 1, CONFIG.ppo.envs, Packing.of(agent.env).words)
    return np.random.default_rng(seed).integers(0, 2**32, shape, np.uint32)


def with_work(agent: Agent, state: AgentState, work: Work, stage: tuple[Task, ...]) -> AgentState:
    """The state in the middle of a phase, with numbers for the learner."""
    blank = agent.blank(state, work, stage)
    data = jax.tree.map(lambda leaf: np.ones(leaf.shape, leaf.dtype), blank)
    return replace(state, work=replace(work, data=data))


def describe(run: RunWriter, state: AgentState, stage: int, *, ended: bool = False) -> Description:
    size, checksum = run.sync_metrics()
    work = state.work or Work("", 0, (), 0, None)
    met = tuple(str(task) for task in state.met)
    return Description(
        stage,
        ended,
        met,
        state.structures,
        work.phase,
        work.number,
        work.structure,
        work.spent,
        size,
        checksum,
        SECONDS,
        SECONDS,
        100.0,
    )


def step(run: RunWriter, state: AgentState, stage: int, *, ended: bool = False) -> int:
    """Something happens, and is saved, as in a life; which is saved once before anything happens."""
    if run.checkpoints.numbers():
        run.append({"kind": "step", "stage": stage})
    return run.checkpoints.save(tree_of(state), state.memory, describe(run, state, stage, ended=ended))


@pytest.fixture(scope="module")
def states(agent: Compositional) -> dict[str, AgentState]:
    """A state of each kind that a life saves."""
    start = agent.init(key=jax.random.key(0))
    one = replace(start, met=TASKS[:1], structures=(FIRST,), memory=(replay(1, agent),))
    more = replace(one, memory=(*one.memory, replay(2, agent)))
    return {
        "start": start,
        "online": with_work(agent, one, Work("online", 7, SECOND, 100, None), TASKS[1:2]),
        "ended": one,
        "offline": with_work(agent, more, Work("offline", 3, SECOND, 0, None), TASKS[1:2]),
        "next": replace(more, met=TASKS[:2], structures=(FIRST, SECOND)),
    }


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory, states: dict[str, AgentState]) -> Path:
    """A run directory whose newest checkpoint, number 3, is in the offline phase; number 2 is at the end of a stage."""
    run = RunWriter.create(tmp_path_factory.mktemp("golden") / "run", CONFIG)
    for name, stage in (("start", 0), ("start", 0), ("ended", 1), ("offline", 1)):
        step(run, states[name], stage, ended=name == "ended")
    run.close()
    assert run.checkpoints.numbers() == [2, 3]
    return run.path


@pytest.fixture
def run(golden: Path, tmp_path: Path) -> RunDirectory:
    """A copy that a test may damage."""
    shutil.copytree(golden, tmp_path / "run")
    return RunDirectory(tmp_path / "run")


def alone(run: RunDirectory, states: dict[str, AgentState], name: str) -> Path:
    """Leaves only one checkpoint, of a state; its folder."""
    shutil.rmtree(run.checkpoints.folder)
    writer = RunWriter.reopen(run.path)
    writer.rewind_metrics(0, sha256(b""))
    writer.append({"kind": "curriculum"})
    number = step(writer, states[name], {"start": 0, "next": 2}.get(name, 1))
    writer.close()
    return run.checkpoints.path(number)


def go_on(path: Path, agent: Compositional) -> RunWriter:
    """What `modlife train --resume` does before it learns."""
    writer = RunWriter.reopen(path)
    try:
        restore(writer, agent)
    except BaseException:
        writer.close()
        raise
    return writer


def restore(writer: RunWriter, agent: Compositional) -> None:
    found = newest(writer, agent, CONFIG.curriculum)
    writer.rewind_metrics(found.description.metrics_bytes, found.description.metrics_sha256)


def everything(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder, except those that say who wrote when, and what else there is."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in folder.rglob("*")
        if path.name not in ("lock", "history.jsonl")
    }


def litter(folder: Path) -> list[Path]:
    return list(folder.rglob("*.tmp"))


@pytest.mark.parametrize("name", ["start", "online", "ended", "offline", "next"])
def test_what_is_saved_comes_back(run: RunDirectory, agent, states, name: str):
    alone(run, states, name)
    found = newest(run, agent, CONFIG.curriculum)
    old, new = states[name], found.moment.state
    assert (new.met, new.structures) == (old.met, old.structures)
    assert (new.work is None) == (old.work is None)
    for before, after in ((tree_of(old), tree_of(new)), (old.memory, new.memory)):
        arrays, again = named_arrays(before), named_arrays(after)
        assert arrays.keys() == again.keys()
        for key in arrays:
            np.testing.assert_array_equal(arrays[key], again[key], strict=True)
    if old.work and new.work:
        assert [getattr(new.work, key) for key in ("phase", "number", "structure", "spent")] == [
            getattr(old.work, key) for key in ("phase", "number", "structure", "spent")
        ]


@pytest.mark.parametrize("agent_name", ["stl", "mtl", "mtl-monolithic"])
def test_what_agents_without_replay_saved_comes_back(tmp_path: Path, agent_name: str):
    config = LifeConfig(agent=agent_name, only=tuple(str(task) for task in TASKS), steps=1000, ppo=CONFIG.ppo)
    agent, stage = build(config), config.curriculum.stages[0]
    start = agent.init(key=jax.random.key(0))
    middle = with_work(agent, start, Work("online", 7, (), 0, None), stage)
    writer = RunWriter.create(tmp_path / "run", config)
    for number, (state, ended) in enumerate([(start, False), (middle, False), (replace(start, met=stage), True)]):
        step(writer, state, int(ended), ended=ended)
        moment = newest(writer, agent, config.curriculum).moment
        assert (moment.stage, moment.state.met) == (int(ended), state.met)
        assert (moment.state.work.number if moment.state.work else 0) == (7 if number == 1 else 0)
    writer.close()


# Damage


def parts(run: RunDirectory) -> dict[str, Path]:
    """The files that the newest checkpoint needs."""
    folder = run.checkpoints.path(3)
    files = run.checkpoints.verify(folder)[0].replay
    old, new = (run.checkpoints.replay_path(file) for file in files)
    return {"index": folder / INDEX, "state": folder / STATE, "old replay": old, "new replay": new}


def swap(run: RunDirectory, path: Path) -> None:
    """With the same file of another checkpoint."""
    files = parts(run)
    other = {
        files["index"]: run.checkpoints.path(2) / INDEX,
        files["state"]: run.checkpoints.path(2) / STATE,
        files["old replay"]: files["new replay"],
        files["new replay"]: files["old replay"],
    }[path]
    data = other.read_bytes()
    other.write_bytes(path.read_bytes())
    path.write_bytes(data)


def link(run: RunDirectory, path: Path) -> None:
    target = run.path.parent / "elsewhere"
    path.rename(target)
    path.symlink_to(target)


def folder(run: RunDirectory, path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(run: RunDirectory, path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


DAMAGE: dict[str, Callable[[RunDirectory, Path], Any]] = {
    "emptied": lambda run, path: path.write_bytes(b""),
    "cut": lambda run, path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda run, path: path.write_bytes(path.read_bytes() + b"\n"),
    "flipped": lambda run, path: path.write_bytes(flipped(path.read_bytes(), 8 * (path.stat().st_size // 2))),
    "removed": lambda run, path: path.unlink(),
    "link": link,
    "folder": folder,
    "pipe": pipe,
    "swapped": swap,
}


def flipped(data: bytes, bit: int) -> bytes:
    return data[: bit // 8] + bytes([data[bit // 8] ^ (1 << bit % 8)]) + data[bit // 8 + 1 :]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("part", ["index", "state", "old replay", "new replay"])
def test_damage_is_named_and_the_checkpoint_before_it_is_used(run: RunDirectory, agent, part: str, damage: str):
    path = parts(run)[part]
    DAMAGE[damage](run, path)
    if (part, damage) == ("index", "swapped"):  # each is whole, but says something about other bytes
        path = path.with_name(STATE)
    with pytest.raises(InputError) as caught:
        run.checkpoints.verify(run.checkpoints.path(3))
    first = re.findall(r"'(.*?)'", str(caught.value))[0]
    if damage == "swapped" and "replay" in part:  # both are damaged; the older one is read first
        assert Path(first).parent == path.parent
    else:
        assert first == str(path)
    if part == "old replay" or damage == "swapped":  # number 2 has lost what it needs too
        with pytest.raises(InputError, match="has no checkpoint that can be used") as caught:
            newest(run, agent, CONFIG.curriculum)
        assert first in str(caught.value)
    else:
        found = newest(run, agent, CONFIG.curriculum)
        assert found.moment.stage == 1
        assert found.moment.state.work is None
        assert [first in complaint for complaint in found.complaints] == [True]


def test_every_flipped_bit_and_every_cut_is_noticed(run: RunDirectory):
    rng = random.Random(0)
    for path in parts(run).values():
        data = path.read_bytes()
        bits = [0, len(data) * 8 - 1, *(rng.randrange(len(data) * 8) for _ in range(150))]
        cuts = [0, len(data) - 1, *(rng.randrange(len(data)) for _ in range(20))]
        for harmed in [*(flipped(data, bit) for bit in bits), *(data[:cut] for cut in cuts)]:
            path.write_bytes(harmed)
            with pytest.raises(InputError) as caught:
                run.checkpoints.verify(run.checkpoints.path(3))
            assert str(path) in str(caught.value)
        path.write_bytes(data)
        run.checkpoints.verify(run.checkpoints.path(3))


def test_a_damaged_replay_is_written_again_when_it_is_at_hand(run: RunDirectory, states):
    path = parts(run)["old replay"]
    path.write_bytes(flipped(path.read_bytes(), 99))
    run.checkpoints.keep(states["ended"].memory[0])
    run.checkpoints.verify(run.checkpoints.path(3))


# Metrics


@pytest.mark.parametrize("harm", [lambda data: data[:-1], lambda data: b"", lambda data: flipped(data, 77)])
def test_metrics_that_lost_something_are_refused(run: RunDirectory, agent, harm: Callable[[bytes], bytes]):
    path = run.path / "metrics.jsonl"
    harmed = harm(path.read_bytes())
    path.write_bytes(harmed)
    with pytest.raises(InputError, match=f"^'{path}' is damaged: its first .* bytes are not those"):
        go_on(run.path, agent)
    assert path.read_bytes() == harmed


@pytest.mark.parametrize("unsaved", [b"", b'{"kind": "step"}\n', b'{"kind": "step"}\n{"kin', b"{", b"\0\0\0\n"])
def test_metrics_are_cut_back_to_what_was_saved(run: RunDirectory, agent, unsaved: bytes):
    path = run.path / "metrics.jsonl"
    saved = path.read_bytes()
    path.write_bytes(saved + unsaved)
    writer = go_on(run.path, agent)
    assert path.read_bytes() == saved
    writer.append({"kind": "next"})
    size, checksum = writer.sync_metrics()
    assert path.read_bytes() == saved + b'{"kind": "next"}\n'
    assert (size, checksum) == (len(path.read_bytes()), sha256(path.read_bytes()))
    writer.close()


def test_a_torn_last_line_is_not_read(run: RunDirectory):
    before = list(run.metrics())
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "st')
    assert list(run.metrics()) == before
    assert len(before) == 3


# Faults


class Crash(BaseException):
    """The process, or the machine, is gone."""


class Faulty(Disk):
    """A disk whose k-th operation fails half-way; when it is lasting, all later ones fail too."""

    def __init__(self, at: int, error: BaseException, *, lasting: bool = False):
        self.left, self.error, self.lasting = at, error, lasting

    @property
    def struck(self) -> bool:
        return self.left <= 0

    def count(self) -> None:
        self.left -= 1
        if self.left == 0 or (self.lasting and self.left < 0):
            raise self.error

    def write(self, path: Path, data: bytes) -> None:
        try:
            self.count()
        except BaseException:
            path.write_bytes(data[: len(data) // 2])
            raise
        super().write(path, data)

    def append(self, path: Path, data: bytes, *, sync: bool) -> None:
        try:
            self.count()
        except BaseException:
            super().append(path, data[: len(data) // 2], sync=False)
            raise
        super().append(path, data, sync=sync)

    def truncate(self, path: Path, size: int) -> None:
        self.count()
        super().truncate(path, size)

    def make(self, path: Path) -> None:
        self.count()
        super().make(path)

    def rename(self, old: Path, new: Path) -> None:
        self.count()
        super().rename(old, new)

    def sync(self, folder: Path) -> None:
        self.count()
        super().sync(folder)

    def remove(self, path: Path) -> None:
        try:
            self.count()
        except BaseException:
            if path.is_dir() and (inside := list(path.iterdir())):
                inside[0].unlink()
            raise
        super().remove(path)


def faults(error: BaseException, *, lasting: bool = False) -> Iterator[Faulty]:
    """Disks that fail at the first operation, the second, and so on; the last one did not fail."""
    for at in range(1, 100):
        disk = Faulty(at, error, lasting=lasting)
        yield disk
        if not disk.struck:
            assert at > 3
            return
    raise AssertionError("there is no end")


ERRORS = [(errno.ENOSPC, False), (errno.ENOSPC, True), (errno.EIO, False), (errno.EACCES, True)]


def assert_one_sentence(error: StoreError, folder: Path, number: int) -> None:
    assert str(error).startswith(f"'{folder}")
    assert str(error).endswith(f"could not be written: {os.strerror(number)}. What was saved before is intact.")
    assert "\n" not in str(error)


@pytest.fixture(params=["first", "later"])
def base(request, tmp_path: Path, golden: Path, states) -> Path:
    """A run directory before its first checkpoint, or one where the next checkpoint sends an old one away."""
    path = tmp_path / "base"
    if request.param == "first":
        RunWriter.create(path, CONFIG).close()
        return path
    shutil.copytree(golden, path)
    checkpoints = Checkpoints(path, Disk())
    for number in (2, 3):  # neither is at the end of a stage
        folder = checkpoints.path(number)
        body = unsealed(folder / INDEX)
        body["description"]["ended"] = False
        (folder / INDEX).write_bytes(sealed(body))
    return path


def assert_all_are_intact(run: RunDirectory) -> None:
    for number in run.checkpoints.numbers():
        run.checkpoints.verify(run.checkpoints.path(number))


def opened(path: Path, disk: Disk) -> RunWriter:
    """As `modlife train --resume` opens it, with a checkpoint or without; the disk only fails afterwards."""
    writer = RunWriter.reopen(path)
    Life(CONFIG, writer, devices=1, save_every=0, progress=Progress()).resume()
    writer.disk = writer.checkpoints.disk = disk
    return writer


@pytest.mark.parametrize(("number", "lasting"), ERRORS)
def test_a_disk_that_fails_at_any_operation_loses_nothing(base, tmp_path, agent, states, number: int, lasting: bool):
    for disk in faults(OSError(number, os.strerror(number)), lasting=lasting):
        path = tmp_path / "run"
        shutil.copytree(base, path)
        run = opened(path, disk)
        before = run.checkpoints.numbers()[-1:]
        try:
            acknowledged = [step(run, states["next"], 2)]
            assert not disk.struck
        except StoreError as error:
            assert disk.struck
            acknowledged = before
            assert_one_sentence(error, path, number)
            if not lasting:
                assert not [one for one in litter(path) if one.parent.name == "replay"]
        run.close()
        for one in acknowledged:
            run.checkpoints.verify(run.checkpoints.path(one))
        again = opened(path, Disk())
        assert_all_are_intact(again)
        assert not litter(path)
        assert again.checkpoints.numbers()[-1:] >= acknowledged
        saved = step(again, states["next"], 2)
        again.close()
        assert newest(again, agent, CONFIG.curriculum).moment.state.met == TASKS[:2]
        assert again.checkpoints.numbers()[-1] == saved
        shutil.rmtree(path)


def test_a_crash_at_any_operation_loses_nothing_that_was_acknowledged(base, tmp_path, states):
    for disk in faults(Crash(), lasting=True):
        path = tmp_path / "run"
        shutil.copytree(base, path)
        run = opened(path, disk)
        before = (run.checkpoints.numbers()[-1:], (path / "metrics.jsonl").read_bytes())
        try:
            step(run, states["next"], 2)
            assert not disk.struck
        except Crash:
            assert disk.struck
        run.close()  # as the end of a process does
        again = opened(path, Disk())
        assert_all_are_intact(again)
        after = (again.checkpoints.numbers()[-1:], (path / "metrics.jsonl").read_bytes())
        line = b'{"kind": "step", "stage": 2}\n' if before[0] else b""
        new = ([before[0][0] + 1 if before[0] else 0], before[1] + line)
        assert after in ((before, new) if disk.struck else (new,))
        assert not litter(path)
        saved = step(again, states["next"], 2)
        again.close()
        again.checkpoints.verify(again.checkpoints.path(saved))
        shutil.rmtree(path)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_a_run_directory_appears_whole_or_not_at_all(tmp_path: Path, number: int):
    path = tmp_path / "runs" / "run"
    for disk in faults(OSError(number, os.strerror(number))):
        try:
            RunWriter.create(path, CONFIG, disk).close()
            assert not disk.struck
        except StoreError as error:
            assert_one_sentence(error, path, number)
        assert not litter(tmp_path)
        assert not path.exists() or RunDirectory.open(path).config() == CONFIG
        shutil.rmtree(path, ignore_errors=True)


@pytest.mark.parametrize("error", [OSError(errno.EIO, os.strerror(errno.EIO)), Crash()])
def test_a_summary_appears_whole_or_not_at_all(run: RunDirectory, error: BaseException):
    for disk in faults(error, lasting=True):
        writer = RunWriter(run.path, disk)
        try:
            writer.finish({"agent": "x"})
            assert not disk.struck
        except (StoreError, Crash):
            assert disk.struck
        writer.close()
        RunWriter.reopen(run.path).close()
        assert run.summary() in (None, {"agent": "x"})
        assert not litter(run.path)
        (run.path / "summary.json").unlink(missing_ok=True)


def test_a_folder_that_may_not_be_written_gets_one_sentence(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=f"^'{tmp_path}/file/run' could not be written: "):
        RunWriter.create(tmp_path / "file" / "run", CONFIG)


def test_the_second_writer_is_told_who_the_first_is(run: RunDirectory):
    first = RunWriter.reopen(run.path)
    with pytest.raises(
        StoreError, match=rf"^'{run.path}' is being written by another process \(process {os.getpid()} on "
    ):
        RunWriter.reopen(run.path)
    os.ftruncate(first.lock, 0)
    Timer(0.1, lambda: os.pwrite(first.lock, b"process 7", 0)).start()  # it had no time yet to say
    with pytest.raises(StoreError, match=r"another process \(process 7\)\.$"):
        RunWriter.reopen(run.path)
    first.close()
    RunWriter.reopen(run.path).close()


# Pruning


def plain(number: int, *, ended: bool) -> Description:
    return Description(number, ended, (), (), "", 0, (), 0, 0, sha256(b""), SECONDS, SECONDS, 1.0)


def test_the_last_two_checkpoints_and_those_at_the_end_of_a_stage_remain(tmp_path: Path):
    rows, written = np.arange(24, dtype=np.uint32).reshape(2, 3, 4), {}
    for number in range(20):
        checkpoints = Checkpoints(tmp_path, Disk())  # one process each
        memory = tuple(rows + np.uint32(n) for n in range(number // 5))
        facts, tree = plain(number, ended=number % 5 == 0), {"params": np.full(3, number)}
        saved = [checkpoints.save(tree, memory, facts) for _ in range(2)]
        ends = [n for n in range(2 * number + 2) if n // 2 % 5 == 0]
        assert checkpoints.numbers() == sorted({*ends, *saved})
        files = {path.name: (path.stat().st_mtime_ns, path.stat().st_ino) for path in checkpoints.replay.iterdir()}
        assert len(files) == number // 5
        assert written.items() <= files.items()
        written = files
    assert_all_are_intact(RunDirectory(tmp_path))


# Hostile files

FILES = ["manifest.json", "metrics.jsonl", "history.jsonl"]
FORBIDDEN = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "torch", "yaml"}
CALLS = {"eval", "exec", "compile", "__import__"}


def dangers(source: str) -> list[str]:
    """What could run code from a file."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [(node.module or "").split(".")[0], *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Attribute):
            names = [node.attr]
        found += [name for name in names if name in FORBIDDEN]
        if isinstance(node, ast.Name) and node.id in CALLS:
            found.append(node.id)
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            found.append("allow_pickle")
    return found


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import os, joblib.memory as m",
        "def f():\n    from torch import load",
        "from yaml import load",
        "from numpy.compat import pickle",
        "eval(text)",
        "run = exec",
        "compile(text, '', 'exec')",
        "np.load(path, allow_pickle=True)",
        "x = pandas.compat.pickle",
    ],
)
def test_the_search_for_dangers_finds(source: str):
    assert dangers(source)


def test_no_module_can_run_code_from_a_file():
    paths = list(Path(modlife.__file__).parent.rglob("*.py"))
    assert len(paths) > 50
    assert {str(path): found for path in paths if (found := dangers(path.read_text()))} == {}


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


def bomb(kind: str, marker: Path) -> bytes:
    if kind == "pickle":
        return pickle.dumps(Bomb(marker))
    file = BytesIO()
    np.save(file, np.array([Bomb(marker)], dtype=object), allow_pickle=True)
    return file.getvalue()


def read_all(run: RunDirectory, agent: Compositional) -> None:
    """Everything that any command reads."""
    config = RunDirectory.open(run.path).config()
    assert run.threads() >= 1
    newest(run, agent, config.curriculum)
    list(run.metrics())
    run.summary()


@pytest.mark.parametrize("kind", ["pickle", "npy"])
def test_the_bombs_go_off_where_pickle_is_used(tmp_path: Path, kind: str):
    data = bomb(kind, tmp_path / "marker")
    if kind == "pickle":
        pickle.loads(data)  # noqa: S301  # to see that it would do something
    else:
        np.load(BytesIO(data), allow_pickle=True)
    assert (tmp_path / "marker").exists()


@pytest.mark.parametrize("kind", ["pickle", "npy"])
@pytest.mark.parametrize("name", ["manifest.json", "metrics.jsonl", "summary.json", INDEX, STATE, "replay"])
def test_pickles_do_nothing(run: RunDirectory, agent, states, tmp_path: Path, name: str, kind: str):
    checkpoint = alone(run, states, "offline")
    path = {INDEX: checkpoint / INDEX, STATE: checkpoint / STATE, "replay": next(run.checkpoints.replay.iterdir())}
    path.get(name, run.path / name).write_bytes(bomb(kind, tmp_path / "marker") + b"\n")
    with pytest.raises(InputError, match=re.escape(str(path.get(name, run.path / name)))):
        read_all(run, agent)
    assert not (tmp_path / "marker").exists()


def reseal(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes what a checkpoint says, with the right checksum, as one who knows this program can."""
    body = unsealed(folder / INDEX)
    change(body)
    (folder / INDEX).write_bytes(sealed(body))


def strange_bytes(marker: Path) -> dict[str, bytes]:
    header = json.dumps({"rows": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}).encode()
    return {
        "pickle": bomb("pickle", marker),
        "npy": bomb("npy", marker),
        "nothing": b"",
        "a long header": b"\xff" * 8,
        "a type that NumPy has not": len(header).to_bytes(8, "little") + header + b"\0",
        "other arrays": save({"rows": np.zeros((2, 2), np.uint32), "x": np.zeros(1)}),
        "floats": save({"rows": np.zeros((2, 2, 2), np.float32)}),
        "other rows": save({"rows": np.zeros((2, 4, 3), np.uint32)}),
        "too many rows": save({"rows": np.zeros((999, 4, 14), np.uint32)}),
    }


@pytest.mark.parametrize("what", strange_bytes(Path()))
@pytest.mark.parametrize("part", ["state", "replay"])
def test_strange_bytes_with_the_right_checksum_do_nothing(
    run: RunDirectory, agent, states, tmp_path: Path, part: str, what: str
):
    folder, data = alone(run, states, "offline"), strange_bytes(tmp_path / "marker")[what]
    file = File(len(data), sha256(data))
    if part == "state":
        (folder / STATE).write_bytes(data)
        reseal(folder, lambda body: body.update(state=to_json(file)))
    else:
        run.checkpoints.replay_path(file).write_bytes(data)
        reseal(folder, lambda body: body["replay"].__setitem__(0, to_json(file)))
    with pytest.raises(InputError, match=f"^'{run.path}") as caught:
        read_all(run, agent)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "marker").exists()


def places(value: Any, path: tuple = ()) -> Iterator[tuple]:
    """The way to every value in JSON."""
    yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def put(body: Any, path: tuple, value: Any) -> None:
    for key in path[:-1]:
        body = body[key]
    body[path[-1]] = value


def take(body: Any, path: tuple) -> Any:
    for key in path:
        body = body[key]
    return body


HOSTILE = [
    *(-1, 10**30, -(10**30), 2**63, 1.5, 1e308, float("nan"), float("inf")),
    *("", "x", "../../etc/passwd", "/etc/passwd", "\0", "\ud800", "0" * 64, "online", "offline"),
    *(None, True, [], {}, [[]], [0], [-1], ["x"], [0, 0, 0], [9, 9, 9], [[9, 9, 9]], {"x": 1}),
]


def is_harmless(path: tuple[Any, ...], value: Any) -> bool:
    """Whether a checkpoint may say this: another structure that there is, or how long things took, is possible."""
    name = path[:2][-1]
    if name == "structure":
        return value == [0, 0, 0]
    if name in ("wall_seconds", "cpu_seconds", "peak_megabytes"):
        return value == 1.5 and (name == "peak_megabytes" or len(path) == 3)
    return name == "ended" and value is True


@pytest.mark.parametrize("name", ["online", "ended", "offline"])
def test_a_checkpoint_that_says_impossible_things_is_refused(run: RunDirectory, agent, states, tmp_path, name: str):
    folder = alone(run, states, name)
    right, outside, writer = unsealed(folder / INDEX), everything(tmp_path), RunWriter.reopen(run.path)
    tried = 0
    for path in [path for path in places(right) if path]:
        for value in HOSTILE:
            if is_harmless(path, value) or (take(right, path) == value and type(take(right, path)) is type(value)):
                continue
            body = copy.deepcopy(right)
            put(body, path, value)
            (folder / INDEX).write_bytes(sealed(body))
            try:
                restore(writer, agent)
            except InputError as error:
                tried += 1
                assert "\n" not in str(error)
                assert str(run.path) in str(error)
            else:
                pytest.fail(f"{path} = {value!r} was not noticed")
    assert tried > 400
    (folder / INDEX).write_bytes(sealed(right))
    restore(writer, agent)
    writer.close()
    assert everything(tmp_path) == outside


def says(**facts: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda body: body["description"].update(facts)


ONE, TWO, THREE = (str(task) for task in TASKS)
IMPOSSIBLE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "another format": (lambda body: body.update(format=2), "has format 2; this version reads 1"),
    "a field too many": (lambda body: body.update(hook="os.system"), "No field in"),
    "a fact too many": (says(hook="os.system"), "No field in"),
    "no replay": (lambda body: body.pop("replay"), "has no field 'replay'"),
    "no phase": (lambda body: body["description"].pop("phase"), "has no field 'phase'"),
    "no checksum": (lambda body: body["state"].pop("sha256"), "has no field 'sha256'"),
    "replay twice": (lambda body: body["replay"].append(body["replay"][0]), "replay of 3 tasks, not of 2"),
    "less replay": (lambda body: body["replay"].pop(), "replay of 1 tasks, not of 2"),
    "a path": (lambda body: body["state"].update(sha256="../../passwd"), "by '../../passwd', which is not a checksum"),
    "a path of replay": (lambda body: body["replay"][0].update(sha256="../lock"), "by '../lock', which is not a"),
    "a task that does not exist": (says(met=["wall/red/nothing"]), "its met is"),
    "a task too early": (says(met=[TWO]), "its met is"),
    "a task twice": (says(met=[ONE, ONE]), "its met is"),
    "a task that it is learning": (says(met=[ONE, TWO]), "its met is"),
    "too many tasks": (says(met=[ONE, TWO, THREE]), "its met is"),
    "a phase": (says(phase="x"), "its phase is 'x'"),
    "a stage": (says(stage=4), "is of stage 4, but the life has 3"),
    "the last stage": (says(stage=3), "its met is"),
    "modules beyond the bank": (says(structures=[[0, 2, 0]]), "its structures is"),
    "modules before the bank": (says(structure=[0, -1, 0]), "its structure is"),
    "a short structure": (says(structures=[[0, 0]]), "its structures is"),
    "a structure too many": (says(structures=[FIRST, FIRST]), "its structures is"),
    "steps beyond the end": (says(number=40), "its number is 40"),
    "steps before the start": (says(number=-1), "its number is -1"),
    "a search beyond the budget": (says(spent=1000), "its spent is 1000"),
    "a search that gives steps": (says(spent=-1), "its spent is -1"),
    "a clock": (says(wall_seconds=[1.0]), "its wall_seconds is"),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_what_is_impossible_is_said(run: RunDirectory, agent, states, what: str):
    change, sentence = IMPOSSIBLE[what]
    reseal(alone(run, states, "offline"), change)
    with pytest.raises(InputError) as caught:
        go_on(run.path, agent)
    assert sentence in str(caught.value)


def test_numbers_of_the_online_phase_are_bounded(run: RunDirectory, agent, states):
    folder = alone(run, states, "online")
    for number in (8, 10**12):  # 900 steps are left, which are eight updates of 128
        reseal(folder, lambda body, number=number: put(body, ("description", "number"), number))
        with pytest.raises(InputError, match=f"its number is {number}"):
            newest(run, agent, CONFIG.curriculum)


@pytest.mark.parametrize("agent_name", ["stl", "mtl"])
def test_checkpoints_of_one_agent_do_not_fit_another(run: RunDirectory, states, agent_name: str):
    config = LifeConfig(agent=agent_name, only=tuple(str(task) for task in TASKS), steps=1000, ppo=CONFIG.ppo)
    for name in ("start", "online", "ended", "offline"):
        alone(run, states, name)
        with pytest.raises(InputError):
            newest(run, build(config), config.curriculum)


@pytest.mark.parametrize("name", ["manifest.json", "metrics.jsonl", "summary.json", INDEX])
def test_deep_json_gets_one_sentence(run: RunDirectory, agent, states, name: str):
    folder = alone(run, states, "start")
    path = folder / INDEX if name == INDEX else run.path / name
    path.write_text("[" * 100_000 + "]" * 100_000 + "\n")
    with pytest.raises(InputError, match=re.escape(str(path))):
        read_all(run, agent)


@pytest.mark.parametrize(
    "machine", [None, {}, {"threads": "2; ls"}, {"threads": 3}, {"threads": "0"}, {"threads": []}, 7]
)
def test_threads_of_a_manifest_are_checked(run: RunDirectory, machine: Any):
    manifest = run.manifest() | {"machine": machine}
    (run.path / "manifest.json").write_text(json.dumps(manifest))
    if isinstance(machine, dict) and machine:
        with pytest.raises(InputError, match=r"manifest\.json' has .* for the number of threads\.$"):
            run.threads()
    else:
        assert run.threads() == 1


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", [*FILES, "summary.json", "lock", "checkpoints", "replay"])
def test_a_pipe_does_not_hang(run: RunDirectory, agent, name: str):
    path = run.path / name
    if path.is_dir():
        shutil.rmtree(path)
    pipe(run, path)
    with pytest.raises((InputError, StoreError)):
        writer = go_on(run.path, agent)
        writer.close()
        read_all(run, agent)
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", [*FILES, "summary.json.tmp", "lock", "checkpoints", "replay"])
def test_nothing_is_written_through_a_link(run: RunDirectory, agent, states, tmp_path: Path, name: str):
    outside, path = tmp_path / "outside", run.path / name
    if path.is_dir():
        path.rename(outside)
        (outside / "mine.tmp").write_text("precious")
    else:
        outside.write_bytes(path.read_bytes() if path.exists() else b"precious")
        path.unlink(missing_ok=True)
    path.symlink_to(outside)
    before = everything(outside) if outside.is_dir() else outside.read_bytes()
    try:
        writer = go_on(run.path, agent)
        step(writer, states["next"], 2)
        writer.finish({})
        writer.close()
        read_all(run, agent)
    except (InputError, StoreError):
        pass
    else:
        assert name == "summary.json.tmp"
    assert (everything(outside) if outside.is_dir() else outside.read_bytes()) == before


# Format


def shape(value: Any) -> Any:
    """The names and types in JSON."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def test_the_layout_of_a_checkpoint_is_that_of_its_format(run: RunDirectory):
    """Whoever changes this changes `FORMAT`, and says how older run directories are read."""
    outer = json.loads((run.checkpoints.path(3) / INDEX).read_text())
    assert list(outer) == ["sha256", "body"]
    file = {"bytes": "int", "sha256": "str"}
    assert (FORMAT, shape(outer["body"])) == (
        1,
        {
            "format": "int",
            "description": {
                "stage": "int",
                "ended": "bool",
                "met": ["str"],
                "structures": [["int"]],
                "phase": "str",
                "number": "int",
                "structure": ["int"],
                "spent": "int",
                "metrics_bytes": "int",
                "metrics_sha256": "str",
                "wall_seconds": ["float"],
                "cpu_seconds": ["float"],
                "peak_megabytes": "float",
            },
            "state": file,
            "replay": [file],
        },
    )
    assert sorted(path.name for path in run.checkpoints.path(3).iterdir()) == [INDEX, STATE]


def test_the_bytes_of_a_checkpoint_are_those_of_its_format(tmp_path: Path):
    """A checkpoint as format 1 writes it, to the last byte."""
    tree, rows = {"params": np.arange(3, dtype=np.float32), "work": None}, np.arange(24, dtype=np.uint32)
    checkpoints = Checkpoints(tmp_path, Disk())
    folder = checkpoints.path(checkpoints.save(tree, (rows.reshape(2, 3, 4),), plain(0, ended=True)))
    index, state = checkpoints.verify(folder)
    header = b'{"[\'params\']":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}}'
    assert state == len(header).to_bytes(8, "little") + header + np.arange(3, dtype="<f4").tobytes()
    assert [(file.bytes, file.sha256[:12]) for file in index.replay] == [(168, "a7109e3115e7")]
    assert sha256((folder / INDEX).read_bytes())[:12] == "3d0a74a87051"
