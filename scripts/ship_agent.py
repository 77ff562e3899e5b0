"""Makes the agent that comes with the package from the run directory of a life.

    python scripts/ship_agent.py runs/a --tasks 48 --out src/modlife/data/agent

The life is cut after so many tasks, as if it had been planned for no more: orders of tasks are nested, and what a life
does in a stage does not depend on how many come after it. Replay is left out, and most points of learning curves. The
tasks met are evaluated once more, as at the end of every life. The manifest is that of the life, and says what was cut.
"""

import argparse
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from modlife.metrics import summarise
from modlife.runs.checkpoints import FORMAT, INDEX, STATE, Index, Saved
from modlife.runs.clock import rounded
from modlife.runs.codec import to_json
from modlife.runs.config import LifeConfig, life_json
from modlife.runs.life import final_evaluations
from modlife.runs.restore import acting_state
from modlife.runs.sealed import File, as_bytes, sealed
from modlife.runs.store import HISTORY, MANIFEST, METRICS, SUMMARY, RunDirectory
from modlife.runtime import start_jax

KEPT = 4
"""Of so many points of a learning curve one is kept, besides the last of each stage."""


def checkpoint_after(run: RunDirectory, tasks: int) -> Saved:
    """The checkpoint at the end of the stage in which so many tasks had been met."""
    for number in run.checkpoints.numbers():
        saved = run.checkpoints.read(run.checkpoints.path(number))
        facts = saved.index.description
        if facts.ended and len(facts.facts.met) == tasks:
            return saved
    raise SystemExit(f"'{run.path}' has no checkpoint after {tasks} tasks.")


def trimmed(lines: list[dict[str, Any]], tasks: int) -> list[dict[str, Any]]:
    """The records of the first tasks: the plan of no more, and fewer points of learning curves."""
    kept, points = [], 0
    for record, after in zip(lines, [*lines[1:], {}], strict=True):
        if record["kind"] == "curriculum":
            record = {**record, "stages": record["stages"][:tasks]}
        points = points + 1 if record["kind"] == "curve" else 0
        if record["kind"] != "curve" or points % KEPT == 1 or after.get("kind") != "curve":
            kept.append(record)
    return kept


def summary_of(config: LifeConfig, saved: Saved, records: list[dict[str, Any]]) -> dict[str, Any]:
    """What the life had come to, as at its end; unseen tasks are left to whoever asks."""
    facts, (agent, state) = saved.index.description, acting_state(config, saved)
    _, key = jax.random.split(jax.random.key(config.seed))
    final = final_evaluations(agent, state, episodes=config.episodes, key=key)
    seconds = sum(facts.wall_seconds.values())
    return {
        "agent": config.agent,
        "domain": config.domain.name,
        "seed": config.seed,
        "tasks": len(state.met),
        "steps_per_task": config.steps,
        "seconds": round(seconds, 1),
        "steps_per_second": round(len(state.met) * config.steps / seconds),
        "wall_seconds": rounded(facts.wall_seconds, 1),
        "cpu_seconds": rounded(facts.cpu_seconds, 1),
        "peak_megabytes": round(facts.peak_megabytes),
        **summarise(records),
        **{name: value for name, value in final.items() if name != "unseen"},
    }


def manifest_of(run: RunDirectory, config: LifeConfig, saved: Saved) -> dict[str, Any]:
    """The manifest of the life, with what was cut; the place where it was lived is nobody's business."""
    before, place = run.manifest(), str(run.path.resolve())
    command = [Path(word).name if Path(word).is_absolute() else word for word in before["command"]]
    cut = {
        "from": {"tasks": len(run.config().chosen), "metrics": to_json(saved.index.description.metrics)},
        "left_out": ["replay", f"of every {KEPT} points of a learning curve {KEPT - 1}"],
    }
    found = {**before, "config": life_json(config), "command": command, "cut": cut}
    assert place not in json.dumps(found)
    return found


def ship(run: RunDirectory, out: Path, *, tasks: int) -> None:
    """Writes the run directory of the agent."""
    saved, whole = checkpoint_after(run, tasks), run.config()
    config = replace(whole, tasks=tasks)
    facts = saved.index.description
    data = (run.path / METRICS).read_bytes()[: facts.metrics.bytes]
    records = trimmed([json.loads(line) for line in data.splitlines()], tasks)
    metrics = b"".join(map(as_bytes, records))
    history = (run.path / HISTORY).read_bytes()[: facts.history.bytes]
    known = replace(facts, planned=tasks, metrics=File.of(metrics), history=File.of(history))
    index = Index(FORMAT, known, saved.index.state, ())
    cut = replace(saved, index=index)
    summary = summary_of(config, cut, records)
    files = {"metrics": to_json(known.metrics), "history": to_json(known.history)}
    shutil.rmtree(out, ignore_errors=True)
    folder = out / "checkpoints" / "00000000"
    folder.mkdir(parents=True)
    (out / MANIFEST).write_bytes(sealed(manifest_of(run, config, saved)))
    (out / METRICS).write_bytes(metrics)
    (out / HISTORY).write_bytes(history)
    (out / SUMMARY).write_bytes(sealed({**summary, "files": files}))
    (folder / INDEX).write_bytes(sealed(to_json(index)))
    shutil.copyfile(saved.folder / STATE, folder / STATE)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--tasks", type=int, default=48)
    parser.add_argument("--out", type=Path, default=Path("src/modlife/data/agent"))
    options = parser.parse_args()
    start_jax()
    ship(RunDirectory.open(options.run), options.out, tasks=options.tasks)
    size = sum(path.stat().st_size for path in options.out.rglob("*") if path.is_file())
    print(f"{options.out}: {options.tasks} tasks, {size:,} bytes")


if __name__ == "__main__":
    main()
