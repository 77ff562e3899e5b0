"""Copies what ended lives tell into a folder of results: manifest, metrics, summary and history, no checkpoints.

    python scripts/keep_results.py runs/comp-search-64x250k-bounded-0 ... --into results

The command in a manifest has the run directory as `runs/NAME`, wherever it was.
"""

import argparse
from pathlib import Path

from modlife.analysis.lives import read_life, write_together
from modlife.runs.sealed import sealed, unsealed
from modlife.runs.store import MANIFEST

COPIED = ("metrics.jsonl", "summary.json", "history.jsonl")


def manifest_of(run: Path) -> bytes:
    """The manifest without the folder that the life was lived in."""
    body = unsealed(run / MANIFEST)
    place = body["command"].index("--out") + 1
    body["command"][place] = f"runs/{run.name}"
    return sealed(body)


def keep(run: Path, into: Path) -> None:
    """Copies one life, and reads the copy as figures do."""
    read_life(run)
    files = {name: (run / name).read_bytes() for name in COPIED}
    write_together({into / run.name / name: data for name, data in {MANIFEST: manifest_of(run), **files}.items()})
    read_life(into / run.name)


def main() -> None:
    """Keeps all that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--into", type=Path, required=True)
    options = parser.parse_args()
    for run in options.runs:
        keep(run, options.into)
        print(options.into / run.name)


if __name__ == "__main__":
    main()
