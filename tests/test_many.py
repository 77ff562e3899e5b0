"""Many lives in processes of their own: what is run, what is left alone, and what happens when something goes wrong."""

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest
from lives import NAMES, Lived, small
from terminal import command

from modlife.cli import sweep
from modlife.cli.train import Options, usual
from modlife.cli.words import read_options
from modlife.errors import InputError
from modlife.lifelong.agents import AGENTS
from modlife.registry import resolve
from modlife.runs.config import LifeConfig, life_from_options
from modlife.runs.interrupts import Stopped
from modlife.runs.many import Failed, Lives, Planned, as_options, live_all

WORK = """
import os, pathlib, signal, sys, time
place = pathlib.Path(sys.argv[1])
signal.signal(signal.SIGTERM, lambda *_: (place.with_suffix(".saved").touch(), sys.exit(143)))
place.with_suffix(".begins").write_text(str(os.getpid()))
place.with_suffix(".begins").rename(place.with_suffix(".begun"))
time.sleep(float(sys.argv[2]))
print("the last line")
sys.exit(int(sys.argv[3]))
"""


def work(seconds: float = 0.3, codes: dict[str, int] | None = None) -> Callable[[Planned], list[str]]:
    """A process that takes some time, and saves when it is told to stop."""

    def of(life: Planned) -> list[str]:
        code = (codes or {}).get(life.out.name, 0)
        return [sys.executable, "-c", WORK, str(life.out), str(seconds), str(code)]

    return of


def planned(folder: Path, *names: str) -> list[Planned]:
    return [Planned(LifeConfig(seed=seed), folder / name) for seed, name in enumerate(names)]


def test_so_many_run_at_a_time_and_failures_are_told_at_the_end(tmp_path: Path):
    said: list[str] = []
    lives = Lives(planned(tmp_path, *"abcde"), 2, said.append, work(codes={"b": 3}))
    most = 0
    for _ in lives.steps():
        most = max(most, len(lives.running))
    assert most == 2
    assert {path.stem for path in tmp_path.glob("*.begun")} == set("abcde")  # a failure keeps nobody from living
    (failed,) = lives.failed
    assert str(failed) == f"'{tmp_path / 'b'}' did not end (exit code 3): the last line"
    ends = [line.split(", ") for line in said if line.endswith(" to go")]  # two at a time may end in any order
    assert [left for _, left in ends] == [f"{left} to go" for left in (4, 3, 2, 1, 0)]
    assert {how for how, _ in ends} == {"a ended", "b FAILED", "c ended", "d ended", "e ended"}


def test_signals_let_every_life_save_itself(tmp_path: Path):
    lives = Lives(planned(tmp_path, *"abc"), 2, lambda _: None, work(seconds=60))

    def interrupt() -> None:
        while len(list(tmp_path.glob("*.begun"))) < 2:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=interrupt).start()
    with pytest.raises(Stopped):
        lives.run()
    assert {path.stem for path in tmp_path.glob("*.saved")} == {"a", "b"}
    assert not (tmp_path / "c.begun").exists() and not lives.running


def test_one_who_stops_listening_leaves_no_process_behind(tmp_path: Path):
    lives = Lives(planned(tmp_path, "a"), 1, lambda _: None, work(seconds=60))
    steps = lives.steps()
    while not (tmp_path / "a.begun").exists():
        next(steps)
    steps.close()
    assert (tmp_path / "a.saved").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "a.begun").read_text()), 0)


def test_what_has_ended_is_left_alone_what_was_interrupted_goes_on_and_others_are_refused(
    lives: Callable[[str], Lived], tmp_path: Path
):
    life = lives("stl")
    ended = Planned(life.config, life.path)
    assert ended.has_ended and live_all([ended], at_once=1, tell=lambda _: None) == []
    half = Planned(life.config, life.copy(tmp_path / "half", life.amid("online")).path)
    assert half.has_begun and not half.has_ended and "--resume" in half.command()
    assert "--resume" not in Planned(life.config, tmp_path / "new").command()
    with pytest.raises(InputError, match="seed is 0, not 1"):
        _ = Planned(small("stl", seed=1), life.path).has_ended
    with pytest.raises(InputError, match="same run directory"):
        live_all([ended, ended], at_once=1)


def test_a_life_is_resumed_to_its_end_by_a_process(lives: Callable[[str], Lived], tmp_path: Path):
    life = lives("ewc")
    half = Planned(life.config, life.copy(tmp_path / "half", life.amid("online")).path)
    assert live_all([half], at_once=1, tell=lambda _: None) == []
    assert (half.out / "metrics.jsonl").read_bytes() == (life.path / "metrics.jsonl").read_bytes()
    broken = Planned(small("stl", seed=3), tmp_path / "file" / "x")
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "x").write_text("no directory")
    (failed,) = live_all([broken], at_once=1, tell=lambda _: None)
    assert isinstance(failed, Failed) and failed.code == 2 and "modlife:" in str(failed)


def given_back(config: LifeConfig) -> LifeConfig:
    """What `modlife train` makes of a config's options."""
    arguments = [*as_options(config), "--out", "x"]
    return read_options(Options, usual(arguments), prog="modlife train", arguments=arguments).life


@pytest.mark.parametrize("name", NAMES)
def test_a_config_is_what_its_options_give(name: str):
    assert given_back(small(name)) == small(name)


@pytest.mark.parametrize("agent", ["comp-struct", "comp-search", "stl", "pc", "reset-distill", "finetune"])
def test_options_that_are_usual_elsewhere_are_written_too(agent: str):
    """With robots other options are usual than in the 2-D world: also those of the 2-D world must be written."""
    usual_there = life_from_options(agent, "robot", {})
    plain = replace(usual_there, settings=resolve(AGENTS[agent].settings)(), episodes=100)
    for config in (usual_there, plain):
        assert given_back(config) == config


def test_options_of_every_kind_are_written():
    more = {"only": ["wall/red/dynamics-0", "lava/blue/dynamics-1"], "world": {"size": 10}, "panel": 3}
    ppo = {"bootstrap_truncated": True, "learning_rate": 3e-5}
    config = life_from_options("ewc", "grid2d", {**more, "ppo": ppo, "ewc": {"fisher": "released"}})
    assert given_back(config) == config
    assert {one.name for one in fields(config)} >= {"only", "panel"}


TUNE = ["tune", "ewc", "--steps", "4096", "--seeds", "2", "--settings", "3", "--at-once", "2", "--out", "x"]


def test_nonsense_for_a_search_is_refused(tmp_path: Path):
    for words in (["--seeds", "0"], ["--settings", "0"], ["--at-once", "0"], ["--episodes", "1"], ["--steps", "0"]):
        end = command(*TUNE, *words, cwd=tmp_path)
        assert end.code == 2 and words[1] in end.err, (words, end.err)
    end = command("tune", "nothing", "--out", "x", cwd=tmp_path)
    assert end.code == 2 and "No study 'nothing'" in end.err


LIVES = """
# Two agents, three lives
ewc-{0..1} --agent ewc --tasks 3 --seed {0..1} --ewc.strength 5
'a b' --agent stl --only wall/red/dynamics-0   # alone
"""


def test_a_file_of_lives_is_read_line_by_line(tmp_path: Path):
    lives = sweep.planned(LIVES, tmp_path)
    assert [life.out.name for life in lives] == ["ewc-0", "ewc-1", "a b"]
    assert [life.config.seed for life in lives] == [0, 1, 0]
    assert [life.config.agent for life in lives] == ["ewc", "ewc", "stl"]
    assert lives[1].config == life_from_options("ewc", "grid2d", {"tasks": 3, "seed": 1, "ewc": {"strength": 5.0}})
    assert lives[2].config.only == ("wall/red/dynamics-0",)


def test_the_lives_of_the_documentation_can_be_lived(tmp_path: Path):
    lives = sweep.planned((Path(__file__).parents[1] / "docs/lives.txt").read_text(), tmp_path)
    assert len({life.out for life in lives}) == len(lives) > 40
    for life in lives:
        assert life.out.name.startswith(life.config.agent) and life.out.name.endswith(f"-{life.config.seed}")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "There is no life in the file"),
        ("--agent ewc", "Line 1 begins with '--agent'"),
        ("a/b --agent ewc", "Line 1 begins with 'a/b'"),
        ("a --agent ewc --out x", "Line 1 has --out"),
        ("a --agent ewc --threads=2", "Line 1 has --threads"),
        ("a --agent ecw", "Did you mean 'ewc'?"),
        ("a 'b", "Line 1 cannot be read: No closing quotation."),
        ("a-{0..1} --seed {0..2}", "Line 1 has different ranges"),
        ("a-{3..1} --agent stl", "Line 1 has a range from 3 to 1"),
        ("a --agent stl --seed 1\na --agent stl --seed 2", "Two of the lives have the same run directory."),
    ],
)
def test_a_file_of_nonsense_is_refused_before_any_life_begins(tmp_path: Path, line: str, sentence: str):
    (tmp_path / "lives.txt").write_text(line)
    end = command("sweep", "lives.txt", "--out", "runs", cwd=tmp_path)
    assert end.code == 2 and sentence in end.err, end.err
    assert not (tmp_path / "runs").exists()


def test_a_sweep_leaves_what_has_ended_and_refuses_what_is_another_life(lives: Callable[[str], Lived], tmp_path: Path):
    ended, begun = lives("stl"), tmp_path / "runs/stl-0"
    shutil.copytree(ended.path, begun)
    line = " ".join(["stl-0", *as_options(ended.config)])
    (tmp_path / "lives.txt").write_text(line)
    arguments = ["sweep", "lives.txt", "--out", "runs", "--at-once", "1"]
    plan = command(*arguments, "--dry-run", cwd=tmp_path).out.splitlines()
    assert plan[0].startswith("ended  runs/stl-0  (took ") and plan[1:] == ["this sweep: 1 life, 1 of them ended"]
    assert "1 of 1 lives have ended before" in command(*arguments, cwd=tmp_path).err
    (tmp_path / "lives.txt").write_text(f"{line} --seed 7")
    end = command(*arguments, cwd=tmp_path)
    assert end.code == 2 and "holds another life: its seed is 0, not 7." in end.err
