"""Where metrics can be copied to, each without a network: TensorBoard's event files, W&B's offline runs, MLflow's base.

Times of lines are not known, and differ in no two lives that are the same: all points have the time of the start.
"""

import hashlib
import importlib
import os
import re
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from modlife.exports.packages import need
from modlife.exports.sync import Life, Segment, Write

PROJECT = "modlife"
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "WANDB_ERROR_REPORTING": "false",
}
"""What packages are told before they are loaded: to send nothing, and to say little."""


def moment_of(life: Life) -> datetime:
    """When a life began."""
    try:
        return datetime.fromisoformat(life.started).astimezone(UTC)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)


def key_of(life: Life) -> str:
    """A name for a life that is the same whenever it is asked for."""
    return hashlib.sha256(f"{life.name} {life.started}".encode()).hexdigest()[:12]


def to_tensorboard(out: Path, segment: Segment) -> None:
    """An event file for the segment, in the run's directory; it appears whole, and under the same name if repeated."""
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb
    from tensorboard.summary.writer.record_writer import RecordWriter

    kinds: Any = (event_pb2, summary_pb2)  # whose classes are made when they are loaded
    Event, Summary = kinds[0].Event, kinds[1].Summary
    when = moment_of(segment.life).timestamp()
    events = [Event(wall_time=when, file_version="brain.Event:2")]
    if segment.number == 0:
        began = hparams_pb(segment.life.config, trial_id=key_of(segment.life), start_time_secs=when)
        events.append(Event(wall_time=when, summary=began))
    for point in (point for line in segment.lines for point in line):
        value = Summary.Value(tag=point.name, simple_value=point.value)
        events.append(Event(wall_time=when, step=point.place, summary=Summary(value=[value])))
    folder = out / segment.life.name
    folder.mkdir(exist_ok=True)
    aside = folder / "aside.tmp"
    with aside.open("wb") as file:
        writer = RecordWriter(file)
        for event in events:
            writer.write(event.SerializeToString())
    aside.replace(folder / f"events.out.tfevents.{segment.number:010d}.modlife")


def to_wandb(out: Path, segment: Segment) -> None:
    """An offline run with the id of the life; a line is a step, so `wandb sync --append` has none twice."""
    wandb: Any = importlib.import_module("wandb")
    quiet = wandb.Settings(
        console="off", silent=True, x_disable_stats=True, x_disable_meta=True, disable_git=True, disable_code=True
    )
    life, key = segment.life, key_of(segment.life)
    with tempfile.TemporaryDirectory(dir=out, prefix=".") as aside:
        run = wandb.init(
            mode="offline",
            dir=aside,
            project=PROJECT,
            id=key,
            name=life.name,
            config=life.config,
            resume="allow",
            settings=quiet,
        )
        for axis in sorted({point.axis for line in segment.lines for point in line}):
            run.define_metric(axis, hidden=True)
        for name, axis in sorted({(point.name, point.axis) for line in segment.lines for point in line}):
            run.define_metric(name, step_metric=axis)
        for number, line in enumerate(segment.lines, start=segment.first):
            if line:
                run.log({**{point.axis: point.place for point in line}, **{p.name: p.value for p in line}}, step=number)
        run.finish()
        made = next((Path(aside) / "wandb").glob("offline-run-*"))
        place = out / "wandb" / f"offline-run-{moment_of(life):%Y%m%d_%H%M%S}-{key}-{segment.number:04d}"
        place.parent.mkdir(exist_ok=True)
        if place.exists():
            shutil.rmtree(place)
        made.rename(place)


def to_mlflow(out: Path, segment: Segment) -> None:
    """Rows in `mlflow.db`; rows that are there already stay as they are."""
    client: Any = importlib.import_module("mlflow").MlflowClient(f"sqlite:///{(out / 'mlflow.db').resolve()}")
    entities: Any = importlib.import_module("mlflow.entities")
    life, key, when = segment.life, key_of(segment.life), int(moment_of(segment.life).timestamp() * 1000)
    found = client.get_experiment_by_name(PROJECT)
    experiment = found.experiment_id if found else client.create_experiment(PROJECT)
    runs = client.search_runs([experiment], f"tags.modlife = '{key}'")
    run = runs[0] if runs else client.create_run(experiment, when, {"modlife": key}, life.name)
    config = {} if segment.number else life.config  # a life may grow later; MLflow lets nothing change
    params = [entities.Param(allowed(name), str(value)[:500]) for name, value in config.items()]
    points = [point for line in segment.lines for point in line]
    metrics = [entities.Metric(allowed(point.name), point.value, when, point.place) for point in points]
    for rows, size, what in ((params, 100, "params"), (metrics, 1000, "metrics")):
        for begin in range(0, len(rows), size):
            client.log_batch(run.info.run_id, **{what: rows[begin : begin + size]})
    client.set_terminated(run.info.run_id, end_time=when)


def allowed(name: str) -> str:
    """A name in the letters that MLflow allows."""
    return re.sub(r"[^\w\-. :/]|(?<=\.)\.|(?<=/)/", "_", name)


TRACKERS: dict[str, tuple[tuple[str, ...], Write]] = {
    "tensorboard": (("tensorboard",), to_tensorboard),
    "wandb": (("wandb",), to_wandb),
    "mlflow": (("mlflow", "sqlalchemy", "alembic"), to_mlflow),
}
"""By name: the packages that it takes, and how to write."""


def tracker(name: str) -> Write:
    """How to write to a tracker, if it is installed."""
    packages, write = TRACKERS[name]
    need(name, *packages)
    for variable, value in QUIET.items():
        os.environ.setdefault(variable, value)
    return write
