"""What checkpoints of a long life weigh in today's format, counted from the records of one that was lived before it.

    python scripts/checkpoint_sizes.py results/world-768-0

A checkpoint at the end of a stage has arrays and facts of a fixed size and, for each task, its name, its structure and
the name of its file of replay, as JSON without spaces. Of a life that has checkpoints, the difference to each is told.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from modlife.metrics import evaluations
from modlife.runs.store import RunDirectory

FIXED = 1_100_281
"""Bytes beside tasks, with 16 modules of each factor: of a checkpoint of such a life by commit 1353aca."""
NAMED = len('"801196:",') + 64
"""Bytes of the name of a file of replay: its size, and its checksum."""
LATE = 500


def sizes(records: list[dict]) -> np.ndarray:
    """Bytes of the checkpoint after each stage."""
    tasks = [record["tasks"][-1] for record in evaluations(records, "zero-shot")]
    structures = [record["structure"] for record in records if record["kind"] == "structure"]
    dense = [[len(json.dumps(one, separators=(",", ":"))) + 1 for one in of] for of in (tasks, structures)]
    return FIXED + np.cumsum(np.sum(dense, axis=0) + NAMED)


def main() -> None:
    """Counts, compares, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    run = RunDirectory.open(parser.parse_args().run)
    found = sizes(list(run.metrics()))
    late = found[-LATE:]
    rise = np.polyfit(np.arange(len(late)), late, 1)[0]
    print(f"{rise:.1f} bytes a task; over the last {len(late)} tasks {late[0]:,} to {late[-1]:,} bytes,")
    print(f"a fitted line rises by {100 * rise * len(late) / late.mean():.1f} % of the mean")
    for number in run.checkpoints.numbers():
        path = run.checkpoints.path(number)
        known = run.checkpoints.verify(path)[0].description
        if known.ended:
            print(known.stage, sum(file.stat().st_size for file in path.iterdir()) - found[known.stage - 1])


if __name__ == "__main__":
    main()
