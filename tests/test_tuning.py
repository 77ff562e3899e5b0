"""The search for hyper-parameters, and the table that compares agents: numbers by hand, from made-up lives."""

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lives import Lived
from terminal import command
from test_figures import RESULTS, made_up

from modlife import metrics
from modlife.analysis import tuning
from modlife.analysis.comparison import as_text, compare
from modlife.analysis.studies import STUDIES
from modlife.cli.tune import text_of
from modlife.lifelong.agents import AGENTS
from modlife.runs.many import Planned

SMALL = {"steps": 20_000, "seeds": 2, "episodes": 4}


def trial(name: str, folder: Path, most: int = 3) -> tuning.Trial:
    study = STUDIES[name]
    return tuning.Trial(study, folder, settings=tuning.some(study.settings, most), **SMALL)


@pytest.mark.parametrize("name", STUDIES.names)
def test_every_setting_of_every_study_is_a_life_of_its_own(name: str, tmp_path: Path):
    study = STUDIES[name]
    whole = replace(trial(name, tmp_path), settings=study.settings, steps=250_000)
    lives = whole.planned()
    assert len({life.out for life in lives}) == len({life.config for life in lives}) == 2 * len(study.settings)
    assert study.agent in AGENTS.names and study.source
    assert {len(life.config.chosen) for life in lives} == {4 if study.tasks is None else 5}


def test_the_grids_are_the_papers(tmp_path: Path):
    assert len(STUDIES["ppo"].settings) == 60
    config = trial("ppo", tmp_path).config({"ppo.learning_rate": 3e-4, "ppo.length": 512}, 1)
    assert (config.settings.ppo.batch, config.settings.ppo.learning_rate, config.seed) == (8192, 3e-4, 1)
    assert [task.components[0] for task in config.chosen] == ["wall", "floor", "food", "lava"]
    lambdas = [setting["compress.strength"] for setting in STUDIES["pc"].settings]
    assert lambdas == [10.0**n for n in range(-3, 5)]
    assert [setting["clear.ratio"] for setting in STUDIES["clear"].settings] == np.arange(0.25, 2.01, 0.25).tolist()


def test_pitfall_03_lambda_is_searched_for_on_logarithmic_grids_of_its_own():
    for name, option in (("ewc", "ewc.strength"), ("ewc-wide", "ewc.strength"), ("pc", "compress.strength")):
        steps = np.diff(np.log10([setting[option] for setting in STUDIES[name].settings]))
        np.testing.assert_allclose(steps, 1.0)


def test_some_settings_are_from_all_over_the_grid():
    settings = STUDIES["ewc"].settings
    assert [one["ewc.strength"] for one in tuning.some(settings, 3)] == [1e-3, 1e1, 1e4]
    assert tuning.some(settings, None) == tuning.some(settings, 99) == settings


def lived(life: Planned, value: float) -> None:
    """The run directory of a planned life that came to a value."""
    config = life.config
    strength = {"strength": config.settings.ewc.strength}
    options = {"tasks": 5, "steps": config.steps, "episodes": config.episodes, "seed": config.seed, "ewc": strength}
    made_up(life.out, "ewc", value=lambda number, task: value, **options)


def test_the_highest_mean_is_chosen_and_the_table_tells_all_settings(tmp_path: Path):
    now = trial("ewc", tmp_path)
    values = {1e-3: (0.2, 0.4), 10.0: (0.5, 0.7), 1e4: (0.9,)}
    for life in now.planned():
        seeds = values[life.config.settings.ewc.strength]
        number = life.config.seed - tuning.FIRST_SEED
        if number < len(seeds):
            lived(life, seeds[number])
    rows = tuning.table(now)
    assert [(row["lives"], row["return"], row["standard_error"]) for row in rows] == [
        (2, pytest.approx(0.3), pytest.approx(0.1)),
        (2, pytest.approx(0.6), pytest.approx(0.1)),
        (1, pytest.approx(0.9), None),
    ]
    assert [row["chosen"] for row in rows] == ["", "yes", ""]  # the last has not all its lives
    assert [line.startswith("* ") for line in text_of(rows).splitlines()] == [False, False, True, False]


def test_of_equals_the_first_is_chosen_and_of_nothing_none():
    settings = [{"a": 1.0}, {"a": 2.0}, {"a": 3.0}]
    assert tuning.chosen(list(zip(settings, [[0.1], [0.5], [0.5]], strict=True))) == {"a": 2.0}
    assert tuning.chosen([(settings[0], [])]) is None


def test_a_search_that_has_ended_is_told_again_without_a_life(tmp_path: Path):
    for life in trial("ewc", tmp_path).planned():
        lived(life, 0.5)
    options = ["--steps", "20000", "--seeds", "2", "--settings", "3", "--episodes", "4", "--out", str(tmp_path)]
    plan = command("tune", "ewc", *options, "--dry-run")
    assert plan.out.splitlines()[-1] == "the search 'ewc': 6 lives, 6 of them ended", plan.err
    end = command("tune", "ewc", *options)
    assert end.code == 0 and "6 of 6 lives have ended before" in end.err, end.err
    with (tmp_path / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["chosen"] for row in rows] == ["yes", "", ""]
    assert [float(row["ewc.strength"]) for row in rows] == [1e-3, 10, 1e4]


# Metrics


def seen(stage: int, **returns: float) -> dict:
    return {"kind": "evaluation", "when": "seen", "stage": stage, "tasks": [*returns], "return": [*returns.values()]}


def test_forgetting_by_hand():
    """a: 0.8 then 0.5; b: 0.6 then 0.7; c has no later evaluation: (0.3 - 0.1) / 2."""
    records = [seen(0, a=0.8), seen(1, a=0.2, b=0.6), seen(2, a=0.5, b=0.7, c=0.1)]
    assert metrics.forgetting(records) == pytest.approx(0.1)
    assert metrics.forgetting(records[:1]) is None


def test_pitfall_16_zeros_count_in_means():
    assert metrics.mean_and_error([0.0, 0.0, 0.6])[0] == pytest.approx(0.2)
    assert metrics.mean_and_error([0.0, 0.0, 0.6])[1] == pytest.approx(0.2)  # deviation 0.3464, over the root of 3
    records = [seen(0, a=0.0), seen(1, a=0.0, b=0.4), seen(2, a=0.0, b=0.0, c=0.0)]
    assert metrics.forgetting(records) == pytest.approx(0.2)  # (0 + 0.4) / 2
    assert metrics.area(np.array([1.0, 2.0]), np.array([0.0, 0.0])) == 0.0


def test_areas_by_hand():
    """Flat at 0.2 until step 10, then a line to 0.6 at step 30: (10 * 0.2 + 20 * 0.4) / 30."""
    assert metrics.area(np.array([10.0, 30.0]), np.array([0.2, 0.6])) == pytest.approx(1 / 3)
    late = metrics.area(np.array([10.0, 20.0, 30.0]), np.array([np.nan, 0.2, 0.6]))
    assert late == pytest.approx((20 * 0.2 + 10 * 0.4) / 30)
    assert np.isnan(metrics.area(np.array([10.0]), np.array([np.nan])))


def test_transfer_by_hand():
    assert metrics.transfer({"a": 0.5, "b": 0.3, "c": 0.9}, {"a": 0.4, "b": 0.5}) == pytest.approx(-0.05)
    assert metrics.transfer({"a": 0.0}, {"a": 0.0}) == 0.0
    assert metrics.transfer({"a": 0.5}, {}) is None


# Agents side by side


def test_the_table_rounds_once():
    """(.748741 + .762414) / 2 = .755577."""
    text = as_text(compare(sorted(RESULTS.glob("comp-search-64x250k-bounded-[01]"))))
    assert " 0.756 +-0.007 " in text


def test_agents_side_by_side_by_hand(tmp_path: Path):
    """Curves of made-up lives rise from half of a value at 4,096 steps to all of it at 8,192: an area of 5/8 of it."""
    alone = made_up(tmp_path / "stl", value=lambda number, task: 0.4)
    mine = [
        made_up(tmp_path / f"ewc-{seed}", "ewc", seed=seed, value=lambda number, task, seed=seed: 0.6 + 0.2 * seed)
        for seed in (0, 1)
    ]
    rows = {row["agent"]: row for row in compare([alone, *mine])}
    ewc, stl = rows["ewc"], rows["stl"]
    assert (ewc["seeds"], ewc["return"], ewc["return +-"]) == (2, pytest.approx(0.7), pytest.approx(0.1))
    assert stl["transfer"] is None  # it would be compared with itself
    both = compare([made_up(tmp_path / "again", "finetune", value=lambda number, task: 0.4), alone])
    assert {row["agent"]: row["transfer"] for row in both}["finetune"] == pytest.approx(0.0)
    assert (ewc["change"], ewc["parameters"], stl["parameters"]) == (0.0, 18_863, 4 * 16_815)
    assert ewc["normalised"] == pytest.approx(0.625 * 0.3 / (1 - 0.625 * 0.4), abs=1e-4)
    assert (ewc["worst"], ewc["kept"]) == (0.0, 1.0)  # all is kept
    assert ewc["return low"] < 0.6 < 0.8 < ewc["return high"] and stl["return low"] is None
    assert ewc["hours"] == pytest.approx(1 / 3600, abs=1e-4) and ewc["megabytes"] is None


def test_the_table_is_printed_and_written(lives: Callable[[str], Lived], tmp_path: Path):
    paths = [str(lives(name).path) for name in ("stl", "ewc")]
    end = command("table", *paths, "--out", str(tmp_path / "t.csv"))
    assert end.code == 0, end.err
    assert "change: return at the end minus that after its stage" in end.out and "STL, 3 tasks" in end.out
    with (tmp_path / "t.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["agent"] for row in rows} == {"stl", "ewc"} and all(float(row["megabytes"]) > 100 for row in rows)
    assert command("table", *paths, "--out", str(tmp_path / "t.png")).code == 2
    assert command("table").code == 2
