"""Finished lives as figures need them: their curves and summaries, in groups; and how a figure is saved."""

import csv
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from modlife.errors import InputError
from modlife.experiments.store import RunDirectory, read_json

LABELS = {
    "comp-struct": "Comp.+Struct.",
    "comp-search": "Comp.+Search",
    "comp-search-nc": "Comp.+Search-NC",
    "stl": "STL",
    "mtl": "MTL modular",
    "mtl-monolithic": "MTL monolithic",
    "mtl-chain": "MTL chain",
}
COLOURS = {
    "comp-struct": "#2a7f62",
    "comp-search": "#1f6fb4",
    "comp-search-nc": "#7b5ea7",
    "stl": "#777777",
    "mtl": "#1f6fb4",
    "mtl-monolithic": "#d1495b",
    "mtl-chain": "#e8a33d",
}


@dataclass(frozen=True)
class Life:
    """What a finished run directory says."""

    agent: str
    tasks: int
    seed: int
    summary: dict[str, Any]
    steps: Float[np.ndarray, " update"]
    curves: Float[np.ndarray, "task update"]
    """Training return of each task."""
    names: tuple[str, ...]


def read_life(path: Path) -> Life:
    """Reads one run directory."""
    run = RunDirectory.open(path)
    if not (path / "summary.json").is_file():
        raise InputError(f"'{path}' has no summary.json: its life did not end.")
    summary = read_json(path / "summary.json")
    stages, searched = defaultdict(list), {}
    for record in run.metrics():
        if record["kind"] == "curve":
            stages[record["stage"]].append(record)
        elif record["kind"] == "structure" and "returns" in record:
            searched[record["stage"]] = float(np.mean(record["returns"]))
    steps = np.array([record["steps"] for record in stages[0]], float)
    curves = [on_grid(steps, records, searched.get(stage)) for stage, records in sorted(stages.items())]
    names = tuple(summary["seen"]["tasks"])
    return Life(summary["agent"], summary["tasks"], summary["seed"], summary, steps, np.concatenate(curves), names)


def on_grid(
    steps: Float[np.ndarray, " update"], records: list[dict[str, Any]], before: float | None
) -> Float[np.ndarray, "task update"]:
    """The curves of a stage at the given steps. A search shifts them: while it lasts, its own mean return counts."""
    own = np.array([record["steps"] for record in records], float)
    curves = np.array([record["return"] for record in records], float).T
    if before is None:
        return curves
    return np.array([np.interp(steps, own, curve, left=before) for curve in curves])


def read_lives(paths: Sequence[Path]) -> list[Life]:
    """Reads run directories; at least one."""
    if not paths:
        raise InputError("A figure needs at least one run directory.")
    return [read_life(path) for path in paths]


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard error over seeds; the error of a single seed is not known."""
    data = np.array(values, float)
    return float(data.mean()), float(data.std(ddof=1) / np.sqrt(len(data))) if len(data) > 1 else float("nan")


def row(what: str, agent: str, tasks: int, seeds: int, value: float, **more: float | int) -> dict[str, Any]:
    """A line of a figure's table."""
    return {"what": what, "agent": agent, "tasks": tasks, "seeds": seeds, "steps": more.get("steps", "")} | {
        "value": round(value, 4),
        "standard_error": round(more["error"], 4) if not np.isnan(more.get("error", np.nan)) else "",
    }


def save(figure: Any, rows: list[dict[str, Any]], out: Path) -> None:
    """Writes the picture and, beside it, its numbers."""
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)
    with out.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
