"""The same task on Farama's minigrid, beside ours in `modlife bench env`."""

import importlib.util
from collections.abc import Iterator

from modlife.domains.grid2d.world import World
from modlife.errors import installing
from modlife.timing import Record, rate

STEPS = 500


def minigrid(*, seconds: float) -> Iterator[Record]:
    """One environment, seven channels."""
    record: Record = {"bench": "env", "domain": "grid2d", "case": "minigrid", "batch": 1, "threads": 1}
    if importlib.util.find_spec("minigrid") is None:
        yield record | {"skipped": f"minigrid is not installed: {installing('minigrid')}"}
        return
    from modlife.domains.grid2d.farama import FaramaGrid2D

    env = FaramaGrid2D("lava", "red", 0, world=World())
    env.reset(seed=0)
    env.action_space.seed(0)

    def run() -> None:
        for _ in range(STEPS):
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                env.reset()

    yield record | {"value": round(rate(run, STEPS, seconds=seconds)), "unit": "steps/s"}
