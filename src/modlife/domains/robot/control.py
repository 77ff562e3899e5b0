"""The joint-position controller, run inside the physics: every physics step gets fresh torques.

An action asks for a change of each arm joint and for the fingers to close or open. The arm's torques are those of a
critically damped spring towards the goal, made uniform over joints by the mass matrix, plus gravity and Coriolis
compensation (docs/details.md, 62). `control_numba` does the same without leaving compiled code.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from modlife.domains.robot.engine import mujoco
from modlife.domains.robot.world import JOINTS

STIFFNESS = 50.0
DAMPING = 2 * float(np.sqrt(STIFFNESS))
REACH = 0.05
"""Radians that a joint is asked to move by an action of 1."""
FINGER_SPEED = 0.25
"""Change of the fingers' command in one action, which goes from -1, open, to 1, closed."""

Joints = Float[np.ndarray, f" {JOINTS}"]
"""A number for each joint of the arm."""


@dataclass(frozen=True)
class Drive:
    """What the controller needs to know of a scene."""

    torques: Joints
    """Limits, in newton metres."""
    inertia: Int[np.ndarray, "7 7"]
    """Where the arm's part of the mass matrix stands in MuJoCo's sparse one."""
    finger_middle: Float[np.ndarray, " 2"]
    """Positions of the right and left finger at command 0."""
    finger_reach: Float[np.ndarray, " 2"]
    """What they change by at command 1."""
    finger_rates: Float[np.ndarray, " substeps"]
    """What each physics step of an action adds to the fingers' command."""


Advance = Callable[[mujoco.MjModel, mujoco.MjData, Drive, Joints, float, float], float]
"""Runs the physics of one action, as `advance` does."""


def drive_of(model: mujoco.MjModel, finger_rates: Float[np.ndarray, " substeps"]) -> Drive:
    """The controller's view of a compiled scene."""
    low, high = model.actuator_ctrlrange[JOINTS:].T
    return Drive(
        torques=model.actuator_ctrlrange[:JOINTS, 1].copy(),
        inertia=np.array([[place(model, max(i, j), min(i, j)) for j in range(JOINTS)] for i in range(JOINTS)]),
        finger_middle=(high + low) / 2,
        finger_reach=(high - low) / 2 * [1, -1],
        finger_rates=finger_rates,
    )


def place(model: mujoco.MjModel, row: int, column: int) -> int:
    """Where MuJoCo keeps an entry of its sparse mass matrix."""
    first = int(model.M_rowadr[row])
    columns = model.M_colind[first : first + int(model.M_rownnz[row])].tolist()
    return first + columns.index(column)


def advance(
    model: mujoco.MjModel, data: mujoco.MjData, drive: Drive, goal: Joints, fingers: float, closing: float
) -> float:
    """The physics of one action in plain Python; returns the fingers' command at its end.

    `goal` is where the arm's joints shall go; `closing` is 1 to close the fingers, -1 to open, 0 to hold. Sums are
    taken in the order in which `control_numba` takes them.
    """
    for rate in drive.finger_rates.tolist():
        mujoco.mj_step1(model, data)
        fingers = min(max(fingers + rate * closing, -1.0), 1.0)
        wanted = STIFFNESS * (goal - data.qpos[:JOINTS]) - DAMPING * data.qvel[:JOINTS]
        torque = (data.M[drive.inertia] * wanted).sum(axis=1) + data.qfrc_bias[:JOINTS]
        data.ctrl[:JOINTS] = np.clip(torque, -drive.torques, drive.torques)
        data.ctrl[JOINTS:] = drive.finger_middle + drive.finger_reach * fingers
        mujoco.mj_step2(model, data)
    return fingers
