"""Figures of the committed results: they draw, and their tables hold the results' own numbers."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from modlife.analysis.figures import FIGURES, figure_2, figure_3, single_task
from modlife.analysis.lives import error_bar, read_life
from modlife.errors import InputError
from modlife.metrics import summarise
from modlife.registry import resolve
from modlife.runs.store import RunDirectory

RESULTS = Path(__file__).parent.parent / "results"


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_figure_2_shows_the_committed_results(tmp_path: Path):
    runs = sorted([*RESULTS.glob("mtl-*"), *RESULTS.glob("stl-64-*")])
    assert len(runs) >= 12
    figure_2.draw(runs, tmp_path / "fig2.png")
    with Image.open(tmp_path / "fig2.png") as picture:
        assert picture.width > 1000
    rows = {(row["what"], row["agent"], row["tasks"]): row for row in table(tmp_path / "fig2.csv")}
    unseen = [
        json.loads((run / "summary.json").read_text())["unseen"]["mean_return"] for run in RESULTS.glob("mtl-48-*")
    ]
    shown = rows["zero-shot", "mtl", "48"]
    assert int(shown["seeds"]) == len(unseen)
    assert float(shown["value"]) == pytest.approx(np.mean(unseen), abs=1e-4)


def test_figure_3_shows_the_committed_results(tmp_path: Path):
    runs = [RESULTS / name for name in ("comp-search-64-0", "comp-struct-64-0", "stl-64-0", "stl-64-1")]
    figure_3.draw(runs, tmp_path / "fig3.png")
    with Image.open(tmp_path / "fig3.png") as picture:
        assert picture.width > 1000
    rows = table(tmp_path / "fig3.csv")
    summary = json.loads((runs[0] / "summary.json").read_text())
    name = "Comp.+Search, 1000k steps"
    shown = {row["what"]: row for row in rows if row["agent"] == name and row["what"] != "curve" and not row["seen"]}
    for when in ("zero-shot", "online", "offline"):
        assert float(shown[when]["value"]) == summary["stages"][when]["mean_return"]
    assert float(shown["final"]["value"]) == summary["seen"]["mean_return"]
    assert shown["final"]["standard_error"] == ""  # one seed: not known, and not drawn as zero
    seen = [row for row in rows if row["what"] == "zero-shot" and row["agent"] == name and row["seen"]]
    assert [int(row["seen"]) for row in seen] == list(range(64)) and all(row["steps"] == "" for row in seen)
    assert [float(row["value"]) for row in seen] == summary["stages"]["zero-shot"]["return"]
    (alone,) = [row for row in rows if row["agent"].startswith("STL") and row["what"] == "final"]
    assert (alone["seeds"], alone["standard_error"] != "") == ("2", True)
    assert error_bar(float("nan")) is None


def test_every_figure_in_the_table_can_be_loaded():
    assert {entry.name for entry in FIGURES} >= {"fig2", "fig3", "stl"}
    assert all(callable(resolve(entry.draw)) for entry in FIGURES)


def test_old_results_get_new_numbers():
    """Retention was not in their summaries; it follows from their records."""
    retention = summarise(read_life(RESULTS / "comp-search-64-0").records)["retention"]
    assert retention["worst_change"] < -0.2 and retention["worst_task"].count("/") == 2
    assert -0.05 < retention["mean_change"] < 0.05


def test_single_task_figure_shows_the_committed_results(tmp_path: Path):
    single_task.draw(sorted(RESULTS.glob("stl-four-*")), tmp_path / "stl.png")
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
        figure_2.draw([], tmp_path / "x.png")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/manifest.json").write_text("{}")
    with pytest.raises(InputError, match="its life did not end"):
        single_task.draw([tmp_path / "run"], tmp_path / "x.png")
