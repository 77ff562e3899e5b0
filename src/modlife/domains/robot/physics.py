"""Batches of episodes on MuJoCo, as functions of arrays: a state goes in, the next one comes out.

The state of an episode is a row of numbers from which MuJoCo computes everything else, so episodes need no simulator
of their own: a thread takes one that is free and loads row after row into it. Which episodes are stepped together, in
which order and on how many threads, ours or the caller's, does not change any of them.
"""

import functools
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from modlife.domains.robot import control, rewards
from modlife.domains.robot.engine import mujoco
from modlife.domains.robot.scene import OBSTACLE_TURN, TABLE_SIZE, TABLE_TOP, Parts, build, goal_pose, obstacle_place
from modlife.domains.robot.scene import parts as usual_parts
from modlife.domains.robot.world import ACTIONS, JOINTS, RobotWorld
from modlife.errors import InputError

QPOS, QVEL, WARMSTART, FINGERS, BALL = slice(0, 16), slice(16, 31), slice(31, 46), 46, 47
"""A row of the state: positions, velocities, the solver's warm start, the fingers' command, radius of the ball."""
ROW = 48
OBJECT_AT = slice(9, 16)
"""Position and orientation of the object, in the positions."""
FINGERS_OPEN = (0.020833, -0.020833)
"""Positions of the left and right finger at the start."""
BALL_RADIUS = (0.03, 0.07)
"""Tasks without an obstacle show one all the same: a ball that touches nothing, of a radius drawn for each episode."""
SPAWN_HEIGHT = 0.01
STRIP = (TABLE_SIZE[0] / 2 - 0.15, TABLE_SIZE[1] / 2 - 0.1)
"""The released code's area for objects: this far from the table's middle to the right, and to each side."""
HALF = (TABLE_SIZE[0] / 2 - 0.05, TABLE_SIZE[1] / 2 - 0.05)
"""The right half of the table, except where an object would stand over its edge."""

Row = Float[np.ndarray, f" {ROW}"]
Rows = Float[np.ndarray, f"N {ROW}"]
Tasks = Int[np.ndarray, "N 3"]
Actions = Float[np.ndarray, f"N {ACTIONS}"]


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


class Fixed(NamedTuple):
    """What never changes in a task, for all tasks of a world; axis [task]."""

    start: Float[np.ndarray, f"T {ROW}"]
    """The first state, but for what is random."""
    obstacle: Float[np.ndarray, "T 3"]
    """Where the obstacle is; of the ball, where it touches the table."""
    ball: Bool[np.ndarray, " T"]
    wall: Bool[np.ndarray, " T"]
    goal: Float[np.ndarray, "T 3"]
    turn: Float[np.ndarray, "T 4"]
    """How the goal and, at the start, the object are turned."""


class Simulator(NamedTuple):
    """A place to run a scene, for one thread at a time: MuJoCo's data, and views of it."""

    scene: Scene
    data: mujoco.MjData
    rows: tuple[tuple[slice, Float[np.ndarray, " n"]], ...]
    """What makes up a row."""
    shown: tuple[Float[np.ndarray, "..."], ...]
    """What is read after each action: grip, hand, its orientation as a matrix, object, its orientation."""


SHOWN = (3, 7, 16, 19, 23)
"""Where each of the things that a simulator shows ends."""

Act = Callable[[Simulator, Row, int], float]
"""Does something with a loaded state, whose place in the batch it is told; returns the fingers' command."""


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
        self.data = data or usual_parts()
        substeps = world.timing.substeps
        self.finger_rates = np.full(substeps, control.FINGER_SPEED / substeps) if finger_rates is None else finger_rates
        self.advance = advance or fastest()
        self.workers = workers
        self._fixed = fixed_of(world, self.data)
        self._shape = world.graph.shape
        self._pool = ThreadPoolExecutor(workers) if workers > 1 else None
        self._scenes: dict[int, Scene] = {}
        self._compiling = threading.Lock()
        self._free: defaultdict[int, list[Simulator]] = defaultdict(list)

    def number(self, tasks: Tasks) -> Int[np.ndarray, " N"]:
        """The place of tasks, given by their component indices, among all."""
        return np.asarray(np.ravel_multi_index(tuple(tasks.T), self._shape))

    def scene(self, number: int) -> Scene:
        """The scene of a task; compiled when first asked for."""
        with self._compiling:
            if number not in self._scenes:
                obstacle, lifted, robot = self.world.graph.tasks[number].components
                model = build(obstacle, lifted, robot, timing=self.world.timing, data=self.data)
                self._scenes[number] = scene_of(model, self.finger_rates)
            return self._scenes[number]

    def scene_of(self, tasks: Tasks) -> Scene:
        """The scene of the first of some tasks."""
        return self.scene(int(self.number(tasks)[0]))

    def start(self, tasks: Tasks, draws: Float[np.ndarray, "N 3"]) -> Step:
        """First states: the object's place, along and across the table, and the ball's radius follow from the draws."""
        rows = self._fixed.start[self.number(tasks)]
        depth, width = STRIP if self.world.object_area == "strip" else HALF
        rows[:, OBJECT_AT.start] = TABLE_TOP[0] + depth * draws[:, 0]
        rows[:, OBJECT_AT.start + 1] = TABLE_TOP[1] + width * (2 * draws[:, 1] - 1)
        rows[:, BALL] = BALL_RADIUS[0] + (BALL_RADIUS[1] - BALL_RADIUS[0]) * draws[:, 2]
        return self.show(tasks, rows)

    def show(self, tasks: Tasks, rows: Rows) -> Step:
        """What given states show, without a step."""
        return self._run(tasks, rows, look)

    def step(self, tasks: Tasks, rows: Rows, actions: Actions) -> Step:
        """The states after an action each. Numbers beyond -1 and 1 count as these; those that are none are refused."""
        if actions.shape != (len(rows), ACTIONS):
            raise InputError(f"Actions of shape {actions.shape}; expected ({len(rows)}, {ACTIONS}).")
        if not np.isfinite(actions).all():
            raise InputError("An action holds NaN or infinity; expected 8 numbers from -1 to 1.")
        goals = rows[:, :JOINTS] + control.REACH * np.clip(actions[:, :JOINTS], -1, 1)
        closing = np.sign(actions[:, JOINTS]).tolist()

        def act(simulator: Simulator, row: Row, place: int) -> float:
            scene, data, fingers = simulator.scene, simulator.data, float(row[FINGERS])
            return self.advance(scene.model, data, scene.drive, goals[place], fingers, closing[place])

        step = self._run(tasks, rows, act)
        if not np.isfinite(step.rows).all():
            raise FloatingPointError("MuJoCo's physics diverged; please report the task and the seed.")
        return step

    def _run(self, tasks: Tasks, rows: Rows, act: Act) -> Step:
        """Loads each row into a simulator, lets `act` do something with it, and reads the result."""
        numbers = self.number(tasks)
        which = numbers.tolist()
        after = rows.copy()
        shown = np.empty((len(rows), SHOWN[-1]))
        grasped = np.zeros(len(rows), bool)

        def work(worker: int) -> None:
            for place in range(worker, len(which), self.workers):
                simulator = self._take(which[place])
                row = after[place]
                for part, view in simulator.rows:
                    view[:] = row[part]
                row[FINGERS] = act(simulator, row, place)
                for part, view in simulator.rows:
                    row[part] = view
                np.concatenate(simulator.shown, out=shown[place])
                grasped[place] = grasps(simulator)
                self._free[which[place]].append(simulator)

        if self._pool is None:
            work(0)
        else:
            list(self._pool.map(work, range(self.workers)))
        reading = reading_of(after, shown, grasped, self._fixed, numbers)
        reward = rewards.reward(reading, self._fixed.wall[numbers], self.world.reward)
        return Step(after, rewards.observe(reading), reward, rewards.solved(reading))

    def _take(self, number: int) -> Simulator:
        """A simulator that nobody else uses; whoever is done with one puts it back."""
        try:
            return self._free[number].pop()
        except IndexError:
            return simulator_of(self.scene(number))


def look(simulator: Simulator, row: Row, place: int) -> float:
    """Computes where everything is, and what touches, in a loaded state."""
    mujoco.mj_fwdPosition(simulator.scene.model, simulator.data)
    return float(row[FINGERS])


@functools.cache
def fastest() -> control.Advance:
    """The compiled controller; the plain one, and a warning, where Numba does not work."""
    try:
        from modlife.domains.robot import control_numba
    except ImportError as error:
        warnings.warn(f"The robot's controller runs in plain Python, at about half the speed: {error}", stacklevel=2)
        return control.advance
    return control_numba.advance


def fixed_of(world: RobotWorld, data: Parts) -> Fixed:
    """What never changes in each task of a world."""
    tasks = [one.components for one in world.graph.tasks]
    goals = [goal_pose(lifted, robot, data) for _, lifted, robot in tasks]
    start = np.zeros((len(tasks), ROW))
    for row, (_, lifted, robot), (_, turn) in zip(start, tasks, goals, strict=True):
        row[: OBJECT_AT.start] = [*data["robots"][robot]["start"], *FINGERS_OPEN]
        height = TABLE_TOP[2] + SPAWN_HEIGHT - data["objects"][lifted]["bottom"]
        row[OBJECT_AT] = [*TABLE_TOP[:2], height, *turn]
    return Fixed(
        start=start,
        obstacle=np.array([obstacle_place(obstacle) for obstacle, _, _ in tasks]),
        ball=np.array([obstacle == "none" for obstacle, _, _ in tasks]),
        wall=np.array([obstacle == "wall" for obstacle, _, _ in tasks]),
        goal=np.array([place for place, _ in goals]),
        turn=np.array([turn for _, turn in goals]),
    )


def scene_of(model: mujoco.MjModel, finger_rates: Float[np.ndarray, " substeps"]) -> Scene:
    """Finds things in a compiled model."""
    touching = np.zeros(model.ngeom, int)
    touching[model.geom("l_fingerpad_g0").id], touching[model.geom("r_fingerpad_g0").id] = 1, 2
    touching[model.geom_bodyid == model.body("object").id] = 4
    return Scene(
        model=model,
        drive=control.drive_of(model, finger_rates),
        grip=model.site("grip").id,
        hand=model.body("right_hand").id,
        object=model.body("object").id,
        touching=touching,
    )


def simulator_of(scene: Scene) -> Simulator:
    """A place to run a scene."""
    data = mujoco.MjData(scene.model)
    rows = ((QPOS, data.qpos), (QVEL, data.qvel), (WARMSTART, data.qacc_warmstart))
    hand = (data.site_xpos[scene.grip], data.xquat[scene.hand], data.xmat[scene.hand])
    return Simulator(scene, data, rows, (*hand, data.xpos[scene.object], data.xquat[scene.object]))


def grasps(simulator: Simulator) -> bool:
    """Both finger pads touch the object."""
    marks = simulator.scene.touching[simulator.data.contact.geom].sum(axis=1).tolist()
    return 5 in marks and 6 in marks


def reading_of(
    rows: Rows,
    shown: Float[np.ndarray, f"N {SHOWN[-1]}"],
    grasped: Bool[np.ndarray, " N"],
    fixed: Fixed,
    numbers: Int[np.ndarray, " N"],
) -> rewards.Reading:
    """What the simulators showed, with the obstacle and the goal, which never move."""
    grip, hand, turn, place, orientation = np.split(shown, SHOWN[:-1], axis=1)
    obstacle = fixed.obstacle[numbers]
    obstacle[:, 2] += np.where(fixed.ball[numbers], rows[:, BALL], 0)
    turns = np.empty((len(rows), 3, 4))
    turns[:, 0], turns[:, 1], turns[:, 2] = OBSTACLE_TURN, orientation, fixed.turn[numbers]
    return rewards.Reading(
        joints=rows[:, : OBJECT_AT.start],
        speeds=rows[:, QVEL.start : QVEL.start + OBJECT_AT.start],
        grip=grip,
        hand=hand,
        turn=turn.reshape(-1, 3, 3),
        places=np.stack([obstacle, place, fixed.goal[numbers]], axis=1),
        turns=turns,
        grasped=grasped,
    )
