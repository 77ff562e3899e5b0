"""The same tasks on Farama's `minigrid` package: an independent judge of `world`, and its rival in speed.

Built from MiniGrid's own objects, rules, field of view and random placement; nothing is shared with `world` but
the parameters. Needs the extra `minigrid`; used by tests and benchmarks only.
"""

from collections.abc import Callable
from typing import Any, SupportsFloat

import numpy as np
from gymnasium import spaces
from jaxtyping import UInt8
from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX
from minigrid.core.grid import Grid
from minigrid.core.mission import MissionSpace
from minigrid.core.world_object import Ball, Door, Floor, Goal, Lava, Wall, WorldObj
from minigrid.minigrid_env import MiniGridEnv

from modlife.domains.grid2d.world import COLOURS, PERMUTATIONS, World


class Food(Ball):
    """A ball that is walked on and picked up from its own cell, not from the one before it."""

    def can_overlap(self) -> bool:
        """The agent can stand on it."""
        return True

    def can_pickup(self) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]  # minigrid's is inferred: True
        """Not by MiniGrid's rule, which takes from the cell in front."""
        return False


STATIC_OBJECTS: dict[str, Callable[[], WorldObj]] = {"wall": Wall, "floor": Floor, "food": Food, "lava": Lava}


class FaramaGrid2D(MiniGridEnv):
    """One task of the 2-D world, observed as the paper's seven channels, [7, 7, channel]."""

    def __init__(self, static: str, target: str, dynamics: int, *, world: World):
        super().__init__(
            mission_space=MissionSpace(mission_func=lambda: f"reach the {target} target"),
            grid_size=world.size,
            max_steps=world.horizon,
            agent_view_size=7,
            see_through_walls=False,
        )
        self.static, self.target, self.world = static, target, world
        turn_left, turn_right, forward, toggle = PERMUTATIONS[dynamics]
        self.primitives = [turn_left, turn_right, forward, 3, 4, toggle, 6][: world.actions]
        self.action_space = spaces.Discrete(world.actions)
        self.observation_space = spaces.Box(0, 255, (7, 7, 7), np.uint8)

    def _gen_grid(self, width: int, height: int) -> None:
        self.grid = Grid(width, height)
        self.grid.wall_rect(0, 0, width, height)
        column = self._rand_int(2, width - 2)
        gap = self._rand_int(1, height - (2 if self.world.gap_rows == "released" else 1))
        for row in range(1, height - 1):
            if row != gap:
                self.grid.set(column, row, STATIC_OBJECTS[self.static]())
        if self.static == "wall":
            self.grid.set(column, gap, Door("yellow"))
        self.place_agent()
        colours = list(COLOURS[: self.world.colour_count])
        for colour in [self.target, *(c for c in colours if c != self.target)]:
            self.place_obj(Goal(colour))
        self.mission = f"reach the {self.target} target"

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """MiniGrid's step, with food, the price of lava, and targets of other colours without effect."""
        primitive = self.primitives[action]
        moving = primitive == self.actions.forward
        ahead = self.grid.get(*self.front_pos)
        here = self.grid.get(*self.agent_pos)
        observation, reward, terminated, truncated, info = super().step(primitive)
        if moving and isinstance(ahead, Lava):
            reward = -0.05
        if moving and isinstance(ahead, Goal) and ahead.color != self.target:
            reward, terminated = 0, False
        if primitive == self.actions.pickup and isinstance(here, Food):
            x, y = self.agent_pos
            self.grid.set(x, y, None)
            reward = 0.05
        if self.world.time_limit == "terminates":
            terminated, truncated = terminated or truncated, False
        return observation, reward, terminated, truncated, info

    def gen_obs(self) -> Any:
        """The paper's channels, from MiniGrid's encoding of the view."""
        return self.as_channels(super().gen_obs()["image"])

    def as_channels(self, image: UInt8[np.ndarray, "7 7 3"]) -> UInt8[np.ndarray, "7 7 7"]:
        """Seven channels from MiniGrid's (object, colour, state) triples."""
        kind, colour, state = image[..., 0], image[..., 1], image[..., 2]
        agent = np.zeros((7, 7), np.uint8)
        agent[3, 6 if self.world.agent_channel == "location" else 3] = self.agent_dir + 1
        number = np.zeros(len(COLOR_TO_IDX), np.uint8)
        for place, name in enumerate(COLOURS[: self.world.colour_count]):
            number[COLOR_TO_IDX[name]] = place + 1
        planes = {
            "wall": kind == OBJECT_TO_IDX["wall"],
            "floor": kind == OBJECT_TO_IDX["floor"],
            "food": kind == OBJECT_TO_IDX["ball"],
            "lava": kind == OBJECT_TO_IDX["lava"],
            "door": (kind == OBJECT_TO_IDX["door"]) & (state == STATE_TO_IDX["closed"]),
            "target": np.where(kind == OBJECT_TO_IDX["goal"], number[colour], 0),
            "agent": agent,
        }
        order = ["wall", "floor", "food", "lava", "door"]
        if self.world.channel_order == "released":
            order = ["wall", "floor", "door", "food", "lava"]
        return np.stack([planes[name] for name in [*order, "target", "agent"]], axis=-1).astype(np.uint8)
