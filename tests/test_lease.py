"""One writer for a run directory, also where locks hold on one machine only: what two machines do, and what happens."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from lives import Lived, everything, go_on, pipe, step

from modlife.errors import Busy, InputError, StoreError
from modlife.runs import lease
from modlife.runs.codec import to_json
from modlife.runs.config import LifeConfig
from modlife.runs.lease import STALE, Holder, Place, here, start_of
from modlife.runs.load import Run
from modlife.runs.sealed import sealed, unsealed
from modlife.runs.store import RunDirectory, RunWriter

OTHER = Place("another", "boot", "space")
GONE = 2**22 + 1
"""More than any number of a process."""


class Node:
    """A machine: its own locks, which others do not see."""

    def __init__(self, patch: pytest.MonkeyPatch):
        self.patch = patch

    def is_(self, name: str) -> None:
        """From now on, processes run on this one."""
        self.patch.setattr(lease.fcntl, "flock", lambda *_: None)
        self.patch.setattr(lease, "here", lambda: Place(name, f"boot of {name}", ""))


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    RunWriter.create(tmp_path / "run", LifeConfig("stl", tasks=2)).close()
    return tmp_path / "run"


def leases(path: Path) -> list[str]:
    return sorted(one.name for one in path.glob("lease*"))


def only(path: Path) -> Path:
    (one,) = path.glob("lease-*.json")
    return one


def ago(path: Path, seconds: float) -> None:
    """The last sign of life was given then, by the storage's clock."""
    then = time.time() - seconds
    os.utime(only(path), (then, then))


def leave(path: Path, *, seconds: float = 1.0, **changes: object) -> Holder:
    """What a writer that did not come to its end left; on this machine, unless it is said where."""
    holder = replace(Holder(here(), GONE, 7, path.stat().st_ino, "0" * 16), **changes)
    only(path).write_bytes(sealed(to_json(holder)))
    ago(path, seconds)
    return holder


def test_a_lease_says_who_writes_and_is_given_back(path: Path):
    with RunWriter.reopen(path):
        assert leases(path) == ["lease-2.json"]
        body = unsealed(only(path))
        assert body["process"] == os.getpid() and body["place"] == to_json(here())
        assert abs(only(path).stat().st_mtime - time.time()) < 5
    assert only(path).stat().st_mtime == 0 and not lease.HELD


def test_the_lease_is_kept_while_the_process_is_busy(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lease, "BEAT", 0.01)
    with RunWriter.reopen(path):
        ago(path, 1000)
        until = time.monotonic() + 20
        while time.time() - only(path).stat().st_mtime > 900:  # another thread touches it
            assert time.monotonic() < until
            time.sleep(0.01)
    assert not [one for one in threading.enumerate() if one.name.startswith("lease") and not one.daemon]


def test_two_machines_with_their_own_locks_never_write_together(path: Path, node: Node):
    node.is_("a")
    first = RunWriter.reopen(path)
    node.is_("b")
    with pytest.raises(
        Busy, match=rf"by another process \(process {os.getpid()} on a\), whose last sign of life was 0"
    ):
        RunWriter.reopen(path)
    ago(path, STALE - 5)
    with pytest.raises(Busy, match=r"55 seconds ago. It can be gone on with 60 seconds after the last."):
        RunWriter.reopen(path)
    ago(path, STALE + 5)  # machine a sleeps
    second = RunWriter.reopen(path)
    second.append({"kind": "of b"})
    first.lease.beaten -= STALE + 5  # it wakes up
    for write in (lambda: first.append({"kind": "of a"}), first.sync, lambda: first.finish({})):
        with pytest.raises(Busy, match="was given to another process"):
            write()
    assert (path / "metrics.jsonl").read_bytes() == b'{"kind": "of b"}\n'
    first.close()  # and takes nothing from the other
    node.is_("c")
    with pytest.raises(Busy, match="on b"):
        RunWriter.reopen(path)
    second.close()
    RunWriter.reopen(path).close()


def test_one_who_wakes_up_just_when_another_takes_over_keeps_the_lease(path: Path, node: Node):
    """Its sign of life comes after the other has seen that there was none, and before it has the lease."""
    node.is_("a")
    first = RunWriter.reopen(path)
    ago(path, STALE + 5)
    node.is_("b")
    claim = lease.claim

    def interrupted(folder: Path, number: int) -> lease.Lease:
        first.lease.beat()
        return claim(folder, number)

    node.patch.setattr(lease, "claim", interrupted)
    with pytest.raises(Busy, match="which has just begun"):
        RunWriter.reopen(path)
    assert leases(path) == ["lease-2.json"]
    first.lease.beat()
    first.close()


def test_one_who_stands_back_leaves_its_number_so_that_none_is_given_twice(path: Path, node: Node):
    """With no lease left the next writer would be the first again, and the first, when it wakes up, would write too."""
    node.is_("a")
    claim = lease.claim

    def beside_another(folder: Path, number: int) -> lease.Lease:
        own = claim(folder, number)
        claim(folder, number + 1).forget()
        return own

    node.patch.setattr(lease, "claim", beside_another)
    with pytest.raises(Busy, match="which has just begun"):
        RunWriter.reopen(path)
    assert leases(path) == ["lease-2.json", "lease-3.json"] and (path / "lease-2.json").stat().st_mtime == 0


def test_one_whose_lease_was_removed_and_given_again_sees_that_it_is_anothers(path: Path, node: Node):
    node.is_("a")
    only(path).unlink()
    first = RunWriter.reopen(path)
    only(path).unlink()  # by hand, since nobody seemed to write
    node.is_("b")
    second = RunWriter.reopen(path)
    assert second.lease.path == first.lease.path == path / "lease-1.json"
    with pytest.raises(Busy, match="was given to another process"):
        first.lease.beat()
    first.close()
    second.lease.beat()
    assert only(path).stat().st_mtime > 0
    second.close()


def test_a_file_that_is_no_lease_of_this_life_is_told_by_the_next_sign_of_life(path: Path):
    with RunWriter.reopen(path) as writer:
        (path / "lease-999999999.json").touch()
        with pytest.raises(StoreError, match="is not of this life"):
            writer.lease.beat()


def test_an_error_on_the_way_to_a_lease_leaves_none_that_seems_alive(path: Path, node: Node):
    node.is_("a")

    def broken(*_: object) -> bool:
        raise OSError(5, "Input/output error")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lease, "is_still", broken)
        with pytest.raises(StoreError, match="Input/output error"):
            RunWriter.reopen(path)
    RunWriter.reopen(path).close()
    assert leases(path) == ["lease-3.json"]


def test_one_who_sees_that_it_is_being_taken_over_writes_no_more(path: Path, node: Node):
    """Its sign of life comes after the other has claimed the next lease."""
    node.is_("a")
    first = RunWriter.reopen(path)
    lease.claim(path, 3).forget()
    with pytest.raises(Busy, match="was given to another process"):
        first.lease.beat()
    first.close()


def test_one_whose_process_is_gone_is_followed_at_once(path: Path):
    leave(path)
    RunWriter.reopen(path).close()
    leave(path, process=os.getppid(), started=5)  # the number was used again
    RunWriter.reopen(path).close()
    leave(path, process=os.getpid())  # this process, which had no time to give it back
    RunWriter.reopen(path).close()
    alive = {"process": os.getppid(), "started": start_of(os.getppid()) or 0}
    leave(path, **alive, folder=5)  # a copy of a run that is being written
    RunWriter.reopen(path).close()
    leave(path, **alive)
    with pytest.raises(Busy, match=rf"\(process {os.getppid()} on "):
        RunWriter.reopen(path)


def test_a_crashed_child_that_nobody_has_waited_for_is_gone():
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert start_of(child.pid) is None
    child.wait()
    assert start_of(child.pid) is None and start_of(os.getpid()) and start_of(-1) is None and start_of(10**30) is None


@pytest.mark.parametrize("error", lease.NO_LINKS)
def test_disks_without_links_will_do(path: Path, monkeypatch: pytest.MonkeyPatch, error: int):
    def refused(*_: object, **__: object) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(lease.os, "link", refused)
    with RunWriter.reopen(path), pytest.raises(Busy):
        RunWriter.reopen(path)
    assert leases(path) == ["lease-2.json"]


def test_what_a_killed_process_left_on_the_way_to_a_lease_is_removed(path: Path):
    lease.claim(path, 2).forget()  # it had no time to remove the one before, ...
    (path / "lease-3.json.0123abcd.tmp").write_text("")  # ... another none to name its own
    os.utime(path / "lease-2.json", (1, 1))
    with RunWriter.reopen(path):
        assert leases(path) == ["lease-3.json"]


def test_damaged_leases_give_a_sentence_and_no_more_than_a_minute_is_lost(path: Path):
    for text in (b"", b"{}", b"[1]", b"\x1b[31m", sealed({"place": 5}), sealed({"x": "\x1b[31m<img src=x>"})):
        only(path).write_bytes(text)
        with pytest.raises(Busy, match=r"is being written by another process \(.*lease-\d+\.json") as told:
            RunWriter.reopen(path)
        assert str(told.value).isprintable()
        ago(path, STALE + 5)
        RunWriter.reopen(path).close()
    only(path).unlink()
    RunWriter.reopen(path).close()
    assert leases(path) == ["lease-1.json"]


def test_hostile_leases_give_a_sentence(path: Path, tmp_path: Path):
    name = "\x1b[31m" + "<img src=x onerror=alert(1)>" * 100
    leave(path, place=Place(name, "", ""))
    with pytest.raises(Busy) as told:
        RunWriter.reopen(path)
    assert str(told.value).isprintable() and len(str(told.value)) < 1100
    leave(path, place=OTHER, seconds=-1e6)
    with pytest.raises(
        InputError, match=r"seconds from now, in the future. If nobody writes this run, remove the file"
    ):
        RunWriter.reopen(path)
    for process in (-1, 0, 10**30):
        leave(path, process=process)
        RunWriter.reopen(path).close()
    number = only(path)
    number.rename(path / "lease-999999999.json")
    with pytest.raises(InputError, match=r"lease-999999999.json' is not of this life"):
        RunWriter.reopen(path)
    only(path).unlink()
    (path / "lease-1.json").symlink_to(tmp_path / "outside")
    with pytest.raises(InputError, match="It is a link"):
        RunWriter.reopen(path)
    assert not (tmp_path / "outside").exists()
    pipe(RunDirectory(path), path / "lease-1.json")
    with pytest.raises(Busy, match="is not a plain file"):
        RunWriter.reopen(path)
    (path / "lease-1.json").unlink()
    (path / "lease-1.json").mkdir()
    os.utime(path / "lease-1.json", (1, 1))
    with pytest.raises(StoreError, match="could not be written"):
        RunWriter.reopen(path)


def test_a_storage_that_fails_is_told_by_the_next_write(path: Path, monkeypatch: pytest.MonkeyPatch):
    def failing(*_: object, **__: object) -> None:
        raise OSError(5, os.strerror(5))

    with RunWriter.reopen(path) as writer:
        with monkeypatch.context() as patch:
            patch.setattr(lease.os, "utime", failing)
            writer.append({"kind": "soon after"})
            writer.lease.beaten -= 30
            with pytest.raises(StoreError, match=r"lease-2\.json' could not be written: Input/output error"):
                writer.append({"kind": "late"})
        writer.append({"kind": "again"})
    assert (path / "metrics.jsonl").read_bytes() == b'{"kind": "soon after"}\n{"kind": "again"}\n'


def test_reading_and_metrics_know_nothing_of_leases(lives: Callable[[str], Lived], tmp_path: Path, node: Node):
    life = lives("stl")
    run = life.copy(tmp_path / "run", life.amid("online"))
    leave(run.path, place=OTHER)
    before = everything(run.path)
    Run.load(run.path)
    assert run.metrics() and run.remarks() == [] and everything(run.path) == before
    with pytest.raises(Busy):
        RunWriter.reopen(run.path)
    ago(run.path, STALE + 5)
    state = life.state(life.amid("online"), tmp_path / "state")
    writer = go_on(run.path, life.config)
    ago(run.path, STALE + 5)
    node.is_("b")
    RunWriter.reopen(run.path).close()
    kept = everything(run.path)
    writer.lease.beaten -= STALE + 5
    with pytest.raises(Busy):
        step(writer, state, 2, planned=4)
    with pytest.raises(Busy):
        writer.checkpoints.save({}, (), life.described()[life.amid("online")])
    writer.close()
    assert everything(run.path) == kept


NODE = """
import json, sys, time
from pathlib import Path
from modlife.errors import Sentence
from modlife.runs import lease
from modlife.runs.store import RunWriter
lease.fcntl.flock = lambda *_: None
lease.here = lambda: lease.Place(sys.argv[1], sys.argv[1], "")
print("ready", flush=True)
for line in sys.stdin:
    path, at = json.loads(line)
    while time.time() < at:
        pass
    try:
        writer = RunWriter.reopen(Path(path))
        said = "won"
    except Sentence as error:
        said = str(error)
    print(json.dumps(said), flush=True)
    sys.stdin.readline()
    if said == "won":
        writer.close()
    print("gone", flush=True)
"""


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that each take themselves for another machine, without any lock."""
    found = [
        subprocess.Popen([sys.executable, "-c", NODE, f"node-{n}"], text=True, stdin=-1, stdout=-1) for n in range(3)
    ]
    for one in found:
        assert heard(one) == "ready"
    yield found
    for one in found:
        one.communicate()


def heard(one: subprocess.Popen[str]) -> str:
    assert one.stdout
    return one.stdout.readline().strip()


def told(one: subprocess.Popen[str], what: object) -> None:
    assert one.stdin
    one.stdin.write(json.dumps(what) + "\n")
    one.stdin.flush()


@pytest.mark.parametrize("left", ["given back", "stale", "none"])
def test_of_machines_that_race_for_a_lease_one_gets_it(path: Path, nodes: list, left: str):
    for number in range(30):
        run = path.with_name(f"run-{number}")
        shutil.copytree(path, run)
        if left == "none":
            only(run).unlink()
        else:
            ago(run, 1000) if left == "stale" else os.utime(only(run), (0, 0))
        at = time.time() + 0.01
        for one in nodes:
            told(one, [str(run), at])
        ends = [json.loads(heard(one)) for one in nodes]
        for one in nodes:
            told(one, "let go")
            assert heard(one) == "gone"
        assert ends.count("won") == 1 and all("is being written" in end for end in ends if end != "won"), ends
        assert not list(run.glob("*.tmp")) and len(leases(run)) == 1
