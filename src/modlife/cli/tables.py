"""Results as text for people."""

import shutil
from collections.abc import Collection, Sequence
from typing import Any

MOST_LINES = 24
"""Lives with more tasks are told by their averages only."""

MUCH = 0.05
"""A loss that is worth a word, as a share of the highest return."""

MODULES = ("structure: a module for each factor", "by-parts: the modules first used for these components")
"""What columns of an evaluation mean."""

UNTRAINED = "this agent before it learnt anything"
"""What stands beside the mean of its returns."""

MEANINGS = {
    "zero-shot": "zero-shot: before learning a task",
    "online": "online: after practising it",
    "offline": "offline: after folding it in",
}


def summary_text(summary: dict[str, Any], *, highest: float) -> str:
    """A summary in a few lines."""
    lines = [
        f"{summary['agent']}: {summary['tasks']} tasks x {summary['steps_per_task']:,} steps in {summary['seconds']} s",
        evaluation_line("tasks learnt", summary["seen"]),
    ]
    for when, averages in summary.get("by_phase", {}).items():
        lines.append(f"  {MEANINGS.get(when, when):<35} return {averages['mean_return']:.3f}")
    lines += undone(summary.get("by_phase", {}), highest)
    if set(MEANINGS) <= set(summary.get("by_phase", {})) and summary["tasks"] <= MOST_LINES:
        lines = [phases_table(summary), "", *lines]
    if "structures" in summary and summary["structures"]["searched"]:
        found = summary["structures"]
        lines.append(f"  searched structures: {by_components(found['as_expected'], found['searched'])}")
    if "unseen" in summary:
        lines.append(evaluation_line("unseen combinations, by components", summary["unseen"]))
    for factor, mean in summary.get("wrong_module", {}).items():
        lines.append(f"  {f'with a wrong {factor} module':<35} return {mean:.3f}")
    return "\n".join(lines)


def undone(by_phase: dict[str, Any], highest: float) -> list[str]:
    """That the offline phase lost much of what was learnt online, and what may help."""
    if not {"online", "offline"} <= set(by_phase):
        return []
    lost = by_phase["online"]["mean_return"] - by_phase["offline"]["mean_return"]
    hint = "a larger --replay-size, more --steps or --offline.epochs may keep it"
    return [f"  the offline phase lost {lost:.3f} of that: {hint}"] if lost > MUCH * highest else []


def phases_table(summary: dict[str, Any]) -> str:
    """A line per task: its structure, and its return before learning, after each phase, and at the end of the life."""
    names = summary["seen"]["tasks"]
    width = max(map(len, names))
    lines = [f"{'task':<{width}}  structure  zero-shot  online  offline  at the end"]
    structures = summary.get("structures", {}).get("tasks", {})
    columns = (names, *(summary["by_phase"][when]["return"] for when in MEANINGS), summary["seen"]["return"])
    for name, zero_shot, online, offline, final in zip(*columns, strict=True):
        numbers = f"{zero_shot:9.3f}  {online:6.3f}  {offline:7.3f}  {final:10.3f}"
        lines.append(f"{name:<{width}}  {path_of(structures.get(name, ())):<9}  {numbers}")
    return "\n".join(lines)


def evaluation_line(what: str, record: dict[str, Any]) -> str:
    """The mean of an evaluation."""
    success = sum(record["success"]) / len(record["success"])
    return (
        f"  {what:<35} return {record['mean_return']:.3f}  success {success:.2f}  "
        f"({len(record['tasks'])} tasks, {record['episodes']} episodes each)"
    )


def evaluation_table(
    record: dict[str, Any], *, searched: Collection[str] = (), untrained: dict[str, Any] | None = None
) -> str:
    """An evaluation, a line per task; `searched` are the tasks whose structure could have been another.

    `untrained` is that of the same agent before it learnt, beside which its mean can be judged.
    """
    width = max(map(len, (*record["tasks"], "untrained" if untrained else "mean")))
    lines = [f"{'task':<{width}}  return  +-      success  length"]
    columns = (record[name] for name in ("tasks", "return", "standard_error", "success", "length"))
    for task, mean, error, success, length in zip(*columns, strict=True):
        lines.append(f"{task:<{width}}  {mean:6.3f}  {error:5.3f}  {success:7.2f}  {length:6.1f}")
    if "structure" in record:
        gap = "  " if len(lines[0]) + 21 <= terminal_width() else "\n    "  # a line of its own, where there is no room
        lines[0] += f"{gap}structure  by-parts"
        for number, (found, expected) in enumerate(zip(record["structure"], record["expected"], strict=True), start=1):
            lines[number] += f"{gap}{path_of(found):<9}  {path_of(expected) if expected else 'none'}"
    lines.append(f"{'mean':<{width}}  {record['mean_return']:6.3f}")
    if untrained:
        lines.append(f"{'untrained':<{width}}  {untrained['mean_return']:6.3f}  {UNTRAINED}")
    lines += ("length: steps of an episode", *(MODULES if "structure" in record else ()))
    lines.append("+-: standard error of the mean over episodes")
    if "structure" in record:
        lines += as_expected(record, searched)
    return "\n".join(lines)


def as_expected(record: dict[str, Any], searched: Collection[str]) -> list[str]:
    """How many structures that a search found are those that the modules' first components suggest."""
    found = zip(record["tasks"], record["structure"], record["expected"], strict=True)
    right = [list(structure) == list(expected or ()) for task, structure, expected in found if task in searched]
    return [f"searched structures: {by_components(sum(right), len(right))}"] if right else []


def by_components(right: int, searched: int) -> str:
    """How many structures are what components alone would suggest, and that this is no mark."""
    return f"{right} of {searched} take the modules that first learnt these components; others may do as well"


def terminal_width() -> int:
    """Columns to write in: those of the terminal, at most 100; as many where there is none."""
    return min(100, shutil.get_terminal_size((100, 24)).columns)


def path_of(structure: Sequence[int]) -> str:
    """A structure as people read it."""
    return "-".join(map(str, structure))
