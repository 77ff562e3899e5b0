"""A small life of every agent in the table, lived once and shared by all tests; and what tests do with run directories.

Every checkpoint is kept, so a test can begin at any moment of a life.
"""

import fcntl
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from terminal import lenient

from modlife.lifelong.agent import AgentState
from modlife.lifelong.agents import AGENTS
from modlife.registry import resolve
from modlife.runs import checkpoints
from modlife.runs.checkpoints import Description
from modlife.runs.config import LifeConfig, life_from_options
from modlife.runs.life import run_life
from modlife.runs.restore import Found, newest, tree_of
from modlife.runs.store import RunDirectory, RunWriter

PLUGINS = str(Path(__file__).parent / "plugins")
"""Packages that are installed for tests, and for the processes that they start: the domain `hall`."""
if PLUGINS not in sys.path:
    sys.path.append(PLUGINS)
    os.environ["PYTHONPATH"] = os.pathsep.join([PLUGINS, os.environ.get("PYTHONPATH", "")])

BOUNDED = {"consolidator": "bounded", "tasks": 3, "old_rows": 64, "repair": 1, "drift": 1e-9}
VARIANTS = {"bounded": ("comp-search", {"offline": BOUNDED, "search": {"search": "halving"}, "steps": 2000})}
"""Other choices of an agent that are as good as another agent; here every old task needs repair."""
NAMES = (*AGENTS.names, *VARIANTS)
IN_THE_HALL = ("finetune", "ewc", "pc", "pc-bcq", "clear", "clear-modular", "reset-distill", "bounded")
"""They live in a domain whose programs are compiled in no time; all others in the 2-D world."""
SMALL = {
    "ppo": {"envs": 4, "length": 32, "minibatch": 64},
    "offline": {"epochs": 3, "batch": 64, "target_period": 3},
    "search": {"episodes": 1},
    "ewc": {"samples": 128},
    "clear": {"unroll": 8},
    "compress": {"epochs": 2, "batch": 64, "samples": 128},
    "distill": {"epochs": 2, "batch": 64, "old_rows": 64},
    "modules": 2,
    "replay_size": 256,
}
"""Settings of a small life; each agent takes those that it has."""
NARROW = {"size": 5, "horizon": 16}
"""The 2-D world of small lives, most of whose time would go into evaluations; targets are often met by chance."""


def small(name: str, *, domain: str | None = None, **options: Any) -> LifeConfig:
    """The config of a small life with all phases, of an agent or a variant of one; where it lives, if nobody says."""
    agent, variant = VARIANTS.get(name, (name, {}))
    settings = resolve(AGENTS[agent].settings)()
    own = {one.name: SMALL[one.name] for one in fields(settings) if one.name in SMALL}
    length = {"tasks": 3 if agent == "stl" else 4, "steps": 1000 if "search" in own else 500}
    own |= {name: {**own[name], **more} if isinstance(more, dict) else more for name, more in variant.items()}
    domain = domain or ("hall" if name in IN_THE_HALL else "grid2d")
    world = {"world": NARROW} if domain == "grid2d" else {}
    return life_from_options(agent, domain, {"episodes": 4, **length, **world, **own, **options})


@dataclass(frozen=True)
class Lived:
    """A life that was lived, with all its checkpoints."""

    path: Path
    config: LifeConfig

    @property
    def run(self) -> RunDirectory:
        return RunDirectory(self.path)

    def described(self) -> dict[int, Description]:
        """What each checkpoint says."""
        return described(self.path)

    def phases(self) -> set[str]:
        return {facts.facts.phase for facts in self.described().values()}

    def amid(self, phase: str) -> int:
        """A checkpoint in the middle of a phase of a late task, if it has a middle; or between tasks."""
        described = self.described()
        found = [number for number, facts in described.items() if facts.facts.phase == phase]
        late = [number for number in found if described[number].stage] or found
        inside = [number for number in late if described[number].facts.done] or late
        return inside[len(inside) // 2]

    def copy(self, folder: Path, number: int) -> RunDirectory:
        """The run directory as it was when a checkpoint was the newest; the one at the end of a stage is there too."""
        shutil.copytree(self.path, folder, ignore=shutil.ignore_patterns("checkpoints", "summary.json", "lock"))
        before = [n for n, facts in self.described().items() if n < number and facts.ended][-1:]
        for one in (*before, number):
            shutil.copytree(self.run.checkpoints.path(one), folder / "checkpoints" / f"{one:08d}")
        metrics = folder / "metrics.jsonl"
        metrics.write_bytes(metrics.read_bytes()[: self.described()[number].metrics.bytes])
        run = RunDirectory(folder)
        needed = {name for kept in run.checkpoints.numbers() for name in run.checkpoints.look(kept).replay}
        for path in (folder / "replay").glob("*"):
            if path.stem not in needed:
                path.unlink()
        return run

    def state(self, number: int, folder: Path) -> AgentState:
        """The agent at a checkpoint."""
        return found_in(self.copy(folder, number), self.config).moment.state


@cache
def described(path: Path) -> dict[int, Description]:
    every = RunDirectory(path).checkpoints
    return {number: every.verify(every.path(number))[0].description for number in every.numbers()}


@cache
def shared_folder(base: Path) -> Path:
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "lives"
    folder.mkdir(exist_ok=True)
    return folder


def lived(name: str, base: Path) -> Lived:
    """The small life of an agent: the first of the workers of pytest-xdist lives it, the others wait."""
    folder = shared_folder(base)
    path, config = folder / name, small(name)
    with (folder / f"{name}.lock").open("w") as lock, pytest.MonkeyPatch.context() as patch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (path / "summary.json").exists():
            patch.setattr(checkpoints, "KEEP", 10**6)
            with lenient():
                run_life(config, path, save_every=0)
    return Lived(path, config)


@pytest.fixture(scope="session")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Lived]:
    return cache(lambda name: lived(name, tmp_path_factory.getbasetemp()))


@pytest.fixture(params=NAMES, scope="session")
def life(request: pytest.FixtureRequest, lives: Callable[[str], Lived]) -> Lived:
    """The life of each agent in turn."""
    return lives(request.param)


@pytest.fixture
def searched(lives: Callable[[str], Lived]) -> Lived:
    """The life with most to save: structures, replay, three phases."""
    return lives("comp-search")


def step(writer: RunWriter, state: AgentState, stage: int, *, planned: int, ended: bool = False) -> int:
    """Something happens, and is saved, as in a life; which is saved once before anything happens."""
    if writer.checkpoints.numbers():
        writer.append({"kind": "step", "stage": stage})
    metrics, history = writer.sync()
    seconds = {"online": 2.0, "evaluation": 4.0}
    facts = Description(stage, ended, planned, state.facts, metrics, history, seconds, seconds, 100.0)
    return writer.checkpoints.save(tree_of(state), state.memory, facts)


def found_in(run: RunDirectory, config: LifeConfig) -> Found:
    return newest(run, config)


def go_on(path: Path, config: LifeConfig) -> RunWriter:
    """What `modlife train --resume` does before it learns."""
    writer = RunWriter.reopen(path)
    try:
        restore(writer, config)
    except BaseException:
        writer.close()
        raise
    return writer


def restore(writer: RunWriter, config: LifeConfig) -> None:
    found = newest(writer.run, config)
    writer.rewind_metrics(found.description.metrics)


def everything(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder, except those that say who wrote when, and what else there is."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in folder.rglob("*")
        if path.name not in ("lock", "history.jsonl") and not path.match("lease-*.json")
    }


def litter(folder: Path) -> list[Path]:
    return list(folder.rglob("*.tmp"))


def pipe(run: RunDirectory, path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def assert_all_are_intact(run: RunDirectory) -> None:
    for number in run.checkpoints.numbers():
        index, _ = run.checkpoints.verify(run.checkpoints.path(number))
        run.checkpoints.memory(index)
