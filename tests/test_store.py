"""What the run store saves comes back, damage to it is noticed, and its format stays; without training."""

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from written import CONFIG, SECONDS, TASKS, alone, assert_all_are_intact, go_on, pipe, step, with_work

from modlife.errors import InputError
from modlife.experiments.agents import build
from modlife.experiments.checkpoints import FORMAT, INDEX, STATE, Checkpoints, Description, named_arrays
from modlife.experiments.config import LifeConfig
from modlife.experiments.disk import Disk, sha256
from modlife.experiments.restore import newest, tree_of
from modlife.experiments.store import RunDirectory, RunWriter
from modlife.lifelong.loop import Work


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
