"""All metrics of lives, from run directories and from tables of anybody's numbers; as lines for people."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from modlife.errors import plain
from modlife.metrics import Metric, Scores, every_metric, measured, read_scores


def scores_in(paths: Sequence[Path], *, highest: float = 1.0) -> dict[str, list[Scores]]:
    """The scores of all lives, by group: of CSV files, with their highest return, then of run directories together."""
    files = [path for path in paths if path.is_file()]
    found: dict[str, list[Scores]] = {}
    for path in files:
        for agent, scores in read_scores(path).items():
            name = (f"{path}: {agent}" if agent else str(path)) if len(files) > 1 else agent or path.name
            found[name] = [replace(one, highest=highest) for one in scores]
    runs = [path for path in paths if path not in files]
    if runs:
        from modlife.analysis.measures import scores_of_runs  # here: files of others need no JAX

        found |= scores_of_runs(runs)
    return found


def measure(
    paths: Sequence[Path], metrics: Sequence[Metric] | None = None, *, confidence: float = 0.95, highest: float = 1.0
) -> list[dict[str, Any]]:
    """What lives came to in each metric: `modlife.metrics.measured` of CSV files and run directories."""
    return measured(scores_in(paths, highest=highest), metrics, confidence=confidence)


HEADS = ("", "mean", "interval", "IQM", "interval")


def as_text(rows: Sequence[dict[str, Any]], metrics: Sequence[Metric] | None = None, *, confidence: float) -> str:
    """The lines for people: a table for each group, and below all of them what they mean."""
    known = {metric.name: metric for metric in (every_metric() if metrics is None else metrics)}
    cells = [cells_of(row, known[row["metric"]].digits) for row in rows]
    widths = [max(map(len, column)) for column in zip(HEADS, *cells, strict=True)]
    lines: list[str] = []
    for name in dict.fromkeys(row["label"] for row in rows):
        own = [(row, line) for row, line in zip(rows, cells, strict=True) if row["label"] == name]
        lives = max(row["lives"] for row, _ in own)
        lines += [f"{plain(name)}: {lives} {'life' if lives == 1 else 'lives'}", aligned(HEADS, widths)]
        lines += [*(aligned(line, widths) for _, line in own), ""]
    shown = {row["metric"] for row in rows}
    return "\n".join([*lines, *notes(confidence), "", *(explained(one) for one in known.values() if one.name in shown)])


def notes(confidence: float) -> tuple[str, ...]:
    """What the columns and letters mean."""
    return (
        "mean: over lives, of each life's mean over its tasks (or modules, or searches)",
        f"interval: {100 * confidence:g} %, whole lives resampled, with Student's t; not known of a single life",
        "intervals reach as far down as up, also to where nothing can be, such as below 0 steps",
        "IQM: interquartile mean, over all tasks of all lives",
        "R[j, i]: return of task i after stage j of N; A: area under a learning curve, per step; H: highest return",
    )


def explained(metric: Metric) -> str:
    """A metric in words."""
    return f"{metric.name}: {metric.formula} ({metric.source}{'; lower is better' * (metric.better == 'lower')})"


def cells_of(row: dict[str, Any], digits: int) -> tuple[str, ...]:
    """A line of the table."""
    numbers = [told(row, "value", digits), span(row, "", digits), told(row, "iqm", digits), span(row, "iqm_", digits)]
    return row["metric"], *numbers


def told(row: dict[str, Any], name: str, digits: int) -> str:
    """A number, zero without a sign; nothing where it is not known."""
    return "" if row[name] is None else f"{round(row[name], digits) + 0.0:,.{digits}f}"


def span(row: dict[str, Any], which: str, digits: int) -> str:
    """An interval."""
    low, high = (told(row, f"{which}{end}", digits) for end in ("low", "high"))
    return f"{low} to {high}" if low else ""


def aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """A name and its numbers, each at its place."""
    name, *numbers = cells
    return "  ".join(["", name.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])]).rstrip()
