"""Films of policies at work, in any domain that can be drawn. JAX must have been started."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from modlife.domains.env import Action, Environment, PRNGKey
from modlife.domains.graph import Discrete
from modlife.domains.pictures import Picture, save_gif, with_captions
from modlife.memory import check_memory
from modlife.pauses import counted
from modlife.types import Pytree, Task

Act = Callable[[Pytree, PRNGKey], Action]
"""Chooses an action in a state."""
STILL = 1.0
"""Seconds for which the end of an episode is seen."""


class Pictures(Protocol):
    """How a domain is drawn.

    Where names of actions say too little, a method `action(state, action)` gives the words for a film.
    """

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
    env: Environment,
    pictures: Pictures,
    task: Task,
    act: Act,
    path: Path,
    *,
    episodes: int,
    seed: int,
    modules: str = "",
) -> tuple[list[float], list[bool]]:
    """A GIF of a policy in a task; returns the return of each episode, and whether its goal was met.

    Below each frame stand the episode, the step, the action that led there, the modules in use, and the outcome.
    """
    indices = jnp.array(env.graph.indices(task))
    reset, step = jax.jit(lambda key: env.reset(indices, key=key)), jax.jit(env.step)
    frames: list[Picture] = []
    returns, solved = [], []
    for episode in counted(range(episodes), "episodes filmed"):
        key = jax.random.fold_in(jax.random.key(seed), episode)
        scenes = list(play(env, pictures, reset(key), step, act, key=key))
        if episode == 0:
            most = episodes * (env.horizon // pictures.every + 1)
            check_memory(most * scenes[0][0].nbytes, "A film of all episodes", way_out="Give fewer --episodes.")
        number, (_, end) = f"episode {episode + 1} of {episodes}", scenes[-1]
        frames += [with_captions(scene, captions(now, number, modules)) for scene, now in scenes]
        frames += [frames[-1]] * round(pictures.fps * STILL)
        returns.append(end.total)
        solved.append(end.success)
    save_gif(frames, path, fps=pictures.fps)
    return returns, solved


@dataclass(frozen=True)
class Now:
    """How far an episode has come."""

    time: int
    horizon: int
    action: str = ""
    """The last one, in words."""
    total: float = 0.0
    """The return so far."""
    success: bool = False
    over: str = ""
    """How it ended, once it has."""


def play(
    env: Environment, pictures: Pictures, state: Pytree, step: Any, act: Act, *, key: PRNGKey
) -> Iterator[tuple[Picture, Now]]:
    """The frames of an episode, each with how far it has come; the last one shows its end."""
    left, now = env.horizon, Now(0, env.horizon)
    named = getattr(pictures, "action", lambda state, action: action_name(env, action))
    yield pictures.draw(state, ""), now
    while not now.over:
        action = act(state, jax.random.fold_in(key, now.time + 1))
        words = named(state, action)
        state, outcome = step(state, action)
        left = min(left - 1, pictures.linger) if outcome.success and not now.success else left - 1
        success = now.success or bool(outcome.success)
        over = ending(success, bool(outcome.terminated), bool(outcome.truncated) or left == 0)
        now = Now(now.time + 1, env.horizon, words, now.total + float(outcome.reward), success, over)
        if now.time % pictures.every == 0 or now.over:
            yield pictures.draw(state, ""), now


def ending(success: bool, terminated: bool, cut: bool) -> str:
    """How an episode ended, in words; nothing while it goes on."""
    if not terminated and not cut:
        return ""
    return "goal met" if success else "failed" if terminated else "time is up"


def action_name(env: Environment, action: Action) -> str:
    """An action in words: its name, or its numbers."""
    actions = env.graph.actions
    if isinstance(actions, Discrete):
        return actions.names[int(action)]
    return "action " + " ".join(f"{value:+.1f}" for value in np.asarray(action, float).round(1) + 0.0)


def captions(now: Now, episode: str, modules: str) -> list[str]:
    """What stands below a frame."""
    outcome = now.over or ("goal met" if now.success else "")
    first = [episode, f"step {now.time} of {now.horizon}", *([now.action] if now.action else [])]
    second = [*([f"modules {modules}"] if modules else []), f"return {now.total:.2f}", *([outcome] if outcome else [])]
    return ["   ".join(first), "   ".join(second)]
