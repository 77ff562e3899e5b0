"""Tries again and again to break what the project promises of lives and their files, and counts how often it could.

    python scripts/soak.py kills=500 damage=10000 bits=all --seed 0 --jobs 2     these trials, of this size
    python scripts/soak.py all                                                   every trial, at its usual size
    python scripts/soak.py --markdown                                            the table of all that was tried so far

Trials consist of units, such as one life that is killed fifteen times. Each unit that was tried is a line of
`results.jsonl` in the working folder, and is not tried again: a long run can be stopped and continued, or split. What
fails is named with the command that repeats it; the exit code is then 1.
"""

import argparse
import faulthandler
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

HANGS = 3600
"""Seconds after which a unit hangs: its process ends, and says where it was."""
FAILURES_SHOWN = 20


def main() -> int:
    """Runs the trials that are asked for, and prints the table of all that were run."""
    options = parsed()
    os.environ["XDG_CACHE_HOME"] = str(options.folder / "cache")
    os.environ["NPROC"] = "1"
    ledger = Ledger(options.lines or options.folder / "results.jsonl")
    from trials.table import TRIALS

    words = [f"{name}={one.usual}" for name, one in TRIALS.items()] if options.trials == ["all"] else options.trials
    for word in words:
        name, _, size = word.partition("=")
        if name not in TRIALS:
            sys.exit(f"No trial '{name}'. Known: {', '.join(TRIALS)}.")
        run_trial(TRIALS[name], size or TRIALS[name].usual, options, ledger)
    rows = list(table(ledger.lines(), TRIALS))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    print(markdown(rows) if options.markdown else text(rows))
    return 1 if any(row.failures for row in rows) else 0


def parsed() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trials", nargs="*", metavar="TRIAL[=SIZE]", help="what to try, and how often; or `all`")
    parser.add_argument("--seed", type=int, default=0, help="everything random follows from it")
    parser.add_argument("--jobs", type=int, default=1, help="units side by side")
    parser.add_argument("--unit", help="only this unit, even if it was tried before: to repeat a failure")
    parser.add_argument("--folder", type=lambda path: Path(path).absolute(), default=Path("soak").absolute())
    parser.add_argument("--lines", type=Path, help="where the units are noted; by default in the folder")
    parser.add_argument("--json", type=Path, help="write the table here too")
    parser.add_argument("--markdown", action="store_true", help="print the table for docs/promises.md")
    return parser.parse_args()


@dataclass(frozen=True)
class Ledger:
    """Units that were tried, one JSON object a line."""

    path: Path

    def lines(self) -> list[dict[str, Any]]:
        """All of them; of units that were repeated, the last."""
        if not self.path.exists():
            return []
        found = [json.loads(line) for line in self.path.read_text().splitlines() if line.endswith("}")]
        return list({(one["trial"], one["seed"], one["unit"]): one for one in found}.values())

    def add(self, line: dict[str, Any]) -> None:
        """Notes one more."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def run_trial(trial: Any, size: str, options: argparse.Namespace, ledger: Ledger) -> None:
    """Tries units until there are as many trials as asked for, with those that were tried before."""
    before = [one for one in ledger.lines() if (one["trial"], one["seed"]) == (trial.name, options.seed)]
    done, tried = sum(one["trials"] for one in before), {one["unit"] for one in before}
    target = float(size) if size.isdecimal() else math.inf
    units: Iterator[str] = (unit for unit in trial.units(size) if unit not in tried)
    if options.unit:
        units, done, target = iter([options.unit]), 0, math.inf
    with executor(trial, options.jobs) as pool:
        waiting: set[Future[dict[str, Any]]] = set()
        while True:
            while len(waiting) < options.jobs and done < target and (unit := next(units, None)) is not None:
                waiting.add(pool.submit(run_unit, trial.name, options.folder, options.seed, unit))
            if not waiting:
                return
            ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for line in (one.result() for one in ended):
                ledger.add(line)
                done += line["trials"]
                report(line, done, size)


def executor(trial: Any, jobs: int) -> Executor:
    """Where units run side by side."""
    if not trial.processes:
        return ThreadPoolExecutor(jobs)
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))


def run_unit(name: str, folder: Path, seed: int, unit: str) -> dict[str, Any]:
    """Tries one unit: its line for the ledger."""
    from modlife.runtime import start_jax

    start_jax()
    from trials.bench import Bench
    from trials.table import TRIALS

    if TRIALS[name].processes:
        faulthandler.dump_traceback_later(HANGS, exit=True)
    start = time.monotonic()
    tally = TRIALS[name].run(Bench(folder, folder / "shared", seed), unit)
    took = round(time.monotonic() - start, 1)
    faulthandler.cancel_dump_traceback_later()
    return {"trial": name, "seed": seed, "unit": unit, "took": took, "commit": commit(), **vars(tally)}


def commit() -> str:
    """Which source was tried."""
    from modlife.runs.provenance import git_state

    state = git_state()
    return "unknown" if state is None else f"{state['commit'][:8]}{'+' if state['dirty'] else ''}"


def report(line: dict[str, Any], done: int, size: str) -> None:
    """Says how far it is, and what failed."""
    share = f"{done}" if not size.isdecimal() else f"{done} of {size}"
    print(f"{line['trial']} {line['unit']}: {share}, {line['took']} s, {len(line['failures'])} failures", flush=True)
    again = f"python scripts/soak.py {line['trial']} --unit '{line['unit']}' --seed {line['seed']}"
    for failure in line["failures"][:FAILURES_SHOWN]:
        print(f"  FAILED {failure}\n    repeat: {again}", flush=True)


@dataclass(frozen=True)
class Row:
    """A promise, how often it was tried, and how often it was broken."""

    trial: str
    promise: str
    trials: int
    failures: int
    what: str
    seen: dict[str, int]
    longest: float | None
    """Seconds; and all but one in a hundred are within the next."""
    p99: float | None
    took: float
    commits: list[str]
    failed: list[str]


def table(lines: list[dict[str, Any]], trials: Any) -> Iterator[Row]:
    """A row for each trial of which units were tried."""
    for name, trial in trials.items():
        own = [one for one in lines if one["trial"] == name]
        if not own:
            continue
        seen: Counter[str] = sum((Counter(one["seen"]) for one in own), Counter())
        seconds = sorted(second for one in own for second in one["seconds"])
        yield Row(
            name,
            trial.promise,
            sum(one["trials"] for one in own),
            sum(len(one["failures"]) for one in own),
            trial.what,
            dict(sorted(seen.items())),
            seconds[-1] if seconds else None,
            seconds[math.ceil(0.99 * len(seconds)) - 1] if seconds else None,
            round(sum(one["took"] for one in own), 1),
            sorted({one["commit"] for one in own}),
            [f"unit {one['unit']}, seed {one['seed']}: {why}" for one in own for why in one["failures"]],
        )


def cells(row: Row) -> tuple[str, str, str]:
    """A row as people read it."""
    ends = "" if row.longest is None else f"; the longest took {row.longest:.1f} s, 99 of 100 at most {row.p99:.1f} s"
    return row.promise, f"{row.trials:,} {row.what}{ends}", f"{row.failures}"


def text(rows: Iterable[Row]) -> str:
    """The table, and what happened how often."""
    lines = []
    for row in rows:
        promise, trials, failures = cells(row)
        lines.append(f"{promise} | {trials} | {failures} failures | {row.took:,.0f} s")
        lines += [f"    {count:>8,} {what}" for what, count in row.seen.items()]
        lines += [f"    FAILED {one}" for one in row.failed[:FAILURES_SHOWN]]
    return "\n".join(lines) or "Nothing was tried yet."


def markdown(rows: list[Row]) -> str:
    """The table for a document, with the commits that were tried."""
    lines = ["| promise | trials | failures |", "|---|---|---|"]
    lines += [f"| {' | '.join(cells(row))} |" for row in rows]
    tried = sorted({commit for row in rows for commit in row.commits})
    return "\n".join([*lines, "", f"Tried: {', '.join(tried)}."])


if __name__ == "__main__":
    sys.exit(main())
