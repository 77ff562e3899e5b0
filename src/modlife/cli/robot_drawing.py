"""Pictures and films of the robot domain that commands write. Needs the `robot` extra."""

from pathlib import Path

import numpy as np

from modlife.domains.pictures import Picture, captioned, contact_sheet, save_gif, save_picture
from modlife.domains.robot.physics import Physics
from modlife.domains.robot.render import Camera
from modlife.domains.robot.scripted import Script
from modlife.domains.robot.spec import ACTIONS, ArmPolicy, RobotWorld
from modlife.types import Task

TILE = (240, 180)
COLUMNS = 8
SETTLED = 8
"""Steps until objects stand on the table."""
EVERY = 4
"""Actions to a frame."""
FPS = 10
AFTER = 20
"""Steps to film after the task is solved."""


def draw_robot_tasks(world: RobotWorld, path: Path) -> None:
    """One picture with a first state of every task, the object always at the same place."""
    physics = Physics(world)
    pictures: list[Picture] = []
    for number, task in enumerate(world.graph.tasks):
        tasks = np.array([world.graph.indices(task)])
        state = physics.start(tasks, np.full((1, 3), 0.5))
        for _ in range(SETTLED):
            state = physics.step(tasks, state.rows, np.zeros((1, ACTIONS)))
        camera = Camera(physics.scene(number), width=TILE[0], height=TILE[1])
        pictures.append(captioned(camera.draw(state.rows[0]), str(task)))
    save_picture(contact_sheet(pictures, columns=COLUMNS), path)


def film_robot(world: RobotWorld, task: Task, policy: ArmPolicy, path: Path, *, episodes: int, seed: int) -> list[bool]:
    """A GIF of an arm at work, up to a second after it lifted the object; tells of each episode whether it did."""
    physics, random = Physics(world), np.random.default_rng(seed)
    tasks = np.array([world.graph.indices(task)])
    scene = physics.scene_of(tasks)
    camera = Camera(scene)
    frames, solved = [], []
    for _ in range(episodes):
        script = Script(scene, lifted=task.components[1])
        state, total, left = physics.start(tasks, random.random((1, 3))), 0.0, world.horizon
        success = False
        while left > 0:
            if left % EVERY == 0:
                frames.append(captioned(camera.draw(state.rows[0]), f"{task}   return {total:.1f}"))
            acted = script(state.observation[0]) if policy == "scripted" else random.uniform(-1, 1, ACTIONS)
            state = physics.step(tasks, state.rows, acted[None])
            total += float(state.reward[0])
            left = min(left - 1, AFTER) if state.success[0] and not success else left - 1
            success = success or bool(state.success[0])
        solved.append(success)
    save_gif(frames, path, fps=FPS)
    return solved
