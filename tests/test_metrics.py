"""Metrics equal tables computed by hand, and intervals hold the truth as often as they say."""

import copy
import csv
import itertools
import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "scripts"))
from interval_coverage import coverage
from lives import Lived
from terminal import command
from test_figures import evaluation, made_up
from test_hostile import HOSTILE, places, put

from modlife import metrics
from modlife.analysis.lives import read_life
from modlife.analysis.measures import scores_of_life, scores_of_runs
from modlife.domains.grid2d.world import World
from modlife.domains.robot.world import RobotWorld
from modlife.errors import InputError
from modlife.metrics import Curve, Scores, Search, known_mean
from modlife.metrics.statistics import interquartile_mean_over_lives, mean_over_lives

RESULTS = Path(__file__).parent.parent / "results"
NAN = float("nan")

BY_HAND = Scores(
    ("a", "b", "c"),
    np.array(
        [
            [0.1, 0.0, 0.2],  # before anything is learnt
            [0.8, 0.2, 0.3],
            [0.6, 0.5, 0.1],
            [0.5, 0.6, 0.9],
        ]
    ),
)
"""Three tasks in a row, all evaluated after each stage."""


def curve(*points: tuple[float, float]) -> Curve:
    steps, returns = np.array(points, float).T
    return Curve(steps, returns)


# Each definition by hand


@pytest.mark.parametrize(
    ("metric", "parts"),
    [
        (metrics.zero_shot_bar, [0.1, 0.2, 0.1]),
        (metrics.online_bar, [NAN, NAN, NAN]),
        (metrics.offline_bar, [0.8, 0.5, 0.9]),
        (metrics.final_bar, [0.5, 0.6, 0.9]),
        (metrics.final_minus_offline, [-0.3, 0.1, 0.0]),
        (metrics.average_performance, [0.5, 0.6, 0.9]),
        (metrics.continual_world_forgetting, [0.3, -0.1, 0.0]),
        (metrics.gem_backward_transfer, [-0.3, 0.1, NAN]),
        (metrics.gem_forward_transfer, [NAN, 0.2, -0.1]),
        (metrics.cora_forgetting, [0.2 / 0.8, 0.1 / 0.8, -0.1 / 0.6]),
        (metrics.cora_zero_shot_transfer, [0.2 / 0.6, 0.1 / 0.9, -0.2 / 0.9]),
        (metrics.worst_change, [-0.3]),
        (metrics.kept, [0.0, 1.0, 1.0]),
    ],
)
def test_every_definition_by_hand(metric: Callable[[Scores], np.ndarray], parts: list[float]):
    np.testing.assert_allclose(metric(BY_HAND), parts, atol=1e-12)


def test_means_are_over_what_is_known():
    assert known_mean(metrics.gem_backward_transfer(BY_HAND)) == pytest.approx(-0.1)  # (-0.3 + 0.1) / 2, as GEM has it
    assert known_mean(metrics.continual_world_forgetting(BY_HAND)) == pytest.approx(0.2 / 3)  # over all three
    assert np.isnan(known_mean(metrics.online_bar(BY_HAND)))


def test_returns_after_practice_by_hand():
    """Three tasks, of which the second is not evaluated after it was practised; what is seen later does not count."""
    records = [{"kind": "curriculum", "stages": [["a"], ["b"], ["c"]]}]
    for stage, when, task, value in ((0, "online", "a", 0.25), (0, "seen", "a", 0.9), (2, "online", "c", 0.75)):
        records.append({"kind": "evaluation", "stage": stage, "when": when, "tasks": [task], "return": [value]})
    scores = metrics.scores_of(records)
    np.testing.assert_array_equal(metrics.online_bar(scores), [0.25, NAN, 0.75])
    assert known_mean(metrics.online_bar(scores)) == 0.5


def test_what_was_not_evaluated_does_not_count():
    """A task that is left out of the last evaluation has no forgetting; its CORA pairs with a gap are not known."""
    after = BY_HAND.after.copy()
    after[2, 0] = after[3, 1] = NAN
    scores = Scores(BY_HAND.tasks, after)
    np.testing.assert_allclose(metrics.continual_world_forgetting(scores), [0.3, NAN, 0.0], atol=1e-12)
    np.testing.assert_allclose(metrics.cora_forgetting(scores), [NAN, NAN, NAN])
    np.testing.assert_allclose(metrics.kept(scores), [0.0, NAN, 1.0])


def test_returns_may_be_negative_or_zero():
    scores = Scores(("a", "b"), np.array([[-4.0, 0.0], [-2.0, 0.0], [-3.0, 0.0]]))
    np.testing.assert_allclose(metrics.cora_forgetting(scores), [0.5])  # (-2 - -3) / |-2|
    assert np.isnan(metrics.cora_zero_shot_transfer(scores)).all()  # nothing is relative to a best of 0
    np.testing.assert_allclose(metrics.continual_world_forgetting(scores), [1.0, 0.0])


def test_tasks_learnt_together_and_a_longer_last_evaluation():
    scores = Scores(
        ("a", "b", "c"),
        np.array([[NAN] * 3, [0.4, 0.6, 0.2], [0.3, 0.7, 0.9]]),
        (1, 1, 2),
        final=np.array([0.5, NAN, 0.8]),
    )
    np.testing.assert_allclose(metrics.final_minus_offline(scores), [0.1, 0.1, -0.1], atol=1e-12)
    np.testing.assert_allclose(metrics.gem_backward_transfer(scores), [-0.1, 0.1, NAN], atol=1e-12)
    np.testing.assert_allclose(metrics.zero_shot_bar(scores), [NAN, NAN, 0.2])


CURVES = Scores(
    ("a", "b"),
    np.full((3, 2), NAN),
    curves={"a": curve((10, 0.2), (30, 0.6)), "b": curve((10, NAN), (20, 0.4))},
    alone={"a": curve((10, 0.0), (30, 0.4))},
)


@pytest.mark.parametrize(
    ("metric", "parts"),
    [
        (metrics.areas_under_curves, [(10 * 0.2 + 20 * 0.4) / 30, 0.4]),
        (metrics.area_gain, [1 / 3 - 4 / 30, NAN]),
        (metrics.normalised_transfer, [(1 / 3 - 4 / 30) / (1 - 4 / 30), NAN]),
        (metrics.jump_start, [0.2, NAN]),
        (lambda scores: metrics.steps_to_threshold(scores, 0.5), [30, 20]),  # b never: all of its steps
        (lambda scores: metrics.reaches_threshold(scores, 0.5), [1, 0]),
    ],
)
def test_curves_by_hand(metric: Callable[[Scores], np.ndarray], parts: list[float]):
    np.testing.assert_allclose(metric(CURVES), parts)


def test_curves_of_other_lengths_are_compared_up_to_the_end_of_the_shorter():
    """Up to step 20 the own curve has (10 * 0.2 + 10 * 0.3) / 20 = 0.25."""
    scores = Scores(("a",), np.full((2, 1), NAN), curves=CURVES.curves, alone={"a": curve((10, 0.1), (20, 0.1))})
    np.testing.assert_allclose(metrics.area_gain(scores), [0.15])
    np.testing.assert_allclose(metrics.normalised_transfer(scores), [0.15 / 0.9])
    perfect = Scores(("a",), np.full((2, 1), NAN), curves=CURVES.curves, alone={"a": curve((20, 1.0))})
    assert np.isnan(metrics.normalised_transfer(perfect)).all()  # nothing can be better than 1


SHARES = (metrics.kept, metrics.normalised_transfer, metrics.cora_forgetting)
SHARES += tuple(partial(one, threshold=0.4) for one in (metrics.steps_to_threshold, metrics.reaches_threshold))


@pytest.mark.parametrize("metric", SHARES)
def test_what_is_a_share_is_the_same_in_other_units_of_return(metric: Callable[[Scores], np.ndarray]):
    """With robots an episode returns up to 500: a loss of .05 is nothing there, one of 25 counts."""
    nearly = Scores(("a", "b"), np.array([[NAN, NAN], [0.8, NAN], [0.78, 0.5]]))  # .02 is lost, which does not count
    for scores in (BY_HAND, CURVES, nearly):
        long = replace(
            scores,
            after=500 * scores.after,
            final=None if scores.final is None else 500 * scores.final,
            curves={task: Curve(one.steps, 500 * one.returns) for task, one in scores.curves.items()},
            alone={task: Curve(one.steps, 500 * one.returns) for task, one in scores.alone.items()},
            highest=500.0,
        )
        np.testing.assert_allclose(metric(long), metric(scores))
    assert RobotWorld(horizon=300).graph.highest_return == 300 and World().graph.highest_return == 1
    assert metrics.kept(nearly).all() and not metrics.kept(replace(nearly, after=500 * nearly.after)).all()


def test_the_highest_return_comes_from_the_domain_or_the_user(tmp_path: Path):
    """A training return of 8 or more, as any robot has at once, is not half of what can be had."""
    run = RESULTS / "stl-none-can-iiwa-0"
    curve = [record for record in read_life(run).records if record["kind"] == "curve"]
    half = next(record["steps"] for record in curve if record["return"][0] >= 250)
    assert json_of("metrics", str(run), "--json")["steps to 0.5"] == half > curve[0]["steps"]
    table = written(tmp_path, "run,stage,task,value\na,1,x,400\na,2,x,380\na,2,y,10\n")
    kept = [json_of("metrics", table, "--json", *more)["kept their best"] for more in ([], ["--highest", "500"])]
    assert kept == [0.5, 1.0]


def json_of(*arguments: str) -> dict[str, float]:
    end = command(*arguments)
    assert end.code == 0, end.err
    return {row["metric"]: row["value"] for row in json.loads(end.out)}


def test_the_area_under_a_mean_curve_is_the_mean_area():
    both = [curve((10, NAN), (20, 0.4), (30, 0.6)), curve((10, 0.0), (20, NAN), (30, 0.2))]
    assert metrics.mean_curve(both).area == pytest.approx(np.mean([one.area for one in both]))
    shorter = metrics.mean_curve([curve((10, 0.2), (20, 0.4), (30, 1.0)), curve((5, 0.0), (25, 0.8))])
    np.testing.assert_allclose(shorter.steps, [5, 10, 20, 25])
    np.testing.assert_allclose(shorter.returns, [0.1, 0.2, 0.5, 0.75])


def test_a_mean_curve_on_different_grids_does_not_depend_on_the_order():
    """Nothing is known of the third, however short it is; up to step 25 the areas of the others are as cut there."""
    grids = [curve((10, 0.2), (20, 0.4), (30, 1.0)), curve((5, 0.0), (25, 0.8)), curve((1, NAN))]
    for curves in itertools.permutations(grids):
        mean = metrics.mean_curve(curves)
        np.testing.assert_allclose(mean.steps, [5, 10, 20, 25])
        assert mean.area == pytest.approx(np.mean([one.until(25).area for one in grids[:2]]))
    assert np.isnan(metrics.mean_curve(grids[2:]).returns).all()


def test_the_adjusted_rand_index_by_hand():
    """Six things, {1 2 3} {4 5 6} against {1 2} {3 4} {5 6}: S = 2, S_a = 6, S_b = 3, C(6, 2) = 15, E = 1.2."""
    assert metrics.adjusted_rand_index("aaabbb", "xxyyzz") == pytest.approx((2 - 1.2) / (4.5 - 1.2))
    assert metrics.adjusted_rand_index("aabb", [7, 7, 3, 3]) == 1.0  # names do not matter
    assert metrics.adjusted_rand_index("aabb", "abab") == pytest.approx((0 - 2 / 3) / (2 - 2 / 3))  # worse than chance
    assert metrics.adjusted_rand_index("aaaa", "aabb") == 0.0  # one module for everything tells nothing
    assert metrics.adjusted_rand_index("aaa", "bbb") == metrics.adjusted_rand_index("abc", "xyz") == 1.0
    with pytest.raises(InputError, match="3 and 2 labels"):
        metrics.adjusted_rand_index("aaa", "bb")


def test_the_adjusted_rand_index_is_zero_by_chance():
    draws = np.random.default_rng(0)
    found = [
        metrics.adjusted_rand_index(draws.integers(0, 4, 64).tolist(), [n % 4 for n in range(64)]) for _ in range(200)
    ]
    assert abs(np.mean(found)) < 0.005


def test_structures_and_searches_by_hand():
    structures = {"wall/red": (0, 2), "wall/blue": (0, 1), "lava/red": (1, 2), "lava/blue": (1, 2)}
    recovered = metrics.structure_recovery(structures)
    # the second factor: red 2 2, blue 1 2; S = 1, S_a = 2, S_b = 3, of 6 pairs: E = 1
    assert recovered == {0: 1.0, 1: pytest.approx((1 - 1) / (2.5 - 1))}
    assert metrics.tasks_per_module(structures) == {(0, 0): 2, (0, 1): 2, (1, 1): 1, (1, 2): 3}
    searches = {"wall/red": Search((0.2, 0.7, 0.1), 0.6, 300), "lava/blue": Search((0.1, 0.0), 0.2, 100)}
    scores = Scores(
        ("wall/red", "lava/blue"), np.zeros((3, 2)), curves={"wall/red": curve((1000, 0.5))}, searches=searches
    )
    np.testing.assert_allclose(metrics.search_regret(scores), [0.1, -0.1])
    np.testing.assert_allclose(metrics.search_share(scores), [0.3])
    with pytest.raises(InputError, match="no structure"):
        metrics.structure_recovery({"wall/red": (0,)})


def test_resources_from_a_summary():
    assert metrics.resources({"seconds": 1800.0, "cpu_seconds": {"online": 900, "offline": 900}}) == {
        "hours": 0.5,
        "processor hours": 0.5,
    }


# Statistics


def test_the_interquartile_mean_by_hand():
    assert metrics.interquartile_mean(np.array([9.0, 1.0, 2.0, 3.0])) == 2.5
    assert metrics.interquartile_mean(np.array([1.0, 2.0, 9.0])) == 4.0  # nothing is cut from three
    assert metrics.interquartile_mean(np.array([0.0, 1.0, 2.0, NAN, 3.0, 99.0])) == 2.0
    assert np.isnan(metrics.interquartile_mean(np.array([NAN])))


def test_the_interval_of_a_mean_is_students_but_for_the_draws():
    """Three lives, 0.2 0.4 0.9: mean 0.5, deviation 0.3606, t 4.3027: 0.5 +- 0.8957."""
    found = mean_over_lives([np.array([0.1, 0.3]), np.array([0.4]), np.array([0.9, NAN])], resamples=200_000)
    assert (found.value, found.lives) == (pytest.approx(0.5), 3)
    assert found.high - found.value == pytest.approx(0.8957, rel=0.01)
    again = mean_over_lives([np.array([0.2]), np.array([0.4]), np.array([0.9])], resamples=200_000)
    assert (again.low, again.high) == pytest.approx((found.low, found.high))  # the same draws


def test_one_life_has_no_interval_and_none_no_value():
    one = mean_over_lives([np.array([0.5]), np.array([NAN])])
    assert (one.value, one.lives) == (0.5, 1) and np.isnan([one.low, one.high]).all()
    none = interquartile_mean_over_lives([])
    assert none.lives == 0 and np.isnan(none.value)


def test_whole_lives_are_drawn():
    """Lives that differ as wholes: intervals do not shrink because each has a hundred tasks."""
    lives = [np.full(100, value) for value in (0.4, 0.5, 0.6)]
    few = [np.full(1, value) for value in (0.4, 0.5, 0.6)]
    assert mean_over_lives(lives).low == pytest.approx(mean_over_lives(few).low)
    assert interquartile_mean_over_lives(lives).value == pytest.approx(0.5)
    assert interquartile_mean_over_lives(lives).high > 0.6


@pytest.mark.parametrize(
    ("lives", "skewed", "low", "high"),
    [
        (3, False, 0.92, 0.98),
        (6, False, 0.92, 0.98),
        (20, False, 0.92, 0.98),
        (3, True, 0.87, 0.95),
        (6, True, 0.87, 0.95),
    ],
)
def test_intervals_cover_the_truth_as_often_as_they_say(lives: int, skewed: bool, low: float, high: float):
    """95 % where the luck of lives is normal; where a bad life comes now and then, a few less (docs/metrics.md)."""
    mean, middle, percentiles = coverage(lives, skewed=skewed, experiments=400, resamples=200)
    assert low <= mean <= high and low <= middle <= high and percentiles < mean


# Of lives


def test_the_metrics_of_a_committed_life_are_those_of_its_page():
    """docs/reproduction.md, Figure 3; found there by other means."""
    scores = scores_of_life(read_life(RESULTS / "comp-search-64-0"), {})
    found = {row["metric"]: row["value"] for row in metrics.measured({"life": [scores]})}
    for name, value in {"zero-shot": 0.551, "online": 0.831, "offline": 0.825, "final": 0.838}.items():
        assert found[name] == pytest.approx(value, abs=6e-4)
    assert (found["final minus offline"], found["worst change"]) == (
        pytest.approx(0.013, abs=6e-4),
        pytest.approx(-0.365, abs=6e-4),
    )
    lost = metrics.forgetting(read_life(RESULTS / "comp-search-64-0").records)
    assert lost is not None and found["backward transfer"] == pytest.approx(-lost, abs=1e-4)
    assert found["tasks per module"] == 16.0 and len(scores.searches) == 60
    given = scores_of_life(read_life(RESULTS / "comp-struct-64-0"), {})
    assert metrics.structure_recovery(given.structures) == {0: 1.0, 1: 1.0, 2: 1.0}


def test_a_small_life_has_its_scores(lives: Callable[[str], Lived]):
    life = read_life(lives("comp-search").path)
    scores = scores_of_life(life, {})
    assert scores.tasks == life.names and scores.stage == (1, 2, 3, 4)
    np.testing.assert_allclose(known_mean(scores.before), life.by_phase["zero-shot"]["mean_return"], atol=1e-4)
    np.testing.assert_allclose(known_mean(scores.learnt), life.by_phase["offline"]["mean_return"], atol=1e-4)
    np.testing.assert_allclose(scores.end, life.summary["seen"]["return"])
    np.testing.assert_array_equal(
        np.isnan(scores.after[:, 3]), [True, True, True, False, False]
    )  # known from its search on


def test_run_directories_are_measured(tmp_path: Path):
    alone = made_up(tmp_path / "stl", value=lambda number, task: 0.4)
    mine = [
        made_up(tmp_path / f"ewc-{seed}", "ewc", seed=seed, value=lambda number, task, seed=seed: 0.6 + 0.2 * seed)
        for seed in (0, 1)
    ]
    end = command("metrics", str(alone), *map(str, mine), "--json")
    assert end.code == 0, end.err
    rows = {(row["label"].split(",")[0], row["metric"]): row for row in json.loads(end.out)}
    gained = rows["EWC", "area gained"]
    assert gained["value"] == pytest.approx(0.625 * 0.3) and gained["lives"] == 2  # curves have 5/8 of their value
    assert rows["EWC", "forward transfer"]["value"] == pytest.approx(0.625 * 0.3 / (1 - 0.625 * 0.4))
    assert ("STL", "area gained") not in rows  # it would be compared with itself


def old_life(folder: Path) -> tuple[dict, list[dict]]:
    """A run directory without checksums, as the first versions wrote it: its summary, and lines of all kinds."""
    shutil.copytree(RESULTS / "stl-four-0", folder)
    summary = json.loads((folder / "summary.json").read_text())
    summary |= {"cpu_seconds": {"online": 1.0}, "peak_megabytes": 100}
    tasks = summary["seen"]["tasks"]
    lines: list[dict] = [{"kind": "curriculum", "stages": [[task] for task in tasks]}]
    for stage, task in enumerate(tasks):
        told = {"kind": "evaluation", "stage": stage}
        lines += [
            {
                "kind": "structure",
                "stage": stage,
                "structure": [0, 1, 0],
                "how": "searched",
                "steps": 5,
                "returns": [0.1],
            },
            {**told, "when": "zero-shot", **evaluation([task], [0.3])},
            {"kind": "curve", "stage": stage, "steps": 10, "return": [0.4]},
            {**told, "when": "seen", **evaluation(tasks[: stage + 1], [0.5] * (stage + 1))},
        ]
    return summary, lines


@pytest.mark.filterwarnings("default:overflow")
def test_whatever_an_old_life_says_there_are_metrics_or_a_sentence(tmp_path: Path):
    summary, lines = old_life(tmp_path / "a")
    whole, draws, refused = {"summary": summary, "lines": lines}, random.Random(0), 0
    for place in draws.sample([place for place in places(whole) if len(place) > 2], 200):
        body = copy.deepcopy(whole)
        put(body, place, draws.choice(HOSTILE))
        (tmp_path / "a" / "summary.json").write_text(json.dumps(body["summary"]))
        (tmp_path / "a" / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in body["lines"]))
        try:
            assert metrics.measured(scores_of_runs([tmp_path / "a"]))
        except InputError as error:
            refused += "\n" not in str(error)
    assert 100 < refused < 200


def test_lives_of_the_first_versions_that_did_not_say_when_have_all_metrics():
    """Single-task networks forget nothing: what changes is the luck of evaluations."""
    life = read_life(RESULTS / "stl-four-0")
    assert all("when" not in record for record in life.records)
    seen = [record["return"] for record in life.records if record["kind"] == "evaluation"]
    scores = scores_of_life(life, {})
    np.testing.assert_array_equal(scores.learnt, [returns[-1] for returns in seen])
    np.testing.assert_array_equal(scores.last, seen[-1])
    assert metrics.forgetting(life.records) == pytest.approx(np.mean((scores.learnt - scores.last)[:-1]))


def test_tasks_alone_are_those_learnt_with_the_same_settings(tmp_path: Path):
    """Alone .4, or .8 with another rate; together .6, and another rate: an area of 5/8 of each."""
    slow = {"learning_rate": 0.0001}
    runs = [
        made_up(tmp_path / "stl", value=lambda *_: 0.4),
        made_up(tmp_path / "stl-slow", value=lambda *_: 0.8, ppo=slow),
        made_up(tmp_path / "ewc", "ewc", value=lambda *_: 0.6),
        made_up(tmp_path / "ewc-slow", "ewc", value=lambda *_: 0.6, ppo=slow),
    ]
    found = scores_of_runs(runs)
    gained = {label: metrics.area_gain(scores) for label, (scores,) in found.items() if label.startswith("EWC")}
    assert sorted(metrics.known_mean(one) for one in gained.values()) == pytest.approx([-0.125, 0.125])
    assert all(not one.alone for label, (one,) in found.items() if label.startswith("STL"))


# Of anybody's numbers

TABLE = "run,stage,task,value\n" + "".join(
    f"{run},{stage},{task},{BY_HAND.after[stage, place] + shift:.2f}\n"
    for run, shift in (("one", 0.0), ("two", 0.1))
    for stage in range(4)
    for place, task in enumerate("abc")
)


def written(folder: Path, text: str | bytes) -> str:
    path = folder / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_a_table_of_anybodys_numbers(tmp_path: Path):
    end = command("metrics", written(tmp_path, TABLE), "--out", str(tmp_path / "out.csv"), "--confidence", "0.9")
    assert end.code == 0, end.err
    assert "table.csv: 2 lives" in end.out and "90 %" in end.out and "such as below 0 steps" in end.out
    with (tmp_path / "out.csv").open() as file:
        rows = {row["metric"]: row for row in csv.DictReader(file)}
    assert float(rows["average performance"]["value"]) == pytest.approx(2 / 3 + 0.05, abs=1e-6)
    assert float(rows["forgetting"]["value"]) == pytest.approx(0.2 / 3, abs=1e-6)
    assert float(rows["forgetting"]["low"]) == pytest.approx(0.2 / 3, abs=1e-6)  # the same in both lives
    assert float(rows["zero-shot gain"]["value"]) == pytest.approx(0.05)
    assert float(rows["average performance"]["low"]) < 2 / 3 < float(rows["average performance"]["high"])


def test_kinds_agents_curves_and_an_order_of_ones_own(tmp_path: Path):
    lines = [
        "agent,run,kind,stage,learnt,task,steps,value",
        "x,1,,1,2,b,,0.1",
        "x,1,,2,2,b,,0.7",
        "x,1,,1,1,a,,0.5",
        "x,1,,2,1,a,,",  # not evaluated
        "x,1,online,,1,a,,0.6",
        "x,1,final,,1,a,,0.4",
        "x,1,curve,,1,a,30,0.6",
        "x,1,curve,,1,a,10,0.2",
        "y,1,,1,1,a,,0.9",
        ",s1,alone,,,a,10,0.0",
        ",s1,alone,,,a,30,0.2",
        ",s2,alone,,,a,10,0.0",
        ",s2,alone,,,a,30,0.6",
    ]
    found = metrics.read_scores(Path(written(tmp_path, "\ufeff" + "\n".join(lines))))
    assert list(found) == ["x", "y"]
    [scores] = found["x"]
    assert (scores.tasks, scores.stage) == (("a", "b"), (1, 2))
    np.testing.assert_allclose(scores.after, [[NAN, NAN], [0.5, 0.1], [NAN, 0.7]])
    np.testing.assert_allclose(metrics.final_minus_offline(scores), [-0.1, 0.0], atol=1e-12)
    np.testing.assert_allclose(metrics.area_gain(scores), [1 / 3 - 4 / 30, NAN])


@pytest.mark.parametrize("order", [1, -1])
def test_curves_alone_on_different_grids_count_as_far_as_both_go(tmp_path: Path, order: int):
    """Alone .1 until step 100, then to .3 at 500: (100 * .1 + 400 * .2) / 500 = .18."""
    alone = ["s1,alone,,a,1000,0.2", "s1,alone,,a,2000,0.4", "s2,alone,,a,100,0.0", "s2,alone,,a,500,0.4"]
    lines = ["run,kind,stage,task,steps,value", "1,curve,,a,500,0.5", *alone[::order]]
    [scores] = metrics.read_scores(Path(written(tmp_path, "\n".join(lines))))[""]
    np.testing.assert_allclose(metrics.area_gain(scores), [0.5 - 0.18])


def test_runs_whose_tasks_are_in_different_orders_must_say_when_they_are_learnt(tmp_path: Path):
    lines = ["run,stage,task,value", "1,1,a,0.5", "1,2,b,0.5", "2,1,b,0.5", "2,2,a,0.5"]
    path = Path(written(tmp_path, "\n".join(lines)))
    with pytest.raises(InputError, match=r"runs '1' and '2' have the same tasks in different orders: say in a column"):
        metrics.read_scores(path)
    told = ["run,stage,task,value,learnt", *(f"{line},{line[2]}" for line in lines[1:])]
    one, two = metrics.read_scores(Path(written(tmp_path, "\n".join(told))))[""]
    assert (one.tasks, two.tasks) == (("a", "b"), ("b", "a"))
    written(tmp_path, "\n".join(["agent,run,stage,task,value", *(f"x{line[0]},{line}" for line in lines[1:])]))
    assert [one.tasks for [one] in metrics.read_scores(path).values()] == [("a", "b"), ("b", "a")]  # agents may differ


CONTINUAL_WORLD = {
    ("one", "average performance"): 0.558444,
    ("one", "forgetting"): 0.003778,
    ("one", "forward transfer"): 0.143662,
    ("two", "average performance"): 0.563333,
    ("two", "forgetting"): -0.032222,
    ("two", "forward transfer"): 0.125332,
}
"""What continualworld/results_processing/tables.py of awarelab/continual_world, commit 73f63bb4, makes of the numbers
in data/continual_world.csv, which were drawn at random: 2 methods x 3 seeds x 3 tasks x 6 evaluations, 3 baselines of
each task. Its returns after a stage are means of five evaluations, its areas means of evaluations: here, stairs."""


def test_metrics_are_those_of_continual_worlds_own_program():
    found = metrics.measured(metrics.read_scores(Path(__file__).parent / "data" / "continual_world.csv"))
    values = {(row["label"], row["metric"]): row["value"] for row in found}
    assert {name: values[name] for name in CONTINUAL_WORLD} == pytest.approx(CONTINUAL_WORLD, abs=2e-6)


HEAD = "run,stage,task,value\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no column run, stage, task, value; its first line has: nothing"),
        ("a;b\n1;2\n", "has no column run, stage, task, value"),
        ("run,stage,task,value,step\n1,1,a,0.5,9\n", "No column 'step'. Did you mean 'steps'?"),
        ("run,stage,task,value,task\n1,1,a,0.5,a\n", "has a column twice"),
        (HEAD, "has no returns of any life"),
        (HEAD + "1,1,a\n", "line 2 has not 4 cells"),
        (HEAD + "1,1,a,high\n", "line 2: value = 'high', which is not a finite number"),
        (HEAD + "1,1,a,inf\n", "value = 'inf'"),
        (HEAD + "1,1.5,a,0.5\n", "stage = '1.5', but it is a whole number"),
        (HEAD + "1,-1,a,0.5\n", "stage = '-1'"),
        (HEAD + "1,99999999,a,0.5\n", "stage = '99999999'"),
        (HEAD + "1,,a,0.5\n", "line 2: stage is empty"),
        (HEAD + "1,1,,0.5\n", "line 2: task is empty"),
        (HEAD + "1,1,a,0.5\n1,1,a,0.6\n", "line 3: 'a' has a return of this kind and stage in this run already"),
        (HEAD + "1,1,a,0.5\n1,2,a,0.6\n", "1 tasks and stages up to 2: say in a column learnt"),
        ("run,stage,task,value,kind\n1,1,a,0.5,sen\n", "No kind 'sen'. Did you mean 'seen'?"),
        ("run,stage,task,value,kind,steps\n1,1,a,0.5,curve,\n", "a point of a curve has its environment steps"),
        ("run,stage,task,value,kind,steps\n1,1,a,0.5,curve,5\n1,1,a,0.6,curve,5\n", "a return at 5 steps already"),
        ("run,stage,task,value,learnt\n1,1,a,0.5,1\n1,1,b,0.5,\n", "does not say in which stage 'b' is learnt"),
        ("run,stage,task,value,learnt\n1,1,a,0.5,1\n1,2,a,0.5,2\n", "'a' is learnt in stage 1, and in 2"),
        (b"run,stage,task,value\n1,1,\xff\xfe,0.5\n", "is not a text file in UTF-8"),
        (HEAD + '1,1,"a,0.5\n', "is not a CSV file"),
        (HEAD + f"1,1,{'x' * 200_000},0.5\n", "is not a CSV file"),
    ],
)
def test_a_table_that_cannot_be_read_gets_a_sentence(tmp_path: Path, text: str | bytes, sentence: str):
    end = command("metrics", written(tmp_path, text))
    assert end.code == 2 and sentence in end.err and len(end.err.splitlines()) == 1, end.err


def test_hostile_names_stay_text(tmp_path: Path):
    name = "<img src=x onerror=alert(1)>\x1b[31m"
    lines = f'agent,run,stage,task,value\n"{name}",1,1,"{name}",0.5\n'
    end = command("metrics", written(tmp_path, lines))
    assert end.code == 0 and "\x1b" not in end.out and "<img src=x onerror=alert(1)>\\x1b[31m: 1 life" in end.out
    end = command("metrics", written(tmp_path, lines + f'"{name}",1,1,"{name}",0.6\n'))
    assert end.code == 2 and "\x1b" not in end.err


def test_bad_options_get_a_sentence(tmp_path: Path):
    table = written(tmp_path, TABLE)
    assert "at least one CSV file or run directory" in command("metrics").err
    for options in (["--confidence", "1"], ["--confidence", "nan"], ["--out", str(tmp_path / "x.png")], ["nowhere"]):
        end = command("metrics", table, *options)
        assert end.code == 2 and len(end.err.splitlines()) == 1, end


def test_a_table_is_measured_without_jax(tmp_path: Path):
    table = written(tmp_path, TABLE)
    code = f"import sys, modlife.cli.main as cli; cli.main(['metrics', {table!r}]); print('jax' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.endswith("False\n")


def test_the_page_shows_code_that_runs():
    [code] = re.findall(r"```python\n(.*?)```", (RESULTS.parent / "docs" / "metrics.md").read_text(), re.DOTALL)
    exec(compile(code, "docs/metrics.md", "exec"), {})
