"""`modlife figure`."""

from pathlib import Path
from typing import Literal

import tyro


def run(
    which: tyro.conf.Positional[Literal["fig2", "fig3", "stl"]], runs: tyro.conf.Positional[tuple[Path, ...]], out: Path
) -> None:
    """Draw a figure from run directories, as PNG or SVG, with its numbers beside it as CSV.

    `fig2` is the paper's Figure 2 with its ablations E.1a and E.1b: multi-task learning curves, zero-shot returns,
    wrong modules. `fig3` is its Figure 3: lifelong learning curves, zero-shot return as tasks accumulate, returns by
    stage. `stl` shows single-task curves beside those of the authors' released code.

    Args:
        which: Which figure.
        runs: Run directories, or results with the same files.
        out: The picture to write.
    """
    from modlife.experiments.figures import FIGURES

    FIGURES[which](runs, out)
    print(f"{which}: {out}, {out.with_suffix('.csv')}")
