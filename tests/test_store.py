"""What the run store saves comes back, damage to it is noticed, and its format stays."""

import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lives import Lived, assert_all_are_intact, found_in, go_on, pipe
from terminal import lenient

from modlife.errors import InputError
from modlife.learners.replay import Replay, Shelved
from modlife.runs import checkpoints as saving
from modlife.runs.checkpoints import FORMAT, INDEX, STATE, Checkpoints, Description, named_arrays
from modlife.runs.durable import Disk, sha256
from modlife.runs.life import run_life
from modlife.runs.restore import tree_of
from modlife.runs.sealed import File, sealed, unsealed
from modlife.runs.store import RunDirectory, RunWriter
from modlife.types import Facts


@pytest.fixture
def run(searched: Lived, tmp_path: Path) -> RunDirectory:
    """A copy that a test may damage: the newest checkpoint is in the offline phase, the other at the end of a stage."""
    return searched.copy(tmp_path / "run", searched.amid("offline"))


def test_what_every_agent_saves_comes_back(life: Lived, tmp_path: Path):
    """A checkpoint of each phase, read and written again, has the same bytes."""
    assert {"", "online"} <= life.phases()
    for phase in life.phases():
        number = life.amid(phase)
        run = life.copy(tmp_path / f"at-{phase}", number)
        old, state = run.checkpoints.read(run.checkpoints.path(number)), found_in(run, life.config).moment.state
        assert state.facts == old.index.description.facts and state.facts.phase == phase
        again = Checkpoints(tmp_path / f"{phase}-again", Disk())
        again.folder.parent.mkdir()
        saved = again.save(tree_of(state), state.memory, old.index.description)
        one, other = (path / STATE for path in (run.checkpoints.path(number), again.path(saved)))
        assert one.read_bytes() == other.read_bytes()
        assert again.read(again.path(saved)).index.replay == old.index.replay


def test_a_state_is_all_arrays_that_a_checkpoint_names(searched: Lived, tmp_path: Path):
    state = searched.state(searched.amid("online"), tmp_path / "run")
    names = named_arrays(tree_of(state))
    assert any(name.startswith("['params'].factors[0]") for name in names)
    assert {"['work'].learner.updates", "['work'].kept.rows"} <= set(names)


# Damage


def last(run: RunDirectory) -> Path:
    """The newest checkpoint."""
    return run.checkpoints.path(run.checkpoints.numbers()[-1])


def verify(run: RunDirectory) -> None:
    """Every byte that the newest checkpoint needs."""
    run.checkpoints.memory(run.checkpoints.verify(last(run))[0])


def parts(run: RunDirectory) -> dict[str, Path]:
    """The files that the newest checkpoint needs; the one before it needs all replay but the newest."""
    folder = last(run)
    files = run.checkpoints.verify(folder)[0].replay
    old, new = (run.checkpoints.replay_path(file) for file in (files[0], files[-1]))
    return {"index": folder / INDEX, "state": folder / STATE, "old replay": old, "new replay": new}


def swap(run: RunDirectory, path: Path) -> None:
    """With the same file of another checkpoint."""
    files = parts(run)
    other = {
        files["index"]: run.checkpoints.path(run.checkpoints.numbers()[0]) / INDEX,
        files["state"]: run.checkpoints.path(run.checkpoints.numbers()[0]) / STATE,
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
def test_damage_is_named_and_the_checkpoint_before_it_is_used(
    run: RunDirectory, searched: Lived, part: str, damage: str
):
    path = parts(run)[part]
    DAMAGE[damage](run, path)
    if (part, damage) == ("index", "swapped"):  # each is whole, but says something about other bytes
        path = path.with_name(STATE)
    with pytest.raises(InputError) as caught:
        verify(run)
    first = re.findall(r"'(.*?)'", str(caught.value))[0]
    if damage == "swapped" and "replay" in part:  # both are damaged; the older one is read first
        assert Path(first).parent == path.parent
    else:
        assert first == str(path)
    if part == "old replay" or damage == "swapped":  # number 2 has lost what it needs too
        with pytest.raises(InputError, match="has no checkpoint that can be used") as caught:
            found_in(run, searched.config)
        assert first in str(caught.value)
    else:
        found = found_in(run, searched.config)
        assert found.moment.state.work is None and not found.moment.state.facts.phase
        assert [first in complaint for complaint in found.complaints] == [True]


def test_damage_to_any_file_of_any_agent_is_named(life: Lived, tmp_path: Path):
    """In its fullest phase: what is in its files, and how many there are, follows from the agent."""
    run = life.copy(tmp_path / "run", life.amid("offline" if "offline" in life.phases() else "online"))
    replay = run.checkpoints.verify(last(run))[0].replay
    for path in (last(run) / INDEX, last(run) / STATE, *map(run.checkpoints.replay_path, replay)):
        data = path.read_bytes()
        for name in DAMAGE.keys() - {"swapped"}:
            DAMAGE[name](run, path)
            with pytest.raises(InputError, match=re.escape(f"'{path}'")):
                verify(run)
            if path.is_dir():
                path.rmdir()
            path.unlink(missing_ok=True)
            path.write_bytes(data)
    assert not found_in(run, life.config).complaints


def test_every_flipped_bit_and_every_cut_is_noticed(run: RunDirectory):
    rng = random.Random(0)
    for path in parts(run).values():
        data = path.read_bytes()
        bits = [0, len(data) * 8 - 1, *(rng.randrange(len(data) * 8) for _ in range(150))]
        cuts = [0, len(data) - 1, *(rng.randrange(len(data)) for _ in range(20))]
        for harmed in [*(flipped(data, bit) for bit in bits), *(data[:cut] for cut in cuts)]:
            path.write_bytes(harmed)
            with pytest.raises(InputError) as caught:
                verify(run)
            assert str(path) in str(caught.value)
        path.write_bytes(data)
        verify(run)


def test_a_damaged_replay_is_written_again_when_it_is_at_hand(run: RunDirectory, searched: Lived):
    memory = found_in(run, searched.config).moment.state.memory
    path = parts(run)["old replay"]
    path.write_bytes(flipped(path.read_bytes(), 99))
    Checkpoints(run.path, Disk()).keep(memory[0])
    verify(run)


def test_acting_needs_no_replay_and_resuming_does(run: RunDirectory, searched: Lived):
    from modlife.runs.load import Run

    shutil.rmtree(run.checkpoints.replay)
    loaded = Run.load(run.path)
    assert len(loaded.tasks) == len(loaded.structures) >= 1 and not loaded.complaints
    with pytest.raises(InputError, match="has no checkpoint that can be used"):
        found_in(run, searched.config)


# Metrics


@pytest.mark.parametrize(
    "harm", [lambda data: data[:-1], lambda data: b"", lambda data: flipped(data, 8 * len(data) - 77)]
)
def test_metrics_that_lost_something_are_refused(run: RunDirectory, searched: Lived, harm: Callable[[bytes], bytes]):
    path = run.path / "metrics.jsonl"
    size = run.checkpoints.verify(last(run))[0].description.metrics.bytes
    harmed = harm(path.read_bytes()[:size])
    path.write_bytes(harmed)
    with pytest.raises(InputError, match=f"'{path}' is damaged: its first {size} bytes are not those"):
        run.metrics()
    if len(harmed) < size // 2:
        with pytest.raises(InputError, match=f"no checkpoint that can be used. '{path}' is damaged"):
            go_on(run.path, searched.config)
        assert path.read_bytes() == harmed
    else:  # the checkpoint before it needs less
        before = run.checkpoints.verify(run.checkpoints.path(run.checkpoints.numbers()[0]))[0].description.metrics
        go_on(run.path, searched.config).close()
        assert before.bytes < size and path.read_bytes() == harmed[: before.bytes]


@pytest.mark.parametrize("unsaved", [b"", b'{"kind": "step"}\n', b'{"kind": "step"}\n{"kin', b"{", b"\0\0\0\n"])
def test_metrics_are_cut_back_to_what_was_saved(run: RunDirectory, searched: Lived, unsaved: bytes):
    path = run.path / "metrics.jsonl"
    size = run.checkpoints.verify(last(run))[0].description.metrics.bytes
    saved = path.read_bytes()[:size]
    path.write_bytes(saved + unsaved)
    writer = go_on(run.path, searched.config)
    assert path.read_bytes() == saved
    writer.append({"kind": "next"})
    known, history = writer.sync()
    assert path.read_bytes() == saved + b'{"kind": "next"}\n'
    assert known == File.of(path.read_bytes()) and history == File.of((run.path / "history.jsonl").read_bytes())
    writer.close()


def test_a_torn_last_line_is_not_read(run: RunDirectory):
    before = list(run.metrics())
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "st')
    assert list(run.metrics()) == before
    assert len(before) > 3


# Pruning


def plain(number: int, *, ended: bool) -> Description:
    return Description(number, ended, 1, Facts(), File.of(b""), File.of(b""), {"online": 1.0}, {"online": 2.0}, 1.0)


def replay_of(rows: np.ndarray) -> Replay:
    return Replay(rows, len(rows) - 1)


def test_the_last_two_checkpoints_and_those_at_the_end_of_a_stage_remain(tmp_path: Path):
    rows, written = np.arange(24, dtype=np.uint32).reshape(2, 3, 4), {}
    for number in range(20):
        checkpoints = Checkpoints(tmp_path, Disk())  # one process each
        memory = tuple(replay_of(rows + np.uint32(n)) for n in range(number // 5))
        facts, tree = plain(number, ended=number % 5 == 0), {"params": np.full(3, number)}
        saved = [checkpoints.save(tree, memory, facts) for _ in range(2)]
        ends = [n for n in range(2 * number + 2) if n // 2 % 5 == 0]
        assert checkpoints.numbers() == sorted({*ends, *saved})
        files = {path.name: (path.stat().st_mtime_ns, path.stat().st_ino) for path in checkpoints.replay.iterdir()}
        assert len(files) == number // 5
        assert written.items() <= files.items()
        written = files
    assert_all_are_intact(RunDirectory(tmp_path))


def test_of_a_long_life_fewer_and_fewer_stages_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(saving, "STAGES", 4)
    checkpoints = Checkpoints(tmp_path, Disk())
    for stage in range(1, 41):
        checkpoints.save({"params": np.zeros(3)}, (), plain(stage, ended=True))
        every = 1 if stage < 4 else 2 if stage < 8 else 4 if stage < 16 else 8 if stage < 32 else 16
        kept = {n for n in range(1, stage + 1) if n % every == 0 or n > stage - 2}
        assert {checkpoints.look(number).stage for number in checkpoints.numbers()} == kept


# Replay that is too much for memory


def test_old_replay_is_read_from_its_file_when_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    rows, said = np.arange(240, dtype=np.uint32).reshape(10, 6, 4), np.ones((9, 6, 2), np.float16)
    memory = tuple(Replay(rows + np.uint32(n), 9, said, np.full(3, n, np.float32)) for n in range(5))
    monkeypatch.setattr(saving, "IN_MEMORY", 2 * memory[0].size)
    checkpoints = Checkpoints(tmp_path, Disk())
    kept = checkpoints.put_away(memory)
    assert [type(one) for one in kept] == [Shelved] * 3 + [Replay] * 2
    assert all(one is other for one, other in zip(checkpoints.put_away(kept), kept, strict=True))
    for one, other in zip(kept, memory, strict=True):
        assert one.times == other.times
        for name in ("rows", "taught", "measured"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert all(map(np.array_equal, one.some(7), other.some(7)))
    files = {path: path.stat().st_mtime_ns for path in checkpoints.replay.iterdir()}
    index = checkpoints.read(checkpoints.path(checkpoints.save({}, kept, plain(0, ended=True)))).index
    assert {path: path.stat().st_mtime_ns for path in files} == files
    again = Checkpoints(tmp_path, Disk()).memory(index)
    assert [type(one) for one in again] == [Shelved] * 3 + [Replay] * 2
    next(iter(files)).write_bytes(b"damage")
    with pytest.raises(InputError, match=r"bytes instead of"):
        [one.rows for one in again]


@pytest.mark.parametrize(
    ("name", "phase"),
    [("comp-search", "offline"), ("bounded", "offline"), ("reset-distill", "offline"), ("clear", "online")],
)
def test_a_life_whose_replay_lies_in_files_is_the_same_life(
    lives: Callable[[str], Lived], name: str, phase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(saving, "IN_MEMORY", 1)
    life = lives(name)
    run = life.copy(tmp_path / "run", max(n for n, facts in life.described().items() if facts.facts.phase == phase))
    *old, new = found_in(run, life.config).moment.state.memory
    assert len(old) >= 1 and {type(one) for one in old} == {Shelved} and type(new) is Replay
    with lenient():
        run_life(None, run.path)
    assert (run.path / "metrics.jsonl").read_bytes() == (life.path / "metrics.jsonl").read_bytes()
    ends = [max(one.checkpoints.numbers()) for one in (run, life.run)]
    one, other = (each.checkpoints.path(end) / STATE for each, end in zip((run, life.run), ends, strict=True))
    assert one.read_bytes() == other.read_bytes()


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
    outer = json.loads((last(run) / INDEX).read_text())
    assert list(outer) == ["format", "description", "state", "replay", "sha256"]
    file, seconds = {"bytes": "int", "sha256": "str"}, dict.fromkeys(("structure", "online", "offline", "evaluation"))
    assert (FORMAT, shape(outer)) == (
        4,
        {
            "format": "int",
            "description": {
                "stage": "int",
                "ended": "bool",
                "planned": "int",
                "facts": {
                    "met": ["str"],
                    "structures": [["int"]],
                    "spent": "int",
                    "phase": "str",
                    "done": "int",
                },
                "metrics": file,
                "history": file,
                "wall_seconds": dict.fromkeys(seconds, "float"),
                "cpu_seconds": dict.fromkeys(seconds, "float"),
                "peak_megabytes": "float",
            },
            "state": file,
            "replay": ["str"],
            "sha256": "str",
        },
    )
    assert sorted(path.name for path in last(run).iterdir()) == [INDEX, STATE]


def test_the_bytes_of_a_checkpoint_are_those_of_its_format(tmp_path: Path):
    """A checkpoint as format 4 writes it, to the last byte."""
    tree, rows = {"params": np.arange(3, dtype=np.float32), "work": None}, np.arange(24, dtype=np.uint32)
    checkpoints = Checkpoints(tmp_path, Disk())
    folder = checkpoints.path(checkpoints.save(tree, (replay_of(rows.reshape(2, 3, 4)),), plain(0, ended=True)))
    index, state = checkpoints.verify(folder)
    header = b'{"[\'params\']":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}}'
    assert state == len(header).to_bytes(8, "little") + header + np.arange(3, dtype="<f4").tobytes()
    assert [(file.bytes, file.sha256[:12]) for file in index.replay] == [(232, "50fb3ef660c9")]
    assert sha256((folder / INDEX).read_bytes())[:12] == "e85c7b2bafeb"


def test_checkpoints_of_the_format_before_are_read(run: RunDirectory, searched: Lived):
    """Tasks and replay were tables of fields, and JSON was indented."""
    now = found_in(run, searched.config)
    for number in run.checkpoints.numbers():
        path = run.checkpoints.path(number) / INDEX
        body = unsealed(path)
        facts, replay = body["description"]["facts"], [one.split(":") for one in body["replay"]]
        facts["met"] = [{"components": name.split("/")} for name in facts["met"]]
        body["replay"] = [{"bytes": int(size), "sha256": checksum} for size, checksum in replay]
        path.write_bytes(sealed({**body, "format": 3}))
    again = found_in(run, searched.config)
    assert again.description == now.description and again.moment.state.facts.met
    for one, two in zip(again.moment.state.memory, now.moment.state.memory, strict=True):
        assert np.array_equal(one.rows, two.rows)


def test_checkpoints_of_the_old_format_are_refused_with_a_way_out(run: RunDirectory, searched: Lived):
    for number in run.checkpoints.numbers():
        path = run.checkpoints.path(number) / INDEX
        path.write_bytes(sealed({**unsealed(path), "format": 1}))
    with pytest.raises(InputError, match=r"has format 1; this version reads 3 and 4\. .* use the version that its"):
        found_in(run, searched.config)


def test_the_lock_is_let_go_whatever_happens(run: RunDirectory, searched: Lived):
    """Within one process: an error while a life is opened, or lived, leaves nothing held."""
    (run.path / "metrics.jsonl").write_bytes(b"")
    for _ in range(2):
        with pytest.raises(InputError, match="is damaged"):
            go_on(run.path, searched.config)
    with pytest.raises(ZeroDivisionError), RunWriter.reopen(run.path):
        raise ZeroDivisionError
    RunWriter.reopen(run.path).close()
