"""Figures of the committed results, with the results' own numbers; and of made-up lives, with numbers by hand."""

import csv
import json
import math
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from PIL import Image

from modlife import metrics
from modlife.analysis.figures import (
    FIGURES,
    curves,
    figure_2,
    figure_3,
    figure_4,
    figure_e1,
    figure_e2,
    figure_e3,
    single_task,
)
from modlife.analysis.groups import grouped, in_steps
from modlife.analysis.lives import FinishedLife, Row, label, read_life, read_lives, save
from modlife.analysis.meanings import about_option, words_of
from modlife.analysis.panels import NOTHING, letters_below
from modlife.cli.figure import Options, run
from modlife.errors import InputError, StoreError
from modlife.lifelong.agents import AGENTS
from modlife.metrics import summarise
from modlife.registry import resolve
from modlife.runs.codec import flat, to_json
from modlife.runs.config import LifeConfig, life_from_options
from modlife.runs.store import RunDirectory, RunWriter

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
ABLATIONS, LIKE_THEM = ("pc-bcq-64*", "clear-modular-64*"), ("clear-64x250k-*", "pc-64x250k-*")


def found(*patterns: str) -> list[Path]:
    return sorted(path for pattern in patterns for path in RESULTS.glob(pattern))


COMMITTED = {
    "fig2": found("mtl-??-*", "mtl-monolithic-??-*", "stl-64-*"),
    "fig2-million": found("mtl-??x1M-*", "mtl-monolithic-??x1M-*", "stl-64x1M-*"),
    "figE1": found("mtl-??-*", "mtl-chain-*", "comp-search-64x250k-halving-?", *ABLATIONS, *LIKE_THEM),
    "figE1a-million": found("mtl-48x1M-*"),
    "fig3": sorted({*found("*-64x250k-*", "stl-64-*")} - {*found("*-modules-*", *ABLATIONS)}),
    "fig3-million": found("*-64x1M-*", "comp-search-64-halving-0", "comp-search-64-0"),
    "fig4": found("*-robot-8x400k-*"),
    "figE2": found("comp-search*-64x250k-halving-*"),
    "figE3": found("pc*-robot-4x400k-*", "stl-robot-4x400k-*", "comp-struct-robot-4x400k-*"),
    "stl": found("stl-four-*"),
}
"""What docs/images were drawn from; a picture's name begins with its figure's."""

IMAGE = "<img src=x onerror=alert(1)>"
"""A name that would be markup."""
Value = Callable[[int, str], float]


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def evaluation(tasks: Sequence[str], returns: Sequence[float]) -> dict[str, Any]:
    same = {name: [0.0] * len(tasks) for name in ("standard_error", "length")}
    same["success"] = [value / 2 for value in returns]
    mean = round(float(np.mean(returns)), 4)
    return {"tasks": [*tasks], "episodes": 4, "mean_return": mean, "return": [*returns], **same}


def learnt(stage: int, tasks: Sequence[str], value: float) -> list[dict[str, Any]]:
    """A curve that rises from half to all of a value; half as much of its episodes succeed."""
    returns = {4096: [value / 2] * len(tasks), 8192: [value] * len(tasks)}
    return [
        {"kind": "curve", "stage": stage, "steps": steps, "return": found, "success": [one / 2 for one in found]}
        for steps, found in returns.items()
    ]


def records_of(config: LifeConfig, value: Value) -> list[dict[str, Any]]:
    """A curve for each task; agents with an offline phase tell a zero-shot return of a tenth, too."""
    stages = [[str(task) for task in stage] for stage in config.stages.stages]
    records: list[dict[str, Any]] = [{"kind": "curriculum", "stages": stages}]
    for number, tasks in enumerate(stages):
        of_task, told = value(number, tasks[0]), {"kind": "evaluation", "stage": number}
        if hasattr(config.settings, "offline"):
            records.append({**told, "when": "zero-shot", **evaluation(tasks, [of_task / 10])})
        records += learnt(number, tasks, of_task)
        if hasattr(config.settings, "offline"):
            records.append({**told, "when": "online", **evaluation(tasks, [of_task])})
        seen = [task for stage in stages[: number + 1] for task in stage]
        records.append({**told, "when": "seen", **evaluation(seen, [of_task] * len(seen))})
    return records


def made_up(path: Path, agent: str = "stl", *, value: Value = lambda number, task: 0.5, **options: Any) -> Path:
    """The run directory of a life whose tasks all end with a value: a function of their place and name."""
    config = life_from_options(agent, "grid2d", {"tasks": 4, "steps": 20_000, **options})
    names = [str(task) for task in config.chosen]
    finals = [value(number, name) for number, name in enumerate(names)]
    with RunWriter.create(path, config) as writer:
        for record in records_of(config, value):
            writer.append(record)
        together = {"unseen": evaluation(["wall/red/dynamics-0"], [finals[0] / 2]), "wrong_module": {"static": 0.25}}
        writer.finish(
            {
                "agent": agent,
                "domain": "grid2d",
                "seed": config.seed,
                "tasks": len(names),
                "steps_per_task": config.steps,
                "seconds": 1.0,
                "seen": evaluation(names, finals),
                **(together if config.order.together else {}),
            }
        )
    return path


def renamed(path: Path, to: Callable[[str], str]) -> None:
    """Gives tasks other names, everywhere in a run directory."""
    run = RunDirectory(path)
    names, records, summary = [str(task) for task in run.config().chosen], run.metrics(), run.summary()
    text = json.dumps([records, summary])
    for name in names:
        text = text.replace(json.dumps(name), json.dumps(to(name)))
    records, summary = json.loads(text)
    config = run.config()
    shutil.rmtree(path)
    with RunWriter.create(path, config) as writer:
        for record in records:
            writer.append(record)
        writer.finish({name: value for name, value in summary.items() if name not in ("files", "sha256")})


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[Any, list[Row]]]:
    """Draws, and gives the figure and its rows instead of files."""

    def of(module: ModuleType, *paths: Path) -> tuple[Any, list[Row]]:
        kept: list[Any] = []
        with monkeypatch.context() as patch:
            patch.setattr(module, "save", lambda figure, rows, out: kept.extend((figure, rows)))
            module.draw(paths, tmp_path / "x.png")
        return kept[0], kept[1]

    return of


def legend(axes: Any) -> list[str]:
    found = axes.get_legend()
    return (
        [text.get_text().replace("\n", " ").replace("\N{NO-BREAK SPACE}", " ") for text in found.get_texts()]
        if found
        else []
    )


def line(axes: Any, number: int = 0) -> list[list[float]]:
    return np.array(axes.lines[number].get_data()).tolist()


# The committed results


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, str]]]:
    """The tables of figures of the committed results, drawn now."""
    folder = tmp_path_factory.mktemp("committed")
    for name, runs in COMMITTED.items():
        run(Options(name.split("-")[0], tuple(runs), folder / f"{name}.png"))
    return {name: table(folder / f"{name}.csv") for name in COMMITTED}


@pytest.mark.parametrize("name", COMMITTED)
def test_the_documentation_shows_what_is_drawn_now(name: str, committed: dict[str, Any]):
    with Image.open(ROOT / f"docs/images/{name}.png") as picture:
        assert picture.width > 600  # one panel
    for row, shown in zip(committed[name], table(ROOT / f"docs/images/{name}.csv"), strict=True):
        numbers = {column: float(row[column] or "nan") for column in ("value", "standard_error")}
        assert {**shown, **numbers} == {**row, **numbers}
        for column, number in numbers.items():
            assert number == pytest.approx(float(shown[column] or "nan"), abs=1e-4, nan_ok=True)


def test_figure_2_shows_the_committed_results(committed: dict[str, Any]):
    rows = {(row["what"], row["agent"], row["tasks"]): row for row in committed["fig2"]}
    unseen = [
        json.loads((run / "summary.json").read_text())["unseen"]["mean_return"] for run in RESULTS.glob("mtl-48-*")
    ]
    shown = rows["zero-shot", "mtl", "48"]
    assert (shown["label"], int(shown["seeds"])) == ("MTL modular, 48 tasks", len(unseen))
    assert float(shown["value"]) == pytest.approx(np.mean(unseen), abs=1e-4)
    wrong = json.loads((RESULTS / "mtl-48-0/summary.json").read_text())["wrong_module"]
    assert [row["part"] for row in committed["figE1"] if row["what"] == "modules"] == [
        "all correct",
        *(f"wrong {factor}" for factor in wrong),
    ]


def test_figure_3_shows_the_committed_results(committed: dict[str, Any]):
    rows, lives = committed["fig3"], sorted(RESULTS.glob("comp-search-64x250k-halving-?"))
    summaries = [json.loads((life / "summary.json").read_text()) for life in lives]
    own = [row for row in rows if row["agent"] == "comp-search" and "halving" in row["label"]]
    shown = {row["what"]: row for row in own if row["what"] != "curve" and not row["seen"]}
    for when in ("zero-shot", "online", "offline"):
        means = [summary["by_phase"][when]["mean_return"] for summary in summaries]
        assert float(shown[when]["value"]) == pytest.approx(np.mean(means), abs=1e-4)
    finals = [summary["seen"]["mean_return"] for summary in summaries]
    assert float(shown["final"]["value"]) == pytest.approx(np.mean(finals), abs=1e-4)
    assert float(shown["final"]["standard_error"]) == pytest.approx(
        np.std(finals, ddof=1) / len(lives) ** 0.5, abs=1e-4
    )
    seen = [row for row in own if row["what"] == "zero-shot" and row["seen"]]
    assert [int(row["seen"]) for row in seen] == list(range(64)) and all(row["steps"] == "" for row in seen)
    each = np.mean([summary["by_phase"]["zero-shot"]["return"] for summary in summaries], axis=0)
    np.testing.assert_allclose([float(row["value"]) for row in seen], each, atol=1e-4)
    once = [row for row in rows if row["seeds"] == "1"]  # not known, and not drawn as zero
    assert once and all(row["standard_error"] == "" for row in once)


def test_single_task_figure_shows_the_committed_results(committed: dict[str, Any]):
    summaries = [json.loads((run / "summary.json").read_text())["seen"] for run in COMMITTED["stl"]]
    finals, points = ([row for row in committed["stl"] if row["what"] == what] for what in ("final", "curve"))
    for row in finals:
        own = [summary["return"][summary["tasks"].index(row["part"])] for summary in summaries]
        assert (row["seeds"], float(row["value"])) == ("3", pytest.approx(np.mean(own), abs=1e-4))
    assert [row["part"] for row in finals] == summaries[0]["tasks"]
    released = [(row["part"], int(row["steps"]), float(row["value"])) for row in points if row["label"] != "STL"]
    assert ("wall/red/dynamics-0", 200_000, 0.418) in released and len(released) == 4 * 7
    assert len(points) > 4 * 200  # what is drawn stands in the table, ours too


def test_every_figure_in_the_table_can_be_loaded():
    assert {entry.name for entry in FIGURES} >= {"fig2", "fig3", "stl"}
    assert all(callable(resolve(entry.draw)) for entry in FIGURES)


def test_old_results_get_new_numbers():
    """Retention was not in their summaries; it follows from their records."""
    retention = summarise(read_life(RESULTS / "comp-search-64-0").records)["retention"]
    assert retention["worst_change"] < -0.2 and retention["worst_task"].count("/") == 2
    assert -0.05 < retention["mean_change"] < 0.05


@pytest.mark.parametrize("run", sorted(RESULTS.iterdir()), ids=lambda path: path.name)
def test_every_committed_result_has_its_provenance(run: Path):
    manifest = RunDirectory.open(run).manifest()
    assert manifest["git"]["dirty"] is False
    assert len(manifest["git"]["commit"]) == 40
    life = read_life(run)
    assert life.tasks == life.summary["tasks"] == len(life.curves.tasks)


# Tasks are joined by name


def test_single_task_means_are_over_the_lives_that_have_the_task(tmp_path: Path, drawn: Callable[..., Any]):
    """Two seeds have two orders of tasks: the first of one is the third of the other, all others are not shared."""
    shared = "floor/green/dynamics-0"
    of_seed = [{shared: 0.2}, {shared: 0.4}]
    runs = [
        made_up(tmp_path / str(seed), seed=seed, value=lambda _, task, own=of_seed[seed]: own.get(task, 0.9))
        for seed in (0, 1)
    ]
    first, second = (read_life(run).names for run in runs)
    assert (first.index(shared), second.index(shared)) == (0, 2)
    figure, rows = drawn(single_task, *runs)
    assert [axes.get_title() for axes in figure.axes] == [*first, *(task for task in second if task != shared)]
    assert [axes.get_subplotspec().rowspan.start for axes in figure.axes] == [0] * 6 + [1]
    by_task = {row.part: row for row in rows}
    both = by_task.pop(shared)
    assert (both.seeds, both.label) == (2, "STL")
    assert (both.value, both.error) == pytest.approx(
        (0.3, 0.1)
    )  # errors of 0.2 and 0.4: sqrt(2 * 0.1**2 / 1) / sqrt(2)
    assert {(row.seeds, row.value, math.isnan(row.error)) for row in by_task.values()} == {(1, 0.9, True)}
    assert line(figure.axes[0], 2) == [[4.096, 8.192], pytest.approx([0.15, 0.3])]  # after the lines of single seeds
    assert legend(figure.axes[0]) == ["STL, 2 seeds"] and legend(figure.axes[1]) == ["STL, 1 seed"]


def test_single_task_curves_stand_beside_the_released_ones(tmp_path: Path, drawn: Callable[..., Any]):
    run = made_up(tmp_path / "a", tasks=None, only=["wall/red/dynamics-0", "wall/red/dynamics-1"])
    figure, _ = drawn(single_task, run)
    assert legend(figure.axes[0]) == ["STL, 1 seed", "released code, 1 seed"]
    assert line(figure.axes[0], 1)[1] == list(single_task.RELEASED["wall/red/dynamics-0"])
    assert legend(figure.axes[1]) == ["STL, 1 seed"]


def test_curves_that_begin_later_are_not_moved_to_the_beginning():
    """A search that tells no returns shifts a stage's curve; before it, nothing is known."""
    records = [{"kind": "curriculum", "stages": [["a"], ["b"]]}]
    records += [{"kind": "curve", "stage": 0, "steps": steps, "return": [0.1]} for steps in (10, 20, 30)]
    records += [{"kind": "curve", "stage": 1, "steps": steps, "return": [steps / 100]} for steps in (15, 25, 35)]
    found = metrics.curves(records)
    assert found.tasks == ("a", "b")
    np.testing.assert_allclose(found.returns[1], [np.nan, 0.2, 0.3])


# Seeds are lives that differ in nothing else


def test_lives_with_other_options_are_not_taken_for_seeds(tmp_path: Path, drawn: Callable[..., Any]):
    usual = made_up(tmp_path / "a", value=lambda *_: 0.2)
    other = made_up(tmp_path / "b", value=lambda *_: 0.8, ppo={"learning_rate": 0.0001})
    for module, base in ((figure_3, "STL, 20k steps"), (figure_2, "STL, 4 tasks"), (single_task, "STL")):
        figure, rows = drawn(module, usual, other)
        found = {(row.label, row.seeds): row.value for row in rows if row.what == "final"}
        assert found == {
            (f"{base}, ppo.learning_rate 0.001", 1): 0.2,
            (f"{base}, ppo.learning_rate 0.0001", 1): 0.8,
        }
        assert legend(figure.axes[0]) == [f"{label}, 1 seed" for label, _ in found]


def test_a_run_given_twice_and_its_copy_are_one_life(tmp_path: Path, drawn: Callable[..., Any]):
    run = made_up(tmp_path / "a")
    copy = shutil.copytree(run, tmp_path / "copy")
    (tmp_path / "link").symlink_to(run)
    (final,) = [row for row in drawn(figure_3, run, run, tmp_path / "link", copy)[1] if row.what == "final"]
    assert (final.seeds, final.value) == (1, 0.5) and math.isnan(final.error)


def test_two_lives_of_one_config_and_seed_with_other_results_are_refused(tmp_path: Path):
    one, other = made_up(tmp_path / "a"), made_up(tmp_path / "b", value=lambda *_: 0.6)
    with pytest.raises(InputError, match=f"'{one}' and '{other}' have the same config and seed but different results"):
        read_lives([one, other])


def test_what_is_usual_is_the_same_whether_it_was_said_or_not(tmp_path: Path):
    runs = [
        made_up(tmp_path / "a", tasks=None, seed=0),
        made_up(tmp_path / "b", tasks=64, seed=1, curriculum="paper"),
    ]
    runs += [
        made_up(tmp_path / f"{n}", "comp-search", tasks=5, steps=99_999, seed=n or 0, modules=n) for n in (None, 4)
    ]
    found = [(group.label, len(group.lives)) for group in grouped(read_lives(runs), lambda life: life.agent)]
    assert found == [("comp-search", 2), ("stl", 2)]


def test_labels_say_what_differs_and_where_that_is_too_much_which_run(tmp_path: Path):
    first = [f"wall/red/dynamics-{number}" for number in range(4)]
    runs = [
        made_up(tmp_path / "a", steps=20_100),
        made_up(tmp_path / "b", steps=20_900),
        made_up(tmp_path / "c", tasks=None, only=[*first, "floor/red/dynamics-0"]),
        made_up(tmp_path / "d", tasks=None, only=[*first, "floor/red/dynamics-1"]),
    ]
    lives = read_lives(runs)
    assert [group.label for group in grouped(lives[:2], lambda life: "x")] == ["x, 20,100 steps", "x, 20,900 steps"]
    assert [group.label for group in grouped(lives[2:], lambda life: "x")] == [f"x, as in {run}" for run in runs[2:]]
    assert [in_steps(count) for count in (500, 20_000, 1_000_000)] == ["500 steps", "20k steps", "1000k steps"]


def test_labels_name_the_consolidator_where_there_are_several(tmp_path: Path):
    runs = [
        made_up(tmp_path / "search", "comp-search", offline={"consolidator": "bounded"}),
        made_up(tmp_path / "struct", "comp-struct"),
        made_up(tmp_path / "alone"),
    ]
    lives = read_lives(runs)
    found = [group.label for group in grouped(lives, lambda life: label(life.agent))]
    assert found == ["Comp.+Search, bounded", "Comp.+Struct., bcq", "STL"]
    assert [one.label for one in grouped(lives[1:], lambda life: label(life.agent))] == ["Comp.+Struct.", "STL"]
    told = grouped(lives, lambda life: f"{life.agent}, `{life.consolidator}`")  # once is enough
    assert [one.label for one in told] == ["comp-search, `bounded`", "comp-struct, `bcq`", "stl, `None`"]


def test_a_way_that_is_chosen_by_name_stands_for_its_options(tmp_path: Path):
    searches = [{"search": "halving"}, {"search": "exhaustive"}, {"search": "halving", "margin": 0.5}]
    other = made_up(tmp_path / "other", "comp-search", tasks=5, steps=99_999, search="exhaustive", modules=3)
    runs = [
        made_up(tmp_path / str(n), "comp-search", tasks=5, steps=99_999, search=search)
        for n, search in enumerate(searches)
    ]
    lives = read_lives(runs)
    assert [one.label for one in grouped(lives[:2], lambda life: "x")] == ["x, search halving", "x, search exhaustive"]
    labels = [one.label for one in grouped([lives[0], *read_lives([other])], lambda life: "x")]
    assert labels == ["x, modules 4, search halving", "x, modules 3, search exhaustive"]
    alone = read_lives([made_up(tmp_path / "nc", "comp-search-nc", search="halving"), made_up(tmp_path / "stl")])
    labels = [one.label for one in grouped([lives[1], *alone], lambda life: life.agent)]  # not to be mistaken
    assert labels == ["comp-search, search exhaustive", "comp-search-nc, search halving", "stl"]
    assert [one.label for one in grouped(lives[::2], lambda life: "x")] == [
        "x, search.margin 0.2",
        "x, search.margin 0.5",
    ]


def test_intervals_are_students_and_set_no_range(tmp_path: Path, drawn: Callable[..., Any]):
    """Three lives, 0.2 0.4 0.9: 0.5 +- 0.8957 at the end of the curve; two have no interval, but a point each."""
    values = (0.2, 0.4, 0.9)
    three = [
        made_up(tmp_path / f"{seed}", "comp-struct", seed=seed, value=lambda *_, v=value: v)
        for seed, value in enumerate(values)
    ]
    figure, _ = drawn(figure_3, *three)
    curves, zero_shot, bars = figure.axes
    (band,), (before,) = curves.collections, zero_shot.collections
    ends = band.get_paths()[0].vertices
    assert (ends[:, 1].min(), ends[:, 1].max()) == pytest.approx((0.5 - 0.8957, 0.5 + 0.8957), abs=1e-3)
    assert before.get_paths()[0].vertices[:, 1].max() == pytest.approx(0.05 + 0.08957, abs=1e-3)
    reached = [one.get_segments()[0][:, 1] for one in bars.collections]
    assert max(one[1] for one in reached) == pytest.approx(0.5 + 0.8957, abs=1e-3)
    assert all(axes.get_ylim() == (0, 1) for axes in figure.axes)
    assert "(band: 95 % interval, from 3 seeds on)" in curves.get_title()
    assert "(thin lines: 95 % interval over seeds)" in bars.get_title()
    curves, zero_shot, bars = drawn(figure_3, *three[:2])[0].axes
    assert not curves.collections and not zero_shot.collections and "interval" not in curves.get_title()
    assert points(bars)[-1] == pytest.approx([0.2, 0.4]) and len(bars.collections) == 4  # one for each phase
    assert "(points: two seeds)" in bars.get_title()
    assert not drawn(figure_3, three[0])[0].axes[2].collections


def points(axes: Any) -> list[list[float]]:
    """The heights of points that are drawn together."""
    return [one.get_offsets()[:, 1].tolist() for one in axes.collections]


def test_zero_shot_lines_join_lives_that_differ_in_tasks_alone(tmp_path: Path, drawn: Callable[..., Any]):
    value: Value = lambda number, task: 0.8  # noqa: E731
    runs = [made_up(tmp_path / f"{tasks}", "mtl", tasks=tasks, value=value) for tasks in (4, 8)]
    runs.append(made_up(tmp_path / "seed", "mtl", tasks=8, seed=1, value=lambda *_: 0.4))
    runs.append(made_up(tmp_path / "slow", "mtl", tasks=8, ppo={"learning_rate": 0.0001}, value=value))
    figure, rows = drawn(figure_2, *runs)
    middle = figure.axes[1]
    assert legend(middle) == [
        "MTL modular, ppo.learning_rate 0.001, 1 to 2 seeds",
        "MTL modular, ppo.learning_rate 0.0001, 1 seed",
    ]
    assert line(middle)[0] == [4, 8] and line(middle)[1] == pytest.approx([0.4, 0.3])
    found = {(row.label, row.seeds): row.value for row in rows if row.what == "zero-shot"}
    names = ["MTL modular, 8 tasks, ppo.learning_rate 0.001", "MTL modular, 8 tasks, ppo.learning_rate 0.0001"]
    assert found == pytest.approx({("MTL modular, 4 tasks", 1): 0.4, (names[0], 2): 0.3, (names[1], 1): 0.4})
    figure, rows = drawn(figure_e1, *runs)
    right = figure.axes[0]
    assert legend(right) == [f"{names[0]}, 2 seeds", f"{names[1]}, 1 seed"]
    modules = {(row.label, row.part): row.value for row in rows if row.what == "modules"}
    assert modules == pytest.approx(
        {(name, part): v for name, all_ in zip(names, (0.6, 0.8), strict=True) for part, v in both(all_)}
    )
    assert points(middle) == [pytest.approx([0.4, 0.2])]  # the two seeds with 8 tasks
    assert "points: two seeds" in middle.get_title() and "points: two seeds" in right.get_title()


def both(right: float) -> tuple[tuple[str, float], ...]:
    return ("all correct", right), ("wrong static", 0.25)


# Lives of any length


@pytest.mark.parametrize("tasks", [*range(1, 10), 40])
def test_the_zero_shot_line_is_a_mean_within_the_life(tasks: int, tmp_path: Path, drawn: Callable[..., Any]):
    """Zero-shot returns of 0, 0.1, 0.2, ...: the mean of w of them in a row lies on the same line, if it is one."""
    run = made_up(tmp_path / "a", "comp-struct", tasks=tasks, value=lambda number, _: number / 1.0)
    figure, rows = drawn(figure_3, run)
    middle = figure.axes[1]
    window = [1, 1, 1, 3, 3, 3, 3, 5, 5][tasks - 1] if tasks < 10 else 9
    assert f"mean of {window} task" in middle.get_title()
    assert line(middle, 0) == [list(range(tasks)), pytest.approx([number / 10 for number in range(tasks)])]
    x, y = line(middle, 1)
    assert len(x) == tasks - window + 1 >= min(tasks, 2)
    assert x[0] == pytest.approx((window - 1) / 2) and x[-1] == pytest.approx(tasks - 1 - (window - 1) / 2)
    assert y == pytest.approx([at / 10 for at in x])
    assert [row.value for row in rows if row.seen is not None] == pytest.approx([n / 10 for n in range(tasks)])


def test_lives_of_different_lengths_are_drawn_together(tmp_path: Path, drawn: Callable[..., Any]):
    """Each with its own numbers of tasks seen; the window is that of the shortest."""
    runs = [
        made_up(tmp_path / "6", "comp-search", tasks=6, value=lambda *_: 0.6, modules=2),
        made_up(tmp_path / "4", "comp-search", tasks=4, value=lambda *_: 0.4, modules=2),
        made_up(tmp_path / "s", "comp-struct", tasks=5, value=lambda *_: 0.5),
        made_up(tmp_path / "t", "stl"),
    ]
    figure, rows = drawn(figure_3, *runs)
    middle = figure.axes[1]
    assert "mean of 3 tasks" in middle.get_title()
    assert legend(middle) == [
        "Comp.+Search, 20k steps, 4 tasks, 1 seed",
        "Comp.+Search, 20k steps, 6 tasks, 1 seed",
        "Comp.+Struct., 20k steps, 1 seed",
    ]
    lengths = [[row.seen for row in rows if row.seen is not None and row.tasks == tasks] for tasks in (4, 5, 6)]
    assert lengths == [list(range(4)), list(range(5)), list(range(6))]
    assert line(middle, 4) == [[1, 2, 3, 4], pytest.approx([0.06] * 4)]


def test_single_task_and_lifelong_curves_are_drawn_apart(tmp_path: Path, drawn: Callable[..., Any]):
    runs = [
        made_up(tmp_path / "a", value=lambda *_: 0.2),
        made_up(tmp_path / "b", "comp-struct", tasks=6, value=lambda *_: 0.6),
    ]
    figure, rows = drawn(single_task, *runs)
    assert len(figure.axes) == 6  # the same seed, so the four tasks are the first of the six
    assert legend(figure.axes[0]) == ["Comp.+Struct., 1 seed", "STL, 1 seed"]
    assert legend(figure.axes[5]) == ["Comp.+Struct., 1 seed"]
    finals = [(row.agent, row.value) for row in rows if row.what == "final"]
    assert finals[:2] == [("comp-struct", 0.6), ("stl", 0.2)]
    points = [(row.agent, row.steps, row.value) for row in rows if row.what == "curve"]
    assert points[2:4] == [("stl", 4096, 0.1), ("stl", 8192, 0.2)]  # what is drawn stands in the table


def test_lives_of_different_steps_are_drawn_apart(tmp_path: Path, drawn: Callable[..., Any]):
    runs = [
        made_up(tmp_path / "a", steps=12_000, value=lambda *_: 0.2),
        made_up(tmp_path / "b", value=lambda *_: 0.4),
        made_up(tmp_path / "c", value=lambda *_: 0.8, seed=1),
    ]
    figure, rows = drawn(figure_2, *runs)
    assert legend(figure.axes[0]) == ["STL, 4 tasks, 12k steps, 1 seed", "STL, 4 tasks, 20k steps, 2 seeds"]
    curve = {(row.label[-9:], row.steps): (row.value, row.error) for row in rows if row.what == "curve"}
    assert curve["20k steps", 8192] == pytest.approx((0.6, 0.2))
    assert curve["12k steps", 8192] == pytest.approx((0.2, math.nan), nan_ok=True)


# Panels


@pytest.mark.parametrize(
    ("module", "agent", "empty"),
    [(figure_2, "stl", [1]), (figure_2, "comp-struct", [1]), (figure_3, "stl", [1]), (figure_3, "mtl", [1])],
)
def test_a_panel_without_data_says_so(
    module: ModuleType, agent: str, empty: list[int], tmp_path: Path, drawn: Callable[..., Any]
):
    figure, _ = drawn(module, made_up(tmp_path / "a", agent))
    said = [number for number, axes in enumerate(figure.axes) if NOTHING in [text.get_text() for text in axes.texts]]
    assert said == empty and all(legend(figure.axes[number]) == [] for number in said)


@pytest.mark.parametrize("module", [figure_2, figure_3, single_task])
def test_curves_of_lives_in_which_no_episode_ended_are_no_data(
    module: ModuleType, tmp_path: Path, drawn: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
):
    untold = {"kind": "curve", "steps": 4096, "return": [None]}
    monkeypatch.setitem(globals(), "learnt", lambda stage, tasks, value: [{**untold, "stage": stage}])
    figure, rows = drawn(module, made_up(tmp_path / "a"))
    assert NOTHING in [text.get_text() for text in figure.axes[0].texts]
    assert rows and all(row.what == "final" for row in rows)


def test_legends_cover_nothing_however_many_groups_there_are(tmp_path: Path, drawn: Callable[..., Any]):
    rates, one = [0.001 / number for number in range(1, 7)], {"tasks": None, "only": ["wall/red/dynamics-0"]}
    runs = [
        made_up(tmp_path / f"{agent}{number}", agent, ppo={"learning_rate": rate, "clip": rate}, **one)
        for agent in ("comp-struct", "mtl")
        for number, rate in enumerate(rates)
    ]
    for module in (figure_2, figure_3, single_task):
        figure, _ = drawn(module, *runs)
        figure.draw_without_rendering()
        for axes in figure.axes:
            if axes.get_legend():
                box = axes.get_legend().get_window_extent()
                ticks = axes.xaxis.get_tightbbox()
                assert box.y1 <= ticks.y0 and box.y0 >= 0
            assert axes.bbox.height > 100
        looks = [(one.get_linestyle(), one.get_color()) for one in figure.axes[0].lines]
        assert len(set(looks)) == len(looks)


def test_returns_beyond_0_and_1_are_within_the_axes(tmp_path: Path, drawn: Callable[..., Any]):
    figure, _ = drawn(figure_3, made_up(tmp_path / "a", "comp-struct", value=lambda number, _: 3.0 * number - 1))
    for axes in figure.axes:
        (low, high), (least, most) = axes.get_ylim(), axes.dataLim.intervaly
        assert low <= min(0, least) and high >= max(1, most)


def test_one_seed_is_said_and_has_no_error(tmp_path: Path, drawn: Callable[..., Any]):
    figure, rows = drawn(figure_3, made_up(tmp_path / "a", "comp-struct"))
    assert all(math.isnan(row.error) and row.seeds == 1 for row in rows)
    assert all("error" not in axes.get_title() for axes in figure.axes)
    assert all(text.endswith(", 1 seed") for axes in figure.axes for text in legend(axes))


# What cannot be drawn


def test_a_figure_without_lives_or_of_an_unfinished_one_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="at least one run directory"):
        figure_2.draw([], tmp_path / "x.png")
    run = made_up(tmp_path / "run")
    (run / "summary.json").unlink()
    with pytest.raises(InputError, match="its life did not end"):
        single_task.draw([run], tmp_path / "x.png")


def test_a_life_that_has_not_met_the_tasks_it_grew_by_is_refused(tmp_path: Path):
    run = made_up(tmp_path / "run")
    with RunWriter.reopen(run) as writer:
        writer.grow(6)
    with pytest.raises(InputError, match="has met 4 of its 6 tasks: its life did not end"):
        read_life(run)


def test_files_of_different_lives_are_refused(tmp_path: Path):
    run, other = made_up(tmp_path / "a"), made_up(tmp_path / "b", seed=1)
    shutil.copy(other / "summary.json", run / "summary.json")
    with pytest.raises(InputError, match="of different lives"):
        read_life(run)


@pytest.mark.parametrize("name", ["a.xyz", "a.csv", "a", "a.", ".png", "a.pgf"])
def test_an_ending_that_is_no_picture_is_refused_before_anything_is_read(name: str, tmp_path: Path):
    with pytest.raises(InputError) as refused:
        run(Options("fig3", (tmp_path / "none",), tmp_path / name))
    assert ".png" in str(refused.value) and "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["png", "SVG", "pdf", "webp", "jpg", "eps"])
def test_pictures_have_the_format_of_their_ending(ending: str, tmp_path: Path):
    from matplotlib.figure import Figure

    save(Figure(figsize=(1, 1)), [Row("final", "stl", 1, 1, 0.5)], tmp_path / f"new/x.{ending}")
    starts = {"png": b"\x89PNG", "SVG": b"<?xml", "pdf": b"%PDF", "webp": b"RIFF", "jpg": b"\xff\xd8", "eps": b"%!PS"}
    assert (tmp_path / f"new/x.{ending}").read_bytes().startswith(starts[ending])
    (row,) = table(tmp_path / "new/x.csv")
    assert (row["label"], row["value"], row["standard_error"]) == ("STL", "0.5", "")


def test_a_picture_that_cannot_be_written_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from matplotlib.figure import Figure

    rows, out = [Row("final", "stl", 1, 1, 0.5)], tmp_path / "x.png"
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"'.*x\.png' could not be written: (File exists|Not a directory)\.$"):
        save(Figure(), rows, tmp_path / "file/x.png")
    out.write_text("before")
    (tmp_path / "x.csv").write_text("before")

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(StoreError, match=r"'.*x\.png' could not be written: No space left on device\.$"):
            save(Figure(), rows, out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "x.csv", "x.png"]
    assert out.read_text() == (tmp_path / "x.csv").read_text() == "before"
    with pytest.raises(InputError, match="None of these lives"):
        save(Figure(), [], out)


def test_figure_e2_draws_returns_against_the_number_of_modules(tmp_path: Path, drawn: Callable[..., Any]):
    def lives_of(agent: str, modules: int, value: float) -> list[Path]:
        options = {"modules": modules, "tasks": 10, "steps": 10**6, "search": {"episodes": 1}}
        of_seed = lambda seed: lambda number, task: value + 0.1 * seed  # noqa: E731  # two in a row
        places = [(seed, tmp_path / f"{agent}-{modules}-{seed}") for seed in (0, 1)]
        return [made_up(path, agent, value=of_seed(seed), seed=seed, **options) for seed, path in places]

    numbers = {2: 0.3, 3: 0.5, 6: 0.6, 8: 0.7}
    kinds = [(agent, modules) for agent in ("comp-search", "comp-search-nc") for modules in (8, 2, 6, 3)]
    figure, rows = drawn(figure_e2, *(path for kind in kinds for path in lives_of(*kind, numbers[kind[1]])))
    mine = [row for row in rows if (row.what, row.agent) == ("final by modules", "comp-search")]
    found = {row.part: (row.value, row.error) for row in mine}
    assert list(found) == ["2", "3", "6", "8"]
    for modules, value in numbers.items():
        assert found[str(modules)] == (pytest.approx(value + 0.05), pytest.approx(0.05))
    assert "Comp.+Search, 8 modules, 2 seeds" in legend(figure.axes[0])
    assert "components of a factor: 4" in legend(figure.axes[2])
    assert figure.axes[2].get_xticks().tolist() == [2, 3, 4, 6, 8]


def test_figure_e2_has_whole_numbers_of_modules_only(tmp_path: Path, drawn: Callable[..., Any]):
    figure, _ = drawn(figure_e2, made_up(tmp_path / "a", "comp-search-nc", steps=10**6))
    assert figure.axes[2].get_xticks().tolist() == [4]


def test_figure_e2_refuses_agents_without_a_number_of_modules(tmp_path: Path):
    with pytest.raises(InputError, match="does not choose"):
        figure_e2.draw([made_up(tmp_path / "a", "comp-struct")], tmp_path / "x.png")


# Other figures of the paper, and of anyone's lives


@pytest.mark.parametrize("module", [figure_4, figure_e3])
def test_successes_are_drawn_on_the_way_and_after_each_phase(
    module: ModuleType, tmp_path: Path, drawn: Callable[..., Any]
):
    """Half as much as returns: two seeds with .8 and .4 succeed in .4 and .2 of episodes at the end, on average .3."""
    of_seed = [lambda *_: 0.8, lambda *_: 0.4]
    runs = [made_up(tmp_path / str(seed), "comp-struct", value=of_seed[seed], seed=seed) for seed in (0, 1)]
    figure, rows = drawn(module, *runs)
    left, right = figure.axes
    assert line(left) == [[4.096, 8.192], pytest.approx([0.15, 0.3])]
    found = {row.what: (row.value, row.error) for row in rows if row.what != "curve"}
    assert list(found) == ["zero-shot", "online", "offline", "final"]
    assert found["zero-shot"] == pytest.approx((0.03, 0.01)) and found["final"] == pytest.approx((0.3, 0.1))
    assert "share of episodes that succeed" in left.get_ylabel() and "share" in right.get_ylabel()
    assert "4 tasks, domain grid2d" in figure.get_suptitle()


def test_curves_of_successes_begin_where_all_tasks_have_told_one():
    """A search tells no successes: before the second task's first update, a mean would be of the first task alone."""
    records: list[dict[str, Any]] = [{"kind": "curriculum", "stages": [["a"], ["b"]]}]
    for steps in (10, 20, 30):
        records.append({"kind": "curve", "stage": 0, "steps": steps, "return": [0.1], "success": [0.2]})
    records.append({"kind": "structure", "stage": 1, "returns": [0.0], "how": "searched"})
    for steps in (15, 25):
        records.append({"kind": "curve", "stage": 1, "steps": steps, "return": [0.3], "success": [0.4]})
    life = FinishedLife(Path(), LifeConfig(), {}, records)
    np.testing.assert_allclose(life.mean_curve("success"), [np.nan, 0.3, 0.3])
    np.testing.assert_allclose(life.mean_curve(), [0.05, 0.2, 0.2])  # while the search lasts, its returns count: 0


def test_ablations_have_a_panel_for_each_kind_of_life(tmp_path: Path, drawn: Callable[..., Any]):
    together = [made_up(tmp_path / agent, agent) for agent in ("mtl", "mtl-chain")]
    in_turn = [made_up(tmp_path / agent, agent, value=lambda *_: 0.6) for agent in ("clear-modular", "pc-bcq")]
    figure, rows = drawn(figure_e1, *together, *in_turn)
    assert [axes.get_title()[:3] for axes in figure.axes] == ["(a)", "(b)", "(c)", "(d)"]
    a, b, c, d = figure.axes
    assert [text.get_text() for text in a.get_xticklabels()] == ["all correct", "wrong static"]
    assert legend(b) == ["MTL modular, 1 seed", "MTL chain, 1 seed"]
    assert legend(c) == ["CLEAR modular, 20k steps, 1 seed", "P&C+BCQ, 20k steps, 1 seed"] == legend(d)[:2]
    assert {row.value for row in rows if (row.what, row.agent) == ("final", "pc-bcq")} == {0.6}
    figure, _ = drawn(figure_e1, *in_turn)
    assert [axes.get_title()[:3] for axes in figure.axes] == ["(c)", "(d)"]
    with pytest.raises(InputError, match="None of these lives is for this figure"):
        figure_e1.draw_a(in_turn, tmp_path / "x.png")
    for letter, draw in zip("abcd", ("draw_a", "draw_b", "draw_c", "draw_d"), strict=True):
        assert resolve(FIGURES[f"figE1{letter}"].draw) is getattr(figure_e1, draw)


def test_curves_show_the_mean_and_every_task(tmp_path: Path, drawn: Callable[..., Any]):
    value: Value = lambda number, task: number / 10  # noqa: E731
    figure, rows = drawn(curves, made_up(tmp_path / "a", value=value), made_up(tmp_path / "b", "finetune", tasks=2))
    main, *small = figure.axes
    assert [axes.get_title() for axes in small] == list(read_life(tmp_path / "a").names)
    assert legend(main) == ["Fine-tuning, 1 seed", "STL, 1 seed"]
    assert line(main, 1) == [[4.096, 8.192], pytest.approx([0.075, 0.15])]  # the mean of 0, .1, .2 and .3
    assert line(small[3]) == [[4.096, 8.192], pytest.approx([0.15, 0.3])]
    last = {row.part: row.value for row in rows if (row.agent, row.steps) == ("stl", 8192)}
    assert last == pytest.approx({"": 0.15, **{axes.get_title(): n / 10 for n, axes in enumerate(small)}})
    figure, _ = drawn(curves, made_up(tmp_path / "c", tasks=1))
    assert len(figure.axes) == 1


def test_curves_of_one_agent_in_different_tasks_are_told_apart(tmp_path: Path, drawn: Callable[..., Any]):
    runs = [made_up(tmp_path / str(steps), tasks=1, seed=steps, steps=steps) for steps in (20_000, 40_000)]
    names = {read_life(path).names for path in runs}
    figure, _ = drawn(curves, *runs)
    assert len(names) == 2 and "(2 tasks, one in each life, domain grid2d)" in figure.get_suptitle()
    one, other = (np.array(to_rgb(drawing.get_color())) for drawing in figure.axes[0].get_lines()[:2])
    assert np.abs(one - other).max() > 0.3


def test_figures_say_what_names_of_ways_mean():
    labels = ["Comp.+Search, 250k steps, bounded, search halving", "Comp.+Struct., 250k steps, bcq", "STL"]
    offline, search = words_of(labels)
    assert offline == "bcq, bounded: ways to learn offline (modlife list)"
    assert search == "halving: ways to search for modules (modlife list)"
    assert words_of(["STL, 250k steps"]) == []


def test_figures_say_what_options_in_labels_mean(tmp_path: Path, drawn: Callable[..., Any]):
    told = {"critic": "states", "ppo": {"timid_start": 0.01}}
    runs = [made_up(tmp_path / "a", "comp-struct"), made_up(tmp_path / "b", "comp-struct", **told)]
    for module, place in ((figure_3, 2), (figure_4, 1), (figure_e3, 1), (curves, 0)):
        axes = drawn(module, *runs)[0].axes
        assert "critic states, ppo.timid_start 0.01" in " ".join(legend(axes[place]))
        below = axes[place].get_xlabel().replace("\n", " ")
        assert "critic: what critics tell the worth of: actions, as the paper's do, or only states" in below
        assert "ppo.timid_start: factor on output layers of known modules" in below and "unsolved:" not in below
        assert max(map(len, axes[place].get_xlabel().split("\n"))) <= letters_below(axes[place])
    assert drawn(curves, runs[0])[0].axes[0].get_xlabel() == "thousand environment steps in a task"


def test_every_option_has_a_meaning():
    configs = [life_from_options(entry.name, "grid2d", {}) for entry in AGENTS]
    configs += [life_from_options(agent, "robot", {}) for agent in ("stl", "comp-search", "pc-bcq")]
    for config in configs:
        unknown = {name for name in flat(to_json(config)) if not about_option(config, name)}
        assert unknown <= {"world.domain", "offline.consolidator", "search.search"}


def test_curves_of_long_returns_have_successes_beside_them(tmp_path: Path, drawn: Callable[..., Any]):
    tasks = [{"only": [name], "tasks": None} for name in ("wall/red/dynamics-0", "food/green/dynamics-1")]
    lives = [made_up(tmp_path / str(n), value=lambda *_: 3.0, **one) for n, one in enumerate(tasks)]
    figure, rows = drawn(curves, *lives)
    returns, successes, *small = figure.axes
    assert "return" in returns.get_ylabel() and "share of episodes" in successes.get_ylabel() and len(small) == 2
    assert line(returns, 0)[1] == [1.5, 3.0] and line(successes, 0)[1] == [0.75, 1.5]
    assert {row.what: row.value for row in rows if row.steps == 8192} == {"curve": 3.0, "success": 1.5}
    assert {row.part for row in rows if row.what == "success"} == {"", *(one["only"][0] for one in tasks)}


@pytest.mark.parametrize(("tasks", "expected"), [(0, (0, 0)), (2, (1, 2)), (4, (2, 2)), (7, (2, 4)), (64, (8, 8))])
def test_small_panels_leave_few_places_empty(tasks: int, expected: tuple[int, int]):
    assert curves.shape(tasks) == expected


def test_agents_differ_in_more_than_colour(tmp_path: Path, drawn: Callable[..., Any]):
    agents = ("clear", "comp-search", "comp-struct", "ewc", "finetune", "pc", "reset-distill", "stl")
    figure, _ = drawn(figure_3, *(made_up(tmp_path / agent, agent) for agent in agents))
    left, _, right = figure.axes
    assert len({one.get_marker() for one in left.lines}) == len(agents)
    assert len({bar.get_hatch() for bar in right.patches}) == len(agents)


def test_names_are_text_in_an_svg(tmp_path: Path):
    """Also those that would be markup, a formula, or an escape: they are shown as they are."""
    first = [f"wall/red/dynamics-{number}" for number in range(4)]
    names = [IMAGE, "$\\frac{$", "\x1b[31m"]
    runs = [
        made_up(tmp_path / name, tasks=None, only=[*first, f"floor/red/dynamics-{number}"])
        for number, name in enumerate(names)
    ]
    run(Options("curves", tuple(runs), tmp_path / "x.svg"))
    tree = ElementTree.parse(tmp_path / "x.svg")
    text = "".join("".join(one.itertext()) for one in tree.iter("{http://www.w3.org/2000/svg}text"))
    assert "onerror=alert(1)>" in text and "$\\frac{$" in text and "\\x1b[31m" in text
    assert "STL" in text and not list(tree.iter("img"))


def test_names_of_tasks_are_text_in_an_svg(tmp_path: Path):
    """Also in the titles of panels; one that would do something to a terminal is refused when it is read."""
    renamed(made_up(tmp_path / "a"), lambda name: f"{IMAGE}$\\frac{{${name}")
    run(Options("curves", (tmp_path / "a",), tmp_path / "x.svg"))
    tree = ElementTree.parse(tmp_path / "x.svg")
    texts = ["".join(one.itertext()) for one in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert sum(one.startswith(f"{IMAGE}$\\frac{{$") and one.count("/") == 2 for one in texts) == 4
    assert not [one for one in tree.iter() if "onerror" in one.attrib or one.tag.endswith("img")]
    renamed(made_up(tmp_path / "b"), lambda name: f"\x1b[31m{name}")
    with pytest.raises(InputError, match="characters that cannot be printed"):
        run(Options("curves", (tmp_path / "b",), tmp_path / "y.svg"))
