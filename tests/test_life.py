"""Lives, their run directories, and the commands that read them, at a tiny scale."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from terminal import command

from modlife import metrics
from modlife.domains.grid2d.world import World
from modlife.errors import InputError
from modlife.learners.config import BCQConfig, PPOConfig
from modlife.lifelong.agent import learn
from modlife.lifelong.agents import AGENTS
from modlife.lifelong.loop import panel_of
from modlife.lifelong.settings import Online, Searching
from modlife.registry import resolve
from modlife.runs.config import LifeConfig, build, life_from_json, life_from_options, life_json
from modlife.runs.load import Run
from modlife.runs.store import RunDirectory
from modlife.types import Task

TINY = ["--steps", "384", "--episodes", "4", "--seed", "3"]
TINY += ["--world.size", "5", "--world.horizon", "16"]
TINY += ["--ppo.envs", "4", "--ppo.length", "32", "--ppo.minibatch", "64"]
SMALL = PPOConfig(envs=4, length=32, minibatch=64)  # as in `lives`: programs that are compiled already
RESULTS = Path(__file__).parent.parent / "results"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished life of each kind that the tests read."""
    folder = tmp_path_factory.mktemp("lives")
    for agent, tasks in (("mtl", ["--tasks", "4"]), ("stl", ["--tasks", "2"])):
        end = command("train", "--agent", agent, *tasks, *TINY, "--out", f"runs/{agent}", cwd=folder)
        assert end.code == 0, end.err
    return folder


def test_a_run_directory_tells_everything(home: Path):
    run = RunDirectory.open(home / "runs/stl")
    manifest = run.manifest()
    world, settings = World(size=5, horizon=16), Online(ppo=SMALL)
    expected = LifeConfig(agent="stl", tasks=2, steps=384, episodes=4, seed=3, world=world, settings=settings)
    assert run.config() == expected
    assert manifest["command"][:4] == ["modlife", "train", "--agent", "stl"]
    assert set(manifest) >= {"schema", "config", "versions", "git", "machine", "started"}
    records = list(run.metrics())
    kinds = [record["kind"] for record in records]
    # Two stages of three updates of 128 steps, each with an evaluation of all tasks met so far.
    assert kinds == ["curriculum", *["curve"] * 3, "evaluation", *["curve"] * 3, "evaluation"]
    assert [record["steps"] for record in records if record["kind"] == "curve"] == [128, 256, 384] * 2
    assert [len(record["tasks"]) for record in records if record["kind"] == "evaluation"] == [1, 2]
    summary = json.loads((home / "runs/stl/summary.json").read_text())
    assert summary["seen"]["tasks"] == [stage[0] for stage in records[0]["stages"]]
    assert summary["seen"]["episodes"] == 40


def test_multi_task_summaries_have_zero_shot_and_wrong_modules(home: Path):
    summary = json.loads((home / "runs/mtl/summary.json").read_text())
    assert len(summary["seen"]["tasks"]) == 4
    assert len(summary["unseen"]["tasks"]) == 60
    assert set(summary["wrong_module"]) == {"static", "target", "dynamics"}


def test_the_same_life_again_gives_the_same_numbers(home: Path):
    """In a process of its own."""
    again = [sys.executable, "-m", "modlife", "train", "--agent", "mtl", "--tasks", "4", *TINY, "--out", "runs/again"]
    out = subprocess.run(again, capture_output=True, text=True, cwd=home, timeout=280)
    assert "unseen combinations, by components" in out.stdout
    one, same = home / "runs/mtl", home / "runs/again"
    assert (one / "metrics.jsonl").read_bytes() == (same / "metrics.jsonl").read_bytes()
    # How many checkpoints there are is a matter of time; the newest holds the end of the life.
    newest = [max((run / "checkpoints").iterdir()) / "state.safetensors" for run in (one, same)]
    assert newest[0].read_bytes() == newest[1].read_bytes()


def test_eval_reads_a_run_and_its_seed_matters(home: Path):
    text = command("eval", "runs/mtl", "--episodes", "40", "--json", "--seed", "1", cwd=home).out
    same, other = (Run.load(home / "runs/mtl").evaluate(episodes=40, seed=seed) for seed in (1, 2))
    assert json.loads(text) == same != other
    assert len(same["tasks"]) == 4
    table = command("eval", "runs/mtl", "--unseen", "--episodes", "40", cwd=home).out.splitlines()
    assert table[0].split() == ["task", "return", "+-", "success", "length"]
    assert len(table) == 1 + 60 + 5  # its mean and one without training, what length and +- are, that these are new
    means = {line.split()[0]: float(line.split()[1]) for line in table[61:63]}
    assert list(means) == ["mean", "untrained"] and -0.1 < means["untrained"] < 0.2


def test_play_films_a_trained_policy(home: Path):
    end = command("play", "runs/stl", "--episodes", "1", "--out", "film.gif", cwd=home)
    assert end.out.startswith("runs/stl in "), end.err
    assert (home / "film.gif").stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["eval", "runs"], "'runs' is not a run directory: it has no manifest.json. It holds some: name 'runs/"),
        (["eval", "runs/none"], "'runs/none' is not a run directory: it has no manifest.json."),
        (
            ["eval", "runs/stl", "--unseen"],
            "There are no tasks to evaluate the agent of 'runs/stl' on: it has a policy for none that",
        ),
        (["eval", "runs/stl", "--task", "lava/red/dynamics-0"], "The agent of 'runs/stl' has not learnt 'lava/red/dyn"),
        (["eval", "runs/stl", "--acting", "boltzmann"], "Acting by 'boltzmann' takes a critic with a value per action"),
        (["eval", "runs/mtl", "--task", "wall/red"], "Task 'wall/red' has 2 components"),
        (["eval", "runs/mtl", "--episodes", "1"], "episodes = 1, but an evaluation needs at least 2."),
        (["train", "--out", "runs/mtl"], "'runs/mtl' exists already; go on with it by --resume"),
        (["train", "--agent", "mtl", "--tasks", "3", "--out", "x"], "--tasks = 3, but it must be 4 to 64 so"),
        (
            ["train", "--agent", "stl", "--tasks", "65", "--out", "x"],
            "--tasks = 65, but it must be 1 to 64 in",
        ),
        (
            ["train", "--domain", "robot", "--offline", "bcq", "--out", "x"],
            "This batch-constrained Q-learning takes a value per action, and the actions of 'robot'",
        ),
    ],
)
def test_what_cannot_be_done_gets_one_sentence(home: Path, arguments: list[str], sentence: str):
    end = command(*arguments, cwd=home)
    assert end.code == 2
    assert end.err.startswith(f"modlife: {sentence}"), end.err
    assert not (home / "x").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--agent", "mlt"], "No agent 'mlt'. Did you mean 'mtl'?"),
        (["--steps", "0"], "steps = 0, but an agent needs at least 1 environment step per task to learn."),
        (["--ppo.minibatch", "100"], "minibatch = 100 does not divide envs * length = 16 * 256 = 4096."),
    ],
)
def test_a_bad_config_gets_one_sentence(tmp_path: Path, options: list[str], sentence: str):
    end = command("train", *options, "--out", "x", cwd=tmp_path)
    assert end.code == 2
    assert sentence in " ".join(end.err.replace("│", " ").split())
    assert "Traceback" not in end.err
    assert not (tmp_path / "x").exists()


def test_every_agent_that_is_listed_can_be_built_and_has_a_colour_of_its_own():
    colours = {entry.colour for entry in AGENTS}
    assert len(colours) == len({entry.label for entry in AGENTS}) == len(AGENTS.names)
    for name in AGENTS.names:
        agent = build(LifeConfig(agent=name, tasks=4))
        assert agent.init(key=jax.random.key(0)).met == ()


def test_single_tasks_of_one_stage_each_get_modules_of_their_own():
    config = LifeConfig(agent="stl", tasks=2, steps=128, settings=Online(ppo=SMALL))
    agent, tasks = build(config), config.chosen
    before = agent.init(key=jax.random.key(0))
    with jax.numpy_dtype_promotion("standard"):
        *_, step = learn(agent, before, tasks, key=jax.random.key(1))
    after = step.state
    assert after.met == tasks
    for old, new in zip(*map(jax.tree.leaves, (before.params, after.params)), strict=True):
        assert all((np.asarray(old[n]) != np.asarray(new[n])).any() for n in range(2))
    one, other = (jax.tree.leaves(agent.policy(after, task)) for task in tasks)
    assert all((a != b).any() for a, b in zip(one, other, strict=True))


def test_a_search_that_knew_no_margin_has_none():
    manifest = json.loads((Path(__file__).parent / "data" / "halving-without-margin.json").read_text())
    assert manifest["settings"]["search"]["search"] == "halving" and "margin" not in manifest["settings"]["search"]
    assert life_from_json(manifest).settings.search.margin == 0
    assert life_from_json({**manifest, "schema": 3}).settings.search.margin == 0.2


@pytest.mark.parametrize("agent", AGENTS.names)
def test_configs_survive_json(agent: str):
    world = World(size=10, statics=("lava", "wall"), colour_count=6, actions=7)
    settings = replace(resolve(AGENTS[agent].settings)(), ppo=PPOConfig(clip=0.1, normalise_advantages=True))
    config = LifeConfig(agent=agent, tasks=8, steps=500_000, world=world, settings=settings)
    data = json.loads(json.dumps(life_json(config)))
    assert data["schema"] == 3 and data["world"]["domain"] == "grid2d"
    assert life_from_json(data) == config


def test_configs_of_the_old_schema_are_read():
    """As the committed results have them: one domain, and all agents' options side by side."""
    manifest = json.loads((RESULTS / "comp-search-64-0" / "manifest.json").read_text())
    old = manifest["config"]
    assert "schema" not in old and "settings" not in old
    changed = {
        **old,
        "seed": 7,
        "modules": 3,
        "search_episodes": 4,
        "world": {**old["world"], "size": 9},
        "bcq": {**old["bcq"], "replay_size": 50, "offline_epochs": 2, "threshold": 0.25},
    }
    config = life_from_json(changed)
    assert (config.agent, config.seed, config.steps, config.world) == ("comp-search", 7, old["steps"], World(size=9))
    assert isinstance(config.settings, Searching)
    assert (config.settings.modules, config.settings.search.episodes, config.settings.replay_size) == (3, 4, 50)
    assert config.settings.offline == BCQConfig(epochs=2, threshold=0.25)
    assert life_from_json(life_json(config)) == config
    with pytest.raises(InputError, match="schema 4; this version reads 1 to 3"):
        life_from_json({**old, "schema": 4})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"agnet": "stl"}, "No field in config 'agnet'. Did you mean 'agent'?"),
        ({"steps": "many"}, "config.steps = 'many', which is not a whole number."),
        ({"steps": True}, "config.steps = True, which is not a whole number."),
        ({"settings": {"ppo": {"clip": "0.2"}}}, "config.settings.ppo.clip = '0.2', which is not a finite number."),
        ({"world": 3}, "config.world must be a table of fields, but is 3."),
        ({"world": {"size": 8}}, "config.world does not say which domain it is: domain = None."),
        ({"world": {"domain": "moon"}}, "No domain 'moon'."),
        ({"world": {"domain": "grid2d", "gap_rows": "__import__('os')"}}, "No value for config.world.gap_rows '__"),
        (
            {"settings": {"offline": {"consolidator": "iql"}}},
            "No consolidator 'iql'. Known: bcq, bounded, real",
        ),
        ({"agent": ["stl"]}, "config.agent = ['stl'], which is not a text."),
    ],
)
def test_a_config_from_outside_is_checked(change: dict, sentence: str):
    with pytest.raises(InputError) as caught:
        life_from_json(json.loads(json.dumps(life_json(LifeConfig()))) | change)
    assert str(caught.value).startswith(sentence)


# A panel of tasks


@pytest.mark.parametrize("modules", [1, 2, 3, 4, 6, 8])
@pytest.mark.parametrize("agent", ["comp-search", "comp-search-nc"])
def test_any_number_of_modules_can_be_planned(agent: str, modules: int):
    """With the paper's order, first tasks share no component: one for each module, as far as there are components."""
    config = life_from_options(agent, "grid2d", {"modules": modules})
    assert build(config).network.sizes == (modules,) * 3
    first = [task.components for task in config.chosen[: min(modules, 4)]]
    distinct = all(len(set(factor)) == len(first) for factor in zip(*first, strict=True))
    assert distinct or agent == "comp-search-nc"


def test_a_panel_has_the_first_tasks_others_in_turn_and_the_newest():
    tasks = LifeConfig().chosen
    assert panel_of(tasks[:5], 5) == tasks[:5] and panel_of(tasks, None) == tasks
    seen = Counter[Task]()
    for count in range(20, 40):
        panel = panel_of(tasks[:count], 8)
        assert 6 <= len(panel) <= 8 and panel[:4] == tasks[:4] and panel[-1] == tasks[count - 1]
        assert list(panel) == sorted(panel, key=tasks.index)
        seen.update(panel[4:-1])
    assert set(seen) >= set(tasks[4:24]) and max(seen.values()) <= 4


def test_retention_follows_from_each_tasks_last_evaluation():
    """By hand: a fell from .8 to .5 when it was last looked at, b rose by .1, and c was looked at once."""
    looks = [(["a"], [0.8]), (["a", "b"], [0.7, 0.4]), (["b"], [0.5]), (["a", "c"], [0.5, 0.9])]
    records = [
        {"kind": "evaluation", "when": "seen", "stage": stage, "tasks": tasks, "return": returns}
        for stage, (tasks, returns) in enumerate(looks)
    ]
    assert metrics.retention(records) == {"mean_change": -0.1, "worst_change": -0.3, "worst_task": "a"}
