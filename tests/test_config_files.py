"""Options in files: every life can be written and read again, the command line wins, and mistakes are told."""

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import pytest
from lives import NAMES, small
from terminal import command

from modlife.cli import train
from modlife.cli.words import read_options
from modlife.domains.domain import DOMAINS
from modlife.errors import InputError
from modlife.lifelong.agents import AGENTS
from modlife.lifelong.settings import CONSOLIDATORS, SEARCHES
from modlife.registry import resolve
from modlife.runs.config import LifeConfig, life_from_options, usual_life
from modlife.runs.config_files import life_of, options_of, read_options_file, to_toml, written
from modlife.runs.store import RunDirectory, RunWriter

RESULTS = Path(__file__).parent.parent / "results"


def again(config: LifeConfig, folder: Path, *, threads: int = 1) -> tuple[LifeConfig, int | None]:
    """Written to a file, and read from it."""
    path = folder / "life.toml"
    path.write_text(to_toml(config, threads=threads))
    return life_of(read_options_file(path), where=str(path), chosen={})


def asked(*arguments: str) -> train.Options:
    """The options of `modlife train` that a command line gives."""
    words = [*arguments, "--out", "runs/a"]
    return read_options(train.Options, train.usual(words), prog="modlife train", arguments=words)


def usual_lives() -> list[tuple[str, str]]:
    """Every agent in every domain; some agents refuse some domains."""
    found = []
    for domain in DOMAINS.names:
        for agent in AGENTS.names:
            try:
                usual_life(agent, DOMAINS[domain].usual_world(), {})
            except InputError:
                continue
            found.append((agent, domain))
    return found


@pytest.mark.parametrize(("agent", "domain"), usual_lives())
def test_every_agents_config_is_the_same_after_a_file(agent: str, domain: str, tmp_path: Path):
    config = usual_life(agent, DOMAINS[domain].usual_world(), {})
    assert again(config, tmp_path) == (config, None)
    assert tomllib.loads(to_toml(config))["domain"] == domain


def test_agents_of_both_domains_are_among_them():
    found = usual_lives()
    assert len([one for one in found if one[1] == "grid2d"]) == len(AGENTS.names)
    assert len([one for one in found if one[1] == "robot"]) >= 8


@pytest.mark.parametrize("name", NAMES)
def test_configs_with_options_are_the_same_after_a_file(name: str, tmp_path: Path):
    config = small(name, seed=7, episodes=12)
    assert again(config, tmp_path, threads=2) == (config, 2)


@pytest.mark.parametrize("option", ["offline", "search"])
def test_every_choice_is_the_same_after_a_file(option: str, tmp_path: Path):
    for entry in {"offline": CONSOLIDATORS, "search": SEARCHES}[option]:
        for domain in ("grid2d", "robot"):
            config = life_from_options("comp-search", domain, {option: entry.name})
            assert again(config, tmp_path)[0] == config


def test_committed_lives_print_their_options(tmp_path: Path):
    for path in sorted(RESULTS.glob("*-0")):
        config = RunDirectory.open(path).config()
        assert again(config, tmp_path)[0] == config


def test_none_is_written_where_it_is_not_usual(tmp_path: Path):
    config = life_from_options("comp-search", "grid2d", {"offline": {"consolidator": "bounded", "tasks": None}})
    assert 'tasks = "None"' in to_toml(config) and again(config, tmp_path)[0] == config
    assert "panel" not in to_toml(config)


VALUES = ["", 'a"b\\c', "é\n\t\x00\x7f😀", True, False, 0, -3, 10**30, 1e-8, 1e300, float("inf"), [1, [2.5, "x"]], []]


@pytest.mark.parametrize("value", VALUES)
def test_values_are_the_same_in_toml(value: Any):
    assert tomllib.loads(f"a = {written(value)}")["a"] == value


def test_a_run_prints_what_it_was_lived_with(tmp_path: Path):
    run, config = tmp_path / "run", small("comp-search")
    RunWriter.create(run, config).close()
    end = command("config", str(run))
    (tmp_path / "life.toml").write_text(end.out)
    assert end.code == 0 and asked("--config", str(tmp_path / "life.toml")).life == config
    assert asked("--config", str(run)).life == config
    assert asked("--config", str(run / "manifest.json")).life == config


def test_options_can_be_printed_before_there_is_a_run():
    end = command("config", "--agent", "ewc", "--ppo.envs", "8", "--ewc.strength", "3.5")
    found = tomllib.loads(end.out)
    assert (end.code, found["agent"], found["ppo"]["envs"], found["ewc"]["strength"]) == (0, "ewc", 8, 3.5)


LIFE = """
agent = "comp-search"
tasks = 8
steps = 50_000
replay-size = 5000
offline = "bounded"

[ppo]
learning_rate = 0.0003

[search]
search = "halving"
episodes = 2

[world]
statics = ["floor", "food"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "life.toml").write_text(LIFE)
    return tmp_path / "life.toml"


def test_the_command_line_wins(file: Path):
    life = asked("--config", str(file)).life
    assert (life.tasks, life.steps, life.settings.replay_size) == (8, 50_000, 5000)
    assert life.settings.ppo.learning_rate == 3e-4
    assert (life.settings.search.episodes, life.world.statics) == (2, ("floor", "food"))
    assert CONSOLIDATORS.of(life.settings.offline).name == "bounded"
    more = asked("--config", str(file), "--steps", "60000", "--ppo.learning-rate", "0.1", "--offline", "bcq").life
    assert (more.steps, more.settings.ppo.learning_rate, more.tasks) == (60_000, 0.1, 8)
    assert type(more.settings.offline) is resolve(CONSOLIDATORS["bcq"].config)
    assert asked("--config", str(file), "--search", "halving", "--search.keep", "3").life.settings.search.episodes == 2
    assert SEARCHES.of(asked("--config", str(file), "--search", "exhaustive").life.settings.search).name == "exhaustive"
    few = "--search", "exhaustive", "--only", "floor/red/dynamics-0", "food/red/dynamics-1"
    only = asked("--config", str(file), *few).life
    assert only.tasks is None and len(only.chosen) == 2


def test_threads_may_stand_in_a_file(file: Path):
    file.write_text(LIFE.replace("tasks = 8", "tasks = 8\nthreads = 2"))
    assert asked("--config", str(file)).threads == 2
    assert asked("--config", str(file), "--threads", "1").threads == 1


WRONG = {
    "stepz = 3": "No option in '{file}' 'stepz'. Did you mean 'steps'?",
    "[ppo]\nlearning-rte = 0.1": "No field in config.settings.ppo 'learning_rte'. Did you mean 'learning_rate'?",
    'steps = "many"': "'{file}': config.steps = 'many'",
    "steps = 1.5": "'{file}': config.steps = 1.5",
    "agent = 3": "agent = 3 in '{file}', which is not a text.",
    'agent = "comp-serch"': "No agent 'comp-serch'. Did you mean 'comp-search'?",
    'domain = "grid"': "No domain 'grid'. Did you mean 'grid2d'?",
    'threads = "two"': "threads = 'two' in '{file}', which is not a whole number.",
    "steps = ": "'{file}' cannot be read as TOML:",
    'offline = "none"': "No consolidator 'none'.",
    "ppo = 3": "must be a table of fields, but is 3.",
    "replay-size = 5\nreplay_size = 6": "An option stands twice in '{file}'",
    "steps = 0": "'{file}': steps = 0, but an agent needs at least 1",
    '"\\u001b[31m" = 1': "No option in '{file}' '\\x1b[31m'.",
}


@pytest.mark.parametrize("text", WRONG)
def test_mistakes_in_a_file_are_told(text: str, file: Path):
    file.write_text(text + "\n")
    end = command("train", "--config", str(file), "--out", str(file.parent / "run"))
    assert (end.code, end.err.count("\n")) == (2, 1) and "\x1b" not in end.err
    assert WRONG[text].format(file=file) in end.err and not (file.parent / "run").exists()


def test_files_that_are_none_are_told(tmp_path: Path):
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    for name, said in {
        "bytes.toml": "cannot be read as TOML",
        "no.toml": "is no file with options",
        ".": "is not a run",
    }.items():
        end = command("train", "--config", str(tmp_path / name), "--out", str(tmp_path / "run"))
        assert end.code == 2 and said in end.err
    end = command("train", "--config", "life.toml", "--resume", "--out", str(tmp_path / "run"))
    assert (end.code, end.err) == (2, "modlife: --resume goes on with a life by its own options: leave --config out.\n")


def test_everything_that_a_life_has_is_an_option():
    config = LifeConfig()
    fields = {one.name for one in dataclasses.fields(config)} - {"settings", "grown"}
    assert fields | {"domain"} | {one.name for one in dataclasses.fields(config.settings)} == set(options_of(config))
