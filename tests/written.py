"""A life, written by hand: a run directory without training, for the tests that damage it, and what they do with it."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from modlife.experiments.agents import build
from modlife.experiments.checkpoints import Description
from modlife.experiments.config import LifeConfig
from modlife.experiments.disk import sha256
from modlife.experiments.restore import newest, tree_of
from modlife.experiments.store import RunDirectory, RunWriter
from modlife.learners.config import BCQConfig, PPOConfig
from modlife.learners.replay import Packing
from modlife.lifelong.compositional import Compositional
from modlife.lifelong.loop import Agent, AgentState, Work
from modlife.types import Task

CONFIG = LifeConfig(
    agent="comp-search",
    modules=2,
    tasks=3,
    steps=1000,
    search_episodes=1,
    ppo=PPOConfig(envs=4, length=32, minibatch=64),
    bcq=BCQConfig(replay_size=256, offline_batch=64),
)
TASKS = CONFIG.chosen_tasks()
FIRST, SECOND = (0, 0, 0), (1, 1, 1)
SECONDS = (1.0, 2.0, 3.0, 4.0)


@pytest.fixture(scope="module")
def agent() -> Compositional:
    agent = build(CONFIG)
    assert isinstance(agent, Compositional)
    return agent


def replay(seed: int, agent: Compositional) -> np.ndarray:
    shape = (agent.times + 1, CONFIG.ppo.envs, Packing.of(agent.env).words)
    return np.random.default_rng(seed).integers(0, 2**32, shape, np.uint32)


def with_work(agent: Agent, state: AgentState, work: Work, stage: tuple[Task, ...]) -> AgentState:
    """The state in the middle of a phase, with numbers for the learner."""
    blank = agent.blank(state, work, stage)
    data = jax.tree.map(lambda leaf: np.ones(leaf.shape, leaf.dtype), blank)
    return replace(state, work=replace(work, data=data))


def describe(run: RunWriter, state: AgentState, stage: int, *, ended: bool = False) -> Description:
    size, checksum = run.sync_metrics()
    work = state.work or Work("", 0, (), 0, None)
    met = tuple(str(task) for task in state.met)
    return Description(
        stage,
        ended,
        met,
        state.structures,
        work.phase,
        work.number,
        work.structure,
        work.spent,
        size,
        checksum,
        SECONDS,
        SECONDS,
        100.0,
    )


def step(run: RunWriter, state: AgentState, stage: int, *, ended: bool = False) -> int:
    """Something happens, and is saved, as in a life; which is saved once before anything happens."""
    if run.checkpoints.numbers():
        run.append({"kind": "step", "stage": stage})
    return run.checkpoints.save(tree_of(state), state.memory, describe(run, state, stage, ended=ended))


@pytest.fixture(scope="module")
def states(agent: Compositional) -> dict[str, AgentState]:
    """A state of each kind that a life saves."""
    start = agent.init(key=jax.random.key(0))
    one = replace(start, met=TASKS[:1], structures=(FIRST,), memory=(replay(1, agent),))
    more = replace(one, memory=(*one.memory, replay(2, agent)))
    return {
        "start": start,
        "online": with_work(agent, one, Work("online", 7, SECOND, 100, None), TASKS[1:2]),
        "ended": one,
        "offline": with_work(agent, more, Work("offline", 3, SECOND, 0, None), TASKS[1:2]),
        "next": replace(more, met=TASKS[:2], structures=(FIRST, SECOND)),
    }


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory, states: dict[str, AgentState]) -> Path:
    """A run directory whose newest checkpoint, number 3, is in the offline phase; number 2 is at the end of a stage."""
    run = RunWriter.create(tmp_path_factory.mktemp("golden") / "run", CONFIG)
    for name, stage in (("start", 0), ("start", 0), ("ended", 1), ("offline", 1)):
        step(run, states[name], stage, ended=name == "ended")
    run.close()
    assert run.checkpoints.numbers() == [2, 3]
    return run.path


@pytest.fixture
def run(golden: Path, tmp_path: Path) -> RunDirectory:
    """A copy that a test may damage."""
    shutil.copytree(golden, tmp_path / "run")
    return RunDirectory(tmp_path / "run")


def alone(run: RunDirectory, states: dict[str, AgentState], name: str) -> Path:
    """Leaves only one checkpoint, of a state; its folder."""
    shutil.rmtree(run.checkpoints.folder)
    writer = RunWriter.reopen(run.path)
    writer.rewind_metrics(0, sha256(b""))
    writer.append({"kind": "curriculum"})
    number = step(writer, states[name], {"start": 0, "next": 2}.get(name, 1))
    writer.close()
    return run.checkpoints.path(number)


def go_on(path: Path, agent: Compositional) -> RunWriter:
    """What `modlife train --resume` does before it learns."""
    writer = RunWriter.reopen(path)
    try:
        restore(writer, agent)
    except BaseException:
        writer.close()
        raise
    return writer


def restore(writer: RunWriter, agent: Compositional) -> None:
    found = newest(writer, agent, CONFIG.curriculum)
    writer.rewind_metrics(found.description.metrics_bytes, found.description.metrics_sha256)


def everything(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder, except those that say who wrote when, and what else there is."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in folder.rglob("*")
        if path.name not in ("lock", "history.jsonl")
    }


def litter(folder: Path) -> list[Path]:
    return list(folder.rglob("*.tmp"))


def pipe(run: RunDirectory, path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def assert_all_are_intact(run: RunDirectory) -> None:
    for number in run.checkpoints.numbers():
        run.checkpoints.verify(run.checkpoints.path(number))
