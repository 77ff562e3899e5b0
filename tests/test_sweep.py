"""Many lives by one command: which they are, how long they take, and that none is left behind."""

import io
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from lives import Lived, small
from rich.console import Console
from terminal import command

from modlife.analysis.estimates import START, expected, kind_of, seconds
from modlife.cli import sweep
from modlife.cli.board import Board, board_for, lines, shown, some
from modlife.errors import InputError
from modlife.runs.config import LifeConfig, life_from_options
from modlife.runs.glimpses import Glimpse, all_left, glimpse, later, seconds_left, whole_seconds
from modlife.runs.interrupts import Interrupts, Stopped
from modlife.runs.many import Planned, Standing, as_options

TINY = [
    *("--domain", "hall", "--tasks", "2", "--steps", "256", "--episodes", "4"),
    *("--ppo.envs", "4", "--ppo.length", "32", "--ppo.minibatch", "64"),
]


def planned(*words: str) -> list[Planned]:
    """The lives of a command line."""
    options = sweep.read_options(sweep.Options, prog="modlife sweep", arguments=["--out", "runs", *words])
    return sweep.lives_of(options)


def test_agents_settings_and_seeds_are_crossed():
    lives = planned(
        *("--agents", "ewc", "stl", "--seeds", "0..1", "7", "--set", "ppo.learning-rate=1e-3,3e-4", "--"),
        *("--tasks", "3"),
    )
    assert len(lives) == 2 * 3 * 2
    assert [life.out.name for life in lives[:4]] == [
        "ewc-learning-rate=1e-3-0",
        "ewc-learning-rate=1e-3-1",
        "ewc-learning-rate=1e-3-7",
        "ewc-learning-rate=3e-4-0",
    ]
    assert lives[-1].config == life_from_options(
        "stl", "grid2d", {"tasks": 3, "seed": 7, "ppo": {"learning_rate": 3e-4}}
    )
    assert [life.out.name for life in planned("--agents", "stl")] == ["stl-0"]


def test_settings_of_every_kind_have_readable_names():
    lives = planned(
        *("--agents", "comp-search", "--set", "offline.batch=64,128", "ppo.bootstrap-truncated=true,false"),
        *("world.statics=floor food,wall",),
    )
    assert lives[0].out.name == "comp-search-batch=64-bootstrap-truncated=true-statics=floor_food-0"
    assert [life.config.settings.ppo.bootstrap_truncated for life in lives[:3]] == [True, True, False]
    assert [life.config.world.statics for life in lives[:2]] == [("floor", "food"), ("wall",)]
    twice = planned("--agents", "comp-search", "--set", "offline.batch=64", "modules=2", "offline.epochs=2")
    assert twice[0].out.name == "comp-search-batch=64-modules=2-epochs=2-0"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--agents", "ecw"], "Did you mean 'ewc'?"),
        (["--seeds", "1"], "Give either a file"),
        (["a", "b"], "Give either a file"),
        (["no-such-file"], "'no-such-file' is not a file with lives."),
        (["--agents", "stl", "--seeds", "5..1"], "--seeds '5..1' is neither"),
        (["--agents", "stl", "--seeds", "-1"], "--seeds '-1' is neither"),
        (["--agents", "stl", "--seeds", "0..99999999"], "range of at most 10,000"),
        (["--agents", "stl", "--set", "ppo.envs"], "--set 'ppo.envs' is no setting"),
        (["--agents", "stl", "--set", "ppo.envs="], "--set 'ppo.envs=' is no setting"),
        (["--agents", "stl", "--set", "seed=1,2"], "--set 'seed=1,2' is given by --seeds."),
        (["--agents", "stl", "--seeds", "0..5000", "--set", "steps=1,2,3"], "more than 10,000 lives"),
        (["--agents", "stl", "stl"], "same run directory"),
        (["--agents", "stl", "--slurm", "--ray", "auto"], "--slurm and --ray"),
        (["--agents", "stl", "--ray", "localhost:1"], "Ray"),
        (["--agents", "stl", "--at-once", "0"], "at_once = 0"),
        (["--agents", "stl", "--", "--out", "x"], "Life 'stl-0' has --out"),
    ],
)
def test_nonsense_is_refused_before_any_life_begins(tmp_path: Path, words: list[str], sentence: str):
    end = command("sweep", "--out", "runs", *words, cwd=tmp_path)
    assert end.code == 2 and sentence.replace("at_once", "") in end.err.replace("at_once", ""), end.err
    assert not list(tmp_path.iterdir())


def test_tiny_lives_on_two_processes_end_as_alone(tmp_path: Path):
    words = ["--agents", "stl", "finetune", "--seeds", "0..1", "--out", "runs", "--at-once", "2"]
    end = command("sweep", *words, "--", *TINY, cwd=tmp_path)
    assert end.code == 0, end.err
    assert "beginning stl-0" in end.err and "ended, 0 to go" in end.err
    assert "4 of 4 lives have ended before" in command("sweep", *words, "--", *TINY, cwd=tmp_path).err
    alone = command("train", "--agent", "stl", "--seed", "1", *TINY, "--out", "alone", cwd=tmp_path)
    assert alone.code == 0
    one, other = ((tmp_path / name / "metrics.jsonl").read_bytes() for name in ("alone", "runs/stl-1"))
    assert one == other


def test_lives_stop_when_the_sweep_is_killed(tmp_path: Path):
    """By SIGKILL: it can tell them nothing."""
    words = ["--agents", "stl", "--out", "runs", "--", *TINY, "--steps", "100000000"]
    process = subprocess.Popen([sys.executable, "-m", "modlife", "sweep", *words], cwd=tmp_path, stderr=-3)
    run = tmp_path / "runs/stl-0"
    wait_for(lambda: (run / "checkpoints").is_dir() and (run / "metrics.jsonl").stat().st_size > 5000)
    process.kill()
    process.wait()
    log = run.with_name("stl-0.log")
    wait_for(lambda: "stopped by SIGTERM, and saved" in log.read_text())
    wait_for(lambda: next(run.glob("lease-*.json")).stat().st_mtime == 0)


def wait_for(is_so: Callable[[], bool], seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_an_orphan_is_asked_to_stop():
    Interrupts(os.getppid()).check()
    Interrupts().check()
    with pytest.raises(Stopped) as told:
        Interrupts(os.getpid()).check()
    assert told.value.number == signal.SIGTERM


def test_going_on_or_beginning_is_one_command(lives: Callable[[str], Lived], tmp_path: Path):
    life = lives("stl")
    half = life.copy(tmp_path / "half", life.amid("online"))
    options = ["train", "--resume-or-begin", *as_options(life.config), "--out", str(half.path)]
    assert command(*options).code == 0
    assert (half.path / "metrics.jsonl").read_bytes() == (life.path / "metrics.jsonl").read_bytes()
    end = command(*options, "--seed", "5")
    assert end.code == 2 and "whose seed is 0, not 5" in end.err
    end = command(*options, "--tasks", str(len(life.config.chosen) + 1))
    assert end.code == 2 and "number of tasks" in end.err  # it does not grow by the way
    end = command(*options[:-1], str(tmp_path / "new"), "--parent", str(os.getpid()))
    assert end.code == 2 and "--parent" in end.err and not (tmp_path / "new").exists()  # it is not its parent


# The time left


def test_a_life_takes_as_long_as_its_stages_took():
    assert seconds_left(Glimpse(stages=4)) is None
    second = Glimpse(stage=1, stages=4, points=((1, 30.0),), since=10)
    assert seconds_left(second) is None and whole_seconds(second) is None
    third = Glimpse(stage=2, stages=4, points=((1, 30.0), (2, 50.0)), since=0)
    assert seconds_left(third) == pytest.approx(40)  # the first had programs to compile
    late = Glimpse(stage=3, stages=4, points=((1, 30.0), (2, 50.0), (3, 70.0)), since=500)
    assert seconds_left(late) == pytest.approx(1)


def test_stages_that_get_longer_do_so_further():
    """Stage n takes 10 + n seconds; the life has 64."""
    ends = tuple((n, sum(10.0 + i for i in range(1, n + 1))) for n in range(1, 9))
    left = sum(10 + i for i in range(9, 65))
    assert seconds_left(Glimpse(stage=8, stages=64, points=ends)) == pytest.approx(left)
    sparse = ends[1::2]
    assert seconds_left(Glimpse(stage=8, stages=64, points=sparse)) == pytest.approx(left, rel=0.1)
    assert later([(n, 20.0 - n) for n in range(1, 9)], [30]) == pytest.approx([15])  # none gets shorter and shorter


def test_the_rest_of_a_sweep_is_that_of_its_busiest_process():
    assert all_left([], [], 2) == 0
    assert all_left([10, 4], [], 2) == 10
    assert all_left([10, 4], [3, 5, 1], 2) == 12  # 4+3+5; 10+1
    assert all_left([], [5, 5, 5], 2) == 10


def test_others_of_the_kind_tell_how_long_a_life_takes():
    one, longer = LifeConfig("stl", tasks=2, seed=3), LifeConfig("stl", tasks=4)
    known = {kind_of(one): [100.0, 140.0]}
    assert expected(one, known) == 120 and expected(one, {}) == seconds(one)
    assert expected(longer, known) == pytest.approx(120 * seconds(longer) / seconds(one))


@pytest.mark.parametrize("slower", [0.4, 1.0, 3.0])
def test_until_two_stages_have_ended_a_life_is_as_estimated_put_right_by_its_beginning(slower: float):
    """Also while it compiles, which takes long once: that is no measure of its stages."""
    config = LifeConfig("ewc", tasks=8, steps=20_000)
    compiling = expected(config, {}, spent=slower * START, done=1e-6)
    assert compiling == pytest.approx(slower * seconds(config), rel=1e-3)  # and not a million times what was spent
    for done in (0.01, 0.06, 0.125):
        spent = slower * (START + done * (seconds(config) - START))
        assert expected(config, {}, spent=spent, done=done) == pytest.approx(slower * seconds(config))


def test_what_is_done_counts_steps_and_what_was_spent_counts_from_the_beginning():
    half = Glimpse(stage=1, stages=8, share=0.5, points=((1, 30.0),), since=10)
    assert (half.spent, half.done) == (40, pytest.approx(1.5 / 8))


def test_a_life_that_has_taken_all_its_steps_still_has_something_to_do(tmp_path: Path):
    """Of a life of one stage nothing tells how long it learns offline."""
    one = Standing(Planned(LifeConfig("mtl", tasks=16), tmp_path / "mtl"), "running")
    board = Board(1, {one.life: Glimpse(stages=1, phase="online", share=1.0, since=600.0)})
    assert board.left_of(one) == pytest.approx(0.05 * 600)


def test_a_life_that_waits_stands_still(lives: Callable[[str], Lived], tmp_path: Path):
    life = lives("ewc")
    half = life.copy(tmp_path / "half", life.amid("online"))
    newest = max((half.path / "checkpoints").iterdir(), key=lambda path: path.name)
    os.utime(newest, (0, time.time() - 20))
    waits, runs = (glimpse(half.path, life.config, runs=runs).since for runs in (False, True))
    assert runs - waits == pytest.approx(20, abs=5)
    for one in (half.path / "checkpoints").iterdir():
        shutil.rmtree(one)
    os.utime(half.path / "manifest.json", (0, time.time() - 30))
    assert glimpse(half.path, life.config).since == pytest.approx(30, abs=5)  # nothing was saved yet
    assert glimpse(half.path, life.config, runs=False).since == 0


def test_a_life_of_robots_is_no_measure_of_lives_in_the_grid():
    grid, arm = LifeConfig("stl", tasks=2), life_from_options("stl", "robot", {"tasks": 2})
    other, more_arms = LifeConfig("ewc"), life_from_options("stl", "robot", {"tasks": 3})
    known = {grid: [3 * seconds(grid)], arm: [0.5 * seconds(arm)]}
    assert expected(other, known) == pytest.approx(3 * seconds(other))
    assert expected(more_arms, known) == pytest.approx(0.5 * seconds(more_arms))
    assert expected(more_arms, {grid: known[grid]}) == pytest.approx(3 * seconds(more_arms))


def test_a_glimpse_is_what_the_run_directory_tells(lives: Callable[[str], Lived], tmp_path: Path):
    life = lives("ewc")
    found = glimpse(life.path, life.config)
    last = [one for one in life.run.metrics() if "return" in one][-1]
    assert (found.stage, found.stages) == (4, 4) and seconds_left(found) == 0
    assert found.mean == pytest.approx(sum(last["return"]) / len(last["return"]))
    assert [stage for stage, _ in found.points] == [1, 2, 3, 4]
    seconds = (life.run.summary() or {})["seconds"]
    assert found.points[-1][1] == pytest.approx(seconds, rel=0.5)  # without the evaluation at the end
    half = life.copy(tmp_path / "half", life.amid("online"))
    found = glimpse(half.path, life.config)
    assert found.phase == "online" and 0 < found.share < 1 and found.stage < 4
    assert glimpse(tmp_path, life.config) == Glimpse(stages=4)
    for text in (b"\x1b[31m\n", b"[1]\n", b'{"kind": 5, "return": "x", "steps": []}\n', b"[" * 9999 + b"\n"):
        (half.path / "metrics.jsonl").write_bytes(text)
        assert glimpse(half.path, life.config).mean is None


# What is shown


def standings(folder: Path, *states: str) -> list[Standing]:
    return [Standing(Planned(small("ewc", seed=n), folder / f"life-{n}"), state) for n, state in enumerate(states)]  # type: ignore[arg-type]


def test_the_table_has_a_row_for_each_life_and_the_time_left_of_all(lives: Callable[[str], Lived], tmp_path: Path):
    life, console = lives("ewc"), Console(width=100, record=True, file=io.StringIO())
    some_lives = standings(tmp_path, "running", "waiting", "FAILED", "waiting")
    ended = Standing(Planned(life.config, life.path), "ended")
    board = Board(at_once=1)
    board.look([ended, *some_lives[1:]])
    seconds = whole_seconds(board.seen[ended.life])
    assert seconds is not None
    rest = [ended, *some_lives[1:]]
    assert board.left(rest) == pytest.approx(2 * seconds)
    console.print(board.table(rest, 20))
    text = console.export_text()
    assert [" ".join(line.split()[:3]) for line in text.splitlines()[1:3]] == ["ewc ended 4/4", "life-1 waiting -"]
    assert f"4 lives: 1 ended, 1 FAILED, 2 waiting; left {shown(2 * seconds)}" in text
    assert [one.state for one in some(rest, 2)] == ["waiting", "FAILED"]
    console.print(board.table(rest, 2))
    assert "(2 more, not shown)" in console.export_text()


def test_names_do_nothing_to_a_terminal(tmp_path: Path):
    bad = Standing(Planned(LifeConfig(), tmp_path / "[red]\x1b[31m<img src=x>"), "waiting")
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(Board(1).table([bad], 9))
    text = console.export_text()
    assert "[red]\\x1b[31m<img" in text and "\x1b" not in text


def test_elsewhere_there_is_a_line_from_time_to_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    rows = standings(tmp_path, "running", "waiting")
    with board_for(2) as (say, show):
        say("a sentence")
        show(rows)
    assert capsys.readouterr().err == "a sentence\n"
    show = lines(Board(2))
    show(rows)
    assert capsys.readouterr().err == ""
    each = seconds(rows[0].life.config)
    assert Board(2).summary(rows) == f"2 lives: 1 running, 1 waiting; left {shown(each)}"
    assert shown(3723.4) == "1:02:03"


# Slurm


def test_the_script_for_slurm_lives_requeues_and_goes_on(tmp_path: Path):
    words = ["--agents", "stl", "--seeds", "3", "--out", "a b", "--slurm", "--at-once", "7"]
    end = command("sweep", *words, "--", *TINY, cwd=tmp_path)
    script = tmp_path / "lives.sbatch"
    script.write_text(end.out)
    assert end.code == 0 and "#SBATCH --array=0-0%7\n" in end.out and not (tmp_path / "a b").exists()
    assert subprocess.run(["bash", "-n", script]).returncode == 0
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "scontrol").write_text(f'#!/bin/bash\necho "$@" >> {tmp_path}/asked\n')
    (tools / "scontrol").chmod(0o755)
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "SLURM_ARRAY_JOB_ID": "77"}
    assert subprocess.run(["bash", script], env={**env, "SLURM_ARRAY_TASK_ID": "1"}, stderr=-3).returncode == 2
    run, element = tmp_path / "a b/stl-3", {**env, "SLURM_ARRAY_TASK_ID": "0"}
    process = subprocess.Popen(["bash", script], env=element, cwd=tmp_path, stdout=-3, stderr=-3)
    wait_for(lambda: (run / "manifest.json").exists())
    process.send_signal(signal.SIGTERM)
    assert process.wait() in (0, 143)
    asked = tmp_path / "asked"
    assert (asked.read_text() == "requeue 77_0\n") if process.returncode else not asked.exists()
    assert subprocess.run(["bash", script], env=element, cwd=tmp_path, stdout=-3, stderr=-3).returncode == 0
    assert (run / "summary.json").exists()
    again = command("sweep", *words, "--", *TINY, cwd=tmp_path)
    assert again.code == 2 and "nothing for Slurm to do" in again.err
    with pytest.raises(InputError, match="nothing"):
        sweep.run(sweep.Options((*TINY,), tmp_path / "a b", agents=("stl",), seeds=("3",), slurm=True))
