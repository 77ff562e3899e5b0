"""Figures of the committed results: they draw, and their tables hold the results' own numbers."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from modlife.errors import InputError
from modlife.experiments.figures import figure_2, figure_stl
from modlife.experiments.store import RunDirectory

RESULTS = Path(__file__).parent.parent / "results"


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_figure_2_shows_the_committed_results(tmp_path: Path):
    runs = sorted([*RESULTS.glob("mtl-*"), *RESULTS.glob("stl-64-*")])
    assert len(runs) >= 12
    figure_2(runs, tmp_path / "fig2.png")
    with Image.open(tmp_path / "fig2.png") as picture:
        assert picture.width > 1000
    rows = {(row["what"], row["agent"], row["tasks"]): row for row in table(tmp_path / "fig2.csv")}
    unseen = [
        json.loads((run / "summary.json").read_text())["unseen"]["mean_return"] for run in RESULTS.glob("mtl-48-*")
    ]
    shown = rows["zero-shot", "mtl", "48"]
    assert int(shown["seeds"]) == len(unseen)
    assert float(shown["value"]) == pytest.approx(np.mean(unseen), abs=1e-4)


def test_single_task_figure_shows_the_committed_results(tmp_path: Path):
    figure_stl(sorted(RESULTS.glob("stl-four-*")), tmp_path / "stl.png")
    rows = table(tmp_path / "stl.csv")
    assert [row["agent"] for row in rows] == [
        "stl, wall/red/dynamics-0",
        "stl, floor/purple/dynamics-3",
        "stl, lava/blue/dynamics-1",
        "stl, food/green/dynamics-2",
    ]
    assert all(int(row["seeds"]) == 3 for row in rows)


@pytest.mark.parametrize("run", sorted(RESULTS.iterdir()), ids=lambda path: path.name)
def test_every_committed_result_has_its_provenance(run: Path):
    manifest = RunDirectory.open(run).manifest()
    assert manifest["git"]["dirty"] is False
    assert len(manifest["git"]["commit"]) == 40
    config = RunDirectory.open(run).config()
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["agent"], summary["seed"], summary["steps_per_task"]) == (config.agent, config.seed, config.steps)


def test_a_figure_without_lives_or_of_an_unfinished_one_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="at least one run directory"):
        figure_2([], tmp_path / "x.png")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/manifest.json").write_text("{}")
    with pytest.raises(InputError, match="its life did not end"):
        figure_stl([tmp_path / "run"], tmp_path / "x.png")
