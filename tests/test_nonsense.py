"""Nonsense, from the keyboard and from Python: each gets a sentence that names it, and leaves nothing behind.

Tables of bad inputs, made systematically from the fields of the configs, beside a table of good ones at the edges.
"""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import gymnasium
import numpy as np
import pytest
from terminal import command

import modlife
from modlife.checks import check_evaluation
from modlife.cli import train
from modlife.cli.tables import evaluation_table
from modlife.cli.words import read_options
from modlife.domains.grid2d.world import World
from modlife.domains.robot.world import RobotWorld
from modlife.errors import InputError
from modlife.learners.config import (
    AWACConfig,
    BCQConfig,
    BoundedConfig,
    ClearConfig,
    CompressConfig,
    DistillConfig,
    ElasticConfig,
    EWCConfig,
    PPOConfig,
    RealBCQConfig,
)
from modlife.lifelong.settings import (
    Compressed,
    Distilled,
    ExhaustiveConfig,
    HalvingConfig,
    Online,
    Rehearsed,
    Searching,
    Told,
)
from modlife.runs.config import LifeConfig, life_from_json
from modlife.runs.store import RunWriter

ROOT = Path(__file__).parent.parent
TRAIN = ["train", "--out", "x"]
TASK = "wall/red/dynamics-0"
BIG = 2**63

GROUPS: list[tuple[type, list[str], str]] = [
    (PPOConfig, TRAIN, "--ppo."),
    (BCQConfig, TRAIN, "--offline."),
    (BoundedConfig, [*TRAIN, "--offline", "bounded"], "--offline."),
    (ElasticConfig, [*TRAIN, "--agent", "ewc"], "--ewc."),
    (RealBCQConfig, [*TRAIN, "--offline", "real-bcq"], "--offline."),
    (AWACConfig, [*TRAIN, "--offline", "awac"], "--offline."),
    (EWCConfig, [*TRAIN, "--agent", "ewc"], "--ewc."),
    (ClearConfig, [*TRAIN, "--agent", "clear"], "--clear."),
    (DistillConfig, [*TRAIN, "--agent", "reset-distill"], "--distill."),
    (CompressConfig, [*TRAIN, "--agent", "pc"], "--compress."),
    (Compressed, [*TRAIN, "--agent", "pc"], "--"),
    (Rehearsed, [*TRAIN, "--agent", "clear"], "--"),
    (Distilled, [*TRAIN, "--agent", "reset-distill"], "--"),
    (ExhaustiveConfig, TRAIN, "--search."),
    (HalvingConfig, [*TRAIN, "--search", "halving"], "--search."),
    (Searching, TRAIN, "--"),
    (LifeConfig, TRAIN, "--"),
    (World, ["list"], "--world."),
    (RobotWorld, ["list", "--domain", "robot"], "--world."),
]
"""Configs, and how a command gives their fields."""

ZERO_IS_FINE = {"discount", "gae_lambda", "value_weight", "entropy_weight", "td_weight", "likelihood_weight"}
ZERO_IS_FINE |= {"logit_weight", "threshold", "seed", "repair", "strength", "decay", "policy_weight"}
ZERO_IS_FINE |= {"timid_start", "caution", "margin"}
BAD_NUMBERS = ["nan", "inf", "-inf", "-1", "1e30", "x", str(BIG), "", "1,000"]
BAD_WHOLE = [*BAD_NUMBERS, "1e5", "100k", "3.5", "True"]


def kinds(config: type) -> Iterator[tuple[str, Any]]:
    """Its own fields with their types; None is left out of those that may be None."""
    for field in [field for field in fields(config) if field.name in config.__annotations__]:
        hint = get_type_hints(config)[field.name]
        inner = [one for one in get_args(hint) if one is not type(None)]
        yield field.name, inner[0] if get_origin(hint) not in (Literal, tuple) and inner else hint


def may_be_zero(config: type, name: str) -> bool:
    none = BCQConfig | RealBCQConfig | DistillConfig | CompressConfig
    return name in ZERO_IS_FINE or (issubclass(config, none) and name == "epochs")


def numbers() -> Iterator[tuple[type, list[str], str, str]]:
    """A bad number for every number of every config."""
    for config, start, prefix in GROUPS:
        for name, kind in kinds(config):
            if kind in (int, float):
                zero = [] if may_be_zero(config, name) else ["0"]
                for value in (*(BAD_WHOLE if kind is int else BAD_NUMBERS), *zero):
                    yield config, start, f"{prefix}{name.replace('_', '-')}", value


def words() -> Iterator[tuple[list[str], str]]:
    """A wrong word for every field with a choice."""
    for config, start, prefix in GROUPS:
        for name, kind in kinds(config):
            if get_origin(kind) is Literal:
                for value in ("nothing", "", "None", "PAPER", "0"):
                    yield [*start, f"{prefix}{name.replace('_', '-')}", value], value


LONG = "n" * 300

COMMANDS: list[tuple[list[str], str]] = [
    (["eval", "--by-components"], "--unseen"),
    (["sync", "a-run", "--to", "tensorboard", "--every", "5"], "--watch"),
    (["reproduce", "fig3", "--lives", "lives.txt", "--dry-run"], "--dry-run"),
    (["metrics", "a-file", "--highest", "0"], "highest = 0"),
    (["lsit"], "lsit"),
    (["--halp"], "--halp"),
    ([""], "''"),
    (["train"], "--out"),
    (["train", "--out", ""], "''"),
    (["train", "--out="], "''"),
    (["train", "--out", "a-file"], "a-file"),
    (["train", "--out", "a-folder"], "a-folder"),
    (["train", "--resume", "--out", "a-file"], "a-file"),
    (["train", "--resume", "--out", "nothing-here"], "nothing-here"),
    (["train", "--resume", "--out", "a-folder"], "a-folder"),
    (["train", "--resume", "--out", "a-run", "--threads", "0"], "threads = 0"),
    (["train", "--resume", "--out", "a-run", "--threads", "2"], "on 2"),
    (["train", "--resume", "--out", "a-run", "--save-every", "nan"], "nan"),
    (["train", "--resume", "--out", "a-run", "--agent", "mtl"], "mtl"),
    (["train", "--resume", "--out", "a-run", "--steps", "7"], "7"),
    (["train", "--resume", "--out", "a-run", "--tasks", "1"], "1"),
    (["train", "--resume", "--out", "a-run", "--seed", "-3"], "-3"),
    ([*TRAIN, "--agent", "STL"], "Did you mean 'stl'?"),
    ([*TRAIN, "--agent", "Comp-Search"], "Did you mean 'comp-search'?"),
    ([*TRAIN, "--agent", ""], "''"),
    ([*TRAIN, "--agent", "stl", "--modules", "3"], "--modules"),
    ([*TRAIN, "--agent", "stl", "--offline.epochs", "3"], "--offline.epochs"),
    ([*TRAIN, "--agent", "stl", "--search", "exhaustive"], "--search"),
    ([*TRAIN, "--agent", "comp-struct", "--search.episodes", "3"], "--search.episodes"),
    ([*TRAIN, "--agent", "mtl", "--replay-size", "3"], "--replay-size"),
    ([*TRAIN, "--agent", "mtl", "--tasks", "3"], "--tasks = 3"),
    ([*TRAIN, "--agent", "pc-bcq", "--compress.strength", "3"], "--compress.strength"),
    ([*TRAIN, "--agent", "clear", "--domain", "robot"], "values of states"),
    ([*TRAIN, "--agent", "pc-bcq", "--domain", "robot", "--offline", "bcq"], "real numbers"),
    ([*TRAIN, "--agent", "clear", "--clear.keep", "reservoir", "--ppo.length", "16"], "length = 16"),
    ([*TRAIN, "--agent", "clear-modular", "--clear.keep", "reservoir", "--replay-size", "256"], "replay_size = 256"),
    ([*TRAIN, "--agent", "clear-modular", "--modules", "3"], "--modules"),
    ([*TRAIN, "--tasks", "65"], "--tasks = 65"),
    ([*TRAIN, "--modules", "4", "--tasks", "4"], "modules = 4"),
    ([*TRAIN, "--modules", "64"], "modules = 64"),
    ([*TRAIN, "--modules", "65"], "--modules = 65"),
    ([*TRAIN, "--steps", "1000"], "steps = 1000"),
    ([*TRAIN, "--domain", "moon"], "moon"),
    ([*TRAIN, "--domain", "robot", "--world.size", "9"], "--world.size"),
    ([*TRAIN, "--agent", "stl", "--domain", "robot", "--world.robots", "Bob"], "Bob"),
    ([*TRAIN, "--world.preset", "fast"], "--world.preset"),
    ([*TRAIN, "--world.statics", "wall", "wall"], "wall, wall"),
    ([*TRAIN, "--world.statics", "moat"], "moat"),
    ([*TRAIN, "--search", "genetic"], "genetic"),
    ([*TRAIN, "--offline", "iql"], "iql"),
    ([*TRAIN, "--curriculum", "hard"], "hard"),
    ([*TRAIN, "--only", TASK, TASK], TASK),
    ([*TRAIN, "--only", "wall"], "wall"),
    ([*TRAIN, "--only", "wall/red/dynamics-9"], "dynamics-9"),
    ([*TRAIN, "--only", TASK, "--tasks", "1"], "tasks = 1"),
    ([*TRAIN, "--grown", "3"], "--grown"),
    ([*TRAIN, "--threads", "0"], "threads = 0"),
    ([*TRAIN, "--threads", "-1"], "threads = -1"),
    ([*TRAIN, "--threads", "99999"], "threads = 99999"),
    ([*TRAIN, "--threads", "two"], "two"),
    *(([*TRAIN, "--save-every", value], value) for value in ("-1", "nan", "inf", "-inf", "1e30", "soon")),
    ([*TRAIN, "--ppo.minibatch", "100"], "minibatch = 100"),
    ([*TRAIN, "--ppo.envs", "1048576", "--ppo.length", "1048576"], "1099511627776"),
    ([*TRAIN, "--ppo.envs"], "--ppo.envs"),
    ([*TRAIN, "--ppo.cilp", "0.2"], "--ppo.cilp"),
    ([*TRAIN, "--ppo.epochs", "3", "--offline.epochs", "-1"], "--offline.epochs = -1"),
    ([*TRAIN, "--episodes", "50", "--search.episodes", "0"], "--search.episodes = 0"),
    ([*TRAIN, "--offline.learning-rate", "1e-3", "--ppo.learning-rate", "-1"], "--ppo.learning-rate = -1.0"),
    ([*TRAIN, "--seed", "4294967296"], "4294967296"),
    ([*TRAIN, "--seed", str(2**70)], str(2**70)),
    ([*TRAIN, "--steps", "9" * 5000], "999"),
    (["eval", "--episodes", "0"], "0"),
    (["show"], "run directory"),
    (["show", "nothing-here"], "nothing-here"),
    (["show", "a-file"], "a-file"),
    (["show", "a-run", "--jsno"], "--jsno"),
    (["eval", "nothing-here"], "nothing-here"),
    (["eval", "a-run"], "a-run"),
    (["eval", ""], "'.'"),
    (["eval", "a-file"], "a-file"),
    (["eval", "a-run", "--task", TASK, TASK], TASK),
    (["eval", "a-run", "--task", TASK, "--unseen"], TASK),
    (["eval", "a-run", "--acting", "wisely"], "wisely"),
    *((["eval", "a-run", "--seed", value], value) for value in ("-1", "4294967296", str(2**70), "nan", "1e3")),
    *((["eval", "a-run", "--episodes", value], value) for value in ("0", "1", "-5", "10000000000", "1e3", "many")),
    (["play", "a-run", "--domain", "grid2d"], "--domain"),
    (["play", "a-run", "--policy", "random"], "--policy"),
    (["play", "a-run", "--world.size", "8"], "--world.size"),
    (["play", "a-run", "--beside", "x"], "--beside"),
    (["play", "nothing-here"], "nothing-here"),
    (["play", "--policy", "wise"], "wise"),
    (["play", "--policy", "scripted"], "grid2d"),
    (["play", "--task", ""], "''"),
    (["play", "--task", "wall//dynamics-0"], "''"),
    (["play", "--task", "wall/red/dynamics-0/x"], "wall/red/dynamics-0/x"),
    *((["play", "--seed", value], value) for value in ("-1", "4294967296", str(2**70), "nan")),
    *((["play", "--episodes", value], value) for value in ("0", "-1", "1001", "1e30", "three")),
    *((["play", "--out", value], value) for value in ("a.avi", "film", ".", "a-folder.gif", ".gif")),
    (["play", "--out", ""], "''"),
    *((["graph", "--out", value], value) for value in ("g.png", "g", ".", "a-folder.svg", ".svg", "/tmp")),
    (["graph", "--out", ""], "''"),
    (["graph", "--task", ""], "''"),
    (["graph", "--task", "wall/pink/dynamics-0"], "pink"),
    (["graph", "--domain", "moon"], "moon"),
    *((["list", "--picture", value], value) for value in ("a.txt", "pic", ".", "a-folder.png", "a.gif", ".png")),
    (["list", "--picture", ""], "''"),
    (["list", "--domain", "Grid2D"], "Did you mean 'grid2d'?"),
    (["list", "--world.statics"], "statics is empty"),
    (["list", "--domain", "robot", "--world.objects", "can", "can"], "can, can"),
    (["list", "--jsno"], "--jsno"),
    *((["figure", "fig3", "a-run", "--out", value], value) for value in ("a.xyz", "a.csv", "fig", ".", "a-folder.png")),
    (["figure", "fig9", "a-run", "--out", "f.png"], "fig9"),
    (["figure", "figE2", "nothing-here", "--out", "f.png"], "nothing-here"),
    (["table"], "run directory"),
    (["table", "nothing-here"], "nothing-here"),
    (["table", "a-run", "--out", "t.txt"], "t.txt"),
    (["table", "a-run", "--out", ""], "''"),
    (["sweep"], "--out"),
    (["sweep", "nothing-here", "--out", "x"], "nothing-here"),
    (["tune"], "--out"),
    (["tune", "ewc"], "--out"),
    (["tune", "ecw", "--out", "x"], "Did you mean 'ewc'?"),
    (["tune", "ewc", "--out", "x", "--steps", "0"], "steps = 0"),
    (["tune", "ewc", "--out", "x", "--seeds", "0"], "seeds = 0"),
    (["tune", "ewc", "--out", "x", "--settings", "-1"], "settings = -1"),
    (["tune", "ewc", "--out", "x", "--at-once", "0"], "at_once = 0"),
    (["bench", "agents", "--seconds", "3"], "seconds = 3"),
    (["figure", "fig3", "nothing-here", "--out", "f.png"], "nothing-here"),
    (["figure", "fig3", "a-run", "--out", ""], "''"),
    (["bench"], "{env,ppo,search,offline,life,agents,sweep}"),
    (["bench", "world"], "world"),
    (["bench", "env", "--domain", "moon"], "moon"),
    *((["bench", "env", "--threads", value], value) for value in ("0", "-1", "nan", "99999")),
    *((["bench", "search", "--seconds", value], value) for value in ("0", "-1", "nan", "inf", "1e30", "long")),
    (["bench", "life", "--seconds", "3"], "3"),
    (["train", "--out", LONG], "File name too long"),
    (["train", "--resume", "--out", LONG], "File name too long"),
    (["eval", LONG], "File name too long"),
]

DISK: list[tuple[list[str], str]] = [
    (["train", "--out", "/proc/nowhere/x"], "/proc/nowhere/x"),
    (["train", "--out", "a-file/x"], "a-file/x"),
    (["play", "--episodes", "1", "--out", "/proc/nowhere/a.gif"], "/proc/nowhere/a.gif"),
    (["play", "--out", f"{LONG}.gif"], "File name too long"),
    (["graph", "--out", "/proc/nowhere/g.svg"], "/proc/nowhere/g.svg"),
    (["graph", "--out", "a-file/g.svg"], "a-file/g.svg"),
    (["graph", "--out", f"{LONG}.svg"], "File name too long"),
    (["list", "--picture", "/proc/nowhere/a.png"], "/proc/nowhere/a.png"),
    (["list", "--picture", "a-file/a.png"], "a-file/a.png"),
]
"""What the disk refuses."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A working directory with a file, folders, and a run directory in which nothing was lived."""
    (tmp_path / "a-file").write_text("mine")
    for name in ("a-folder", "a-folder.gif", "a-folder.svg", "a-folder.png"):
        (tmp_path / name).mkdir()
    RunWriter.create(tmp_path / "a-run", LifeConfig("stl", tasks=2)).close()
    return tmp_path


def left(place: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in place.rglob("*")}


def names(text: str, value: str) -> bool:
    """Whether a sentence names a value: as it was given, or as the number that it is."""
    told = " ".join(text.replace("│", " ").split())
    try:
        return value in told or repr(float(value)) in told
    except ValueError:
        return value in told


def complaints(table: list[tuple[list[str], str]], place: Path, *, code: int) -> list[str]:
    """What is wrong in how commands refuse: nothing."""
    before, found = left(place), []
    for arguments, value in table:
        end, now = command(*arguments, cwd=place), left(place)
        right = end.code == code and "Traceback" not in end.err and names(end.err, value) and now == before
        if not right:
            found.append(f"{arguments}: code {end.code}, new {sorted(set(now) - set(before))}: {end.err[-300:]}")
            before = now
    return found


@pytest.mark.parametrize("config", [config for config, *_ in GROUPS], ids=lambda config: config.__name__)
def test_every_number_of_every_config_is_checked(config: type, place: Path):
    table = [([*start, f"{option}={value}"], value) for one, start, option, value in numbers() if one is config]
    assert complaints(table, place, code=2) == []


def test_every_choice_of_every_config_is_checked(place: Path):
    assert complaints(list(words()), place, code=2) == []


def test_commands_refuse_what_they_cannot_do(place: Path):
    assert complaints(COMMANDS, place, code=2) == []


def test_what_the_disk_refuses_is_told_with_exit_code_1(place: Path):
    assert complaints(DISK, place, code=1) == []


def test_there_are_many_bad_inputs():
    assert len(list(numbers())) + len(list(words())) + len(COMMANDS) + len(DISK) + len(CALLS) >= 300


# From Python


def python_numbers() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Values of wrong types and sizes for every number of every config."""
    values = [math.nan, math.inf, -math.inf, -1, 1e30, BIG, 10**400, 10**5000, "8", True, [1], {}, np.ones(2), 1j, b"8"]
    for config in (PPOConfig, BCQConfig, ExhaustiveConfig, Searching, Told, LifeConfig, World, RobotWorld):
        for name, kind in kinds(config):
            for value in values if kind in (int, float) else ():
                yield name, lambda config=config, name=name, value=value: made(config, **{name: value})


def made(config: type, **values: Any) -> Any:
    """A config as users make it: without the checks of types that tests add to some modules."""
    one, usual = object.__new__(config), config()
    for field in fields(config):
        object.__setattr__(one, field.name, values.get(field.name, getattr(usual, field.name)))
    one.__post_init__()
    return one


# What the type checker is told to ignore below is what is tried.
CALLS: list[tuple[str, Callable[[], Any]]] = [
    *python_numbers(),
    ("'8'", lambda: LifeConfig(tasks="8")),  # pyright: ignore[reportArgumentType]
    ("Write 100000", lambda: LifeConfig(steps=1e5)),  # pyright: ignore[reportArgumentType]
    (TASK, lambda: LifeConfig(only=TASK)),  # pyright: ignore[reportArgumentType]
    (TASK, lambda: LifeConfig(only=(TASK, TASK))),
    ("3", lambda: LifeConfig(only=(3,))),  # pyright: ignore[reportArgumentType]
    ("3", lambda: LifeConfig(agent=3)),  # pyright: ignore[reportArgumentType]
    ("None", lambda: LifeConfig(agent=None)),  # pyright: ignore[reportArgumentType]
    ("3", lambda: LifeConfig(curriculum=3)),  # pyright: ignore[reportArgumentType]
    ("world = 'x'", lambda: LifeConfig(world="x")),
    ("world = {}", lambda: LifeConfig(world={})),
    ("str", lambda: LifeConfig(settings="x")),
    ("Online", lambda: LifeConfig("comp-search", settings=Online())),
    ("ppo = {'envs': 8}", lambda: made(Online, ppo={"envs": 8})),
    ("offline = None", lambda: made(Told, offline=None)),
    ("search = PPOConfig", lambda: made(Searching, search=PPOConfig())),
    ("'yes'", lambda: PPOConfig(normalise_advantages="yes")),  # pyright: ignore[reportArgumentType]
    ("1", lambda: PPOConfig(normalise_advantages=1)),  # pyright: ignore[reportArgumentType]
    ("'6.0'", lambda: World(actions=6.0)),  # pyright: ignore[reportArgumentType]
    ("'[0. 0.]'", lambda: World(gap_rows=np.zeros(2))),  # pyright: ignore[reportArgumentType]
    ("'wall'", lambda: World(statics="wall")),  # pyright: ignore[reportArgumentType]
    ("3", lambda: World(statics=(3,))),  # pyright: ignore[reportArgumentType]
    ("None", lambda: RobotWorld(objects=None)),  # pyright: ignore[reportArgumentType]
    ("3", lambda: modlife.config(3)),  # pyright: ignore[reportArgumentType]
    ("['stl']", lambda: modlife.config(["stl"])),  # pyright: ignore[reportArgumentType]
    ("None", lambda: modlife.config(domain=None)),  # pyright: ignore[reportArgumentType]
    ("world = 3", lambda: modlife.config(world=3)),
    ("'10'", lambda: modlife.config(world={"size": "10"})),
    ("nan", lambda: modlife.config(ppo={"clip": math.nan})),
    ("-1", lambda: modlife.config(seed=-1)),
    (str(2**32), lambda: modlife.config(seed=2**32)),
    ("'x'", lambda: modlife.config(ppo="x")),
    ("stepz", lambda: modlife.config(stepz=1)),
    ("'x'", lambda: modlife.live("x", "y")),  # pyright: ignore[reportArgumentType]
    ("nan", lambda: modlife.live(LifeConfig(), "y", save_every=math.nan)),
    ("-1", lambda: modlife.live(LifeConfig(), "y", save_every=-1)),
    ("0", lambda: modlife.live(LifeConfig(), "y", threads=0)),
    ("'2'", lambda: modlife.living(LifeConfig(), "y", threads="2")),  # pyright: ignore[reportArgumentType]
    ("'6'", lambda: modlife.resume("a-run", tasks="6")),  # pyright: ignore[reportArgumentType]
    ("inf", lambda: modlife.resume("a-run", save_every=math.inf)),
    ("'wall'", lambda: check_evaluation("wall", episodes=2, acting=None, seed=0)),
    (TASK, lambda: check_evaluation([TASK, TASK], episodes=2, acting=None, seed=0)),
    ("2.0", lambda: check_evaluation(None, episodes=2.0, acting=None, seed=0)),
    ("10000000", lambda: check_evaluation(None, episodes=10**7, acting=None, seed=0)),
    ("wisely", lambda: check_evaluation(None, episodes=2, acting="wisely", seed=0)),
    (str(2**32), lambda: check_evaluation(None, episodes=2, acting=None, seed=2**32)),
    ("-1", lambda: grid2d().reset(seed=-1)),
    (str(2**32), lambda: grid2d().reset(seed=2**32)),
    ("1.5", lambda: grid2d().reset(seed=1.5)),
    ("reset", lambda: grid2d().unwrapped.step(0)),
    ("['lava', 'wall']", lambda: grid2d(static=["lava", "wall"])),
    ("True", lambda: grid2d(dynamics=True)),
    ("1.0", lambda: grid2d(dynamics=1.0)),
    ("'9'", lambda: grid2d(size="9")),
    ("nan", lambda: grid2d(horizon=math.nan)),
    ("0", lambda: grid2d_vector(num_envs=0)),
    ("True", lambda: grid2d_vector(num_envs=True)),
    ("2.0", lambda: grid2d_vector(num_envs=2.0)),
    (str(2**32), lambda: grid2d_vector(num_envs=2).reset(seed=2**32 - 1)),
    ("-1", lambda: grid2d_vector(num_envs=2).reset(seed=-1)),
    ("-1", lambda: grid2d_vector(num_envs=2).reset(seed=[0, -1])),
    ("3 seeds", lambda: grid2d_vector(num_envs=2).reset(seed=[0, 1, 2])),
    ("reset", lambda: grid2d_vector(num_envs=2).step(np.zeros(2, int))),
]


def grid2d(**options: Any) -> Any:
    return gymnasium.make("modlife/Grid2D-v0", disable_env_checker=True, **options).unwrapped


def grid2d_vector(**options: Any) -> Any:
    from modlife.domains.grid2d.gym import Grid2DVectorEnv

    return Grid2DVectorEnv(**options)


def test_python_gets_sentences_too(place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(place)
    before = left(place)
    for value, call in CALLS:
        with pytest.raises(InputError) as caught:
            call()
        assert value in str(caught.value), (value, caught.value)
        assert len(str(caught.value)) < 400
    assert left(place) == before


# What is at the edge, and fine

FINE: list[Callable[[], Any]] = [
    lambda: PPOConfig(envs=1, length=1, minibatch=1, epochs=1),
    lambda: PPOConfig(envs=2**20, length=2**10, minibatch=2**20),
    lambda: PPOConfig(learning_rate=1, adam_eps=1, discount=1, gae_lambda=0, clip=1e9, max_grad_norm=1e9),
    lambda: PPOConfig(learning_rate=1e-12, discount=0, value_weight=0, entropy_weight=0),
    lambda: PPOConfig(envs=np.int64(8), learning_rate=np.float32(0.001), clip=np.float64(0.1)),  # pyright: ignore[reportArgumentType]
    lambda: BCQConfig(epochs=0, threshold=0, td_weight=0, likelihood_weight=0, logit_weight=0),
    lambda: BCQConfig(batch=1, target_period=1, threshold=0.999),
    lambda: ExhaustiveConfig(episodes=1000),
    lambda: Searching(modules=1, replay_size=1),
    lambda: Searching(modules=64, replay_size=2**24),
    lambda: LifeConfig(seed=2**32 - 1),
    lambda: LifeConfig(steps=10**12, episodes=10**5),
    lambda: LifeConfig("stl", steps=1, episodes=2, tasks=1),
    lambda: LifeConfig("stl", tasks=64),
    lambda: LifeConfig("stl", only=[TASK]),  # pyright: ignore[reportArgumentType]
    lambda: LifeConfig("mtl", tasks=4),
    lambda: LifeConfig("comp-search", tasks=4),
    lambda: LifeConfig("comp-search", tasks=4, settings=Searching(modules=3)),
    lambda: LifeConfig("stl", tasks=np.int32(3), seed=np.uint32(7)),  # pyright: ignore[reportArgumentType]
    lambda: World(size=18, colour_count=12, dynamics_count=24, horizon=2**20),
    lambda: World(size=5, colour_count=1, dynamics_count=1, horizon=1, statics=("lava",)),
    lambda: World(statics=["wall", "food"], actions=np.int64(7)),  # pyright: ignore[reportArgumentType]
    lambda: RobotWorld(obstacles=("none",), objects=("can",), robots=("Panda",), horizon=1),
    lambda: modlife.config("stl", world=World(size=9), seed=np.int64(3), ppo=PPOConfig(envs=8)),
    lambda: modlife.config("comp-search", modules=2, tasks=3, only=()),
    lambda: check_evaluation(None, episodes=10**6, acting="boltzmann", seed=2**32 - 1),
    lambda: check_evaluation([TASK], episodes=2, acting=None, seed=np.int64(0)),
    lambda: options("--steps", "100_000", "--tasks", "None", "--save-every", "0"),
    lambda: options("--steps", "100000", "--ppo.learning-rate", "1e-4", "--ppo.entropy-weight", "0"),
    lambda: options("--seed", "4294967295", "--threads", "2", "--save-every", "1e6"),
    lambda: options("--agent", "stl", "--only", TASK, "wall/red/dynamics-1"),
    lambda: options("--agent=stl", "--domain=robot", "--world.preset=fast", "--world.robots", "Panda", "IIWA"),
    lambda: options("--world.statics", "lava", "wall", "--world.actions", "7", "--modules", "2"),
]


def options(*arguments: str) -> Any:
    """The options of `modlife train`, which is not begun."""
    words = ["--out", "x", *arguments]
    return read_options(train.Options, train.usual(words), prog="modlife train", arguments=words)


@pytest.mark.parametrize("make", FINE, ids=range(len(FINE)))
def test_what_is_at_the_edge_is_taken(make: Callable[[], Any]):
    make()


def test_numbers_of_numpy_become_pythons_own():
    config = PPOConfig(envs=np.int64(8), clip=np.float32(0.5))  # pyright: ignore[reportArgumentType]
    assert (type(config.envs), type(config.clip)) == (int, float)
    assert json.dumps(LifeConfig("stl", seed=np.uint32(7)).seed) == "7"  # pyright: ignore[reportArgumentType]
    assert World(statics=["wall"]) == World(statics=("wall",))  # pyright: ignore[reportArgumentType]


def test_all_committed_configs_are_still_read():
    manifests = sorted((ROOT / "results").glob("*/manifest.json"))
    assert len(manifests) > 20
    for path in manifests:
        assert life_from_json(json.loads(path.read_text())["config"]).chosen


# Full and closed outputs, memory, JAX


@pytest.mark.parametrize(
    ("line", "code", "sentence"),
    [
        ("list > /dev/full", 1, "modlife: Writing failed: No space left on device.\n"),
        ("list --help > /dev/full", 1, "modlife: Writing failed: No space left on device.\n"),
        ("list >&-", 1, "modlife: Standard output is closed: let it lead somewhere, such as > /dev/null.\n"),
        ("list 2>&-", 0, ""),
        ("lsit 2>/dev/full", 2, ""),
    ],
)
def test_an_output_that_cannot_be_written_is_told(line: str, code: int, sentence: str):
    run, usual = f"{sys.executable} -m modlife {line}", {**os.environ, "PYTHONUNBUFFERED": ""}
    out = subprocess.run(run, shell=True, capture_output=True, text=True, timeout=60, env=usual)
    assert (out.returncode, out.stderr) == (code, sentence)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes")])
def test_memory_that_is_not_there_is_told(error: Exception, monkeypatch: pytest.MonkeyPatch):
    def run(options: object) -> None:
        raise error

    monkeypatch.setattr("modlife.cli.list.run", run)
    end = command("list")
    assert (end.code, end.out) == (1, "") and end.err.startswith("modlife: There is not enough memory")


@pytest.mark.parametrize("error", [RuntimeError("a bug"), AssertionError(), ValueError("a bug")])
def test_a_fault_of_the_program_keeps_its_traceback(error: Exception, monkeypatch: pytest.MonkeyPatch):
    def run(options: object) -> None:
        raise error

    monkeypatch.setattr("modlife.cli.list.run", run)
    with pytest.raises(type(error)):
        command("list")


def test_a_picture_that_could_not_be_finished_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def half(self: Path, text: str) -> None:
        self.write_bytes(text[:100].encode())
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", half)
    end = command("graph", "--out", "g.svg", cwd=tmp_path)
    assert (end.code, end.err) == (1, "modlife: 'g.svg' could not be written: No space left on device.\n")
    assert list(tmp_path.iterdir()) == []


# Small terminals


def test_an_evaluation_fits_into_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch):
    tasks = ["floor/purple/dynamics-3", TASK]
    ones = [1.0, 1.0]
    record = {"tasks": tasks, "return": ones, "standard_error": ones, "success": ones, "length": ones, "mean_return": 1}
    record |= {"structure": [(0, 1, 2), (0, 0, 0)], "expected": [(0, 1, 2), None]}
    wide = evaluation_table(record, searched=tasks[1:]).splitlines()
    assert wide[1].endswith("0-1-2      0-1-2") and wide[-1].startswith("searched structures: 0 of 1 take")
    assert "standard error" in wide[-2] and wide[0].endswith("structure  by-parts")
    assert "by-parts: the modules first used for these components" in wide[-3]
    assert "as expected" not in evaluation_table(record)  # where none was searched, none can be wrong
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, evaluation_table(record).splitlines())) <= 60
    assert max(map(len, command("list").out.splitlines())) <= 60
