"""Observations and rewards of the robot tasks, for batches: arrays in, arrays out.

Quaternions are w first inside, as MuJoCo has them, and w last in observations, as robosuite has them.
"""

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from modlife.domains.robot.scene import OBSTACLE_X, TABLE_TOP, WALL
from modlife.domains.robot.world import JOINTS

Rows3 = Float[np.ndarray, "N 3"]
Rows = Float[np.ndarray, " N"]

LIFTED = TABLE_TOP[2] + 0.1
"""Height of the object's centre above which the task is solved."""
BEHIND_WALL = 0.05
"""The released code counts the gripper as past the wall from here on, and shapes rewards towards a point there."""
OVER_WALL = TABLE_TOP[2] + 0.3

W_LAST = (1, 2, 3, 0)
"""A quaternion as robosuite writes it."""
CONJUGATE = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]])
CONJUGATE_SIGN = np.array([[1, 1, 1, 1], [-1, 1, 1, -1], [-1, -1, 1, 1], [-1, 1, -1, 1]])
"""conj(q) p = (q[CONJUGATE] * CONJUGATE_SIGN) p, for quaternions q and p: the orientation p, seen from q."""


class Reading(NamedTuple):
    """What the physics shows of each episode at one moment."""

    joints: Float[np.ndarray, "N 9"]
    """Positions of the arm's joints, then of the left and right finger."""
    speeds: Float[np.ndarray, "N 9"]
    grip: Rows3
    """Where the gripper grips."""
    hand: Float[np.ndarray, "N 4"]
    turn: Float[np.ndarray, "N 3 3"]
    """The hand's orientation as a matrix."""
    places: Float[np.ndarray, "N 3 3"]
    """Positions of obstacle, object and goal."""
    turns: Float[np.ndarray, "N 3 4"]
    """Their orientations."""
    grasped: Bool[np.ndarray, " N"]
    """Both finger pads touch the object."""


def observe(reading: Reading) -> Float[np.ndarray, "N 77"]:
    """What the agent sees: obstacle 14, object 14, goal 17, robot 32."""
    to_hand = (reading.places - reading.grip[:, None]) @ reading.turn
    relative = reading.turns @ (reading.hand[:, CONJUGATE] * CONJUGATE_SIGN).swapaxes(1, 2)
    relative *= np.where(relative[..., :1] < 0, -1, 1)
    seen = np.concatenate([reading.places, reading.turns[..., W_LAST], to_hand, relative[..., W_LAST]], axis=-1)
    arm = reading.joints[:, :JOINTS]
    return np.concatenate(
        [
            *(seen[:, 0], seen[:, 1], seen[:, 2], reading.places[:, 2] - reading.places[:, 1]),
            *(np.cos(arm), np.sin(arm), reading.speeds[:, :JOINTS], reading.grip, reading.hand[:, W_LAST]),
            *(reading.joints[:, JOINTS:], reading.speeds[:, JOINTS:]),
        ],
        axis=-1,
    )


def solved(reading: Reading) -> Bool[np.ndarray, " N"]:
    """The object's centre is high enough; nothing else counts."""
    return reading.places[:, 1, 2] > LIFTED


def reward(reading: Reading, walled: Bool[np.ndarray, " N"], rule: Literal["paper", "released"]) -> Rows:
    """Approach, grasp and lift, for tasks with (`walled`) and without a wall."""
    return (paper_reward if rule == "paper" else released_reward)(reading, walled)


def paper_reward(reading: Reading, walled: Bool[np.ndarray, " N"]) -> Rows:
    """The paper's piecewise formula (Appendix B.2); the distance to the wall is to its nearest point in x and z."""
    x, z = reading.grip[:, 0], reading.grip[:, 2]
    past = ~walled | (x > OBSTACLE_X)
    beside = np.maximum(OBSTACLE_X - WALL[1] - x, 0)
    above = np.maximum(z - (TABLE_TOP[2] + 2 * WALL[2]), 0)
    near = closeness(5 * distance(reading))
    return np.select(
        [solved(reading), ~past, ~reading.grasped],
        [1.0, 0.05 * closeness(5 * np.hypot(beside, above)), np.where(walled, 0.05 + 0.05 * near, 0.1 * near)],
        0.25 + 0.5 * closeness(25 * missing_height(reading)),
    )


def released_reward(reading: Reading, walled: Bool[np.ndarray, " N"]) -> Rows:
    """The released code's: the most of what each stage pays."""
    x, z = reading.grip[:, 0], reading.grip[:, 2]
    past = x > OBSTACLE_X + BEHIND_WALL
    to_point = np.hypot(x - (OBSTACLE_X + BEHIND_WALL), z - OVER_WALL)
    near = closeness(5 * distance(reading))
    over = np.where(past, 0.05 + 0.05 * near, 0.05 * closeness(5 * to_point))
    reach = np.where(walled, over, 0.1 * near)
    lift = 0.2 + 0.5 * closeness(25 * missing_height(reading))
    return np.where(solved(reading), 1.0, np.maximum(reach, np.where(reading.grasped, lift, 0.0)))


def distance(reading: Reading) -> Rows:
    """From the grip to the object's centre."""
    return np.linalg.norm(reading.grip - reading.places[:, 1], axis=-1)


def missing_height(reading: Reading) -> Rows:
    """How far the object still has to be lifted."""
    return np.maximum(LIFTED - reading.places[:, 1, 2], 0)


def closeness(far: Rows) -> Rows:
    """1 at no distance, towards 0 far away."""
    return 1 - np.tanh(far)
