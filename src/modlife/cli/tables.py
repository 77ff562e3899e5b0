"""Results as text for people."""

from typing import Any


def summary_text(summary: dict[str, Any]) -> str:
    """A summary in a few lines."""
    lines = [
        f"{summary['agent']}: {summary['tasks']} tasks x {summary['steps_per_task']:,} steps in {summary['seconds']} s",
        evaluation_line("tasks learnt", summary["seen"]),
    ]
    if "unseen" in summary:
        lines.append(evaluation_line("unseen combinations (zero-shot)", summary["unseen"]))
    for factor, mean in summary.get("wrong_module", {}).items():
        lines.append(f"  wrong {factor + ' module':<29} return {mean:.3f}")
    return "\n".join(lines)


def evaluation_line(what: str, record: dict[str, Any]) -> str:
    """The mean of an evaluation."""
    success = sum(record["success"]) / len(record["success"])
    return (
        f"  {what:<35} return {record['mean_return']:.3f}  success {success:.2f}  "
        f"({len(record['tasks'])} tasks, {record['episodes']} episodes each)"
    )


def evaluation_table(record: dict[str, Any]) -> str:
    """An evaluation, a line per task."""
    width = max(map(len, record["tasks"]))
    lines = [f"{'task':<{width}}  return  +-      success  length"]
    columns = (record[name] for name in ("tasks", "return", "standard_error", "success", "length"))
    for task, mean, error, success, length in zip(*columns, strict=True):
        lines.append(f"{task:<{width}}  {mean:6.3f}  {error:5.3f}  {success:7.2f}  {length:6.1f}")
    lines.append(f"{'mean':<{width}}  {record['mean_return']:6.3f}")
    return "\n".join(lines)
