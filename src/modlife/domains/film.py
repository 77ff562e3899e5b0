"""Films of policies at work, in any domain that can be drawn. JAX must have been started."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from modlife.domains.env import Action, Environment, PRNGKey
from modlife.domains.graph import Discrete
from modlife.domains.pictures import Picture, save_gif
from modlife.memory import check_memory
from modlife.types import Pytree, Task

Act = Callable[[Pytree, PRNGKey], Action]
"""Chooses an action in a state."""


class Pictures(Protocol):
    """How a domain is drawn."""

    fps: float
    """Frames in a second of film."""
    every: int
    """Steps to a frame."""
    linger: int
    """Steps to film after the goal is met, if the episode goes on."""

    def draw(self, state: Pytree, note: str) -> Picture:
        """A state with a line of text that names its task and ends in the note."""
        ...

    def sheet(self, seed: int) -> Picture:
        """A first state of every task in one picture."""
        ...


def random_action(env: Environment, shape: tuple[int, ...] = (), *, key: PRNGKey) -> Action:
    """Any action; or as many as the shape says."""
    actions = env.graph.actions
    if isinstance(actions, Discrete):
        return jax.random.randint(key, shape, 0, actions.size)
    return jax.random.uniform(key, (*shape, actions.size), minval=actions.low, maxval=actions.high)


def random_act(env: Environment) -> Act:
    """Any action, whatever the state."""
    return lambda state, key: random_action(env, key=key)


def film(
    env: Environment, pictures: Pictures, task: Task, act: Act, path: Path, *, episodes: int, seed: int
) -> tuple[list[float], list[bool]]:
    """A GIF of a policy in a task; returns the return of each episode, and whether its goal was met."""
    indices = jnp.array(env.graph.indices(task))
    reset, step = jax.jit(lambda key: env.reset(indices, key=key)), jax.jit(env.step)
    frames: list[Picture] = []
    returns, solved = [], []
    for episode in range(episodes):
        key = jax.random.fold_in(jax.random.key(seed), episode)
        state, total, success, left = reset(key), 0.0, False, env.horizon
        frames.append(pictures.draw(state, ""))
        if episode == 0:
            most = episodes * (env.horizon // pictures.every + 1)
            check_memory(most * frames[0].nbytes, "A film of all episodes", way_out="Give fewer --episodes.")
        for time in range(1, env.horizon + 1):
            state, outcome = step(state, act(state, jax.random.fold_in(key, time)))
            total += float(outcome.reward)
            left = min(left - 1, pictures.linger) if outcome.success and not success else left - 1
            success = success or bool(outcome.success)
            over: Any = outcome.terminated | outcome.truncated
            if time % pictures.every == 0 or over or left == 0:
                frames.append(pictures.draw(state, f"  {total:.2f}"))
            if over or left == 0:
                break
        returns.append(total)
        solved.append(success)
    save_gif(frames, path, fps=pictures.fps)
    return returns, solved
