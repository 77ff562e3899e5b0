"""The front door for Python: what the command line does, in a few lines; and lives that go on with more tasks."""

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from lives import Lived, small
from terminal import End, command, lenient

import modlife
from modlife.cli import train
from modlife.errors import InputError, StoreError
from modlife.lifelong.agents import AGENTS, AgentEntry
from modlife.lifelong.loop import Moment
from modlife.lifelong.settings import Online
from modlife.metrics import stages_of
from modlife.runs.config import LifeConfig, build
from modlife.runs.config_files import life_of
from modlife.runs.many import as_options
from modlife.runs.restore import newest
from modlife.runs.store import RunDirectory

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)

pytestmark = pytest.mark.usefixtures("lenient")


@pytest.fixture(name="lenient")
def lenient_here():
    with lenient():
        yield


def test_a_config_is_what_the_options_say():
    config = modlife.config(
        "comp-search", tasks=8, steps=50_000, world={"size": 10}, ppo={"envs": 8}, offline={"epochs": 3}
    )
    assert (config.agent, config.tasks, config.world.size) == ("comp-search", 8, 10)
    assert (config.settings.ppo.envs, config.settings.offline.epochs, config.settings.search.episodes) == (8, 3, 10)
    assert modlife.config("stl", domain="robot", world={"preset": "fast"}).world.preset == "fast"
    assert modlife.config("comp-struct", offline="bcq", curriculum="random").order.name == "random"
    assert modlife.config() == LifeConfig()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: modlife.config("comp-serch"), "No agent 'comp-serch'. Did you mean 'comp-search'?"),
        (lambda: modlife.config("stl", domain="moon"), "No domain 'moon'."),
        (lambda: modlife.config("stl", modules=3), "No field in config.settings 'modules'."),
        (lambda: modlife.config("stl", ppo={"envs": "8"}), "config.settings.ppo.envs = '8', which is not a whole"),
        (
            lambda: modlife.config("comp-struct", offline="iql"),
            "No consolidator 'iql'. Known: bcq, bounded, real",
        ),
        (lambda: modlife.config("stl", curriculum="hard"), "No curriculum 'hard'."),
        (lambda: modlife.register("x"), "str cannot be registered; Domain, AgentEntry,"),
    ],
)
def test_what_is_wrong_is_said(make: Callable[[], Any], sentence: str):
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value).startswith(sentence)


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], type]]:
    """Registers an agent of another package, whose settings have one field with this name more."""

    def register(name: str) -> type:
        kind = make_dataclass("OddSettings", [(name, int, 7)], bases=(Online,), frozen=True)
        monkeypatch.setattr(AGENTS, "_entries", {one.name: one for one in AGENTS if one.name != "odd"})
        modlife.register(AgentEntry("odd", "another's", "Odd", "#123456", "modlife.lifelong.finetune:build", kind))
        return kind

    yield register
    monkeypatch.undo()
    assert "odd" not in AGENTS.names


OTHERS = {one.name for kind in (LifeConfig, train.Options) for one in fields(kind)} - {"life"}
"""Options of a life that are not its agent's."""


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_an_agents_option_is_not_called_as_one_that_all_agents_have(odd: Callable[[str], type], name: str):
    """From Python and a file both would be set in silence; the command line cannot tell them apart."""
    kind = odd(name)
    sentence = (
        f"The agent 'odd' has a setting '{name}', which is the name of an option that all agents have: in the agent's "
        "package, give this field of OddSettings another name."
    )
    for make in (
        lambda: modlife.config("odd"),
        lambda: LifeConfig(agent="odd", settings=kind()),
        lambda: life_of({"agent": "odd"}, where="life.toml", chosen={}),
    ):
        with pytest.raises(InputError) as caught:
            make()
        assert str(caught.value).endswith(sentence)
    assert command("config", "--agent", "odd") == End(2, "", f"modlife: {sentence}\n")


def test_an_agents_option_may_have_any_other_name(odd: Callable[[str], type]):
    odd("patience")
    assert modlife.config("odd", patience=3, seed=1).settings.patience == 3
    end = command("config", "--agent", "odd", "--patience", "4", "--seed", "5")
    assert (end.code, "patience = 4\n" in end.out, "seed = 5\n" in end.out) == (0, True, True)


def test_a_life_is_lived_watched_left_and_gone_on_with(lives: Callable[[str], Lived], tmp_path: Path):
    """By an iterator that is left in the middle, then to its end: the bytes of one that was never left."""
    reference = lives("comp-struct")
    seen: list[Moment] = []
    for moment in modlife.living(reference.config, tmp_path / "run"):
        seen.append(moment)
        if moment.phase == "offline" and moment.stage == 1:
            break
    assert {moment.phase for moment in seen} == {"", "structure", "online", "offline", "evaluation"}
    assert modlife.load(tmp_path / "run").tasks == reference.config.chosen[:1]  # while it still goes on
    told: list[Moment] = []

    class Watching:
        def moment(self, moment: Moment) -> None:
            told.append(moment)

        def say(self, sentence: str) -> None:
            raise AssertionError(sentence)

    summary = modlife.resume(tmp_path / "run", watch=Watching())
    assert told[-1].phase == "final evaluation" and told[-1].stage == 4
    assert (tmp_path / "run/metrics.jsonl").read_bytes() == (reference.path / "metrics.jsonl").read_bytes()
    before = json.loads((reference.path / "summary.json").read_text())
    assert all(summary[name] == before[name] for name in ("seen", "unseen", "wrong_module", "by_phase", "structures"))


def test_a_run_tells_what_it_holds(searched: Lived):
    run = modlife.load(searched.path)
    assert run.tasks == searched.config.chosen and run.config == searched.config
    assert run.modules.sizes == (2, 2, 2)
    assert list(run.structures) == [str(task) for task in run.tasks]
    assert run.summary is not None and run.records[0]["kind"] == "curriculum"
    record = run.evaluate(episodes=40)  # as at the end of its life: that program is compiled already
    assert record["tasks"] == [str(task) for task in run.tasks] and len(record["structure"]) == 4
    assert run.evaluate(["/".join(run.tasks[0].components)], episodes=4)["tasks"] == [str(run.tasks[0])]
    assert {str(task) for task in run.unseen}.isdisjoint(record["tasks"])


def test_a_policy_acts_in_five_lines(searched: Lived):
    run = modlife.load(searched.path)
    act, env = run.actor(run.tasks[0]), run.agent.env
    reset, step = jax.jit(env.reset), jax.jit(env.step)
    state, total = reset(jax.numpy.array(env.graph.indices(run.tasks[0])), key=jax.random.key(0)), 0.0
    for time in range(env.horizon):
        state, outcome = step(state, act(state, jax.random.key(time)))
        total += float(outcome.reward)
    assert -0.1 <= total <= 2


def test_errors_and_threads_leave_nothing_behind(lives: Callable[[str], Lived], tmp_path: Path):
    """A callback that fails: the lock is free, handlers are as they were, and the life can go on. In a thread too."""
    import signal

    config, before = lives("stl").config, signal.getsignal(signal.SIGTERM)

    class Failing:
        def moment(self, moment: Moment) -> None:
            raise ZeroDivisionError

        def say(self, sentence: str) -> None: ...

    with pytest.raises(ZeroDivisionError):
        modlife.live(config, tmp_path / "run", watch=Failing())
    assert signal.getsignal(signal.SIGTERM) is before
    thread = threading.Thread(target=lenient_resume, args=(tmp_path / "run",))
    thread.start()
    thread.join()
    assert (tmp_path / "run/metrics.jsonl").read_bytes() == (lives("stl").path / "metrics.jsonl").read_bytes()


def lenient_resume(path: Path) -> None:
    with lenient():
        modlife.resume(path)


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, modlife; print([name for name in ('jax', 'matplotlib', 'tyro', 'rich') if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
    assert gymnasium.spec("modlife/Grid2D-v0").entry_point == "modlife.domains.grid2d.gym:Grid2DEnv"


# More tasks than were planned


@pytest.mark.parametrize("agent", ["comp-search", "stl", "mtl"])
def test_a_life_that_has_ended_goes_on_with_more_tasks(lives: Callable[[str], Lived], tmp_path: Path, agent: str):
    """What was lived stays as it is, byte for byte; the agent keeps what it had learnt."""
    life = lives(agent)
    path, before = tmp_path / "run", (life.path / "metrics.jsonl").read_bytes()
    shutil.copytree(life.path, path)
    old, more = modlife.load(path), len(life.config.chosen) + 2
    summary = modlife.resume(path, tasks=more)
    after, run = (path / "metrics.jsonl").read_bytes(), modlife.load(path)
    assert after.startswith(before) and len(after) > len(before)
    assert summary["tasks"] == len(run.tasks) == more
    assert run.tasks[: len(old.tasks)] == old.tasks and not set(run.tasks[len(old.tasks) :]) & set(old.tasks)
    assert [task for stage in stages_of(run.records) for task in stage] == [str(task) for task in run.tasks]
    assert run.config.grown == (len(old.tasks),)
    if agent == "stl":  # its networks are its own: those of old tasks are the same bits
        for task in old.tasks:
            pairs = zip(*(jax.tree.leaves(one.policy(task)) for one in (old, run)), strict=True)
            assert all(np.array_equal(a, b) for a, b in pairs)


def test_a_lifelong_agent_ends_as_if_all_tasks_had_been_planned(lives: Callable[[str], Lived], tmp_path: Path):
    """Nothing in it depends on how many tasks there will be."""
    life = lives("comp-struct")
    shutil.copytree(life.path, tmp_path / "grown")
    modlife.resume(tmp_path / "grown", tasks=6)
    modlife.live(small("comp-struct", tasks=6), tmp_path / "planned")
    grown, planned = (modlife.load(tmp_path / name) for name in ("grown", "planned"))
    for a, b in zip(*(jax.tree.leaves(one.modules) for one in (grown, planned)), strict=True):
        np.testing.assert_array_equal(a, b)
    tail = [record for record in grown.records if record["kind"] != "curriculum"]
    assert tail == [record for record in planned.records if record["kind"] != "curriculum"]


def test_growing_says_what_it_does_and_can_be_killed(lives: Callable[[str], Lived], tmp_path: Path):
    """By the command line; and a life that was killed right after its plan had grown goes on with the new plan."""
    life = lives("stl")
    path = tmp_path / "run"
    shutil.copytree(life.path, path)
    from modlife.runs.life import grow_life

    grow_life(path, 4)
    moment = newest(RunDirectory(path), RunDirectory(path).config()).moment
    assert moment.stage == 3 and build(RunDirectory(path).config()).network.sizes == moment.state.params.sizes
    modlife.resume(path)
    out = command("train", "--resume", "--out", str(path), "--tasks", "5")
    assert "going on with 1 more tasks, 5 in all" in out.err and "stl: 5 tasks x 500 steps" in out.out
    fewer = command("train", "--resume", "--out", str(path), "--tasks", "2")
    assert fewer.code == 2 and "is planned for 5 tasks; it cannot end with 2" in fewer.err


def test_a_life_in_the_middle_does_not_grow(searched: Lived, tmp_path: Path):
    run = searched.copy(tmp_path / "run", searched.amid("online"))
    with pytest.raises(InputError, match="has not met its 4 tasks yet: let it end first"):
        modlife.resume(run.path, tasks=6)
    with pytest.raises((InputError, StoreError)):
        modlife.resume(tmp_path / "nothing", tasks=6)


def test_options_on_the_command_line_give_the_config(life: Lived):
    """Every agent's options can be written out and read back."""
    import tyro

    from modlife.cli.train import Options, usual

    arguments = [*as_options(life.config), "--out", "x"]
    assert tyro.cli(Options, default=usual(arguments), args=arguments).life == life.config


@pytest.mark.parametrize("code", BLOCKS, ids=range(len(BLOCKS)))
def test_the_page_on_python_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, searched: Lived):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    shutil.copytree(searched.path, tmp_path / "runs" / "a")
    exec(compile(code, "docs/python.md", "exec"), {})
