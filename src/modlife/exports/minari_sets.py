"""Replay as Minari data sets: one for each task, of episodes as Gymnasium would have shown them.

Replay holds each observation once, from some moment on and up to another; episodes are made of it without inventing:

    begins    the first piece of an environment may lack its beginning: only others are known to be `whole`
    ends      `terminated` or `truncated` as it was; `cut` where the data end, which Minari counts as truncated
    final     the last observation of an episode is `seen`, or `blank` (zeros) where an end that was terminated was
              not kept; where a time limit's was not, the last step is left out, so that nothing follows a guess

The words stand in the metadata of each episode, with the environment (`column`) and the time of its first step.
"""

import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import minari
import numpy as np
from gymnasium import spaces
from minari.data_collector import EpisodeBuffer
from minari.namespace import create_namespace, list_local_namespaces

from modlife.domains.env import Environment
from modlife.errors import InputError, StoreError
from modlife.exports.face import Face, action_space, face_of, spec_of
from modlife.learners.replay import Packing, Replay, Transition, in_order
from modlife.pauses import counted
from modlife.runs.load import Run
from modlife.runs.restore import newest_readable
from modlife.runs.store import RunDirectory
from modlife.types import Task

ROOT = "MINARI_DATASETS_PATH"
"""The variable by which Minari is told where its data sets are."""


@dataclass(frozen=True)
class Seen:
    """A replay unpacked; axes [time, environment], observations as Gymnasium gives them and with a row more."""

    observations: Any
    steps: Transition
    finals: Any
    """What was seen where time limits cut episodes off, in their order in each environment; None if not kept."""

    def at(self, column: int, begin: int, end: int) -> Any:
        """What was seen in some time steps of an environment."""
        return jax.tree.map(lambda leaf: leaf[begin:end, column], self.observations)


@dataclass(frozen=True)
class Piece:
    """Consecutive steps of one episode, and what is known of its end."""

    column: int
    begin: int
    end: int
    ends: str
    final: Any
    """The observation after the last step; None if it is not known."""

    @property
    def about(self) -> dict[str, Any]:
        """What the episode's metadata say."""
        whole, final = self.begin > 0, "blank" if self.final is None else "seen"
        return {"column": self.column, "time": self.begin, "whole": whole, "ends": self.ends, "final": final}


def export_minari(run: Run, names: Sequence[str], root: Path) -> Iterator[str]:
    """Writes the replay of tasks, by default of all that there is replay of; a sentence for each."""
    replays = replays_of(run)
    chosen = [run.task(name) for name in names] or list(replays)
    for task in chosen:
        if task not in replays:
            raise InputError(f"'{run.path}' holds no replay of '{task}'; it holds that of {len(replays)} tasks.")
    for task in counted(chosen, "tasks looked through"):
        if not in_order(run.agent, replays[task].read()):
            raise InputError(
                f"Of '{task}', '{run.path}' keeps single moments, not episodes: there is nothing to make a data set of."
            )
    for task in chosen:
        yield written(run, task, replays[task].read(), root)


def replays_of(run: Run) -> dict[Task, Any]:
    """The replay that a run holds, by task."""
    directory = RunDirectory.open(run.path)
    memory, _ = newest_readable(directory, lambda checkpoints, saved: checkpoints.memory(saved.index))
    if not memory:
        raise InputError(f"'{run.path}' holds no replay: the agent '{run.config.agent}' keeps none.")
    return dict(zip(run.config.chosen, memory, strict=False))


def written(run: Run, task: Task, replay: Replay, root: Path) -> str:
    """Writes the data set of a task; a sentence on it."""
    face, name = face_of(run.domain, run.agent.env), id_of(run, task)
    if (root / name).exists():
        raise InputError(f"'{root / name}' exists already; choose another directory, or remove it.")
    seen = unpacked(run.agent.env, face, replay)
    pieces = [piece for column in range(replay.rows.shape[1]) for piece in pieces_of(seen, column)]
    kind = action_space(run.agent.env.graph.actions).dtype
    buffers = [buffer_of(seen, piece, kind=kind) for piece in pieces]
    try:
        steps = store(run, task, name, root, pieces=pieces, buffers=buffers, space=face.observation_space)
    except OSError as error:
        raise StoreError(f"'{root / name}' could not be written: {error.strerror or error}.") from error
    left = replay.times * replay.rows.shape[1] - steps
    without = f"; {left} left out, since what was seen after them was not kept" if left else ""
    return f"{name}: {len(pieces)} episodes, {steps} steps{without}"


def store(
    run: Run,
    task: Task,
    name: str,
    root: Path,
    *,
    pieces: list[Piece],
    buffers: list[EpisodeBuffer],
    space: spaces.Space[Any],
) -> int:
    """Writes a data set aside, and gives it its place when it is whole; how many steps it has."""
    root.mkdir(parents=True, exist_ok=True)
    aside = tempfile.mkdtemp(dir=root, prefix=".")
    try:
        with datasets_at(aside), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it misses an author, an address, a link
            made = minari.create_dataset_from_buffers(
                name,
                buffers,
                env=spec_of(run.domain, run.config.world, task),
                observation_space=space,
                action_space=action_space(run.agent.env.graph.actions),
                algorithm_name=f"modlife {run.config.agent}, seed {run.config.seed}",
                description=f"What the agent of the run '{run.path.resolve().name}' saw last in {task}.",
                requirements=["modlife"],
            )
            made.storage.update_episode_metadata([piece.about for piece in pieces])
            steps = int(made.total_steps)
        with datasets_at(root):
            if (group := str(Path(name).parent)) not in list_local_namespaces():
                create_namespace(group)
        (Path(aside) / name).rename(root / name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return steps


@contextmanager
def datasets_at(root: Path | str) -> Iterator[None]:
    """Minari's data sets are here, for now."""
    before = os.environ.get(ROOT)
    os.environ[ROOT] = str(Path(root).resolve())  # it stumbles over others
    try:
        yield
    finally:
        os.environ.pop(ROOT)
        if before is not None:
            os.environ[ROOT] = before


def id_of(run: Run, task: Task) -> str:
    """`modlife/grid2d/wall-red-dynamics-2-v0`: letters, digits, lines."""
    domain, name = (re.sub(r"[^A-Za-z0-9_-]+", "-", word) for word in (run.domain.name, "-".join(task.components)))
    return f"modlife/{domain}/{name}-v0"


def unpacked(env: Environment, face: Face, replay: Replay) -> Seen:
    """A replay as arrays."""
    packing, (_, envs, words) = Packing.of(env), replay.rows.shape
    if words != packing.words or not 1 <= replay.times < len(replay.rows):
        raise InputError("The replay does not fit the config of its run.")

    @jax.jit
    def shown(rows: jax.Array) -> tuple[Any, Transition]:
        steps = packing.unpack(rows)
        return face.seen(steps.observation), steps

    seen, steps = jax.tree.map(
        lambda leaf: np.asarray(leaf).reshape(-1, envs, *leaf.shape[1:]),
        shown(jnp.asarray(replay.rows.reshape(-1, words))),
    )
    kept = replay.times + 1
    steps, observations = (jax.tree.map(lambda leaf: leaf[:kept], one) for one in (steps, seen))
    finals = jax.tree.map(lambda leaf: leaf[kept:], seen) if len(replay.finals) else None
    return Seen(observations, jax.tree.map(lambda leaf: leaf[: replay.times], steps), finals)


def pieces_of(seen: Seen, column: int) -> Iterator[Piece]:
    """What there is of each episode of an environment."""
    terminated, truncated = seen.steps.terminated[:, column], seen.steps.truncated[:, column]
    begin, times = 0, len(terminated)
    for last in np.flatnonzero(terminated | truncated):
        final = None
        if truncated[last] and seen.finals is not None:
            place = int(truncated[:last].sum())
            final = jax.tree.map(lambda leaf, place=place: leaf[place, column], seen.finals)
        if final is not None or terminated[last]:
            yield Piece(column, begin, int(last) + 1, "terminated" if terminated[last] else "truncated", final)
        elif begin < last:
            yield Piece(column, begin, int(last), "truncated", after(seen, column, int(last)))
        begin = int(last) + 1
    if begin < times:
        yield Piece(column, begin, times, "cut", after(seen, column, times))


def after(seen: Seen, column: int, time: int) -> Any:
    """What is seen at a time."""
    return jax.tree.map(lambda leaf: leaf[time, column], seen.observations)


def buffer_of(seen: Seen, piece: Piece, *, kind: Any) -> EpisodeBuffer:
    """A piece as Minari takes it, with actions of the type that their space has."""
    span = (slice(piece.begin, piece.end), piece.column)
    truncations = np.array(seen.steps.truncated[span])
    truncations[-1] |= piece.ends != "terminated"
    seen_here = seen.at(piece.column, piece.begin, piece.end)
    final = jax.tree.map(lambda leaf: np.zeros_like(leaf[0]), seen_here) if piece.final is None else piece.final
    arrays: dict[str, Any] = {
        "observations": jax.tree.map(lambda leaf, one: np.concatenate([leaf, one[None]]), seen_here, final),
        "actions": np.asarray(seen.steps.action[span], kind),
        "rewards": seen.steps.reward[span],
        "terminations": seen.steps.terminated[span],
        "truncations": truncations,
    }
    return EpisodeBuffer(**arrays)
