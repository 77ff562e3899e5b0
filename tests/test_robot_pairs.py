"""Bodies of an arm that can never meet are not looked at: the proof, what is stored of it, and that nothing changes."""

import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

from modlife.domains.robot.physics import Physics
from modlife.domains.robot.scene import build, never_meet, parts
from modlife.domains.robot.world import RobotWorld

sys.path.append(str(Path(__file__).parents[1] / "scripts"))
import robot_pairs

FAST = RobotWorld(preset="fast")
ROBOTS = tuple(parts()["robots"])


def model_of(robot: str) -> mujoco.MjModel:
    """With all pairs, since its parts are a copy."""
    return build("none", "can", robot, timing=FAST.timing, data=dict(parts()))


def swinging(length: float) -> mujoco.MjModel:
    """A ball of radius 0.1 at the end of a rod that turns about the origin, and one that stands 1 m from there."""
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><worldbody>
        <body name="post" pos="1 0 0"><geom type="sphere" size="0.1"/></body>
        <body name="rod"><joint axis="0 0 1"/><geom type="sphere" size="0.1" pos="0 {length} 0" mass="1"/></body>
        </worldbody></mujoco>"""
    )


@pytest.mark.parametrize(("length", "least"), [(0.7, 0.1), (0.79, 0.01), (0.801, None), (1.0, None), (1.3, 0.1)])
def test_a_ball_on_a_rod_meets_a_post_only_if_it_reaches_it(length: float, least: float | None):
    model = swinging(length)
    found = robot_pairs.never_meet(model, model.body("post").id, model.body("rod").id, boxes=10_000)
    assert found == (None if least is None else pytest.approx(least, abs=2e-3))


def test_too_few_boxes_prove_nothing():
    model = swinging(0.79)
    assert robot_pairs.never_meet(model, model.body("post").id, model.body("rod").id, boxes=5) is None


@pytest.mark.parametrize("robot", ROBOTS)
def test_stored_pairs_keep_their_distance_in_random_positions(robot: str):
    model, random = model_of(robot), np.random.default_rng(7)
    data, ranges = mujoco.MjData(model), np.array([robot_pairs.range_of(model, joint) for joint in range(9)])
    pairs = [(model.body(one).id, model.body(other).id, least) for one, other, least in never_meet()[robot]]
    assert len(pairs) > 20
    for _ in range(60):
        data.qpos[:9] = random.uniform(*ranges.T)
        assert all(robot_pairs.distance(model, data, one, other) > robot_pairs.CLEAR for one, other, _ in pairs)


def test_what_is_stored_of_an_arm_is_proved_again():
    model = model_of("Panda")
    for one, other, least in never_meet()["Panda"]:
        found = robot_pairs.never_meet(model, model.body(one).id, model.body(other).id)
        assert found == pytest.approx(least, abs=1e-4)


def test_fingers_and_touching_neighbours_are_still_looked_at():
    for robot in ROBOTS:
        stored = {frozenset(pair[:2]) for pair in never_meet()[robot]}
        assert frozenset({"l_finger", "r_finger"}) not in stored
    assert frozenset({"base", "link_1"}) not in {frozenset(pair[:2]) for pair in never_meet()["IIWA"]}


def test_episodes_are_the_same_to_the_bit():
    """All arms, wild actions that bend them far, with and without looking at pairs that never meet."""
    tasks = np.array([[1, 0, robot] for robot in range(len(ROBOTS))])
    random = np.random.default_rng(3)
    draws, actions = random.random((4, 3)), random.choice([-1.0, 1.0], (3, 4, 8)).repeat(60, axis=0)
    ends = []
    for physics in (Physics(FAST), Physics(FAST, data=dict(parts()))):
        state = physics.start(tasks, draws)
        for action in actions:
            state = physics.step(tasks, state.rows, action)
        ends.append(state.rows)
    assert (ends[0] == ends[1]).all()
    assert np.abs(ends[0][:, :7] - np.array([arm["start"] for arm in parts()["robots"].values()])).max() > 0.4
