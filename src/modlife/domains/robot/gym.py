"""The Gymnasium face of the robot domain: one environment, or many sharing one simulator.

    gymnasium.make("modlife/RobotLift-v0", robot="Panda", object="can", obstacle="wall", render_mode="rgb_array")
    gymnasium.make_vec("modlife/RobotLift-v0", num_envs=16, vectorization_mode="vector_entry_point", robot="IIWA")

`import modlife` registers the id. Options beyond the task are the fields of `modlife.domains.robot.world.RobotWorld`,
such as `preset="fast"`. A change of rules gets a new version.
"""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Float

from modlife.checks import MOST_THREADS, check_count
from modlife.domains.gym import MOST_ENVS, checked_render_mode, checked_seed, generators, world_and_task
from modlife.domains.pictures import Picture
from modlife.domains.robot.physics import Physics, Step
from modlife.domains.robot.render import Camera
from modlife.domains.robot.world import ACTIONS, SEEN, SPLITS, RobotWorld
from modlife.errors import InputError

Observation = dict[str, Float[np.ndarray, "..."]]
FPS = 20
"""Actions in a second."""


class RobotLiftEnv(gymnasium.Env[Any, np.ndarray]):
    """One task of the robot domain.

    Observation: a dictionary of float32 vectors, obstacle 14, object 14, goal 17 and robot 32, as the paper's modules
    see them. Action: 8 numbers from -1 to 1, the change of each joint (times 0.05 rad) and the sign for the fingers
    to close (+) or open (-); numbers beyond are clipped, NaN and wrong shapes are refused. Reward: 1 when lifted, less
    before (`RobotWorld.reward`). Never terminated; truncated at the horizon.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": FPS}

    def __init__(
        self,
        robot: str = "Panda",
        object: str = "can",
        obstacle: str = "none",
        *,
        render_mode: str | None = None,
        **options: Any,
    ):
        self.world, task = world_and_task(RobotWorld, options, robot=robot, object=object, obstacle=obstacle)
        self.task = np.array(task)
        self.render_mode = checked_render_mode(render_mode)
        self.observation_space, self.action_space = spaces_of()
        self.physics = Physics(self.world)
        self._now: Step | None = None
        self._time, self._solved = 0, False
        self._camera: Camera | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """A new place for the object."""
        super().reset(seed=checked_seed(seed))
        self._now = self.physics.start(self.task[None], self.np_random.random((1, 3)))
        self._time, self._solved = 0, False
        return by_part(self._now.observation[0]), {}

    def step(self, action: np.ndarray) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """50 ms. `info["success"]` tells whether the object is lifted, `info["solved"]` whether it ever was."""
        if self._now is None:
            raise InputError("Call reset before the first step.")
        checked = np.asarray(action, float)
        if checked.shape != (ACTIONS,):
            raise InputError(f"An action of shape {checked.shape}; expected ({ACTIONS},).")
        self._now = self.physics.step(self.task[None], self._now.rows, checked[None])
        self._time += 1
        success = bool(self._now.success[0])
        self._solved |= success
        info = {"success": success, "solved": self._solved}
        truncated = self._time >= self.world.horizon
        return by_part(self._now.observation[0]), float(self._now.reward[0]), False, truncated, info

    def render(self) -> Picture | None:
        """The scene from beside the table, the goal shown as a shadow of the object."""
        if self.render_mode is None or self._now is None:
            return None
        self._camera = self._camera or Camera(self.physics.scene_of(self.task[None]))
        return self._camera.draw(self._now.rows[0])


class RobotLiftVectorEnv(VectorEnv[Any, np.ndarray, np.ndarray]):
    """Many environments of one task; `workers` threads run their physics side by side.

    Environment i behaves as `RobotLiftEnv` seeded with `seed + i`. Where an episode ends, the observation returned is
    the first of the next one; the last one is in `info["final_obs"]`, and what would have been its `info` in
    `info["final_info"]`, both marked by a mask, as Gymnasium's own vector environments have it.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": FPS, "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        num_envs: int = 1,
        robot: str = "Panda",
        object: str = "can",
        obstacle: str = "none",
        *,
        workers: int = 1,
        render_mode: str | None = None,
        **options: Any,
    ):
        self.num_envs = check_count("num_envs", num_envs, MOST_ENVS)
        self.world, task = world_and_task(RobotWorld, options, robot=robot, object=object, obstacle=obstacle)
        self.tasks = np.tile(task, (num_envs, 1))
        self.render_mode = checked_render_mode(render_mode)
        self.single_observation_space, self.single_action_space = spaces_of()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.physics = Physics(self.world, workers=check_count("workers", workers, MOST_THREADS))
        self._generators: list[np.random.Generator] = []
        self._now: Step | None = None
        self._times = np.zeros(num_envs, int)
        self._solved = np.zeros(num_envs, bool)
        self._camera: Camera | None = None

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """New places for the objects; a single seed s stands for s, s + 1, ..."""
        self._generators = generators(seed, self._generators, self.num_envs)
        draws = np.concatenate([generator.random((1, 3)) for generator in self._generators])
        self._now = self.physics.start(self.tasks, draws)
        self._times[:], self._solved[:] = 0, False
        return by_part(self._now.observation), {}

    def step(self, actions: np.ndarray) -> tuple[Observation, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One action in each environment, and a new start where that ended an episode."""
        if self._now is None:
            raise InputError("Call reset before the first step.")
        now = self._now = self.physics.step(self.tasks, self._now.rows, np.asarray(actions, float))
        self._times += 1
        self._solved |= now.success
        ended = self._times >= self.world.horizon
        info = masked(~ended, success=now.success, solved=self._solved)
        if ended.any():
            last = np.full(self.num_envs, None, object)
            for place in np.flatnonzero(ended):
                last[place] = by_part(now.observation[place])
            final = masked(ended, success=now.success, solved=self._solved)
            info |= masked(ended, final_obs=last) | {"final_info": final, "_final_info": ended}
            self._restart(ended)
        return by_part(self._now.observation), now.reward, np.zeros(self.num_envs, bool), ended, info

    def _restart(self, ended: np.ndarray) -> None:
        """Starts new episodes where the old ones ended."""
        assert self._now is not None
        draws = np.concatenate([self._generators[place].random((1, 3)) for place in np.flatnonzero(ended)])
        fresh = self.physics.start(self.tasks[ended], draws)
        merged = [old.copy() for old in self._now]
        for old, new in zip(merged, fresh, strict=True):
            old[ended] = new
        self._now = Step(*merged)
        self._times[ended], self._solved[ended] = 0, False

    def render(self) -> tuple[Picture, ...] | None:
        """A picture of each environment."""
        if self.render_mode is None or self._now is None:
            return None
        self._camera = self._camera or Camera(self.physics.scene_of(self.tasks))
        return tuple(self._camera.draw(row) for row in self._now.rows)


def spaces_of() -> tuple[spaces.Dict, spaces.Box]:
    """Observation and action space."""
    seen: dict[str, spaces.Space] = {part.name: spaces.Box(-np.inf, np.inf, part.shape, np.float32) for part in SEEN}
    return spaces.Dict(seen), spaces.Box(-1, 1, (ACTIONS,), np.float32)


def by_part(observation: Float[np.ndarray, "*batch 77"]) -> Observation:
    """An observation, or those of a batch, part by part."""
    pieces = np.split(observation.astype(np.float32), SPLITS, axis=-1)
    return {part.name: piece for part, piece in zip(SEEN, pieces, strict=True)}


def masked(which: np.ndarray, **values: np.ndarray) -> dict[str, Any]:
    """Entries of an `info`, each with the mask that tells for which environments it is there."""
    return {name: value.copy() for name, value in values.items()} | {f"_{name}": which for name in values}
