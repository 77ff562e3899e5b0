"""The paper's Figure E.3: Progress & Compress with batch RL, with robots; drawn as Figure 4."""

from collections.abc import Sequence
from pathlib import Path

from modlife.analysis.figures.figure_4 import successes
from modlife.analysis.lives import save


def draw(paths: Sequence[Path], out: Path) -> None:
    """Successes while tasks are learnt, and after each phase of learning."""
    save(*successes(paths, "Success of one network, with and without batch RL, beside modules"), out)
