"""Pictures and films of the 2-D world that commands write."""

from pathlib import Path

import numpy as np

from modlife.domains.grid2d.spec import World
from modlife.runtime import start_jax
from modlife.types import Task

SHEET_TILE = 18
"""Pixels to a cell in a picture of all tasks."""


def draw_tasks(world: World, path: Path, *, seed: int = 0) -> None:
    """One picture with a first layout of every task."""
    start_jax()
    import jax
    import jax.numpy as jnp

    from modlife.domains.grid2d.render import draw
    from modlife.domains.grid2d.world import Grid2D
    from modlife.domains.pictures import contact_sheet, save_picture

    env = Grid2D(world)
    tasks = jnp.array([world.graph.indices(task) for task in world.graph.tasks])
    keys = jax.random.split(jax.random.key(seed), len(tasks))
    states = jax.device_get(jax.jit(jax.vmap(lambda task, key: env.reset(task, key=key)))(tasks, keys))
    each = [jax.tree.map(lambda leaf, n=n: jnp.asarray(leaf[n]), states) for n in range(len(tasks))]
    pictures = [draw(env, state, tile=SHEET_TILE) for state in each]
    columns = min(2 * world.dynamics_count, 16)
    save_picture(contact_sheet(pictures, columns=columns), path)


def film_random_agent(world: World, task: Task, path: Path, *, episodes: int, seed: int) -> float:
    """A GIF of an agent that acts at random; returns its mean return."""
    start_jax()
    import gymnasium

    from modlife.domains.pictures import save_gif

    options = {name: getattr(world, name) for name in World.__dataclass_fields__}
    choice = dict(zip(("static", "target", "dynamics"), task.components, strict=True))
    env = gymnasium.make("modlife/Grid2D-v0", render_mode="rgb_array", **choice, **options)
    env.action_space.seed(seed)
    frames, returns = [], []
    for episode in range(episodes):
        env.reset(seed=seed + episode)
        frames.append(env.render())
        total, ended = 0.0, False
        while not ended:
            _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            total, ended = total + float(reward), terminated or truncated
            frames.append(env.render())
        returns.append(total)
    save_gif(frames, path, fps=env.metadata["render_fps"])
    return float(np.mean(returns))
