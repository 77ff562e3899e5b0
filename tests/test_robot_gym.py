"""The Gymnasium face of the robot domain, its pictures, and what happens without MuJoCo."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from PIL import Image

from modlife.domains.pictures import save_picture
from modlife.domains.robot import render
from modlife.domains.robot.environment import RobotLift
from modlife.domains.robot.pictures import RobotPictures
from modlife.domains.robot.world import RobotWorld
from modlife.errors import InputError, installing

ID = "modlife/RobotLift-v0"
TASK: dict[str, Any] = {"robot": "Panda", "object": "can", "obstacle": "wall", "preset": "fast"}


def make(**options) -> Any:
    return gymnasium.make(ID, **(TASK | options))


def make_many(count: int, **options) -> Any:
    return gymnasium.make_vec(ID, num_envs=count, vectorization_mode="vector_entry_point", **(TASK | options))


@pytest.mark.usefixtures("drawing")
def test_gymnasium_finds_nothing_wrong():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Box observation space")  # positions have no natural bounds
        check_env(make(render_mode="rgb_array").unwrapped)


def test_pitfall_15_episodes_end_at_the_horizon_only_and_repeat_with_their_seed():
    env, actions = make(horizon=12), np.random.default_rng(0).uniform(-1, 1, (12, 8))
    runs = []
    for seed in (3, 3, 4):
        seen, _ = env.reset(seed=seed)
        assert {name: part.shape for name, part in seen.items()} == {
            **{"obstacle": (14,), "object": (14,)},
            **{"goal": (17,), "robot": (32,)},
        }
        steps = [env.step(action) for action in actions]
        assert [step[3] for step in steps] == [False] * 11 + [True] and not any(step[2] for step in steps)
        assert steps[-1][4] == {"success": False, "solved": False}
        runs.append(np.concatenate([np.concatenate([*step[0].values(), [step[1]]]) for step in steps]))
    assert (runs[0] == runs[1]).all() and not (runs[0] == runs[2]).all()


def test_many_environments_are_as_many_single_ones():
    many, actions = make_many(3, horizon=4, workers=2), np.random.default_rng(0).uniform(-1, 1, (6, 3, 8))
    singles = [make(horizon=4) for _ in range(3)]
    seen, _ = many.reset(seed=7)
    alone = [env.reset(seed=7 + n)[0] for n, env in enumerate(singles)]
    for step in range(6):
        for name, part in seen.items():
            assert (part == np.array([one[name] for one in alone])).all()
        seen, rewards, terminated, truncated, info = many.step(actions[step])
        results = [env.step(actions[step, n]) for n, env in enumerate(singles)]
        assert rewards.tolist() == [result[1] for result in results] and not terminated.any()
        assert truncated.tolist() == [step == 3] * 3 == [result[3] for result in results]
        if step == 3:
            assert info["_final_obs"].all() and info["final_info"]["solved"].tolist() == [False] * 3
            for last, result in zip(info["final_obs"], results, strict=True):
                assert all((last[name] == part).all() for name, part in result[0].items())
            alone = [env.reset()[0] for env in singles]
        else:
            alone = [result[0] for result in results]


def test_the_object_is_lifted_through_the_same_interface():
    from modlife.domains.robot.scripted import Script

    env = make(obstacle="none", object="cereal", robot="IIWA").unwrapped
    seen, _ = env.reset(seed=0)
    reward, info = 0.0, {}
    script = Script(env.physics.scene_of(env.task[None]), lifted="cereal")
    for _ in range(300):
        flat = np.concatenate([seen[name] for name in ("obstacle", "object", "goal", "robot")]).astype(float)
        seen, reward, _, _, info = env.step(script(flat))
        if info["success"]:
            break
    assert reward == 1 and info["solved"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"robot": "Pandas"}, "No robot 'Pandas'. Did you mean 'Panda'?"),
        ({"obstacle": "river"}, "No obstacle 'river'"),
        ({"speed": 3}, "No option 'speed'"),
    ],
)
def test_what_does_not_exist_is_named(options, sentence):
    with pytest.raises(InputError, match=sentence):
        make(disable_env_checker=True, **options)


def test_nonsense_actions_are_refused():
    env = make().unwrapped
    with pytest.raises(InputError, match="reset before"):
        env.step(np.zeros(8))
    env.reset(seed=0)
    with pytest.raises(InputError, match=r"shape \(7,\); expected \(8,\)"):
        env.step(np.zeros(7))
    with pytest.raises(InputError, match="NaN or infinity"):
        env.step(np.full(8, np.nan))
    many = make_many(2)
    many.reset(seed=[1, 2])
    with pytest.raises(InputError, match=r"shape \(3, 8\); expected \(2, 8\)"):
        many.step(np.zeros((3, 8)))


@pytest.mark.usefixtures("drawing")
def test_pictures_show_the_scene_and_change_with_it():
    env = make(render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert first.shape == (render.HEIGHT, render.WIDTH, 3) and first.dtype == np.uint8
    wall = (np.abs(first.astype(int) - [60, 100, 170]).max(axis=-1) < 50).mean()
    assert wall > 0.005 and first.std() > 20
    for _ in range(20):
        env.step(np.ones(8))
    assert (env.render() != first).mean() > 0.01
    other = make(render_mode="rgb_array", obstacle="none", robot="IIWA")
    other.reset(seed=0)
    orange = other.render()
    env.reset(seed=0)
    assert (env.render() == first).all() and (other.render() == orange).all() and (orange != first).mean() > 0.05
    many = make_many(2, render_mode="rgb_array")
    many.reset(seed=np.int64(0))
    pictures = many.render()
    assert pictures is not None and len(pictures) == 2 and (pictures[0] == first).all()


@pytest.mark.usefixtures("drawing")
def test_every_task_has_a_picture(tmp_path: Path):
    save_picture(RobotPictures(RobotLift(RobotWorld(preset="fast"))).sheet(0), tmp_path / "tasks.png")
    with Image.open(tmp_path / "tasks.png") as picture:
        sheet = np.asarray(picture)
    tiles = [
        sheet[top : top + 180, left : left + 240]
        for top in range(6, sheet.shape[0], 208)
        for left in range(6, 1970, 246)
    ]
    assert len(tiles) == 48
    assert len({tile.tobytes() for tile in tiles}) == 48 and all(tile.std() > 20 for tile in tiles)


def test_without_a_way_to_draw_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(render.ctypes.util, "find_library", lambda name: None)
    monkeypatch.setattr(render.sys, "platform", "linux")
    with pytest.raises(InputError, match="libegl1"):
        render.first_available()
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    monkeypatch.setitem(sys.modules, "mujoco.osmesa", None)
    with pytest.raises(InputError, match=r"Cannot draw with osmesa .*libosmesa6"):
        render.gl_context(64, 48)


def without_mujoco(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs modlife where MuJoCo and Numba are not installed."""
    hide = "import sys; sys.modules['mujoco'] = sys.modules['numba'] = None; from modlife.cli.main import main; main()"
    (folder / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name in ('mujoco', 'numba') else find(name, *rest)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", hide, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)


def test_the_base_package_needs_no_mujoco_and_says_how_to_get_it(tmp_path: Path):
    listed = without_mujoco("list", "--domain", "robot", folder=tmp_path)
    assert listed.returncode == 0 and "48 tasks" in listed.stdout
    assert "not installed: pip install -e '.[robot]' in the checkout of modlife" in " ".join(listed.stdout.split())
    data = json.loads(without_mujoco("list", "--json", folder=tmp_path).stdout)
    assert data["domains"]["robot"] == {
        "installed": False,
        "install": installing("robot"),
    }
    hide = "import sys; sys.modules['mujoco'] = None; import gymnasium, modlife; "
    making = [sys.executable, "-c", hide + "gymnasium.make('modlife/RobotLift-v0')"]
    made = subprocess.run(making, capture_output=True, text=True, check=False)
    assert made.stderr.splitlines()[-1].endswith(
        "InputError: The robot domain needs MuJoCo: pip install -e '.[robot]' in the checkout of modlife"
    )
    for command in (["play", "--domain", "robot"], ["bench", "env", "--domain", "robot"]):
        refused = without_mujoco(*command, folder=tmp_path)
        assert refused.returncode == 2
        assert refused.stderr == f"modlife: The robot domain needs MuJoCo: {installing('robot')}\n"


@pytest.mark.usefixtures("drawing")
def test_play_films_the_scripted_arm(tmp_path: Path):
    command = [
        sys.executable,
        "-m",
        "modlife",
        "play",
        "--domain",
        "robot",
        "--world.preset",
        "fast",
        "--task",
        "none/cereal/IIWA",
    ]
    made = subprocess.run(
        [*command, "--episodes", "1", "--out", "film.gif"], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert "scripted agent in none/cereal/IIWA" in made.stdout and "goal met in 1 of 1 episodes" in made.stdout
    with Image.open(tmp_path / "film.gif") as film:
        assert 20 < getattr(film, "n_frames", 0) < 125
