"""What happened, as JSON records: the lines of metrics.jsonl. They hold nothing that differs from run to run."""

import math
from functools import singledispatch
from typing import Any

import numpy as np

from modlife.lifelong.evaluation import Evaluation
from modlife.lifelong.loop import Chosen, Consolidated, Curve, Evaluated


@singledispatch
def record_of(report: object) -> dict[str, Any]:
    """A report as a record."""
    raise TypeError(f"no record for {type(report).__name__}")


@record_of.register
def _(report: Curve) -> dict[str, Any]:
    return {
        "kind": "curve",
        "steps": report.steps,
        "return": rounded(report.episode_return),
        "success": rounded(report.success),
        "entropy": rounded(report.entropy),
    }


@record_of.register
def _(report: Chosen) -> dict[str, Any]:
    record = {"kind": "structure", "structure": list(report.structure), "how": report.how, "steps": report.steps}
    return {**record, "returns": list(report.returns)} if report.returns else record


@record_of.register
def _(report: Consolidated) -> dict[str, Any]:
    losses = {"td": report.td, "likelihood": report.likelihood, "logits": report.logits}
    return {"kind": "offline", "epoch": report.epoch, "tasks": report.tasks, **losses}


@record_of.register
def _(report: Evaluated) -> dict[str, Any]:
    return {"kind": "evaluation", "when": report.when, **as_record(report.evaluation)}


def as_record(evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation for a JSON line."""
    return {
        "tasks": [str(task) for task in evaluation.tasks],
        "episodes": evaluation.returns.shape[1],
        "mean_return": round(float(evaluation.returns.mean()), 4),
        "return": rounded(evaluation.mean_return),
        "standard_error": rounded(evaluation.standard_error),
        "success": rounded(evaluation.success.mean(axis=1)),
        "length": rounded(evaluation.length.mean(axis=1)),
    }


def rounded(values: np.ndarray) -> list[float | None]:
    """Numbers for JSON, which has no NaN."""
    return [None if math.isnan(value) else round(float(value), 4) for value in values]
