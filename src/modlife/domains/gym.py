"""What the Gymnasium faces of all domains share."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from gymnasium.utils import seeding

from modlife.checks import check_seed, shown
from modlife.errors import InputError, unknown

MOST_ENVS = 2**20
"""Environments side by side."""


def world_and_task(world: type, options: dict[str, Any], **choice: str | int) -> tuple[Any, tuple[int, ...]]:
    """A world of some class with options, all of which must be its fields; and the indices of a task in it."""
    known = [field.name for field in fields(world)]
    for name in options:
        if name not in known:
            raise unknown("option", name, [*choice, *known])
    made = world(**options)
    return made, made.graph.indices(made.graph.task(checked_choice(**choice)))


def checked_choice(**choice: Any) -> dict[str, str | int]:
    """The components of a task, each by its name or its number."""
    for factor, one in choice.items():
        if not isinstance(one, str | int | np.integer) or isinstance(one, bool):
            raise InputError(f"{factor} = {shown(one)}, which is neither the name of a component nor its number.")
    return choice


def checked_seed(seed: int | None) -> int | None:
    """None or a seed."""
    return None if seed is None else check_seed(seed)


def generators(
    seed: int | np.integer | Sequence[int | None] | None, old: list[np.random.Generator], count: int
) -> list[np.random.Generator]:
    """A random generator for each environment, new where a seed is given; a single s stands for s, s + 1, ..."""
    if seed is None or isinstance(seed, Sequence | np.ndarray):
        seeds = [None] * count if seed is None else list(seed)
    else:
        seeds = [check_seed(seed) + n for n in range(count)]
    if len(seeds) != count:
        raise InputError(f"{len(seeds)} seeds for {count} environments; give one each, or a single one.")
    return [
        seeding.np_random(checked_seed(one))[0] if one is not None or kept is None else kept
        for one, kept in zip(seeds, old or [None] * count, strict=True)
    ]


def checked_render_mode(mode: str | None) -> str | None:
    """None or `rgb_array`."""
    if mode not in (None, "rgb_array"):
        raise unknown("render_mode", mode, ["rgb_array"])
    return mode


def draw_seed(generator: np.random.Generator) -> np.uint32:
    """The seed of the next episode."""
    return generator.integers(2**32, dtype=np.uint32)
