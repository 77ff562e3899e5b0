"""The command line as a person uses it: output, exit codes, files."""

import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from lives import SMALL
from PIL import Image
from terminal import command as modlife

from modlife import __version__
from modlife.benchmarks import programs
from modlife.cli.main import COMMANDS
from modlife.domains.domain import DOMAINS
from modlife.lifelong.agents import AGENTS


def test_the_overview_names_every_command():
    for arguments in ((), ("--help",)):
        out = modlife(*arguments)
        assert out.code == 0
        assert all(re.search(rf"^  {name} ", out.out, re.MULTILINE) for name in COMMANDS)
    alone = subprocess.run([sys.executable, "-m", "modlife", "--version"], capture_output=True, text=True, check=True)
    assert alone.stdout == f"modlife {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str):
    out = modlife(command, "--help")
    assert out.code == 0
    assert f"usage: modlife {command}" in out.out
    assert "MISSING" not in out.out


def test_list_shows_all_tasks_as_text_and_as_json():
    text, data = modlife("list").out, json.loads(modlife("list", "--json").out)
    assert "4 x 4 x 4 = 64 tasks, 6 actions" in text
    assert len(data["tasks"]) == 64
    assert all(task in text for task in data["tasks"])
    large = json.loads(modlife("list", "--json", "--world.colour-count", "8", "--world.dynamics-count", "24").out)
    assert len(large["tasks"]) == 768


def test_pictures_are_drawn(tmp_path: Path):
    assert modlife("list", "--picture", "deep/tasks.png", cwd=tmp_path).code == 0
    with Image.open(tmp_path / "deep/tasks.png") as sheet:
        # 64 grids of 8 x 18 pixels, with captions, in eight columns.
        assert sheet.width == 6 + 8 * (8 * 18 + 6)
        assert len(sheet.convert("RGB").getcolors(2**24) or []) > 30
    assert modlife("graph", "--out", "deep/graph.svg", cwd=tmp_path).code == 0
    assert "dynamics-3" in (tmp_path / "deep/graph.svg").read_text()


def test_play_films_a_random_agent_the_same_for_the_same_seed(tmp_path: Path):
    for name in ("a.gif", "b.gif"):
        options = ["--policy", "random", "--seed", "4", "--out", name]
        out = modlife("play", "--task", "lava/blue/dynamics-1", *options, cwd=tmp_path)
        assert re.fullmatch(rf"random agent in lava/blue/dynamics-1: mean return .* {name}\n", out.out), out.err
    assert (tmp_path / "a.gif").read_bytes() == (tmp_path / "b.gif").read_bytes()
    with Image.open(tmp_path / "a.gif") as film:
        assert getattr(film, "n_frames", 1) > 10


def test_bench_prints_json_lines_with_the_rival_beside_ours():
    out = modlife("bench", "env", "--seconds", "0.05")
    assert out.code == 0, out.err
    records = [json.loads(line) for line in out.out.splitlines()]
    ours = {(r["batch"], r["threads"]): r["value"] for r in records if r["case"] == "modlife"}
    assert {batch for batch, _ in ours} == {1, 16, 256, 4096}
    assert all(r["bench"] == "env" and r["domain"] == "grid2d" and r["value"] > 0 for r in records)
    (rival,) = [r["value"] for r in records if r["case"] == "minigrid"]
    ratios = {r["threads"]: r["value"] for r in records if r["unit"] == "times"}
    for threads, ratio in ratios.items():
        assert ratio == pytest.approx(ours[4096, threads] / rival, rel=0.01)


def test_bench_ppo_prints_lives_and_the_parts_of_an_update():
    out = modlife("bench", "ppo", "--seconds", "0.05", "--threads", "1")
    assert out.code == 0, out.err
    records = {record["case"]: record for record in map(json.loads, out.out.splitlines())}
    assert list(records) == ["stl", "stl collect", "stl learn"]
    assert all(r["bench"] == "ppo" and r["lives"] == 1 and r["value"] > 0 for r in records.values())


def test_bench_agents_prints_every_agents_rate_or_why_it_has_none(monkeypatch: pytest.MonkeyPatch):
    """Lives as small as can be, where programs compile in no time."""
    usual = {name: SMALL[name] for name in ("ppo", "ewc", "clear", "compress", "distill")}
    usual["offline"] = {"consolidator": "bcq", **SMALL["offline"]}
    monkeypatch.setitem(DOMAINS._entries, "hall", replace(DOMAINS["hall"], usual=usual))
    monkeypatch.setattr(programs, "UPDATES", 3)
    out = modlife("bench", "agents", "--domain", "hall")
    assert out.code == 0, out.err
    records = {record["agent"]: record for record in map(json.loads, out.out.splitlines())}
    assert set(records) == set(AGENTS.names) and next(iter(records)) == "comp-struct"
    assert all((r["bench"], r["domain"], r["threads"]) == ("agents", "hall", 1) for r in records.values())
    assert records.pop("mtl-chain")["refused"] == "The domain 'hall' has no chained."
    usual_rate = records["comp-struct"]["value"]
    for record in records.values():
        assert record["unit"] == "steps/s" and 0 < record["value"] < math.inf
        assert record["share"] == pytest.approx(record["value"] / usual_rate, rel=0.01, abs=0.001)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["lsit"], "modlife: No command 'lsit'. Did you mean 'list'?"),
        (["play", "--task", "wall/red/dynamics-9"], "modlife: No dynamics 'dynamics-9'. Did you mean 'dynamics-"),
        (["list", "--domain", "moon"], "modlife: No domain 'moon'. Known: grid2d, robot,"),
        (["train", "--agent", "stl", "--offline", "bcq", "--out", "x"], "modlife: The agent 'stl' has no --offline"),
        (["figure", "fig9", "results/stl-24-0", "--out", "x.png"], "modlife: No figure 'fig9'. Did you mean 'fig"),
        (["play", "--task", "wall"], "modlife: Task 'wall' has 1 components, but 'grid2d' has 3 factors"),
        (["play", "--episodes", "0"], "modlife: episodes = 0, but it must be 1 to 1000."),
        (["play", "--out", "film.avi"], "modlife: The film 'film.avi' must be a .gif file."),
        (["bench", "env", "--seconds", "0"], "modlife: seconds = 0.0, but it must be more than 0."),
    ],
)
def test_bad_input_gets_one_sentence_and_exit_code_2(arguments: list[str], sentence: str, tmp_path: Path):
    out = modlife(*arguments, cwd=tmp_path)
    assert out.code == 2
    assert out.err.startswith(sentence)
    assert "Traceback" not in out.err
    assert out.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["list", "--world.size", "3"], "size = 3, but it must be 5 to 18 with 4 colours."),
        (["list", "--world.gap-rows", "some"], "invalid choice 'some'"),
        (["bench", "en"], "invalid choice 'en'"),
        (["play", "--tsk", "x"], "--task"),
    ],
)
def test_a_wrong_option_is_explained_with_exit_code_2(arguments: list[str], sentence: str):
    out = modlife(*arguments)
    assert out.code == 2
    assert sentence in re.sub(r"[\s│]+", " ", out.err)
    assert "Traceback" not in out.err + out.out


def test_a_reader_that_stops_early_leaves_no_traceback():
    out = subprocess.run(
        f"{sys.executable} -m modlife list --json --world.colour-count 12 --world.dynamics-count 24 | head -c 1",
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (out.stdout, out.stderr) == ("{", "")
