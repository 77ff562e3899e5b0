"""What the lines of metrics.jsonl and the summary may say: every field that anything reads, with its type.

Files may come from anywhere. What passes here can be computed with and printed: fields are there, of their type,
lists are as long as they should be, stages exist, and names have no control characters. Other fields, and lines of
other kinds, are an agent's own business.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from modlife.errors import InputError
from modlife.runs.codec import checked

Record = dict[str, Any]
Fields = Mapping[str, Any]
"""For each field its type, or the fields of the table that it holds."""

EVALUATION: Fields = {
    "tasks": list[str],
    "episodes": int,
    "mean_return": float,
    "return": list[float],
    "standard_error": list[float],
    "success": list[float],
    "length": list[float],
}
KINDS: Mapping[str, Fields] = {
    "curriculum": {"stages": list[list[str]]},
    "structure": {"stage": int, "structure": list[int], "how": str, "steps": int},
    "curve": {"stage": int, "steps": int, "return": list[float | None]},
    "evaluation": {"stage": int, **EVALUATION},  # the first versions did not say when
    "offline": {"stage": int, "epoch": int, "tasks": int},
    "retention": {"stage": int, "round": int | None, "tasks": int, "harmed": list[dict]},
}
HARMED: Fields = {"task": str, "drift": list[float], "return": list[float]}
"""What stands in `harmed`, each list with a number of then and one of now."""
SUMMARY: Fields = {"agent": str, "seed": int, "tasks": int, "steps_per_task": int, "seconds": float, "seen": EVALUATION}
AVERAGES: Fields = {"return": list[float], "mean_return": float}
SOMETIMES: Fields = {
    "domain": str,
    "steps_per_second": float,
    "unseen": EVALUATION,
    "wrong_module": dict[str, float],
    "structures": {"tasks": dict[str, list[int]], "searched": int, "as_expected": int},
    "wall_seconds": dict[str, float],
    "cpu_seconds": dict[str, float],
    "peak_megabytes": float,
    "by_phase": dict,
    "retention": {"mean_change": float, "worst_change": float, "worst_task": str},
    "files": {"metrics": {"bytes": int, "sha256": str}, "history": {"bytes": int, "sha256": str}},
}
"""Fields of a summary that only some lives have."""


def checked_records(records: Iterable[Any], path: Path) -> Iterator[Record]:
    """The lines of metrics, each with the fields of its kind; stages are known before anything is told of them."""
    stages: list[list[str]] = []
    for number, record in enumerate(records, start=1):
        where = f"'{path}', line {number}"
        check_table(record, {"kind": str}, where)
        check_table(record, KINDS.get(record["kind"], {}), where)
        if record["kind"] == "curriculum":
            stages += record["stages"]
        elif record["kind"] in KINDS:
            check_places(record, stages, where)
        yield record


def check_places(record: Record, stages: list[list[str]], where: str) -> None:
    """A line tells of a stage that there is, and of as many tasks as that has."""
    if not 0 <= record["stage"] < len(stages) or not stages[record["stage"]]:
        raise InputError(f"{where}: stage = {record['stage']}, but there are {len(stages)}.")
    if record["kind"] == "evaluation":
        check_table({"when": "", **record}, {"when": str}, where)
        check_evaluation(record, where)
    elif record["kind"] == "curve":
        check_curve(record, len(stages[record["stage"]]), where)
    elif record["kind"] == "retention":
        check_harmed(record["harmed"], where)
    elif record["kind"] == "structure":
        check_structure(record["structure"], stages[record["stage"]][0], where)
        usual = {"returns": [0.0], "mean_return": 0.0}
        check_table({**usual, **record}, {"returns": list[float], "mean_return": float}, where)
        if record.get("returns") == []:
            raise InputError(f"{where}: a search has no returns.")


def check_harmed(harmed: list[Record], where: str) -> None:
    """Each says which task it is about, and two numbers of each kind."""
    for one in harmed:
        check_table(one, HARMED, f"{where}, harmed")
        if (len(one["drift"]), len(one["return"])) != (2, 2):
            raise InputError(f"{where}, harmed: {one} has not what was then and what is now.")


def check_curve(record: Record, tasks: int, where: str) -> None:
    """Its lists have an entry for each task; the first versions told no successes."""
    check_table({"success": [], **record}, {"success": list[float | None]}, where)
    for name, values in (("returns", record["return"]), ("successes", record.get("success", record["return"]))):
        if len(values) != tasks:
            raise InputError(f"{where}: it has {name} of {len(values)} tasks, not {tasks}.")


def check_structure(structure: list[int], task: str, where: str) -> None:
    """It has a module for each component of the task."""
    if len(structure) != len(task.split("/")):
        raise InputError(f"{where}: {structure} is no structure of '{task}'.")


def check_evaluation(record: Record, where: str) -> None:
    """Its lists have an entry for each of its tasks; there is one at least."""
    lengths = {name: len(record[name]) for name in EVALUATION if isinstance(record[name], list)}
    if set(lengths.values()) != {len(record["tasks"])} or not record["tasks"]:
        raise InputError(f"{where}: an evaluation of {len(record['tasks'])} tasks has lists of {lengths}.")


def checked_summary(summary: Any, path: Path) -> Record:
    """A summary with the fields that tables and figures read."""
    where = f"'{path}'"
    check_table(summary, SUMMARY, where)
    check_table(summary, {name: kind for name, kind in SOMETIMES.items() if name in summary}, where)
    for name in ("seen", "unseen"):
        if name in summary:
            check_evaluation(summary[name], f"{where}, {name}")
    if len(summary["seen"]["tasks"]) != summary["tasks"]:
        raise InputError(f"{where}: of {summary['tasks']} tasks, {len(summary['seen']['tasks'])} were seen.")
    for when, averages in summary.get("by_phase", {}).items():
        check_table(averages, AVERAGES, f"{where}, by_phase, {when}")
        if len(averages["return"]) != summary["tasks"]:
            raise InputError(f"{where}, by_phase, {when}: it has {len(averages['return'])} returns.")
    for task, structure in summary.get("structures", {}).get("tasks", {}).items():
        check_structure(structure, task, where)
    return summary


def check_table(data: Any, fields: Fields, where: str) -> None:
    """A table has these fields, with values of these types; names can be printed."""
    if not isinstance(data, dict):
        raise InputError(f"{where} is {data!r}, not a table of fields.")
    for name, kind in fields.items():
        if name not in data:
            raise InputError(f"{where} has no field '{name}'.")
        if isinstance(kind, Mapping):
            check_table(data[name], kind, f"{where}, {name}")
        else:
            check_printable(checked(kind, data[name], where=f"{where}, {name}"), f"{where}, {name}")
            if kind is int and not 0 <= data[name] < 2**63:
                raise InputError(f"{where}, {name} = {data[name]}, which is no number of anything.")


def check_printable(value: Any, where: str) -> None:
    """Names in a file have no characters that do something to a terminal."""
    if isinstance(value, str):
        if not value.isprintable():
            raise InputError(f"{where}: {value!r} has characters that cannot be printed.")
        return
    inside = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inside:
        check_printable(one, where)
