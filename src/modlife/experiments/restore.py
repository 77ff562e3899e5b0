"""Where a life stands, from the newest intact checkpoint of its run directory."""

from dataclasses import dataclass
from typing import Any

import jax

from modlife.errors import InputError
from modlife.experiments.checkpoints import Description, filled
from modlife.experiments.store import RunDirectory
from modlife.lifelong.loop import Agent, AgentState, Moment, Work
from modlife.types import Curriculum


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
        arrays, memory = run.checkpoints.arrays(index, state)
        moment = moment_of(agent, curriculum, index.description, arrays, memory, where=str(folder))
        return Found(moment, index.description, tuple(complaints))
    reasons = " ".join(complaints) or "It holds none."
    raise InputError(f"'{run.path}' has no checkpoint that can be used. {reasons}")


def moment_of(
    agent: Agent, curriculum: Curriculum, facts: Description, arrays: dict, memory: tuple, *, where: str
) -> Moment:
    """The moment that a checkpoint describes, if it fits the agent."""
    if not 0 <= facts.stage <= len(curriculum.stages):
        raise InputError(f"'{where}' is of stage {facts.stage}, but the life has {len(curriculum.stages)}.")
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
