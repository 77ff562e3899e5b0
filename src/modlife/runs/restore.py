"""Where a life stands, from the newest intact checkpoint of its run directory; and what a state is in arrays."""

import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import jax

from modlife.errors import InputError, ReadError
from modlife.lifelong.agent import Agent, AgentState, phase_of, template
from modlife.lifelong.loop import Moment
from modlife.runs.checkpoints import Checkpoints, Description, Saved, filled
from modlife.runs.config import LifeConfig, build
from modlife.runs.store import RunDirectory
from modlife.types import Curriculum

MANY = 1e12
"""More seconds, or megabytes, than a life can have."""
GROWTH = 0x6707
"""Sets the keys of what further tasks need apart from the life's others."""

T = TypeVar("T")


@dataclass(frozen=True)
class Found:
    """A checkpoint that can be used."""

    moment: Moment
    description: Description
    complaints: tuple[str, ...]
    """What is wrong with newer ones."""


def tree_of(state: AgentState) -> dict[str, Any]:
    """The arrays of a state that a checkpoint holds itself; replay stands in files of its own."""
    return {"params": state.params, "work": state.work}


def newest(run: RunDirectory, config: LifeConfig, *, devices: int = 1) -> Found:
    """The newest checkpoint whose every byte is as it was written, with its metrics; damaged ones are named."""

    def whole(checkpoints: Checkpoints, saved: Saved) -> tuple[Saved, tuple]:
        run.begin_with(saved.index.description)
        return saved, checkpoints.memory(saved.index)

    (saved, memory), complaints = newest_readable(run, whole)
    moment = moment_of(config, saved, memory, devices=devices)
    return Found(moment, saved.index.description, complaints)


def newest_readable(run: RunDirectory, read: Callable[[Checkpoints, Saved], T]) -> tuple[T, tuple[str, ...]]:
    """What can be read of the newest checkpoint of which it can be read, and what is wrong with newer ones."""
    complaints: list[str] = []
    for number in reversed(run.checkpoints.numbers()):
        try:
            found = read(run.checkpoints, run.checkpoints.read(run.checkpoints.path(number)))
            return found, tuple(f"{complaint} An older checkpoint is tried." for complaint in complaints)
        except ReadError as error:  # going back to an older one would cut the metrics that this one needs
            raise ReadError(
                f"{error} It may be intact: try again; if this goes on, move the checkpoint away."
            ) from error
        except InputError as error:
            if str(error) not in complaints:
                complaints.append(str(error))
    reasons = " ".join(complaints) or "It holds none."
    raise InputError(f"'{run.path}' has no checkpoint that can be used. {reasons}")


def moment_of(config: LifeConfig, saved: Saved, memory: tuple, *, devices: int = 1) -> Moment:
    """The moment that a checkpoint describes, if it can be one of this life; with all that further tasks need."""
    facts, where = saved.index.description, str(saved.folder)
    before = planned(config, facts, where=where)
    agent, curriculum = build(before, devices=devices), before.stages
    state = AgentState(agent.init(key=jax.random.key(0)).params, facts.facts, memory)
    check(agent, curriculum, facts, state, where=where)
    work = template(agent, state, curriculum.stages[facts.stage]) if facts.facts.phase else None
    tree = filled({"params": state.params, "work": work}, saved.arrays, where=where)
    state = replace(state, params=tree["params"], work=tree["work"])
    if before is not config:
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(config.seed), GROWTH), facts.planned)
        state = build(config, devices=devices).grow(state, key=key)
    return Moment(facts.stage, state)


def acting_state(config: LifeConfig, saved: Saved) -> tuple[Agent, AgentState]:
    """The agent of a checkpoint between two tasks: enough to act, without replay or work."""
    facts, where = saved.index.description, str(saved.folder)
    before = planned(config, facts, where=where)
    agent = build(before)
    tasks, structures = facts.facts.met, facts.facts.structures
    idle = replace(facts.facts, phase="", done=0, spent=0, structures=structures[: len(tasks)])
    state = AgentState(agent.init(key=jax.random.key(0)).params, idle)
    if tasks != before.chosen[: len(tasks)] or agent.problem(state) not in (None, "memory"):
        raise InputError(f"'{where}' cannot be of this life: its tasks or structures are not.")
    arrays = {name: array for name, array in saved.arrays.items() if name.startswith("['params']")}
    params = filled({"params": state.params}, arrays, where=where)["params"]
    return agent, replace(state, params=params)


def planned(config: LifeConfig, facts: Description, *, where: str) -> LifeConfig:
    """The config of the life as it was planned when a checkpoint was made."""
    if facts.planned not in (*config.grown, len(config.chosen)):
        raise impossible(where, "planned", facts.planned)
    return config.planned_for(facts.planned)


def check(agent: Agent, curriculum: Curriculum, facts: Description, state: AgentState, *, where: str) -> None:
    """A checkpoint may come from anywhere: what it says must be possible in this life."""
    if not 0 <= facts.stage <= len(curriculum.stages):
        raise InputError(f"'{where}' is of stage {facts.stage}, but the life has {len(curriculum.stages)}.")
    first, last = (sum(map(len, curriculum.stages[:end])) for end in (facts.stage, facts.stage + 1))
    known, working = facts.facts, bool(facts.facts.phase)
    if known.met != curriculum.tasks[: len(known.met)] or not first <= len(known.met) <= last - working:
        raise impossible(where, "met", [str(task) for task in known.met])
    phase = phase_of(agent, state, curriculum.stages[facts.stage]) if working else None
    if working and phase is None:
        raise impossible(where, "phase", known.phase)
    wrong = agent.problem(state)
    if wrong == "memory":
        raise InputError(f"'{where}' cannot be of this life: its replay is of {len(state.memory)} tasks, or of others.")
    if wrong:
        raise impossible(where, wrong, getattr(known, wrong))
    if known.done and not (phase and 0 < known.done < phase.length(state)):
        raise impossible(where, "done", known.done)
    check_sizes(facts, where=where)


def check_sizes(facts: Description, *, where: str) -> None:
    """Sizes and times can be such."""
    fits = {
        "metrics": facts.metrics.bytes >= 0,
        "history": facts.history.bytes >= 0,
        "wall_seconds": are_seconds(facts.wall_seconds),
        "cpu_seconds": are_seconds(facts.cpu_seconds),
        "peak_megabytes": 0 <= facts.peak_megabytes < MANY,
    }
    for name, fine in fits.items():
        if not fine:
            raise impossible(where, name, getattr(facts, name))


def impossible(where: str, name: str, value: object) -> InputError:
    """The error for a checkpoint that says what cannot be."""
    return InputError(f"'{where}' cannot be of this life: its {name} is {reprlib.repr(value)}.")


def are_seconds(values: Mapping[str, float]) -> bool:
    """Whether these are seconds; NaN is not."""
    return all(0 <= value < MANY and not math.isnan(value) for value in values.values())
