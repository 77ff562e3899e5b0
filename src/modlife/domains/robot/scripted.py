"""A scripted policy that lifts: it shows that the tasks can be solved with the eight numbers that agents have.

It sees what agents see. In addition it knows the arm's kinematics, and follows straight lines with its Jacobian:
over the object, down to it, fingers closed, up.
"""

import enum

import numpy as np
from jaxtyping import Float

from modlife.domains.robot.control import REACH, Joints
from modlife.domains.robot.engine import mujoco
from modlife.domains.robot.physics import Scene
from modlife.domains.robot.world import ACTIONS, JOINTS

HOVER = 1.06
"""Height of the grip on the way to the object."""
BEYOND = 1.2
"""Height to which it lifts."""
GRIP_ABOVE = {"can": 0.01, "milk": 0.045, "cereal": 0.045, "bread": 0.0}
"""Where to grip, above the object's centre."""
NEAR = 0.006
SPEED = 0.6
"""Share of the way to the target that an action asks for."""
CAUTION = 0.05
"""Damping of the inverse kinematics, in metres: keeps joints calm where the arm is stretched."""


Vector = Float[np.ndarray, " 3"]
Matrix = Float[np.ndarray, "3 3"]


class Phase(enum.IntEnum):
    """What the script is doing."""

    SETTLE = 0
    APPROACH = 1
    DESCEND = 2
    SQUEEZE = 3
    LIFT = 4


WAITS = {Phase.SETTLE: 12, Phase.SQUEEZE: 14}
"""Steps to wait until the object has come to rest, and until the fingers hold it."""


class Script:
    """Plays one episode of a task; make a new one for the next."""

    def __init__(self, scene: Scene, lifted: str):
        self.scene = scene
        self.data = mujoco.MjData(scene.model)
        self.above = GRIP_ABOVE[lifted]
        self.phase = Phase.SETTLE
        self.waited = 0
        self.down: Matrix | None = None

    def __call__(self, observation: Float[np.ndarray, " 77"]) -> Float[np.ndarray, f" {ACTIONS}"]:
        """The next action."""
        place, robot = observation[14:17], observation[45:]
        joints = np.arctan2(robot[JOINTS : 2 * JOINTS], robot[:JOINTS])
        grip, turn, jacobian = self.kinematics(joints)
        if self.down is None:
            self.down = pointing_down(turn)
        self.advance(grip, place)
        closed = self.phase >= Phase.SQUEEZE
        if self.phase == Phase.SETTLE:
            moves = np.zeros(JOINTS)
        else:
            wanted = np.concatenate([self.target(grip, place) - grip, rotation_between(turn, self.down)])
            moves = solve(jacobian, wanted) * SPEED / REACH
        return np.append(moves / max(1, np.abs(moves).max()), 1 if closed else -1)

    def target(self, grip: Vector, place: Vector) -> Vector:
        """Where the grip should be."""
        if self.phase == Phase.APPROACH:
            return np.array([place[0], place[1], HOVER])
        if self.phase == Phase.LIFT:
            return np.array([grip[0], grip[1], BEYOND])
        return place + np.array([0, 0, self.above])

    def advance(self, grip: Vector, place: Vector) -> None:
        """Goes on to the next phase when this one has done its work."""
        self.waited += 1
        there = np.abs(self.target(grip, place) - grip).max() < NEAR
        done = self.waited >= WAITS[self.phase] if self.phase in WAITS else there
        if done and self.phase < Phase.LIFT:
            self.phase, self.waited = Phase(self.phase + 1), 0

    def kinematics(self, joints: Joints) -> tuple[Vector, Matrix, Float[np.ndarray, "6 7"]]:
        """Where the grip is, how it is turned, and how both follow the joints."""
        model, data = self.scene.model, self.data
        data.qpos[:JOINTS] = joints
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        moving, turning = np.zeros((3, model.nv)), np.zeros((3, model.nv))
        mujoco.mj_jacSite(model, data, moving, turning, self.scene.grip)
        jacobian = np.concatenate([moving, turning])[:, :JOINTS]
        return data.site_xpos[self.scene.grip].copy(), data.xmat[self.scene.hand].reshape(3, 3).copy(), jacobian


def solve(jacobian: Float[np.ndarray, "6 7"], wanted: Float[np.ndarray, " 6"]) -> Joints:
    """Damped least squares."""
    square = jacobian @ jacobian.T + CAUTION**2 * np.eye(6)
    return jacobian.T @ np.linalg.solve(square, wanted)


def pointing_down(turn: Matrix) -> Matrix:
    """The orientation nearest to this one whose z axis points straight down."""
    y = turn[:, 1] * [1, 1, 0]
    y /= np.linalg.norm(y)
    z = np.array([0, 0, -1.0])
    return np.stack([np.cross(y, z), y, z], axis=1)


def rotation_between(now: Matrix, wanted: Matrix) -> Vector:
    """The small turn from one orientation to another: half the sum of cross products of their axes."""
    return np.cross(now.T, wanted.T).sum(axis=0) / 2
