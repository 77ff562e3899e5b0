"""The robot domain against trajectories of robosuite 1.5.2, recorded by `scripts/record_robosuite.py`.

Our side is configured to what 1.5.2 has otherwise than 1.2.0, which the recording holds: where joints start, the
hand's frame, the fingers' rate, the milk without the authors' sphere; and Sawyer's base, which touches its first link
by a rounding error, is let to, but for one recording in which robosuite was kept from it too.
"""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from modlife.domains.robot.physics import BALL, OBJECT_AT, QPOS, QVEL, Physics
from modlife.domains.robot.scene import parts
from modlife.domains.robot.world import SEEN, SPLITS, RobotWorld

RECORDING = load_file(Path(__file__).parent / "data/robosuite.safetensors")
EPISODES = sorted({name.split(":")[0] for name in RECORDING if "/" in name})
CONTACT = [name for name in EPISODES if name.startswith("contact ")]
FREE = "none/can/Sawyer"
TASKS = [name for name in EPISODES if name not in CONTACT and name != FREE]
SUBSTEPS = 25
RELATIVE = slice(10, 14)
"""The relative quaternion within a part of the observation; a turn by half is written with either sign."""


def body(tree: dict[str, Any], name: str) -> dict[str, Any] | None:
    found = (body(child, name) for child in tree["bodies"])
    return tree if tree["name"] == name else next(filter(None, found), None)


def release_152(*, sawyer_free: bool = False) -> dict[str, Any]:
    data = copy.deepcopy(dict(parts()))
    for arm, robot in data["robots"].items():
        robot["start"] = RECORDING[f"joints:{arm}"].tolist()
        robot["apart"] = robot["apart"] if sawyer_free else None
        hand = body(robot["base"], "right_hand")
        assert hand is not None
        hand["pos"], hand["quat"] = np.split(RECORDING[f"hand:{arm}"], [3])
    data["objects"]["milk"]["geoms"].pop()
    for name, lifted in data["objects"].items():
        lifted["inertial"] = {
            "mass": RECORDING[f"mass:{name}"][0],
            "pos": RECORDING[f"ipos:{name}"],
            "quat": RECORDING[f"iquat:{name}"],
            "diaginertia": RECORDING[f"inertia:{name}"],
        }
    return data


def physics_152(*, sawyer_free: bool) -> Physics:
    rates = np.array([RECORDING["rate:Panda"][0]] + [0.0] * (SUBSTEPS - 1))
    return Physics(RobotWorld(reward="released"), data=release_152(sawyer_free=sawyer_free), finger_rates=rates)


@pytest.fixture(scope="module")
def physics() -> Physics:
    return physics_152(sawyer_free=False)


def play(physics: Physics, task: str) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """Rows, observations by part and rewards of the recorded actions from the recorded start."""
    graph = physics.world.graph
    tasks = np.array([graph.indices(graph.parse(task.removeprefix("contact ")))])
    row = physics.start(tasks, np.zeros((1, 3))).rows
    row[0, QPOS], row[0, BALL] = RECORDING[f"{task}:start"], RECORDING[f"{task}:radius"][0]
    steps = [physics.show(tasks, row)]
    for action in RECORDING[f"{task}:actions"]:
        steps.append(physics.step(tasks, steps[-1].rows, action[None].astype(float)))
    seen = np.split(np.concatenate([step.observation for step in steps]), SPLITS, axis=1)
    named = {part.name: piece for part, piece in zip(SEEN, seen, strict=True)}
    return np.concatenate([s.rows for s in steps]), named, np.array([s.reward[0] for s in steps[1:]])


def test_the_recording_has_all_arms_objects_and_obstacles():
    components = [task.split("/") for task in TASKS]
    assert len(TASKS) == 12
    assert [sorted(set(names)) for names in zip(*components, strict=True)] == [
        ["door", "none", "wall"],
        ["bread", "can", "cereal", "milk"],
        ["Gen3", "IIWA", "Panda", "Sawyer"],
    ]
    assert all(len(RECORDING[f"{task}:actions"]) == 60 for task in TASKS)


@pytest.mark.parametrize("task", TASKS)
def test_trajectories_equal_those_of_robosuite(physics: Physics, task: str):
    recorded = {name.split(":")[1]: value for name, value in RECORDING.items() if name.startswith(task + ":")}
    rows, seen, rewards = play(physics, task)
    touched = int(np.argmax(recorded["contacts"] > recorded["contacts"][0]))
    assert 1 < touched < 10  # the object falls onto the table
    assert np.ptp(recorded["qpos"][:, :7], axis=0).max() > 0.05  # the arm moves

    # The arm touches nothing but, in Sawyer's case, itself: it agrees all the way.
    assert np.abs(rows[:, :9] - recorded["qpos"][:, :9]).max() < 1e-6
    assert np.abs(rows[:, QVEL][:, :9] - recorded["qvel"][:, :9]).max() < 1e-5
    assert np.abs(rows[:touched, OBJECT_AT] - recorded["qpos"][:touched, OBJECT_AT]).max() < 1e-6
    assert np.abs(rows[:, OBJECT_AT] - recorded["qpos"][:, OBJECT_AT]).max() < 4e-3
    for name, values in seen.items():
        expected = recorded[name]
        if name != "robot":
            sign = np.sign((values[:, RELATIVE] * expected[:, RELATIVE]).sum(axis=1))
            values[:, RELATIVE] *= sign[:, None]
        assert np.abs(values[:touched] - expected[:touched]).max() < 1e-6, name
        assert np.abs(values - expected).max() < 4e-3, name
    assert np.abs(rewards[: touched - 1] - recorded["reward"][: touched - 1]).max() < 1e-6
    assert np.abs(rewards - recorded["reward"]).max() < 1e-4


def test_sawyer_agrees_when_its_base_is_kept_from_holding_it():
    rows, _, rewards = play(physics_152(sawyer_free=True), FREE)
    assert np.ptp(RECORDING[f"{FREE}:qpos"][:, 0]) > 0.01
    assert np.abs(rows[:, :9] - RECORDING[f"{FREE}:qpos"][:, :9]).max() < 1e-6
    assert np.abs(rewards - RECORDING[f"{FREE}:reward"]).max() < 1e-4


@pytest.mark.parametrize("episode", CONTACT)
def test_arms_grasp_lift_and_push_as_in_robosuite(physics: Physics, episode: str):
    recorded = {name.split(":")[1]: value for name, value in RECORDING.items() if name.startswith(episode + ":")}
    rows, _, rewards = play(physics, episode)
    touched = int(np.argmax(recorded["arm_contacts"] > 0))
    assert 20 < touched < len(rewards) - 10
    far = np.abs(rows[:, QPOS] - recorded["qpos"])
    assert far[:touched, :9].max() < 1e-6
    assert far[:, :7].max() < 4e-3  # radians, after up to 40 steps of contact (MuJoCo 4: 2e-3, 3.11: 3.6e-3)
    assert far[:, 7:12].max() < 2e-3  # metres
    assert np.abs(rewards - recorded["reward"]).max() < 1e-2
    if "none/" in episode:
        assert recorded["grasp"].sum() > 20 and (recorded["reward"] == 1).sum() == (rewards == 1).sum() == 10
        lift = rewards[recorded["grasp"].astype(bool)]
        assert lift.min() >= 0.2 and len(np.unique(lift)) > 5


def test_objects_weigh_what_robosuite_has_them_weigh():
    for name, lifted in parts()["objects"].items():
        sphere = 100 * 4 / 3 * np.pi * 0.01**3 if name == "milk" else 0.0
        assert lifted["inertial"]["mass"] == pytest.approx(RECORDING[f"mass:{name}"][0] + sphere, rel=1e-5)
        if name != "milk":
            assert lifted["inertial"]["diaginertia"] == pytest.approx(RECORDING[f"inertia:{name}"], rel=1e-5)


def test_sawyers_first_joint_is_free_only_because_a_rounding_error_is_left_out(physics: Physics):
    """In robosuite the base and the first link touch by about 1e-16 m, and that holds the joint."""
    own = Physics(RobotWorld())
    graph = own.world.graph
    tasks = np.array([graph.indices(graph.parse("none/can/Sawyer"))])
    turned = []
    for one in (physics, own):
        rows = one.start(tasks, np.full((1, 3), 0.5)).rows
        for _ in range(20):
            rows = one.step(tasks, rows, np.array([[-1.0, 0, 0, 0, 0, 0, 0, 0]])).rows
        turned.append(abs(float(rows[0, 0])))
    assert turned[0] < 1e-3
    assert turned[1] > 0.1
