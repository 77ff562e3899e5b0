"""Pictures and films of the 2-D world that commands write. JAX must have been started."""

from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from modlife.domains.env import PRNGKey
from modlife.domains.grid2d.render import draw
from modlife.domains.grid2d.spec import World
from modlife.domains.grid2d.world import Grid2D, State
from modlife.domains.pictures import contact_sheet, save_gif, save_picture
from modlife.types import Task

SHEET_TILE = 18
"""Pixels to a cell in a picture of all tasks."""

FPS = 6

Act = Callable[[State, PRNGKey], Int[Array, ""]]
"""Chooses an action."""


def draw_tasks(world: World, path: Path, *, seed: int = 0) -> None:
    """One picture with a first layout of every task."""
    env = Grid2D(world)
    tasks = jnp.array([world.graph.indices(task) for task in world.graph.tasks])
    keys = jax.random.split(jax.random.key(seed), len(tasks))
    states = jax.jit(jax.vmap(lambda task, key: env.reset(task, key=key)))(tasks, keys)
    each = [jax.tree.map(lambda leaf, n=n: leaf[n], states) for n in range(len(tasks))]
    columns = min(2 * world.dynamics_count, 16)
    save_picture(contact_sheet([draw(env, state, tile=SHEET_TILE) for state in each], columns=columns), path)


def random_act(env: Grid2D) -> Act:
    """Any action, whatever the state."""
    return lambda state, key: jax.random.randint(key, (), 0, env.world.actions)


def film(env: Grid2D, task: Task, act: Act, path: Path, *, episodes: int, seed: int) -> list[float]:
    """A GIF of an agent in a task; returns the return of each episode."""
    indices = jnp.array(env.graph.indices(task))
    reset = jax.jit(lambda key: env.reset(indices, key=key))
    step = jax.jit(lambda state, key: env.step(state, act(state, key)))
    frames, returns = [], []
    for episode in range(episodes):
        key = jax.random.fold_in(jax.random.key(seed), episode)
        state, total = reset(key), 0.0
        frames.append(draw(env, state))
        for time in range(1, env.horizon + 1):
            state, outcome = step(state, jax.random.fold_in(key, time))
            total += float(outcome.reward)
            frames.append(draw(env, state, note=f"  {total:.2f}"))
            if outcome.terminated or outcome.truncated:
                break
        returns.append(total)
    save_gif(frames, path, fps=FPS)
    return returns
