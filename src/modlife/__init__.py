"""Lifelong reinforcement learning with neural modules.

Start reading at `modlife.domains.graph` (what is asked) and `modlife.domains.grid2d` (the 2-D world). Importing the
package registers its Gymnasium environments and loads nothing heavy.
"""

import gymnasium

__version__ = "0.1.0"

gymnasium.register(
    id="modlife/Grid2D-v0",
    entry_point="modlife.domains.gym:Grid2DEnv",
    vector_entry_point="modlife.domains.gym:Grid2DVectorEnv",
)
gymnasium.register(
    id="modlife/RobotLift-v0",
    entry_point="modlife.domains.robot.gym:RobotLiftEnv",
    vector_entry_point="modlife.domains.robot.gym:RobotLiftVectorEnv",
)
