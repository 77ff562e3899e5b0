"""The Gymnasium face of the 2-D world: one environment, or many in one compiled step.

    gymnasium.make("modlife/Grid2D-v0", static="wall", target="red", dynamics=2, render_mode="rgb_array")
    gymnasium.make_vec("modlife/Grid2D-v0", num_envs=16, vectorization_mode="vector_entry_point", static="lava")

`import modlife` registers the id. Options beyond the task are the fields of `modlife.domains.grid2d.world.World`, such
as `size=10` or `colour_count=6`. A change of rules gets a new version.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Array, Bool, Int, Int32, UInt8, UInt32

from modlife.checks import check_count
from modlife.domains.env import Outcome, Part
from modlife.domains.grid2d.environment import Grid2D, Observation, State
from modlife.domains.grid2d.pictures import GridPictures
from modlife.domains.grid2d.world import VIEW, World
from modlife.domains.gym import MOST_ENVS, checked_render_mode, checked_seed, draw_seed, generators, world_and_task
from modlife.domains.pictures import Picture
from modlife.errors import InputError

Image = UInt8[Array, "7 7 7"]
"""The paper's observation, [i, j, channel]: i from left to right, j towards the agent."""


@functools.cache
def functions_of(world: World, *, batched: bool) -> tuple[Any, Any, Any]:
    """Reset, step, and restart where an episode ended, each with the image that the agent sees; compiled once."""
    env = Grid2D(world)

    def image(state: State) -> Image:
        return image_of(env, env.observe(state))

    def reset(task: Int32[Array, " 3"], seed: UInt32[Array, ""]) -> tuple[State, Image]:
        state = env.reset(task, key=jax.random.key(seed))
        return state, image(state)

    def step(state: State, action: Int[Array, ""]) -> tuple[State, Image, Outcome]:
        state, outcome = env.step(state, action)
        return state, image(state), outcome

    def restart(state: State, ended: Bool[Array, ""], seed: UInt32[Array, ""]) -> tuple[State, Image]:
        fresh = env.restart(state, key=jax.random.key(seed))
        state = jax.tree.map(lambda new, old: jnp.where(ended, new, old), fresh, state)
        return state, image(state)

    if batched:
        reset, step, restart = jax.vmap(reset, (None, 0)), jax.vmap(step), jax.vmap(restart)
    return jax.jit(reset), jax.jit(step), jax.jit(restart)


def image_of(env: Grid2D, observation: Observation) -> Image:
    """An observation in the paper's channels."""
    return jnp.moveaxis(env.channels(observation), 0, -1).astype(jnp.uint8)


@dataclass(frozen=True)
class GridFace:
    """Observations as the environments below give them (`exports.face.Face`)."""

    env: Grid2D

    @property
    def observation_space(self) -> spaces.Box:
        """An image of seven channels."""
        return spaces_of(self.env.world)[0]

    def seen(self, observations: Observation) -> UInt8[Array, "B 7 7 7"]:
        """Images of a batch."""
        return jax.vmap(lambda one: image_of(self.env, one))(observations)

    def parts(self, seen: UInt8[Array, "B 7 7 7"]) -> dict[str, Part]:
        """Channels of a batch, which comes last."""
        static, target, agent = jnp.split(jnp.transpose(seen, (3, 1, 2, 0)).astype(jnp.float32), (5, 6))
        return {"static": static, "target": target, "agent": agent}


class Grid2DEnv(gymnasium.Env[np.ndarray, np.int64]):
    """One task of the 2-D world.

    Observation: uint8 [7, 7, 7], the view in front of the agent as MiniGrid lays it out, channels last (wall,
    floor, food, lava, door, target colour from 1, agent direction from 1). Action: one of six numbers, whose
    meaning depends on the task's dynamics. Reward: 1 - 0.9 steps / horizon for stepping on the target, 0.05 per
    food picked up, -0.05 for stepping into lava. Terminated: on the target or in lava. Truncated: at the horizon.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 6}

    def __init__(
        self,
        static: str = "wall",
        target: str = "red",
        dynamics: int | str = 0,
        *,
        render_mode: str | None = None,
        **options: Any,
    ):
        self.world, self.task = world_and_task(World, options, static=static, target=target, dynamics=dynamics)
        self.render_mode = checked_render_mode(render_mode)
        self.observation_space, self.action_space = spaces_of(self.world)
        self._reset, self._step, _ = functions_of(self.world, batched=False)
        self._state: State | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """A new random layout."""
        super().reset(seed=checked_seed(seed))
        self._state, image = self._reset(jnp.array(self.task), draw_seed(self.np_random))
        return np.asarray(image), {}

    def step(self, action: int | np.int64) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One action; `info["success"]` tells whether the target was reached."""
        if self._state is None:
            raise InputError("Call reset before the first step.")
        checked = np.asarray(action)
        if checked.shape != () or not self.action_space.contains(checked[()]):
            raise InputError(f"Action {action!r} is not one of the whole numbers 0 to {self.world.actions - 1}.")
        self._state, image, outcome = self._step(self._state, jnp.asarray(checked, jnp.int32))
        outcome = jax.device_get(outcome)
        info = {"success": bool(outcome.success)}
        return np.asarray(image), float(outcome.reward), bool(outcome.terminated), bool(outcome.truncated), info

    def render(self) -> Picture | None:
        """The grid with the agent's field of view lit."""
        if self.render_mode is None or self._state is None:
            return None
        return GridPictures(Grid2D(self.world)).draw(self._state)


class Grid2DVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Many environments of one task in one compiled step.

    Environment i behaves as `Grid2DEnv` seeded with `seed + i`. Where an episode ends, the observation returned is
    the first of the next one; the last one is in `info["final_obs"]`, marked by `info["_final_obs"]`.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 6, "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        num_envs: int = 1,
        static: str = "wall",
        target: str = "red",
        dynamics: int | str = 0,
        *,
        render_mode: str | None = None,
        **options: Any,
    ):
        self.num_envs = check_count("num_envs", num_envs, MOST_ENVS)
        self.world, self.task = world_and_task(World, options, static=static, target=target, dynamics=dynamics)
        self.render_mode = checked_render_mode(render_mode)
        self.single_observation_space, self.single_action_space = spaces_of(self.world)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._reset, self._step, self._restart = functions_of(self.world, batched=True)
        self._generators: list[np.random.Generator] = []
        self._state: State | None = None

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """New random layouts; a single seed s stands for s, s + 1, ..."""
        self._generators = generators(seed, self._generators, self.num_envs)
        drawn = np.array([draw_seed(generator) for generator in self._generators])
        self._state, image = self._reset(jnp.array(self.task), drawn)
        return np.array(image), {}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One action in each environment, and a new layout where that ended an episode."""
        if self._state is None:
            raise InputError("Call reset before the first step.")
        if not self.action_space.contains(np.asarray(actions)):
            raise InputError(
                f"Actions must be {self.num_envs} whole numbers from 0 to {self.world.actions - 1}; got {actions!r}."
            )
        self._state, image, outcome = self._step(self._state, jnp.asarray(actions, jnp.int32))
        outcome = jax.device_get(outcome)
        info: dict[str, Any] = {"success": outcome.success, "_success": np.ones(self.num_envs, bool)}
        ended = outcome.terminated | outcome.truncated
        if ended.any():
            info |= {"final_obs": np.array(image), "_final_obs": ended}
            drawn = np.zeros(self.num_envs, np.uint32)
            drawn[ended] = [draw_seed(self._generators[place]) for place in np.flatnonzero(ended)]
            self._state, image = self._restart(self._state, ended, drawn)
        return np.array(image), outcome.reward.astype(np.float64), outcome.terminated, outcome.truncated, info

    def render(self) -> tuple[Picture, ...] | None:
        """A picture of each environment."""
        if self.render_mode is None or self._state is None:
            return None
        states = [jax.tree.map(lambda leaf, n=n: leaf[n], self._state) for n in range(self.num_envs)]
        return tuple(GridPictures(Grid2D(self.world)).draw(state) for state in states)


def spaces_of(world: World) -> tuple[spaces.Box, spaces.Discrete]:
    """Observation and action space."""
    highest = max(world.colour_count, 4)
    return spaces.Box(0, highest, (VIEW, VIEW, 7), np.uint8), spaces.Discrete(world.actions)
