"""Writes the actions of episodes in which an arm touches things, for `scripts/record_robosuite.py` to play.

    python scripts/contact_actions.py

Two are of the scripted policy, which grasps and lifts; in the third the arm pushes against the wall.
All are Panda's, which is the same in robosuite 1.2.0 and 1.5.2 but for the fingers' rate.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from modlife.domains.robot.physics import Physics
from modlife.domains.robot.scripted import Script
from modlife.domains.robot.world import RobotWorld

FILE = Path(__file__).parent.parent / "tests/data/contact_actions.safetensors"
FINGER_RATE = 0.2
AFTER = 10
"""Steps after the object is lifted."""
PLACE = (0.32, 0.03)
"""Where the object starts."""
PUSH = np.array([0, 0.6, 0, 1, 0, 0, 0, -1], np.float32)


def play(task: str, act: Callable[[np.ndarray], np.ndarray], physics: Physics, most: int) -> np.ndarray:
    """The actions of an episode, which goes on for a moment after the object is lifted."""
    graph = physics.world.graph
    tasks = np.array([graph.indices(graph.parse(task))])
    rows = physics.start(tasks, np.zeros((1, 3))).rows
    rows[0, 9:11] = PLACE
    step, actions, lifted = physics.show(tasks, rows), [], 0
    while len(actions) < most and lifted < AFTER:
        actions.append(act(step.observation[0]).astype(np.float32))
        step = physics.step(tasks, step.rows, actions[-1][None].astype(float))
        lifted += bool(step.success[0]) and len(actions) > 1
    return np.array(actions)


def main() -> None:
    """Plays all of them."""
    physics = Physics(RobotWorld(), finger_rates=np.array([FINGER_RATE] + [0.0] * 24))
    episodes = {"place": np.array(PLACE)}
    for name in ("can", "cereal"):
        task = f"none/{name}/Panda"
        graph = physics.world.graph
        scene = physics.scene_of(np.array([graph.indices(graph.parse(task))]))
        episodes[task] = play(task, Script(scene, lifted=name), physics, 400)
    episodes["wall/bread/Panda"] = play("wall/bread/Panda", lambda _: PUSH, physics, 60)
    save_file(episodes, FILE)
    print({name: actions.shape for name, actions in episodes.items()})


if __name__ == "__main__":
    main()
