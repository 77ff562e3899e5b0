"""Batches of episodes on MuJoCo, as functions of arrays: a state goes in, the next one comes out.

The state of an episode is a row of numbers from which MuJoCo computes everything else, so episodes need no simulator
of their own: each worker thread keeps one for each scene and loads row after row into it. Which episodes are stepped
together, in which order and on how many threads does not change any of them.
"""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import mujoco
import numpy as np
from jaxtyping import Bool, Float, Int

from modlife.domains.robot import control, task
from modlife.domains.robot.model import (
    OBSTACLE_TURN,
    OBSTACLE_X,
    TABLE_SIZE,
    TABLE_TOP,
    Parts,
    about_z,
    build,
    goal_pose,
    obstacle_pose,
    parts,
)
from modlife.domains.robot.spec import ACTIONS, JOINTS, RobotWorld
from modlife.errors import InputError

QPOS, QVEL, WARMSTART, FINGERS, BALL = slice(0, 16), slice(16, 31), slice(31, 46), 46, 47
"""A row of the state: positions, velocities, the solver's warm start, the fingers' command, radius of the ball."""
ROW = 48
OBJECT_AT = slice(9, 16)
"""Position and orientation of the object, in the positions."""
BALL_RADIUS = (0.03, 0.07)
"""Tasks without an obstacle show one all the same: a ball that touches nothing, of a radius drawn for each episode."""
SPAWN_HEIGHT = 0.01
STRIP = (TABLE_SIZE[0] / 2 - 0.15, TABLE_SIZE[1] / 2 - 0.1)
"""The released code's area for objects: this far from the table's middle to the right, and to each side."""
HALF = (TABLE_SIZE[0] / 2 - 0.05, TABLE_SIZE[1] / 2 - 0.05)
"""The right half of the table, except where an object would stand over its edge."""

Rows = Float[np.ndarray, f"N {ROW}"]
Tasks = Int[np.ndarray, "N 3"]


class Step(NamedTuple):
    """What a batch of episodes came to."""

    rows: Rows
    observation: Float[np.ndarray, "N 77"]
    reward: Float[np.ndarray, " N"]
    success: Bool[np.ndarray, " N"]


@dataclass(frozen=True, eq=False)
class Scene:
    """A task's compiled model and where to find things in it."""

    model: mujoco.MjModel
    drive: control.Drive
    grip: int
    hand: int
    object: int
    touching: Int[np.ndarray, " geoms"]
    """For each shape: 1 left finger pad, 2 right finger pad, 4 the object, 0 anything else."""
    start: Float[np.ndarray, f" {ROW}"]
    """The first state, but for what is random."""
    obstacle_place: Float[np.ndarray, " 3"]
    goal_place: Float[np.ndarray, " 3"]
    goal_turn: Float[np.ndarray, " 4"]


class Simulator(NamedTuple):
    """One worker's place to run a scene: MuJoCo's data, and views of what is read after each action."""

    data: mujoco.MjData
    rows: tuple[tuple[slice, Float[np.ndarray, " n"]], ...]
    shown: tuple[Float[np.ndarray, "..."], ...]


class Physics:
    """Starts and steps episodes of any tasks of a world."""

    def __init__(
        self,
        world: RobotWorld,
        *,
        workers: int = 1,
        advance: control.Advance | None = None,
        data: Parts | None = None,
        finger_rates: Float[np.ndarray, " substeps"] | None = None,
    ):
        if workers < 1:
            raise InputError(f"workers = {workers}, but at least 1 must do the work.")
        self.world = world
        self.data = data or parts()
        substeps = world.timing.substeps
        self.finger_rates = np.full(substeps, control.FINGER_SPEED / substeps) if finger_rates is None else finger_rates
        self.advance = advance or fastest()
        self.workers = workers
        self._pool = ThreadPoolExecutor(workers) if workers > 1 else None
        self._scenes: dict[tuple[int, ...], Scene] = {}
        self._simulators: dict[tuple[int, tuple[int, ...]], Simulator] = {}

    def scene(self, task: tuple[int, ...]) -> Scene:
        """The scene of a task, given by its component indices; compiled when first asked for."""
        if task not in self._scenes:
            self._scenes[task] = scene_of(self.world, task, self.data, self.finger_rates)
        return self._scenes[task]

    def start(self, tasks: Tasks, draws: Float[np.ndarray, "N 3"]) -> Step:
        """First states: the object's place, across and along the table, and the ball's radius follow from the draws."""
        rows = np.array([self.scene(tuple(task)).start for task in tasks.tolist()])
        depth, width = STRIP if self.world.object_area == "strip" else HALF
        rows[:, OBJECT_AT.start] = TABLE_TOP[0] + depth * draws[:, 0]
        rows[:, OBJECT_AT.start + 1] = TABLE_TOP[1] + width * (2 * draws[:, 1] - 1)
        rows[:, BALL] = BALL_RADIUS[0] + (BALL_RADIUS[1] - BALL_RADIUS[0]) * draws[:, 2]
        return self.show(tasks, rows)

    def show(self, tasks: Tasks, rows: Rows) -> Step:
        """What given states show, without a step."""
        return self._run(tasks, rows, look)

    def step(self, tasks: Tasks, rows: Rows, actions: Float[np.ndarray, f"N {ACTIONS}"]) -> Step:
        """The states after an action each. Numbers beyond -1 and 1 count as these; those that are none are refused."""
        if actions.shape != (len(rows), ACTIONS):
            raise InputError(f"Actions of shape {actions.shape}; expected ({len(rows)}, {ACTIONS}).")
        if not np.isfinite(actions).all():
            raise InputError("An action holds NaN or infinity; expected 8 numbers from -1 to 1.")
        goals = rows[:, :JOINTS] + control.REACH * np.clip(actions[:, :JOINTS], -1, 1)
        closing = np.sign(actions[:, JOINTS])

        def act(scene: Scene, data: mujoco.MjData, row: Float[np.ndarray, f" {ROW}"], place: int) -> float:
            return self.advance(scene.model, data, scene.drive, goals[place], row[FINGERS], closing[place])

        step = self._run(tasks, rows, act)
        if not np.isfinite(step.rows).all():
            raise FloatingPointError("MuJoCo's physics diverged; please report the task and the seed.")
        return step

    def _run(self, tasks: Tasks, rows: Rows, act: "Act") -> Step:
        """Loads each row into a simulator, lets `act` do something with it, and reads the result."""
        after = rows.copy()
        shown = np.empty((len(rows), 3 + 4 + 9 + 3 + 4))
        grasped = np.zeros(len(rows), bool)
        scenes = [self.scene(tuple(task)) for task in tasks.tolist()]
        names = [tuple(task) for task in tasks.tolist()]

        def work(worker: int) -> None:
            for place in range(worker, len(rows), self.workers):
                scene, simulator = scenes[place], self._simulator(worker, names[place])
                row = after[place]
                for part, view in simulator.rows:
                    view[:] = row[part]
                row[FINGERS] = act(scene, simulator.data, row, place)
                for part, view in simulator.rows:
                    row[part] = view
                np.concatenate(simulator.shown, out=shown[place])
                grasped[place] = grasps(scene, simulator.data)

        if self._pool is None:
            work(0)
        else:
            list(self._pool.map(work, range(self.workers)))
        reading = reading_of(after, shown, scenes, grasped)
        walled = np.array([self.world.obstacles[task[0]] == "wall" for task in names])
        return Step(
            rows=after,
            observation=task.observe(reading),
            reward=task.reward(reading, walled, self.world.reward),
            success=task.solved(reading),
        )

    def _simulator(self, worker: int, name: tuple[int, ...]) -> Simulator:
        if (worker, name) not in self._simulators:
            self._simulators[worker, name] = simulator_of(self.scene(name))
        return self._simulators[worker, name]


Act = Callable[[Scene, mujoco.MjData, Float[np.ndarray, f" {ROW}"], int], float]
"""Does something with a loaded state; returns the fingers' command."""


def look(scene: Scene, data: mujoco.MjData, row: Float[np.ndarray, f" {ROW}"], place: int) -> float:
    """Computes where everything is, and what touches, in a loaded state."""
    mujoco.mj_fwdPosition(scene.model, data)
    return float(row[FINGERS])


@functools.cache
def fastest() -> control.Advance:
    """The compiled controller; the plain one where Numba is not installed."""
    try:
        from modlife.domains.robot import native
    except ModuleNotFoundError:
        return control.advance
    return native.advance


def scene_of(
    world: RobotWorld, indices: tuple[int, ...], data: Parts, finger_rates: Float[np.ndarray, " substeps"]
) -> Scene:
    """Compiles the scene of a task."""
    obstacle, lifted, robot = world.graph.named(indices).components
    model = build(obstacle, lifted, robot, timing=world.timing, data=data)
    arm, part = data["robots"][robot], data["objects"][lifted]
    goal_place, turn = goal_pose(lifted, robot, data)
    start = np.zeros(ROW)
    start[: OBJECT_AT.start] = [*arm["start"], *FINGERS_OPEN]
    start[OBJECT_AT] = [*TABLE_TOP[:2], TABLE_TOP[2] + SPAWN_HEIGHT - part["bottom"], *turn]
    return Scene(
        model=model,
        drive=control.drive_of(model, finger_rates),
        grip=model.site("grip").id,
        hand=model.body("right_hand").id,
        object=model.body("object").id,
        touching=touching(model),
        start=start,
        obstacle_place=np.array([OBSTACLE_X, 0, TABLE_TOP[2]]) if obstacle == "none" else obstacle_pose(obstacle)[0],
        goal_place=goal_place,
        goal_turn=turn,
    )


FINGERS_OPEN = (0.020833, -0.020833)
"""Positions of the left and right finger at the start."""


def touching(model: mujoco.MjModel) -> Int[np.ndarray, " geoms"]:
    """Marks the shapes that make a grasp."""
    marks = np.zeros(model.ngeom, int)
    marks[model.geom("l_fingerpad_g0").id], marks[model.geom("r_fingerpad_g0").id] = 1, 2
    marks[model.geom_bodyid == model.body("object").id] = 4
    return marks


def grasps(scene: Scene, data: mujoco.MjData) -> bool:
    """Both finger pads touch the object."""
    marks = scene.touching[data.contact.geom].sum(axis=1).tolist()
    return 5 in marks and 6 in marks


def simulator_of(scene: Scene) -> Simulator:
    """A place to run a scene."""
    data = mujoco.MjData(scene.model)
    rows = ((QPOS, data.qpos), (QVEL, data.qvel), (WARMSTART, data.qacc_warmstart))
    places = (data.site_xpos[scene.grip], data.xquat[scene.hand], data.xmat[scene.hand])
    return Simulator(data, rows, (*places, data.xpos[scene.object], data.xquat[scene.object]))


def reading_of(
    rows: Rows, shown: Float[np.ndarray, "N 23"], scenes: list[Scene], grasped: Bool[np.ndarray, " N"]
) -> task.Reading:
    """What the simulators showed, with the obstacle and the goal, which never move."""
    grip, hand, turn, place, orientation = np.split(shown, (3, 7, 16, 19), axis=1)
    obstacle = np.array([scene.obstacle_place for scene in scenes])
    obstacle[:, 2] += np.where(obstacle[:, 2] == TABLE_TOP[2], rows[:, BALL], 0)
    goal = np.array([scene.goal_place for scene in scenes])
    turned = np.broadcast_to(about_z(OBSTACLE_TURN), orientation.shape)
    goal_turn = np.array([scene.goal_turn for scene in scenes])
    return task.Reading(
        joints=rows[:, : OBJECT_AT.start],
        speeds=rows[:, QVEL.start : QVEL.start + OBJECT_AT.start],
        grip=grip,
        hand=hand,
        turn=turn.reshape(-1, 3, 3),
        places=np.stack([obstacle, place, goal], axis=1),
        turns=np.stack([turned, orientation, goal_turn], axis=1),
        grasped=grasped,
    )
