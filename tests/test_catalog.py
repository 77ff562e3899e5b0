"""The catalog of experiments: all that is in it can be lived; one experiment is lived, drawn, and told beforehand."""

import csv
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import pytest
from lives import SMALL, Lived, small
from terminal import command

from modlife.analysis import estimates
from modlife.analysis.catalog import EXPERIMENTS, SCALES, Experiment, Lot, Scale
from modlife.analysis.figures import FIGURES
from modlife.analysis.lives import read_life
from modlife.analysis.studies import TUNED
from modlife.cli import sweep
from modlife.runs.config import LifeConfig, life_from_options
from modlife.runs.glimpses import all_left
from modlife.runs.many import Planned
from modlife.runs.store import RunDirectory

ROOT = Path(__file__).parents[1]
FIGURES_OF_THE_PAPER = {"fig2", "fig3", "fig4", "figE1", "figE2", "figE3"}
CASES: list[tuple[Experiment, Scale]] = [(experiment, scale) for experiment in EXPERIMENTS for scale in SCALES]


@pytest.mark.parametrize(("experiment", "scale"), CASES, ids=lambda one: one if isinstance(one, str) else one.name)
def test_every_experiment_can_be_lived_at_every_scale(experiment: Experiment, scale: Scale):
    lives = experiment.planned(scale, Path("runs"))  # configs check themselves
    assert len({life.out for life in lives}) == len(lives) == sum(lot.seeds for lot in experiment.lots[scale])
    for life in lives:
        assert life.out.name.startswith(life.config.agent) and life.out.name.endswith(f"-{life.config.seed}")
    assert experiment.figure in FIGURES.names


def test_all_figures_of_the_paper_are_there_and_a_name_stands_for_one_life():
    assert set(EXPERIMENTS.names) >= FIGURES_OF_THE_PAPER
    known: dict[str, LifeConfig] = {}
    for experiment, scale in CASES:
        for life in experiment.planned(scale, Path()):
            assert known.setdefault(life.out.name, life.config) == life.config


def test_the_scale_of_the_paper_has_its_steps_seeds_and_tasks():
    for name, (steps, seeds, tasks) in {"fig3": (10**6, 6, 64), "fig4": (3_600_000, 3, 48)}.items():
        lives = EXPERIMENTS[name].planned("paper", Path())
        assert {(life.config.steps, len(life.config.chosen)) for life in lives} == {(steps, tasks)}
        assert {life.config.seed for life in lives} == set(range(seeds))
    fewer = EXPERIMENTS["figE2"].planned("paper", Path())
    assert sorted({life.config.settings.module_count(life.config.world.graph) for life in fewer}) == [2, 3, 4, 6, 8]


@pytest.mark.parametrize("scale", SCALES)
def test_baselines_have_what_was_chosen_for_them_at_every_scale(scale: Scale):
    lives = [life.config for name in ("fig3", "figE1") for life in EXPERIMENTS[name].planned(scale, Path())]
    assert {life.agent for life in lives} >= set(TUNED)
    for life in lives:
        for group, values in TUNED.get(life.agent, {}).items():
            found = dataclasses.asdict(getattr(life.settings, group))
            assert {name: found[name] for name in values} == values


def test_the_number_of_modules_is_varied_in_both_orders():
    lives = [life.config for life in EXPERIMENTS["figE2"].planned("small", Path())]
    counts = {(life.agent, life.settings.module_count(life.world.graph)) for life in lives}
    assert counts == {(agent, n) for agent in ("comp-search", "comp-search-nc") for n in (2, 3, 4, 6)}


def test_the_lives_of_the_documentation_are_those_of_the_catalog():
    every = (EXPERIMENTS[name].planned(scale, Path("runs")) for name in EXPERIMENTS.names for scale in SCALES)
    known = {life.out: life.config for lives in every for life in lives}
    for life in sweep.planned((ROOT / "docs/lives.txt").read_text(), Path("runs")):
        assert known[life.out] == life.config


@pytest.mark.parametrize("name", EXPERIMENTS.names)
def test_a_file_of_lives_stands_for_the_same_lives(name: str):
    lots = EXPERIMENTS[name].lots["smoke"]
    found = sweep.planned("\n".join(lot.line() for lot in lots), Path("runs"))
    assert found == [lot.planned(seed, Path("runs")) for lot in lots for seed in range(lot.seeds)]


# One that is lived: in a domain whose programs compile in no time


@pytest.fixture
def experiment(monkeypatch: pytest.MonkeyPatch) -> Iterator[Experiment]:
    """Three lives in the hall."""
    lot = Lot("ewc", "ewc", 3, {"episodes": 4, "tasks": 4, "steps": 500, **SMALL}, "hall")
    assert lot.config(0) == small("ewc")
    one = Experiment("hall", "three lives in the hall", "fig3", {scale: [lot] for scale in SCALES})
    with monkeypatch.context() as patch:
        patch.setitem(EXPERIMENTS._entries, one.name, one)
        yield one


def test_what_is_missing_is_lived_what_was_killed_goes_on_and_then_it_is_drawn(
    experiment: Experiment, lives: Callable[[str], Lived], tmp_path: Path
):
    """One was killed, one is to be lived, and one cannot be: where it should go is a file."""
    life = lives("ewc")
    (tmp_path / "runs").mkdir()
    life.copy(tmp_path / "runs/ewc-0", life.amid("online"))
    (tmp_path / "runs/ewc-2").write_text("no directory")
    before = command("reproduce", "hall", "--dry-run", cwd=tmp_path)
    assert [line[:17] for line in before.out.splitlines()[:2]] == ["begun  runs/ewc-0", "to do  runs/ewc-1"]
    assert "3 lives, 0 of them ended" in before.out and "an estimate, from rates" in before.out
    end = command("reproduce", "hall", "--at-once", "2", cwd=tmp_path)
    assert end.code == 1 and "'runs/ewc-2' did not end" in end.err and "learn next to nothing" in end.out
    assert "The figure is of the 2 lives, of 3, that have ended." in end.err
    assert (tmp_path / "runs/ewc-0/metrics.jsonl").read_bytes() == (life.path / "metrics.jsonl").read_bytes()
    with (tmp_path / "runs/hall-smoke.csv").open() as file:
        (final,) = [row for row in csv.DictReader(file) if row["what"] == "final"]
    returns = [read_life(tmp_path / f"runs/ewc-{seed}").summary["seen"]["mean_return"] for seed in (0, 1)]
    assert (final["seeds"], float(final["value"])) == ("2", pytest.approx(sum(returns) / 2, abs=1e-4))
    for ending, start in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        assert (tmp_path / f"runs/hall-smoke{ending}").read_bytes().startswith(start)
    after = command("reproduce", "hall", "--dry-run", cwd=tmp_path)
    assert "3 lives, 2 of them ended" in after.out and "an estimate, from the 2 that ended" in after.out


def test_the_lives_of_an_experiment_can_be_had_as_a_file(experiment: Experiment, tmp_path: Path):
    assert command("reproduce", "hall", "--lives", "lives.txt", cwd=tmp_path).code == 0
    found = sweep.planned((tmp_path / "lives.txt").read_text(), Path("runs"))
    assert found == experiment.planned("smoke", Path("runs"))
    assert [path.name for path in tmp_path.iterdir()] == ["lives.txt"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["fig33"], "No experiment 'fig33'. Did you mean 'fig3'?"),
        (["fig3", "--at-once", "0"], "at_once = 0"),
        (["fig3", "--dry-run", "--out", "file"], ""),
    ],
)
def test_nonsense_is_refused_in_a_sentence(words: list[str], sentence: str, tmp_path: Path):
    (tmp_path / "file").touch()
    end = command("reproduce", *words, cwd=tmp_path)
    assert "Traceback" not in end.err and (end.code == 2 if sentence else end.code == 0)
    assert sentence.replace("at_once", "") in end.err.replace("--at-once", "").replace("at_once", "")


# How long it takes


def test_lives_end_when_the_last_process_is_free():
    assert all_left([], [3, 2, 2, 1], 2) == 4  # one has 3 and 1, the other 2 and 2
    assert all_left([], [], 2) == 0


def test_sample_passes_are_counted_by_hand():
    """64 tasks, of which 37 in 64 share a component: 64 + 37 / 64 * (0 + ... + 63), 10 epochs of 100,000 rows each."""
    every = life_from_options("comp-struct", "grid2d", {"steps": 250_000})
    assert estimates.passes(every) == pytest.approx(10 * 100_000 * (64 + 37 / 64 * 2016))
    bounded = life_from_options("comp-struct", "grid2d", {"steps": 50_000, "offline": "bounded", "tasks": 2})
    assert estimates.passes(bounded) == pytest.approx(bounded.settings.offline.epochs * 50_000 * (2 + 37 / 64))
    assert estimates.passes(life_from_options("stl", "grid2d", {})) == 0


def test_estimates_are_within_a_factor_of_two_of_recorded_lives_but_for_the_machine():
    """Of the processor time that they took, where they tell it; against lives of the same commit on such a machine."""
    ratios: dict[tuple[str, str], dict[str, float]] = {}
    for run in (path.parent for path in (ROOT / "results").glob("*/manifest.json")):
        found = RunDirectory.open(run)
        summary, manifest = found.summary(), found.manifest()
        assert summary is not None
        took = sum(summary["cpu_seconds"].values()) if "cpu_seconds" in summary else summary["seconds"]
        alike = ratios.setdefault((manifest["machine"]["processor"], manifest["git"]["commit"]), {})
        alike[run.name] = estimates.seconds(found.config()) / took
    speeds = {alike: median(found.values()) for alike, found in ratios.items()}
    wrong = [
        (name, ratio / speeds[alike])
        for alike, found in ratios.items()
        for name, ratio in found.items()
        if not 0.5 < ratio / speeds[alike] < 2
    ]
    assert not wrong and 0.5 < median(speeds.values()) < 2, speeds


def test_epochs_that_are_more_than_usual_take_longer():
    usual, more = (
        life_from_options("stl", "robot", {"ppo": {"epochs": n}, "world": {"preset": "fast"}}) for n in (10, 80)
    )
    assert 3 < estimates.seconds(more) / estimates.seconds(usual) < 4


def test_what_lives_took_puts_the_others_right(lives: Callable[[str], Lived], tmp_path: Path):
    life = lives("ewc")
    other = Planned(small("ewc", seed=1), tmp_path / "new")
    ended, to_do = estimates.forecasts([Planned(life.config, life.path), other])
    assert (ended.state, ended.seconds) == ("ended", read_life(life.path).summary["seconds"])
    assert (to_do.state, to_do.seconds) == (
        "to do",
        pytest.approx(ended.seconds),
    )  # they differ in nothing but the seed
