"""Trackers get every point of a life once, however often and whenever they are told."""

import importlib
import importlib.util
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lives import Lived
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from terminal import command
from test_layers import SOURCE

from modlife.errors import installing
from modlife.exports.points import Point, points_of, points_of_summary
from modlife.exports.trackers import allowed

RESULTS = SOURCE.parent.parent / "results"
HOSTILE = "<img src=x onerror=alert(1)>"

Drawn = Counter[tuple[str, int, float]]


def drawn(folder: Path) -> Drawn:
    """All scalars that TensorBoard finds in a directory: name, step, value."""
    found = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    found.Reload()
    names = found.Tags()["scalars"]
    return Counter((name, one.step, round(one.value, 4)) for name in names for one in found.Scalars(name))


def synced(path: Path, out: Path, to: str = "tensorboard") -> int:
    end = command("sync", str(path), "--to", to, "--out", str(out))
    assert (end.code, end.err) == (0, ""), end.err
    return int(end.out.rpartition(": ")[2].split()[0])


def test_lines_become_points():
    stages = [["a/b"], ["a/c", "d/c"]]
    curve = {"kind": "curve", "steps": 64, "return": [0.5, None], "entropy": [1, 2], "stage": 1}
    assert list(points_of(curve, stages)) == [
        Point("curve/return/a/c", "steps", 64, 0.5),
        Point("curve/entropy/a/c", "steps", 64, 1.0),
        Point("curve/entropy/d/c", "steps", 64, 2.0),
    ]
    offline = {"kind": "offline", "epoch": 3, "tasks": 2, "td": 0.25, "stage": 0}
    assert list(points_of(offline, stages)) == [
        Point("offline/tasks/a/b", "epoch", 3, 2.0),
        Point("offline/td/a/b", "epoch", 3, 0.25),
    ]
    numbers = {"mean_return": 0.5, "return": [0.25, 0.75], "episodes": 4}
    evaluation = {"kind": "evaluation", "when": "online", "tasks": ["a/b", HOSTILE], **numbers, "stage": 1}
    assert list(points_of(evaluation, stages)) == [
        Point("evaluation/online/mean_return", "stage", 1, 0.5),
        Point("evaluation/online/return/a/b", "stage", 1, 0.25),
        Point(f"evaluation/online/return/{HOSTILE}", "stage", 1, 0.75),
    ]
    structure = {"kind": "structure", "structure": [1], "how": "fresh", "steps": 0, "nan": float("nan"), "stage": 0}
    assert list(points_of(structure, stages)) == [Point("structure/steps", "stage", 0, 0.0)]
    assert list(points_of({"kind": "curriculum", "stages": stages}, stages)) == []
    summary = {"tasks": 3, "seed": 0, "seconds": 2, "wall_seconds": {"online": 1.5}, "agent": "stl"}
    assert list(points_of_summary(summary)) == [
        Point("summary/seconds", "tasks", 3, 2.0),
        Point("summary/wall_seconds/online", "tasks", 3, 1.5),
    ]


def test_tensorboard_draws_what_a_life_told(tmp_path: Path):
    count = synced(RESULTS / "stl-four-0", tmp_path)
    points = drawn(tmp_path / "stl-four-0")
    assert points.total() == count > 500 and set(points.values()) == {1}
    records = [json.loads(line) for line in (RESULTS / "stl-four-0" / "metrics.jsonl").read_text().splitlines()]
    stages = records[0]["stages"]
    for record in records:
        if record["kind"] == "curve" and record["return"][0] is not None:
            (task,) = stages[record["stage"]]
            assert points[f"curve/return/{task}", record["steps"], record["return"][0]] == 1
    found = EventAccumulator(str(tmp_path / "stl-four-0"))
    found.Reload()
    content = found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    assert b"ppo.learning_rate" in content and b"agent" in content
    assert synced(RESULTS / "stl-four-0", tmp_path) == 0 and drawn(tmp_path / "stl-four-0") == points


def test_no_point_is_drawn_twice_however_a_life_goes_on(searched: Lived, tmp_path: Path):
    run, out = tmp_path / "life", tmp_path / "out"
    early, late = searched.amid("online"), searched.amid("offline")
    assert early != late
    searched.copy(run, min(early, late))
    counts = [synced(run, out), synced(run, out)]
    assert counts[0] > 0 and counts[1] == 0
    for number in (max(early, late), min(early, late)):  # it goes on; it is killed, and goes on from an earlier moment
        shutil.rmtree(run)
        searched.copy(run, number)
        counts.append(synced(run, out))
    assert counts[2] > 0 and counts[3] == 0
    before = (out / "life.sync.json").read_bytes()
    shutil.rmtree(run)
    shutil.copytree(searched.path, run)
    counts.append(synced(run, out))
    points = drawn(out / "life")
    assert set(points.values()) == {1} and points.total() == sum(counts)
    (out / "life.sync.json").write_bytes(before)  # killed after it had written, before it could note it
    assert synced(run, out) == counts[-1] and drawn(out / "life") == points
    once = tmp_path / "once"
    assert synced(run, once) == sum(counts) and drawn(once / "life") == points
    assert command("sync", str(run), "--to", "tensorboard", "--out", str(out), "--watch").out == ""


def test_another_life_of_the_same_name_is_refused(tmp_path: Path):
    run, out, state = tmp_path / "stl-four-0", tmp_path / "out", tmp_path / "out" / "stl-four-0.sync.json"
    synced(RESULTS / "stl-four-0", out)
    shutil.copytree(RESULTS / "stl-four-1", run)
    other = "points of another life that was called 'stl-four-0'"
    end = command("sync", str(run), "--to", "tensorboard", "--out", str(out))
    assert end.code == 2 and other in end.err
    for said, sentence in (('{"copied": {"bytes": 9, "sha256": "0"}}', other), ("[]", "does not say how far")):
        state.write_text(said)
        end = command("sync", str(RESULTS / "stl-four-0"), "--to", "tensorboard", "--out", str(out))
        assert end.code == 2 and sentence in end.err
    end = command("sync", str(run), str(RESULTS / "stl-four-0"), "--to", "tensorboard", "--out", str(out))
    assert end.code == 2 and "Several runs are called 'stl-four-0'" in end.err


def test_what_is_not_installed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert command("sync", "--to", "wandb").err == "modlife: Name one run directory at least.\n"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    end = command("sync", str(RESULTS / "stl-four-0"), "--to", "wandb", "--out", str(tmp_path / "out"))
    assert (end.code, end.err) == (
        2,
        f"modlife: This takes wandb: {installing('wandb')}.\n",
    )


def test_names_are_text():
    assert allowed(f"curve/return/{HOSTILE}") == "curve/return/_img src_x onerror_alert_1__"
    assert allowed("a//b/../c\x1b[0m") == "a/_b/._/c__0m"


def installed(package: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is large, and not installed for development")


@installed("mlflow")
@pytest.mark.filterwarnings("default")
def test_mlflow_has_every_point_once(searched: Lived, tmp_path: Path):
    run, out = tmp_path / "life", tmp_path / "out"
    searched.copy(run, searched.amid("offline"))
    count = synced(run, out, "mlflow")
    shutil.rmtree(run)
    shutil.copytree(searched.path, run)
    before = (out / "life.sync.json").read_bytes()
    more = synced(run, out, "mlflow")
    (out / "life.sync.json").write_bytes(before)
    assert synced(run, out, "mlflow") == more  # told twice
    client: Any = importlib.import_module("mlflow").MlflowClient(f"sqlite:///{out / 'mlflow.db'}")
    (found,) = client.search_runs([client.get_experiment_by_name("modlife").experiment_id])
    rows = [row for name in found.data.metrics for row in client.get_metric_history(found.info.run_id, name)]
    assert len(rows) == len({(row.key, row.step, row.value) for row in rows}) == count + more
    assert found.data.params["agent"] == "comp-search" and found.info.run_name == "life"


def logged(data: bytes) -> Iterator[bytes]:
    """The records of W&B's file: LevelDB's log, in blocks of 32,768 bytes, after a header of seven."""
    place, record = 7, b""
    while place + 7 <= len(data):
        if 32768 - place % 32768 < 7:
            place += 32768 - place % 32768
            continue
        length, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        record += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last piece
            yield record
            record = b""


@installed("wandb")
@pytest.mark.filterwarnings("default")
def test_wandb_has_every_line_as_a_step(searched: Lived, tmp_path: Path):
    run, out = tmp_path / "life", tmp_path / "out"
    searched.copy(run, searched.amid("offline"))
    counts = [synced(run, out, "wandb")]
    shutil.rmtree(run)
    shutil.copytree(searched.path, run)
    counts += [synced(run, out, "wandb"), synced(run, out, "wandb")]
    records: Any = importlib.import_module("wandb.proto.wandb_internal_pb2")
    rows, ids = [], set()
    for path in sorted((out / "wandb").glob("offline-run-*/run-*.wandb")):
        for scanned in logged(path.read_bytes()):
            record = records.Record()
            record.ParseFromString(scanned)
            ids |= {record.run.run_id} if record.run.run_id else set()
            rows += [record.history] if record.history.item else []
    steps = [row.step.num for row in rows]
    assert steps == sorted(set(steps)) and len(ids) == 1 and counts[2] == 0
    names = [item.key or "/".join(item.nested_key) for row in rows for item in row.item]
    points = [name for name in names if "/" in name]
    assert len(points) == counts[0] + counts[1]
