"""Lives in the robot domain: small ones of every agent that learns there, and some that are killed and go on."""

import json
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
from lives import Lived, described
from terminal import lenient

from modlife.domains.domain import DOMAINS
from modlife.errors import InputError
from modlife.lifelong.agent import AgentState
from modlife.lifelong.agents import AGENTS
from modlife.policies.bank import Chain
from modlife.registry import resolve
from modlife.runs import checkpoints
from modlife.runs.config import LifeConfig, build, life_from_options, usual_settings
from modlife.runs.life import run_life
from modlife.types import Facts, Structure

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


AMPLE: dict[str, dict[str, Any]] = {"comp-search": {"steps": 400}, "pc": {"tasks": 2}}
"""Searches take steps of their own."""


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
    agent, key = build(tiny("comp-struct")), jax.random.key(0)
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
    """The tiny life of an agent, lived once, with all its checkpoints."""

    @cache
    def of(agent: str) -> Lived:
        path, config = tmp_path_factory.mktemp(agent) / "life", tiny(agent, **AMPLE.get(agent, {}))
        with pytest.MonkeyPatch.context() as patch, lenient():
            patch.setattr(checkpoints, "KEEP", 10**6)
            run_life(config, path, save_every=0)
        return Lived(path, config)

    return of


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


def test_a_life_has_all_phases(robots: Callable[[str], Lived]):
    lived = robots("comp-struct")
    assert {"online", "offline"} <= lived.phases()
    kinds = {one["kind"] for one in records(lived.path)}
    assert {"curve", "structure", "evaluation", "offline", "retention"} <= kinds


@pytest.mark.parametrize(
    ("agent", "phase"),
    [
        ("comp-struct", "online"),
        ("comp-struct", "offline"),
        ("comp-search", "structure"),
        ("pc", "offline"),
    ],
)
def test_killed_and_resumed_it_ends_with_the_same_bytes(
    robots: Callable[[str], Lived], tmp_path: Path, agent: str, phase: str
):
    lived = robots(agent)
    assert phase in lived.phases()
    run = lived.copy(tmp_path / "life", lived.amid(phase))
    with lenient():
        run_life(None, run.path, save_every=0)
    assert (run.path / "metrics.jsonl").read_bytes() == (lived.path / "metrics.jsonl").read_bytes()
    last, first = max(described(run.path)), max(lived.described())
    one, other = (path / "checkpoints" / f"{n:08d}" for path, n in ((run.path, last), (lived.path, first)))
    arrays = {file.name for file in other.iterdir() if file.suffix == ".safetensors"}
    assert arrays and all((one / name).read_bytes() == (other / name).read_bytes() for name in arrays)


@pytest.mark.parametrize(
    ("agent", "options"),
    [
        ("stl", {"tasks": 1, "world": {**WORLD, "preset": "paper"}}),
        ("mtl", {"tasks": 2, "world": {**WORLD, "objects": ["can"]}}),
        ("finetune", {"tasks": 2}),
        ("reset-distill", {"tasks": 2}),
        ("pc-bcq", {"tasks": 2}),
        ("comp-struct", {"tasks": 2, "offline": {"consolidator": "real-bcq", "epochs": 2, "batch": 8}}),
        ("comp-struct", {"tasks": 2, "offline": {"consolidator": "awac", "epochs": 2, "batch": 8}}),
        ("comp-struct", {"tasks": 2, "critic": "states"}),
        ("pc-bcq", {"tasks": 2, "critic": "states"}),
    ],
)
def test_agents_live_with_robots(agent: str, options: dict[str, Any], tmp_path: Path):
    with lenient():
        summary = run_life(tiny(agent, **options), tmp_path / "life")
    assert len(summary["seen"]["return"]) == options["tasks"]


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


TWICE = """
import sys
from pathlib import Path
from modlife.runtime import start_jax
start_jax(threads=2)
from test_robot_lives import tiny
from modlife.runs.life import run_life

folder = Path(sys.argv[1])
lives = [folder / name for name in ("one", "other")]
for life in lives:
    run_life(tiny("stl", tasks=1), life, devices=2)
one, other = ((life / "metrics.jsonl").read_bytes() for life in lives)
assert one == other
print(one.count(b'"curve"'))
"""


def test_a_life_on_two_threads_gives_the_same_every_time(tmp_path: Path):
    """Each steps the physics of its own episodes."""
    command = [sys.executable, "-c", TWICE, str(tmp_path)]
    out = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=280)
    assert out.stdout == "2\n", out.stderr
