"""Steps all 48 robot tasks with random actions for a long time, and tells whether anything went wrong.

    python scripts/robot_soak.py 1000000

`Physics.step` raises where a number is not finite; this also watches for speeds that no arm should reach.
"""

import sys
import time

import numpy as np

from modlife.domains.robot.physics import QVEL, Physics
from modlife.domains.robot.world import ACTIONS, RobotWorld

BATCH = 480
EPISODE = 500
HOLD = 10
"""Steps for which an action is kept, so that arms reach the table, the obstacle and their limits."""


def main(steps: int) -> None:
    """Runs whole episodes, ten of each task side by side, in turn by both presets, until the steps are done."""
    random = np.random.default_rng(0)
    done, fastest, lifted, start = 0, 0.0, 0, time.process_time()
    worlds = [Physics(RobotWorld(preset="fast")), Physics(RobotWorld(preset="paper"))]
    tasks = np.repeat([worlds[0].world.graph.indices(task) for task in worlds[0].world.graph.tasks], 10, axis=0)
    while done < steps:
        physics = worlds[(done // (BATCH * EPISODE)) % 2]
        state = physics.start(tasks, random.random((BATCH, 3)))
        action = np.zeros((BATCH, ACTIONS))
        for moment in range(EPISODE):
            if moment % HOLD == 0:
                action = random.uniform(-1, 1, (BATCH, ACTIONS))
            state = physics.step(tasks, state.rows, action)
            fastest = max(fastest, float(np.abs(state.rows[:, QVEL][:, :9]).max()))
            lifted += int(state.success.sum())
        done += BATCH * EPISODE
        print(
            f"{done:,} steps, {time.process_time() - start:.0f} s of processor time, no NaN; fastest joint "
            f"{fastest:.1f} rad/s, {lifted} steps with a lifted object",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]))
