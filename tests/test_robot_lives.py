"""Lives in the robot domain: small ones of every agent that learns there, and some that are killed and go on."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from lives import Lived
from PIL import Image
from PIL.ImageSequence import Iterator as Frames
from terminal import command, lenient

from modlife.domains.domain import DOMAINS
from modlife.domains.film import Now, captions
from modlife.domains.pictures import captioned, with_captions
from modlife.domains.robot.render import HEIGHT
from modlife.errors import InputError
from modlife.lifelong.agent import AgentState
from modlife.lifelong.agents import AGENTS
from modlife.policies.bank import Chain
from modlife.registry import resolve
from modlife.runs import checkpoints
from modlife.runs.checkpoints import STATE
from modlife.runs.config import LifeConfig, build, life_from_options, usual_settings
from modlife.runs.life import run_life
from modlife.runs.store import RunDirectory
from modlife.types import Facts, Structure

KEY = jax.random.key(0)
WORLD = {"preset": "fast", "horizon": 6, "obstacles": ["none"], "objects": ["can", "milk"], "robots": ["IIWA", "Panda"]}
SMALL: dict[str, Any] = {
    "ppo": {"envs": 2, "length": 6, "epochs": 2, "minibatch": 6},
    "offline": {"epochs": 2, "batch": 8, "tasks": 2, "old_rows": 8, "repair": 1},
    "search": {"episodes": 1},
    "compress": {"epochs": 2, "batch": 8, "samples": 8},
    "distill": {"epochs": 2, "batch": 8, "old_rows": 8},
    "replay_size": 18,
    "modules": 2,
}
BRIEF = {"epochs": 2, "batch": 8}
LIVES: dict[str, tuple[str, dict[str, Any]]] = {
    "comp-struct": ("comp-struct", {}),
    "comp-search": ("comp-search", {"steps": 400}),  # searches take steps of their own
    "real-bcq": ("comp-struct", {"tasks": 2, "offline": {"consolidator": "real-bcq", **BRIEF}}),
    "awac": ("comp-struct", {"tasks": 2, "offline": {"consolidator": "awac", **BRIEF}}),
    "comp-struct, states": ("comp-struct", {"tasks": 2, "critic": "states"}),
    "stl": ("stl", {"tasks": 1, "world": {**WORLD, "preset": "paper"}}),
    "mtl": ("mtl", {"tasks": 2, "world": {**WORLD, "objects": ["can"]}}),
    "finetune": ("finetune", {"tasks": 2}),
    "reset-distill": ("reset-distill", {"tasks": 2}),
    "pc": ("pc", {"tasks": 2}),
    "pc-bcq": ("pc-bcq", {"tasks": 2}),
    "pc-bcq, states": ("pc-bcq", {"tasks": 2, "critic": "states"}),
}
"""Agents, and options of each. Each life is lived once, for all tests of it."""


def tiny(agent: str, **options: Any) -> LifeConfig:
    own = vars(usual_settings(AGENTS[agent], DOMAINS["robot"]))
    fitting = {name: value for name, value in SMALL.items() if name in own}
    usual = {"tasks": 3, "steps": 24, "episodes": 2, "world": WORLD, **fitting}
    return life_from_options(agent, "robot", {**usual, **options})


def test_robots_have_settings_of_their_own():
    settings = usual_settings(AGENTS["comp-search"], DOMAINS["robot"])
    assert (settings.ppo.discount, settings.ppo.batch, settings.ppo.bootstrap_truncated) == (0.995, 8000, True)
    assert type(settings.search).__name__ == "HalvingConfig" and settings.offline.td == "none"
    assert usual_settings(AGENTS["comp-search"], DOMAINS["grid2d"]) == resolve(AGENTS["comp-search"].settings)()
    life = life_from_options("comp-search", "robot", {"ppo": {"clip": 0.1}, "offline": "real-bcq"})
    assert (life.settings.ppo.clip, life.settings.ppo.gae_lambda, life.episodes) == (0.1, 0.97, 10)
    assert life.settings.offline.candidates == 10


def same(one: object, other: object) -> bool:
    leaves = [jax.tree.leaves(tree) for tree in (one, other)]
    return all(map(np.array_equal, *leaves)) and len({*map(jax.tree.structure, (one, other))}) == 1


def test_practice_begins_timidly_where_a_known_last_module_meets_the_goal_in_no_episode():
    """Output layers of actor and critics say a hundredth of what the bank's do; all else is the bank's, which stays."""
    agent, key = build(tiny("comp-struct", fresh_critics=False)), jax.random.key(0)
    bank = jax.tree.map(lambda leaf: leaf + 0.5, agent.init(key=key).params)  # as if learnt: no bias is zero
    before = jax.tree.map(np.array, bank)

    def begun(structure: Structure, *, solved: bool) -> Chain:
        return agent.beginning(AgentState(bank, Facts(structures=((0, 0, 0), structure)), solved=solved), key=key)

    for structure in ((0, 0, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1), (1, 1, 1)):
        assert same(begun(structure, solved=True), bank.pick(structure))
        *early, last = bank.pick(structure)
        timid = [replace(net, out=jax.tree.map(lambda leaf: np.float32(0.01) * leaf, net.out)) for net in last.networks]
        less = (*early, replace(last, networks=tuple(timid)))
        assert len(timid) == 3 and not same(less, bank.pick(structure))
        assert same(begun(structure, solved=False), less if structure[-1] == 0 else bank.pick(structure))
    assert same(bank, before)


@pytest.fixture(scope="module")
def robots(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Lived]:
    """The tiny life of a name, lived once, with all its checkpoints."""

    @cache
    def of(name: str) -> Lived:
        agent, options = LIVES[name]
        path, config = tmp_path_factory.mktemp("robot") / "life", tiny(agent, **options)
        with pytest.MonkeyPatch.context() as patch, lenient():
            patch.setattr(checkpoints, "KEEP", 10**6)
            run_life(config, path, save_every=0)
        return Lived(path, config)

    return of


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


def end_of(run: RunDirectory) -> tuple[Any, ...]:
    """What a life comes to: all that it told, its last state, and the checksums of its replay."""
    last = max(run.checkpoints.numbers())
    state = run.checkpoints.path(last) / STATE
    return (run.path / "metrics.jsonl").read_bytes(), state.read_bytes(), run.checkpoints.look(last).replay


def test_a_life_has_all_phases(robots: Callable[[str], Lived]):
    lived = robots("comp-struct")
    assert {"online", "offline"} <= lived.phases()
    kinds = {one["kind"] for one in records(lived.path)}
    assert {"curve", "structure", "evaluation", "offline", "retention"} <= kinds


@pytest.mark.parametrize("name", LIVES)
def test_agents_live_with_robots(robots: Callable[[str], Lived], name: str):
    lived = robots(name)
    summary = json.loads((lived.path / "summary.json").read_text())
    assert len(summary["seen"]["return"]) == len(lived.config.chosen) == LIVES[name][1].get("tasks", 3)


@pytest.mark.usefixtures("drawing")
def test_play_films_a_learnt_policy(robots: Callable[[str], Lived], tmp_path: Path):
    """The first state, that after four steps of six, and the end for a second more, with words below each."""
    path, task = robots("comp-struct").path, "none/can/IIWA"
    end = command("play", str(path), "--task", task, "--episodes", "1", "--out", "x.gif", cwd=tmp_path)
    assert re.fullmatch(rf".*/life in {task}: mean return .*, goal met in 0 of 1 episodes: x.gif\n", end.out), end.err
    with Image.open(tmp_path / "x.gif") as film:
        shown = [(np.asarray(frame.convert("RGB")), frame.info["duration"]) for frame in Frames(film)]
    frames, milliseconds = zip(*shown, strict=True)
    assert milliseconds == (100, 100, 1100)
    first, second, third = (frame[:HEIGHT] for frame in frames)
    assert min((one != other).mean() for one, other in ((first, second), (second, third))) > 0.01
    white = np.full_like(first, 255)
    words = with_captions(captioned(white, task), captions(Now(0, 6), "episode 1 of 1", "0-0-0"))
    assert frames[0].shape == words.shape
    others = [((frame[HEIGHT:] < 128) != (words[HEIGHT:] < 128)).mean() for frame in frames]
    assert others[0] < 0.002 < 0.01 < min(others[1:])


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("comp-struct", "online"),
        ("comp-struct", "offline"),
        ("comp-search", "structure"),
        ("real-bcq", "offline"),
        ("awac", "offline"),
        ("mtl", "online"),
        ("finetune", "online"),
        ("reset-distill", "offline"),
        ("pc", "offline"),
        ("pc-bcq", "offline"),
    ],
)
def test_killed_and_resumed_it_ends_with_the_same_bytes(
    robots: Callable[[str], Lived], tmp_path: Path, name: str, phase: str
):
    lived = robots(name)
    number = lived.amid(phase)
    at, stages = lived.described()[number], lived.config.stages.stages
    assert at.facts.phase == phase and at.facts.done > 0 and at.stage == len(stages) - 1
    run = lived.copy(tmp_path / "life", number)
    with lenient():
        run_life(None, run.path, save_every=0)
    assert end_of(run) == end_of(lived.run)


def test_practice_may_begin_with_known_actors_and_fresh_critics():
    """An actor that met the goal in no episode says less, as always."""
    agent = build(tiny("comp-struct"))
    state = agent.init(key=KEY).noting(structures=((0, 0, 0), (0, 1, 0)))
    known, fresh = agent.network.pick(state.params, (0, 1, 0)), agent.fresh(key=KEY)
    for solved, factor in ((True, 1.0), (False, agent.ppo.config.timid_start)):
        begun = agent.beginning(replace(state, solved=solved), key=KEY)
        for module, old, new in zip(begun, known, fresh, strict=True):
            assert same(module.networks[1:], new.networks[1:]) and not same(module.networks[1:], old.networks[1:])
        assert same([module.networks[0] for module in begun[:-1]], [module.networks[0] for module in known[:-1]])
        assert same(begun[-1].networks[0], known[-1].networks[0].scaled(factor))
    assert same(agent.beginning(replace(state.noting(structures=((0, 1, 0),)), solved=False), key=KEY), known)
    with pytest.raises(InputError, match="Leave --fresh-critics out"):
        build(life_from_options("comp-struct", "grid2d", {"fresh_critics": True}))


def test_what_cannot_be_learnt_with_robots_is_said_at_once():
    for agent, offline in (("comp-struct", {"consolidator": "bcq"}), ("comp-struct", {"td": "current"})):
        with pytest.raises(InputError, match="real numbers"):
            build(tiny(agent, offline=offline))
    with pytest.raises(InputError, match="leave `--critic states` out"):
        build(tiny("comp-struct", critic="states", offline={"consolidator": "real-bcq"}))
    with pytest.raises(InputError, match="CLEAR learns from old tasks by the values of states"):
        tiny("clear")
    with pytest.raises(InputError, match="the search alone may take"):
        tiny("comp-search", steps=24)


ON_TWO_THREADS = """
import json, sys
from dataclasses import replace
from pathlib import Path
from modlife.runtime import start_jax
start_jax(threads=2)
from test_robot_lives import SMALL, tiny
from modlife import timing
from modlife.benchmarks import BENCHES
from modlife.domains.domain import DOMAINS
from modlife.runs.life import run_life

folder, life = Path(sys.argv[1]), tiny("stl", tasks=1)
lives = [folder / name for name in ("one", "other")]
for path in lives:
    run_life(life, path, devices=2)
one, other = ((path / "metrics.jsonl").read_bytes() for path in lives)
assert one == other
print(one.count(b'"curve"'))

timing.REPEATS = 1
usual = {name: SMALL[name] for name in ("ppo", "replay_size")}
robot = replace(DOMAINS["robot"], config=lambda: life.world, usual=usual)
for bench in ("ppo", "offline"):
    for record in BENCHES[bench](robot, threads=2, seconds=1e-3):
        print(json.dumps(record))
"""


@pytest.fixture(scope="module")
def on_two_threads(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What a process on two threads says of two lives, and of what users would wait minutes for, at its smallest."""
    process = [sys.executable, "-c", ON_TWO_THREADS, str(tmp_path_factory.mktemp("threads"))]
    out = subprocess.run(process, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=280)
    assert out.returncode == 0, out.stderr
    return out.stdout.splitlines()


def test_a_life_on_two_threads_gives_the_same_every_time(on_two_threads: list[str]):
    """Each steps the physics of its own episodes."""
    assert on_two_threads[0] == "2"


def test_bench_with_robots_on_two_threads_tells_every_rate(on_two_threads: list[str]):
    records = [json.loads(line) for line in on_two_threads[1:]]
    assert all((record["domain"], record["threads"]) == ("robot", 2) for record in records)
    assert all(0 < record["value"] < math.inf for record in records if record["unit"].endswith("/s"))
    # A phase may be over in a twentieth of a second, which is told as 0.
    assert all(0 <= record["value"] < math.inf for record in records if record["unit"] == "s/phase")
    updates = ["stl", "stl collect", "stl learn", "comp learn", "comp learn, all samples 80 times"]
    found = [(one["bench"], one["case"], one["unit"], one.get("lives"), one.get("tasks")) for one in records]
    assert found == [
        *(("ppo", case, "steps/s", 1, None) for case in updates),
        *(
            ("offline", case, unit, None, tasks)
            for tasks in (1, 4)
            for case in ("real-bcq", "bounded")
            for unit in ("samples/s", "s/phase")
        ),
    ]
