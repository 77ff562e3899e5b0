"""The run store on disks that fail and in processes that crash, at every operation, for every agent."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lives import NAMES, Lived, assert_all_are_intact, found_in, litter, restore, step

from modlife.errors import StoreError
from modlife.lifelong.agent import AgentState
from modlife.runs.checkpoints import INDEX
from modlife.runs.durable import Disk
from modlife.runs.sealed import sealed, unsealed
from modlife.runs.store import RunDirectory, RunWriter


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


class Scene:
    """A run directory to save into, and what is to be saved: a state between tasks."""

    def __init__(self, life: Lived, folder: Path, base: Path):
        self.life, self.base = life, base
        described = life.described()
        self.number = next(n for n, facts in described.items() if facts.ended and facts.stage)
        self.stage, self.planned = described[self.number].stage, described[self.number].planned
        self.state: AgentState = life.state(self.number, folder / "state")

    def opened(self, path: Path, disk: Disk) -> RunWriter:
        """As `modlife train --resume` opens it, with a checkpoint or without; the disk only fails afterwards."""
        writer = RunWriter.reopen(path)
        if writer.checkpoints.numbers():
            restore(writer, self.life.config)
        writer.disk = writer.checkpoints.disk = disk
        return writer

    def step(self, writer: RunWriter) -> int:
        return step(writer, self.state, self.stage, planned=self.planned)


def first_scene(life: Lived, tmp_path: Path) -> Scene:
    """A run directory before its first checkpoint."""
    RunWriter.create(tmp_path / "base", life.config).close()
    return Scene(life, tmp_path, tmp_path / "base")


def later_scene(life: Lived, tmp_path: Path) -> Scene:
    """One where the next checkpoint sends an old one away: neither of the two there is at the end of a stage."""
    run = life.copy(tmp_path / "base", max(life.described()))
    for number in run.checkpoints.numbers():
        folder = run.checkpoints.path(number)
        body = unsealed(folder / INDEX)
        body["description"]["ended"] = False
        (folder / INDEX).write_bytes(sealed(body))
    return Scene(life, tmp_path, run.path)


SCENES = {"first": first_scene, "later": later_scene}


CASES = [(agent, *ERRORS[0]) for agent in NAMES] + [("comp-search", *error) for error in ERRORS[1:]]
"""Every agent; and with the one that saves most, every kind of failure."""


@pytest.mark.parametrize(("agent", "number", "lasting"), CASES)
@pytest.mark.parametrize("where", SCENES)
def test_a_disk_that_fails_at_any_operation_loses_nothing(
    lives: Callable[[str], Lived], tmp_path: Path, where: str, agent: str, number: int, lasting: bool
):
    life = lives(agent)
    scene = SCENES[where](life, tmp_path)
    for disk in faults(OSError(number, os.strerror(number)), lasting=lasting):
        path = tmp_path / "run"
        shutil.copytree(scene.base, path)
        run = scene.opened(path, disk)
        before = run.checkpoints.numbers()[-1:]
        try:
            acknowledged = [scene.step(run)]
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
        again = scene.opened(path, Disk())
        assert_all_are_intact(again.run)
        assert not litter(path)
        assert again.checkpoints.numbers()[-1:] >= acknowledged
        saved = scene.step(again)
        again.close()
        assert found_in(again.run, life.config).moment.state.met == scene.state.met
        assert again.checkpoints.numbers()[-1] == saved
        shutil.rmtree(path)


@pytest.mark.parametrize("where", SCENES)
def test_a_crash_at_any_operation_loses_nothing_that_was_acknowledged(life: Lived, tmp_path: Path, where: str):
    scene = SCENES[where](life, tmp_path)
    for disk in faults(Crash(), lasting=True):
        path = tmp_path / "run"
        shutil.copytree(scene.base, path)
        run = scene.opened(path, disk)
        before = (run.checkpoints.numbers()[-1:], (path / "metrics.jsonl").read_bytes())
        try:
            scene.step(run)
            assert not disk.struck
        except Crash:
            assert disk.struck
        run.close()  # as the end of a process does
        again = scene.opened(path, Disk())
        assert_all_are_intact(again.run)
        after = (again.checkpoints.numbers()[-1:], (path / "metrics.jsonl").read_bytes())
        line = b'{"kind": "step", "stage": %d}\n' % scene.stage if before[0] else b""
        new = ([before[0][0] + 1 if before[0] else 0], before[1] + line)
        assert after in ((before, new) if disk.struck else (new,))
        assert not litter(path)
        saved = scene.step(again)
        again.close()
        again.checkpoints.verify(again.checkpoints.path(saved))
        shutil.rmtree(path)


@pytest.fixture
def config(lives: Callable[[str], Lived]):
    return lives("stl").config


@pytest.fixture
def run(searched: Lived, tmp_path: Path) -> RunDirectory:
    return searched.copy(tmp_path / "copy", searched.amid("offline"))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_a_run_directory_appears_whole_or_not_at_all(tmp_path: Path, config, number: int):
    path = tmp_path / "runs" / "run"
    for disk in faults(OSError(number, os.strerror(number))):
        try:
            RunWriter.create(path, config, disk).close()
            assert not disk.struck
        except StoreError as error:
            assert_one_sentence(error, path, number)
        assert not litter(tmp_path)
        assert not path.exists() or RunDirectory.open(path).config() == config
        shutil.rmtree(path, ignore_errors=True)


@pytest.mark.parametrize("error", [OSError(errno.EIO, os.strerror(errno.EIO)), Crash()])
def test_a_summary_appears_whole_or_not_at_all(run: RunDirectory, searched: Lived, error: BaseException):
    whole = searched.run.summary()
    assert whole is not None
    for disk in faults(error, lasting=True):
        writer = RunWriter(run.path, disk)
        try:
            writer.finish(whole)
            assert not disk.struck
        except (StoreError, Crash):
            assert disk.struck
        writer.close()
        RunWriter.reopen(run.path).close()
        found = run.summary()
        assert found is None or found | {"files": 0} == whole | {"files": 0}
        assert not litter(run.path)
        (run.path / "summary.json").unlink(missing_ok=True)


def test_a_folder_that_may_not_be_written_gets_one_sentence(tmp_path: Path, config):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=f"^'{tmp_path}/file/run' could not be written: "):
        RunWriter.create(tmp_path / "file" / "run", config)


def test_the_second_writer_is_told_who_the_first_is(run: RunDirectory):
    first = RunWriter.reopen(run.path)
    with pytest.raises(
        StoreError, match=rf"^'{run.path}' is being written by another process \(process {os.getpid()} on "
    ):
        RunWriter.reopen(run.path)
    assert first.lock is not None
    os.ftruncate(first.lock, 0)  # it had no time yet to say
    with pytest.raises(StoreError, match=r"another process \(which has just begun\)\.$"):
        RunWriter.reopen(run.path)
    first.close()
    RunWriter.reopen(run.path).close()
