"""Where a life stands, from the newest intact checkpoint of its run directory."""

import reprlib
from dataclasses import dataclass
from typing import Any

import jax

from modlife.errors import InputError
from modlife.experiments.checkpoints import PHASES, Description, filled
from modlife.experiments.store import RunDirectory
from modlife.learners.replay import Packing
from modlife.lifelong.compositional import Compositional
from modlife.lifelong.loop import Agent, AgentState, Moment, Work
from modlife.lifelong.multi_task import MultiTask
from modlife.lifelong.online import update_count
from modlife.lifelong.single_task import SingleTask
from modlife.types import Curriculum

MANY = 1e12
"""More seconds, or megabytes, than a life can have."""


@dataclass(frozen=True)
class Found:
    """A checkpoint that can be used."""

    moment: Moment
    description: Description
    complaints: tuple[str, ...]
    """What is wrong with newer ones."""


def tree_of(state: AgentState) -> dict[str, Any]:
    """The arrays of a state that a checkpoint holds itself; replay stands in files of its own."""
    return {"params": state.params, "work": None if state.work is None else state.work.data}


def newest(run: RunDirectory, agent: Agent, curriculum: Curriculum) -> Found:
    """The newest checkpoint whose every byte is as it was written; damaged ones are named."""
    complaints = []
    for number in reversed(run.checkpoints.numbers()):
        folder = run.checkpoints.path(number)
        try:
            index, state = run.checkpoints.verify(folder)
        except InputError as error:
            complaints.append(f"{error} An older checkpoint is tried.")
            continue
        arrays, memory = run.checkpoints.arrays(folder, index, state)
        moment = moment_of(agent, curriculum, index.description, arrays, memory, where=str(folder))
        return Found(moment, index.description, tuple(complaints))
    reasons = " ".join(complaints) or "It holds none."
    raise InputError(f"'{run.path}' has no checkpoint that can be used. {reasons}")


def moment_of(
    agent: Agent, curriculum: Curriculum, facts: Description, arrays: dict, memory: tuple, *, where: str
) -> Moment:
    """The moment that a checkpoint describes, if it fits the agent."""
    check(agent, curriculum, facts, memory, where=where)
    met = tuple(agent.env.graph.parse(name) for name in facts.met)
    params = agent.init(key=jax.random.key(0)).params
    state, data = AgentState(params, met, facts.structures, memory), None
    if facts.phase:
        work = Work(facts.phase, facts.number, facts.structure, facts.spent, None)
        left = tuple(task for task in curriculum.stages[facts.stage] if task not in met)
        data = agent.blank(state, work, left)
    tree = filled({"params": params, "work": data}, arrays, where=where)
    if facts.phase:
        work = Work(facts.phase, facts.number, facts.structure, facts.spent, tree["work"])
        return Moment(facts.stage, AgentState(tree["params"], met, facts.structures, memory, work))
    return Moment(facts.stage, AgentState(tree["params"], met, facts.structures, memory))


def check(agent: Agent, curriculum: Curriculum, facts: Description, memory: tuple, *, where: str) -> None:
    """A checkpoint may come from anywhere: what it says must be possible in this life."""
    if not 0 <= facts.stage <= len(curriculum.stages):
        raise InputError(f"'{where}' is of stage {facts.stage}, but the life has {len(curriculum.stages)}.")
    assert isinstance(agent, Compositional | MultiTask | SingleTask)
    first, last = (sum(map(len, curriculum.stages[:end])) for end in (facts.stage, facts.stage + 1))
    working, met = bool(facts.phase), len(facts.met)
    tasks = tuple(str(task) for task in curriculum.tasks[:met])
    sizes = agent.network.sizes if isinstance(agent, Compositional) else ()
    fits = {
        "met": facts.met == tasks and first <= met <= last - working,
        "phase": facts.phase in (("", "online", "offline") if sizes else ("", "online")),
        "structures": len(facts.structures) == (met if sizes else 0)
        and all(in_bank(structure, sizes) for structure in facts.structures),
        "structure": in_bank(facts.structure, sizes if working else ()),
        "spent": facts.spent == 0 or (working and bool(sizes) and 0 < facts.spent < agent.steps),
        "number": facts.number == 0 or (working and 0 < facts.number < steps_of(agent, facts)),
        "metrics_bytes": facts.metrics_bytes >= 0,
        "wall_seconds": are_seconds(facts.wall_seconds),
        "cpu_seconds": are_seconds(facts.cpu_seconds),
        "peak_megabytes": 0 <= facts.peak_megabytes < MANY,
    }
    for name, fine in fits.items():
        if not fine:
            raise InputError(f"'{where}' cannot be of this life: its {name} is {reprlib.repr(getattr(facts, name))}.")
    check_memory(agent, memory, met + (facts.phase == "offline"), where=where)


def in_bank(structure: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    """Whether a structure names a module of each factor."""
    return len(structure) == len(sizes) and all(0 <= n < size for n, size in zip(structure, sizes, strict=True))


def are_seconds(values: tuple[float, ...]) -> bool:
    """Whether these are seconds of each phase; NaN is not."""
    return len(values) == len(PHASES) and all(0 <= value < MANY for value in values)


def steps_of(agent: Compositional | MultiTask | SingleTask, facts: Description) -> int:
    """How many steps the phase has that a checkpoint was taken in."""
    if isinstance(agent, Compositional) and facts.phase == "offline":
        return agent.consolidator.steps
    return update_count(agent.learner, agent.steps - facts.spent)


def check_memory(agent: Agent, memory: tuple, count: int, *, where: str) -> None:
    """Replay is of as many tasks, and as large, as it can be."""
    count = count if isinstance(agent, Compositional) else 0
    if len(memory) != count:
        raise InputError(f"'{where}' cannot be of this life: it has replay of {len(memory)} tasks, not of {count}.")
    if isinstance(agent, Compositional):
        width = (agent.ppo.envs, Packing.of(agent.env).words)
        for rows in memory:
            if rows.shape[1:] != width or not 2 <= len(rows) <= agent.times + 1:
                raise InputError(f"'{where}' cannot be of this life: its replay has the shape {rows.shape}.")
