"""Pictures and films of the robot domain. Needs the `robot` extra."""

import functools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Array

from modlife.domains.env import PRNGKey
from modlife.domains.film import Act
from modlife.domains.pictures import Picture, captioned, contact_sheet
from modlife.domains.robot.environment import RobotLift, State, physics
from modlife.domains.robot.physics import Physics
from modlife.domains.robot.render import HEIGHT, WIDTH, Camera
from modlife.domains.robot.scripted import Script
from modlife.domains.robot.world import ACTIONS
from modlife.types import Task

TILE = (240, 180)
COLUMNS = 8
SETTLED = 8
"""Steps until objects stand on the table."""


@dataclass(frozen=True)
class RobotPictures:
    """Pictures for films and contact sheets."""

    env: RobotLift
    fps: float = 10
    every: int = 4
    linger: int = 20

    def draw(self, state: State, note: str) -> Picture:
        """The scene and, below it, the task and a note."""
        task = np.asarray(state.task)
        camera = camera_of(physics(self.env.world, self.env.workers), tuple(task.tolist()))
        row = np.asarray(state.row).view(np.float64)
        return captioned(camera.draw(row), f"{self.env.graph.named(task.tolist())}{note}")

    def sheet(self, seed: int) -> Picture:
        """A first state of every task, the object always at the same place."""
        world = self.env.world
        simulation = Physics(world)
        drawn: list[Picture] = []
        for number, task in enumerate(world.graph.tasks):
            tasks = np.array([world.graph.indices(task)])
            state = simulation.start(tasks, np.full((1, 3), 0.5))
            for _ in range(SETTLED):
                state = simulation.step(tasks, state.rows, np.zeros((1, ACTIONS)))
            camera = Camera(simulation.scene(number), width=TILE[0], height=TILE[1])
            drawn.append(captioned(camera.draw(state.rows[0]), str(task)))
        return contact_sheet(drawn, columns=COLUMNS)


@functools.cache
def camera_of(simulation: Physics, task: tuple[int, ...]) -> Camera:
    """The camera at a task's scene."""
    return Camera(simulation.scene_of(np.array([task])), width=WIDTH, height=HEIGHT)


def scripted(env: RobotLift, task: Task) -> Act:
    """A script that lifts; each episode, which begins at time 0, gets a new one."""
    scene = physics(env.world, env.workers).scene_of(np.array([env.graph.indices(task)]))
    now: dict[str, Script] = {}

    def act(state: State, key: PRNGKey) -> Array | np.ndarray:
        if int(state.time) == 0:
            now["script"] = Script(scene, lifted=task.components[1])
        return now["script"](np.asarray(state.observation, np.float64)).astype(np.float32)

    return act
