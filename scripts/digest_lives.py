"""What finished lives came to, in a small file beside the page that shows them; and a table of it.

    python scripts/digest_lives.py RUN ... --into docs/offline-32.json

Lives of the same name are replaced, others in the file stay. A loss is how far a task's return at the end lies below
its return after its own offline phase; it counts where it is more than .05 beyond twice its standard error.
"""

import argparse
import json
import math
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import numpy as np

from modlife.analysis.lives import FinishedLife, read_life
from modlife.metrics import evaluations, retention
from modlife.runs.store import RunDirectory

TOLERATED = 0.05
COLUMNS = ("zero-shot", "online", "offline")


def digest(path: Path) -> dict[str, Any]:
    """One life."""
    life, manifest = read_life(path), RunDirectory.open(path).manifest()
    summary = life.summary
    repairs = [record for record in life.records if record["kind"] == "retention"]
    return {
        "life": path.name,
        "commit": manifest["git"]["commit"],
        "machine": manifest["machine"],
        "config": manifest["config"],
        "versions": manifest["versions"],
        **{name: summary[name] for name in ("cpu_seconds", "wall_seconds", "peak_megabytes")},
        "sample_passes": sample_passes(life),
        "by_phase": {name: part["mean_return"] for name, part in life.by_phase.items()},
        "end": summary["seen"]["mean_return"],
        "retention": retention(life.records),
        "repair_rounds": sum(record.get("round") is not None for record in repairs),
        "still_harmed": [
            [one["task"], record["stage"]]
            for record in repairs
            if record.get("round") is None
            for one in record["harmed"]
        ],
        "tasks": tasks_of(life),
    }


def sample_passes(life: FinishedLife) -> int:
    """Samples that went through the network and back offline: each epoch has all rows of its tasks. Without repair."""
    offline = life.config.settings.offline
    at_once = getattr(offline, "tasks", None) or math.inf
    rows = min(life.config.settings.replay_size, life.config.steps)
    steps = -(-rows // offline.batch)
    return sum(
        steps * offline.batch * int(min(record["tasks"], at_once))
        for record in life.records
        if record["kind"] == "offline"
    )


def tasks_of(life: FinishedLife) -> dict[str, Any]:
    """Return and standard error of each task after its own stage and at the end."""
    after = {}
    for record in evaluations(life.records, "seen"):
        error = record["standard_error"]
        for task, mean, more in zip(record["tasks"], record["return"], error, strict=True):
            after.setdefault(task, [mean, more])
    seen = life.summary["seen"]
    ends = zip(seen["tasks"], seen["return"], seen["standard_error"], strict=True)
    return {task: {"after_own_stage": after[task], "at_the_end": [mean, error]} for task, mean, error in ends}


def losses(life: dict[str, Any]) -> dict[str, float]:
    """Tasks that lost more than is tolerated, beyond twice the error of the difference."""
    found = {}
    for task, one in life["tasks"].items():
        (before, error), (now, more) = one["after_own_stage"], one["at_the_end"]
        if now - before < -TOLERATED - 2 * math.hypot(error, more):
            found[task] = round(now - before, 3)
    return found


def short(value: float, sign: str = "", *, digits: int = 3) -> str:
    """A number without a zero before its point, halves away from zero; nothing where it is not known."""
    if math.isnan(value):
        return ""
    exact = Decimal(f"{value:.6f}").quantize(Decimal(10) ** -digits, ROUND_HALF_UP) + 0  # no -0
    return f"{exact:{sign}}".replace("0.", ".", 1) if abs(exact) < 1 else f"{exact:{sign}}"


def row(life: dict[str, Any]) -> str:
    """A line of the table."""
    phases = " | ".join(short(life["by_phase"][name]) for name in COLUMNS)
    changes = [one["at_the_end"][0] - one["after_own_stage"][0] for one in life["tasks"].values()]
    passes = f"{life['sample_passes'] / 1e6:.0f} M" if "sample_passes" in life else "not counted"
    lost = ", ".join(f"{task} {short(change, '+', digits=2)}" for task, change in losses(life).items()) or "none"
    seconds, memory = life["cpu_seconds"], life["peak_megabytes"] / 1000
    return (
        f"| {life['life']} | {phases} | {short(life['end'])} | {short(min(changes), '+', digits=2)} | {lost} | "
        f"{seconds['offline']:.0f} s of {sum(seconds.values()):.0f} | {passes} | {memory:.1f} GB |"
    )


def table(lives: list[dict[str, Any]]) -> str:
    """All lives, for a page."""
    heads = ["life", *COLUMNS, "at the end", "worst change", "lost", "offline, processor time", "passes", "memory"]
    return "\n".join([f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *map(row, lives)])


def means(lives: list[dict[str, Any]]) -> str:
    """Means over seeds of lives with the same name but for the last number."""
    groups: dict[str, list[float]] = {}
    for life in lives:
        groups.setdefault(life["life"].rsplit("-", 1)[0], []).append(life["end"])
    lines = []
    for name, ends in groups.items():
        error = f", standard error {np.std(ends, ddof=1) / math.sqrt(len(ends)):.4f}" if len(ends) > 1 else ""
        lines.append(f"{name}: {np.mean(ends):.4f} (seeds: {len(ends)}{error})")
    return "\n".join(lines)


def main() -> None:
    """Reads, writes, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--into", type=Path, required=True)
    options = parser.parse_args()
    lives = json.loads(options.into.read_text()) if options.into.exists() else []
    found = {life["life"]: life for life in lives} | {path.name: digest(path) for path in options.runs}
    ordered = sorted(found.values(), key=lambda life: life["life"])
    options.into.write_text("[\n" + ",\n".join(map(json.dumps, ordered)) + "\n]\n")  # a line for each life
    print(table(ordered), means(ordered), sep="\n\n")


if __name__ == "__main__":
    main()
