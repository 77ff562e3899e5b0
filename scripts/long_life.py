"""What a long life costs as tasks accumulate, from the checkpoints of its run directory, in a small file; and a table.

    python scripts/long_life.py runs/world-768-0 --into docs/long-life.json

Checkpoints at the ends of stages tell processor time by phase and the most memory so far; a table says what stages took
between two of them, about every hundred tasks; a second one by how much a straight line through the last 500 rises over
them, as a share of the mean.
"""

import argparse
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from modlife.metrics import evaluations
from modlife.runs.store import RunDirectory

PHASES = ("structure", "online", "offline", "evaluation")
APART = 96
"""Tasks between two lines of the table, about."""
LATE = 500
"""Tasks at the end of a life, in which nothing should grow any more."""
CALLED = {"stage": "a whole stage", "megabytes": "most memory", "bytes": "checkpoint"}


def costs(run: RunDirectory) -> list[dict[str, Any]]:
    """What every kept checkpoint at the end of a stage tells, and how large it is."""
    found = []
    for number in run.checkpoints.numbers():
        path = run.checkpoints.path(number)
        known = run.checkpoints.verify(path)[0].description
        if known.ended:
            size = sum(file.stat().st_size for file in path.iterdir())
            seconds = {name: round(known.cpu_seconds.get(name, 0.0), 1) for name in PHASES}
            found.append({"stage": known.stage, **seconds, "megabytes": known.peak_megabytes, "bytes": size})
    return found


def table(rows: list[dict[str, Any]], records: list[dict[str, Any]]) -> str:
    """Means over the stages between two checkpoints."""
    heads = ["tasks", *(f"{name}, s" for name in PHASES), "most memory, MB", "checkpoint, MB", "zero-shot", "its stage"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    before = {one["stage"]: one["mean_return"] for one in evaluations(records, "zero-shot")}
    after = {one["stage"]: one["return"][-1] for one in evaluations(records, "seen")}
    chosen = [{"stage": 0, **dict.fromkeys(PHASES, 0.0)}, *rows[:: max(1, APART * len(rows) // rows[-1]["stage"])][1:]]
    chosen += [rows[-1]] if chosen[-1] != rows[-1] else []
    for one, two in pairwise(chosen):
        stages = range(one["stage"], two["stage"])
        took = [f"{(two[name] - one[name]) / len(stages):.1f}" for name in PHASES]
        means = [f"{np.mean([told[stage] for stage in stages]):.3f}" for told in (before, after)]
        sizes = [f"{two['megabytes']:.0f}", f"{two['bytes'] / 1e6:.1f}"]
        cells = [f"{one['stage']} to {two['stage']}", *took, *sizes, *means]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def growth(rows: list[dict[str, Any]]) -> str:
    """By how much a fitted line rises over the last tasks, as a share of the mean: times, memory, checkpoints."""
    late = [row for row in rows if row["stage"] >= rows[-1]["stage"] - LATE]
    stages = np.array([row["stage"] for row in late])
    took = {name: np.diff([row[name] for row in late]) / np.diff(stages) for name in PHASES}
    found = {**took, "stage": np.sum(list(took.values()), axis=0)}
    found |= {name: np.array([row[name] for row in late])[1:] for name in ("megabytes", "bytes")}
    rises = {name: np.polyfit(stages[1:], values, 1)[0] * LATE / values.mean() for name, values in found.items()}
    lines = [f"| over the last {LATE} tasks | a fitted line rises, of the mean |", "|---|---|"]
    return "\n".join([*lines, *(f"| {CALLED.get(name, name)} | {100 * rise:+.1f} % |" for name, rise in rises.items())])


def tables(rows: list[dict[str, Any]], records: list[dict[str, Any]]) -> str:
    """Both."""
    return f"{table(rows, records)}\n\n{growth(rows)}\n"


def main() -> None:
    """Reads, writes, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--into", type=Path, required=True)
    options = parser.parse_args()
    run = RunDirectory.open(options.run)
    rows = costs(run)
    options.into.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    print(tables(rows, list(run.metrics())))


if __name__ == "__main__":
    main()
