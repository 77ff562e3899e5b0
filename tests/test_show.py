"""What lives tell, in the terminal and on the page that explains their files."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lives import Lived
from terminal import command

from modlife import metrics
from modlife.analysis.comparison import compare
from modlife.analysis.report.told import read
from modlife.analysis.show import Page, alarms, differing, fitting, grouped, of_factor, short_names, show, side_by_side
from modlife.analysis.sparks import BLOCKS, LETTERS, in_bins, ramp_for, sparkline, table
from modlife.analysis.story import ModuleStory, Story, TaskStory, Value, read_story
from modlife.domains.film import Now, captions, ending
from modlife.runs.config import life_from_options
from modlife.runs.shipped import SHIPPED
from modlife.runs.store import RunWriter
from modlife.timing import took

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
PAGE = ROOT / "docs" / "run-directory.md"
HOSTILE = "\x1b[31m<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def searched_64() -> Story:
    return read_story(RESULTS / "comp-search-64-0")


# The numbers


def test_a_story_has_the_numbers_of_the_life(searched_64: Story):
    story, summary = searched_64, searched_64.summary
    assert summary is not None and story.standing.state == "ended" and story.standing.met == 64
    assert "older version, without checksums" in show(story, Page()) and "older" not in show(
        read_story(SHIPPED), Page()
    )
    assert story.now == pytest.approx(summary["seen"]["mean_return"], abs=1e-4)
    scores = metrics.scores_of(story.records, summary)
    assert story.mean_change == pytest.approx(np.mean(metrics.final_minus_offline(scores)), abs=1e-6)
    assert story.losses[0].change == pytest.approx(metrics.worst_change(scores)[0], abs=1e-6)
    changes = [one.change for one in story.losses]
    assert changes == sorted(changes, key=lambda change: change or 0.0) and len(changes) == 64
    for when, name in (("zero-shot", "zero_shot"), ("online", "online"), ("offline", "first")):
        told = metrics.by_phase(story.records)[when]["mean_return"]
        assert story.mean(name) == pytest.approx(told, abs=1e-4)


def test_table_report_and_show_tell_the_same_change():
    path = RESULTS / "clear-64x250k-0"
    (row,), story = compare([path]), read_story(path)
    changes = [one.change for one in read(path).kept]
    assert (row["change"], row["worst"]) == pytest.approx((np.mean(changes), min(changes)), abs=1e-6)
    assert (row["change"], row["worst"]) == pytest.approx((story.mean_change, story.losses[0].change), abs=1e-6)
    assert row["worst"] < -0.1


def test_modules_serve_every_task_once_per_factor(searched_64: Story):
    told = metrics.structures(searched_64.records)
    for factor in ("static", "target", "dynamics"):
        tasks = [task for one in searched_64.modules if one.factor == factor for task in one.tasks]
        assert sorted(tasks) == sorted(told["tasks"])
    for one in searched_64.modules:
        assert sum(one.components.values()) == len(one.tasks)
        assert list(one.components.values()) == sorted(one.components.values(), reverse=True)
    assert searched_64.how["found"] == {"fresh": 4, "searched": 60}
    assert (searched_64.how["searched"], searched_64.how["as_expected"]) == (told["searched"], told["as_expected"])


def test_many_modules_are_told_by_those_that_serve_most(searched_64: Story):
    counts = {f"part-{n}": 9 - n for n in range(7)}
    many = [ModuleStory("static", n, ("a",) * (20 - n), counts, "part-0") for n in range(11)]
    rows = of_factor(many, whole=False)
    assert [row[1] for row in rows[:-1]] == [str(n) for n in range(8)] and rows[-1][-1] == "and 3 modules more"
    assert rows[0][-1] == "part-0 9, part-1 8, part-2 7, part-3 6 and 3 more"
    assert len(of_factor(many, whole=True)) == 11 and "part-6 3" in of_factor(many, whole=True)[0][-1]


def test_options_that_mean_the_same_are_no_difference(searched_64: Story):
    every = read_story(RESULTS / "clear-64x250k-0")
    assert (searched_64.options["tasks"], every.options["tasks"]) == (64, None)
    assert not {"tasks", "curriculum"} & {row[0] for row in differing([searched_64, every])}
    few = replace(searched_64, config=life_from_options("comp-search", "grid2d", {"tasks": 64, "modules": 2}))
    assert ["modules", "4", "2"] in differing([searched_64, few])


def test_a_change_is_sure_beyond_two_standard_errors():
    first, far, near = Value(0.9, 0.03), Value(0.79, 0.04), Value(0.81, 0.04)
    assert TaskStory("a", 0, first=first, last=far, evaluated=2).is_sure  # .11 > 2 x .05
    assert not TaskStory("a", 0, first=first, last=near, evaluated=2).is_sure
    assert TaskStory("a", 0, first=first, last=first, evaluated=1).change is None


def test_alarms_are_told_of_the_agent_that_comes_with_the_package():
    story = read_story(SHIPPED)
    told = [record for record in story.records if record["kind"] == "retention"]
    harmed = {(record["stage"], one["task"]) for record in told for one in record["harmed"]}
    assert harmed and {(one.stage, one.task) for one in story.alarms} == harmed and len(story.alarms) == len(harmed)
    assert story.looked == sum(record["tasks"] > 0 for record in told) == len(told) - 4 >= 48 - 4  # four new ones
    text = show(story, Page())
    assert f"{len(story.alarms)} alarm" in text and all(one.before > one.after for one in story.alarms)


def look(stage: int, number: int | None, *harmed: str, **more: Any) -> dict[str, Any]:
    """A look at old tasks that found some harmed; what they return tells in which look."""
    found = [{"task": task, "drift": [0.0, 0.2], "return": [0.9, 0.1 * (number or 0)]} for task in harmed]
    return {"kind": "retention", "stage": stage, "round": number, "tasks": 2, "harmed": found, **more}


def test_only_what_the_last_look_of_a_stage_found_well_again_is_repaired(searched_64: Story):
    records = [
        {"kind": "curriculum", "stages": [["a"], ["b"], ["c"], ["d"]]},
        look(0, None, tasks=0),
        *(look(1, 0, "a"), look(1, 1, "a"), look(1, None, "a")),
        *(look(2, 0, "a", "b"), look(2, 1, "b"), look(2, None)),
        look(3, 0, "a"),  # the stage is not over
    ]
    story = replace(searched_64, records=records)
    found = [(one.stage, one.task, one.left, one.repaired) for one in story.alarms]
    assert found == [(1, "a", True, False), (2, "a", False, True), (2, "b", False, True), (3, "a", False, False)]
    assert story.looked == 7 and [one.after for one in story.alarms] == [0.0, 0.0, 0.1, 0.0]
    text = alarms(story)
    assert "looked at 7 times; 4 alarms, 1 of them after all repair" in text[0]
    assert sum("repaired" in line for line in text) == 2


# The text


def test_curves_are_drawn_by_eight_heights():
    assert sparkline(np.array([0.0, 0.5, 1.0, np.nan, 2.0, -1.0]), low=0, high=1) == "▁▅█ █▁"
    assert sparkline(np.array([0.0, 1.0]), low=0, high=1, ramp=LETTERS) == "_@"
    assert ramp_for("utf-8") == BLOCKS and ramp_for("ascii") == LETTERS and ramp_for(None) == LETTERS


def test_a_curve_in_bins_is_known_from_its_first_to_its_last_step():
    steps, values = np.array([30.0, 40.0, 70.0]), np.array([1.0, 3.0, 5.0])
    np.testing.assert_array_equal(in_bins(steps, values, end=100, bins=5), [np.nan, 2, 2, 5, np.nan])
    assert np.isnan(in_bins(np.zeros(0), np.zeros(0), end=100, bins=3)).all()


def test_tables_columns_and_names():
    assert table([["a", "b"], ["cc", "1.5"]]) == ["a     b", "cc  1.5"]
    assert list(fitting([10, 10, 30], 25)) == [[0, 1], [2]]
    assert short_names([Path("a/x"), Path("b/x"), Path("b/y")]) == ["a/x", "b/x", "b/y"]
    assert (took(7.25), took(125), took(3700)) == ("7.2 s", "2 min 5 s", "1 h 1 min")


def test_many_tasks_are_told_in_groups():
    tasks = [TaskStory(f"t{n}", n) for n in range(768)]
    groups = grouped(tasks, 96)
    assert len(groups) <= 32 and [one for group in groups for one in group] == tasks
    assert len(grouped(tasks[:96], 96)) == 96


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_life_fits_the_terminal(searched_64: Story, width: int):
    text = show(searched_64, Page(width))
    assert max(map(len, text.splitlines())) <= width
    first = next(line for line in text.splitlines() if "food/purple/dynamics-0" in line)
    assert first[0] in BLOCKS + " " and (first.endswith("searched") or width < 100)
    assert "worst first" in text and "food/purple/dynamics-0" in text.split("worst first")[1].splitlines()[1]


def test_lives_stand_side_by_side_by_what_differs():
    stories = [read_story(RESULTS / name) for name in ("mtl-16-0", "mtl-16-1", "mtl-32-0", "stl-64-0")]
    lines = [line.split() for line in side_by_side(stories, Page(100)).splitlines()]
    assert lines[0] == ["mtl-16-0", "mtl-16-1", "mtl-32-0", "stl-64-0"]
    assert ["seed", "0", "1", "0", "0"] in lines and ["tasks", "16", "16", "32", "64"] in lines
    assert not any(line and line[0] in ("steps", "episodes", "world.size") for line in lines)  # they are the same
    finals = [f"{story.summary['seen']['mean_return']:.3f}" for story in stories if story.summary]
    assert ["return", "now", *finals] in lines


def test_every_agents_life_is_shown(life: Lived):
    end = command("show", str(life.path))
    assert end.code == 0 and "ended: " in end.out and all(str(task) in end.out for task in life.config.chosen)
    (told,) = json.loads(command("show", str(life.path), "--json").out)
    assert [one["task"] for one in told["tasks"]] == [str(task) for task in life.config.chosen]


def test_a_life_that_goes_on_is_shown_as_it_stands(searched: Lived, tmp_path: Path):
    number = searched.amid("offline")
    run, facts = searched.copy(tmp_path / "run", number), searched.described()[number].facts
    end = command("show", str(run.path))
    assert f"interrupted: {len(facts.met)} of 4 tasks learnt, in the offline phase" in end.out
    assert f"go on with: modlife train --resume --out {run.path}" in end.out
    with RunWriter.reopen(run.path):
        assert f"running: {len(facts.met)} of 4 tasks learnt" in command("show", str(run.path)).out
    assert "interrupted" in command("show", str(run.path)).out
    assert "return now" in command("show", str(run.path), str(searched.path)).out


def test_names_from_files_do_no_harm(tmp_path: Path):
    run = tmp_path / HOSTILE.replace("/", "")
    shutil.copytree(RESULTS / "mtl-16-0", run)
    assert "\x1b" not in command("show", str(run)).out + command("show", str(run), str(RESULTS / "mtl-16-0")).out
    lines = (run / "metrics.jsonl").read_text().splitlines()
    record = {"kind": "retention", "stage": 0, "round": None, "tasks": 1}
    harmed: Any = [{"task": HOSTILE, "drift": [0.0, 0.0], "return": [0.0, 0.0]}]
    for wrong in (harmed, [{}], [5], [{**harmed[0], "task": "a", "return": [1.0]}], "x"):
        (run / "metrics.jsonl").write_text("\n".join([*lines, json.dumps({**record, "harmed": wrong})]) + "\n")
        end = command("show", str(run))
        assert end.code == 2 and "\x1b" not in end.err and "metrics.jsonl" in end.err and "Traceback" not in end.err
    assert command("show").err == "modlife: Give at least one run directory.\n"


def test_showing_takes_no_jax():
    code = (
        f"import sys; from modlife.cli.main import main; main(['show', {str(SHIPPED)!r}]); print('jax' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines()[-1] == "False"


# Captions of films


def test_captions_say_step_action_modules_and_outcome():
    now = Now(12, 64, "turn left", 0.5, success=True, over="goal met")
    assert captions(now, "episode 1 of 3", "0-2-1") == [
        "episode 1 of 3   step 12 of 64   turn left",
        "modules 0-2-1   return 0.50   goal met",
    ]
    assert captions(Now(0, 64), "episode 1 of 3", "") == ["episode 1 of 3   step 0 of 64", "return 0.00"]
    ends = [ending(*bits) for bits in ((True, True, False), (False, True, False), (False, False, True))]
    assert ends == ["goal met", "failed", "time is up"] and ending(True, False, False) == ""


# The page that explains the files


@cache
def documented(heading: str) -> set[str]:
    """The fields that the table below a heading explains."""
    part = re.split(r"^##+ ", PAGE.read_text().split(f"\n{heading}\n", 1)[1], flags=re.MULTILINE)[0]
    rows = re.findall(r"^\| (`[^|]*`) \|", part, flags=re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def records_in(path: Path) -> Iterator[dict[str, Any]]:
    with path.open() as lines:
        yield from map(json.loads, lines)


def check_explained(folder: Path) -> None:
    for record in records_in(folder / "metrics.jsonl"):
        assert set(record) <= documented(f"### `{record['kind']}`"), record["kind"]
    for name in ("summary.json", "manifest.json"):
        told = json.loads((folder / name).read_text())
        assert set(told) <= documented(f"## {name}"), name


def test_every_field_of_committed_results_is_explained():
    assert documented("### `curve`") >= {"kind", "stage", "steps", "return", "success", "entropy"}
    for folder in (*sorted(RESULTS.glob("*/")), SHIPPED):
        if (folder / "metrics.jsonl").exists():
            check_explained(folder)


def test_every_field_of_every_agents_life_is_explained(life: Lived):
    check_explained(life.path)
    index = json.loads((life.run.checkpoints.path(life.run.checkpoints.numbers()[-1]) / "checkpoint.json").read_text())
    assert set(index) <= documented("## checkpoints/00000012/")
    inside = {*index["description"], *index["description"]["facts"]}
    assert inside <= set(re.findall(r"`(\w+)`", PAGE.read_text()))
