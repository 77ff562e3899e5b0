"""Finding the structure of a new task: the phase, what a search is, and the exhaustive one.

A search is a phase like any other: it goes in steps, tells how far it has come, and can be saved between any two.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from modlife.arrays import floats, ints, zeros
from modlife.domains.env import PRNGKey, at_once, is_slow
from modlife.learners.rollout import Episodes
from modlife.lifelong.agent import Agent, AgentState, Reports, begun
from modlife.lifelong.evaluation import Judge, evaluate_chunk, in_pieces
from modlife.lifelong.reports import Chosen, Evaluated
from modlife.lifelong.settings import EIGHTHS, ExhaustiveConfig
from modlife.policies.bank import Bank
from modlife.types import Pytree, Structure, Task

AT_ONCE = 64
"""Structures that one compiled call tries: about half a second with the paper's numbers."""


@dataclass(frozen=True)
class Trial:
    """Structures of a bank can be tried on a new task."""

    judge: Judge
    bank: Bank
    task: Task
    taken: tuple[Structure, ...] = ()
    """Structures that other tasks have."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Modules per factor."""
        return self.bank.sizes

    @property
    def fills_up(self) -> bool:
        """Whether calls should try as many structures each time, so that none is compiled anew."""
        return not is_slow(self.judge.env)

    def worth(self, returns: Float[np.ndarray, " structure"], *, margin: float) -> Float[np.ndarray, " structure"]:
        """Mean returns of all structures, less a margin for those that another task has."""
        taken = set(self.taken)
        return returns - margin * np.array([one in taken for one in all_structures(self.sizes)])

    def episodes(self, structures: Sequence[Structure], *, key: PRNGKey) -> Episodes:
        """Episodes with each structure, [structure, episode]; all meet the same layouts, with the same luck."""
        return evaluate_chunk(self.judge, *self.candidates(structures), repeated(key, len(structures)))

    def parts(self, structures: Sequence[Structure], keys: Array, *, eighths: int) -> Episodes:
        """The first eighths of episodes with each structure, [structure, episode]; those of one key are alike."""
        env, candidates = self.judge.env, self.candidates(structures)
        length = -(-env.horizon // EIGHTHS)
        calls = len(structures) * self.judge.episodes * length // at_once(env)
        short = next(one for one in range(length, 0, -1) if length % one == 0 and (one == 1 or one * calls <= length))
        pieces = min(eighths, -(-env.horizon // length)) * (length // short)
        return in_pieces(self.judge, *candidates, keys, length=short, pieces=pieces)

    def candidates(self, structures: Sequence[Structure]) -> tuple[Pytree, Int[Array, "N F"]]:
        """The policy of each structure, and the task, as often."""
        same = [self.judge.env.graph.indices(self.task)] * len(structures)
        return jax.vmap(self.bank.pick)(ints(structures)), ints(same)


@runtime_checkable
class Search(Protocol):
    """A way to find the structure of a new task."""

    @property
    def episodes(self) -> int:
        """Episodes with which each structure is tried at a time."""
        ...

    def init(self, sizes: tuple[int, ...]) -> Pytree:
        """What it knows before the first step."""
        ...

    def length(self, sizes: tuple[int, ...]) -> int:
        """How many steps it takes."""
        ...

    def run(self, trial: Trial, found: Pytree, *, done: int, key: PRNGKey) -> Iterator[tuple[int, Pytree]]:
        """The steps from number `done` on: how many are done, and what it knows now."""
        ...

    def choice(self, trial: Trial, found: Pytree) -> Chosen:
        """The structure, when all steps are done, and the environment steps that it took to find it."""
        ...


class Scores(eqx.Module):
    """What an exhaustive search has seen of each structure."""

    returns: Float[Array, " structure"]
    steps: Int[Array, " structure"]


@dataclass(frozen=True)
class Exhaustive:
    """Every structure is tried, and the one with the highest mean return taken; the first, if several have it.

    A margin is in favour of structures that no other task has (docs/details.md).
    """

    config: ExhaustiveConfig

    @property
    def episodes(self) -> int:
        """Episodes of each structure."""
        return self.config.episodes

    def init(self, sizes: tuple[int, ...]) -> Scores:
        """Nothing seen."""
        count = len(all_structures(sizes))
        return Scores(zeros(count), zeros(count, dtype=np.int32))

    def length(self, sizes: tuple[int, ...]) -> int:
        """Calls over all structures."""
        return -(-len(all_structures(sizes)) // AT_ONCE)

    def run(self, trial: Trial, found: Scores, *, done: int, key: PRNGKey) -> Iterator[tuple[int, Scores]]:
        """Tries structures, some at a time; the last call may try some a second time, with the same result."""
        structures = all_structures(trial.sizes)
        for number in range(done, self.length(trial.sizes)):
            start = max(0, min(number * AT_ONCE, len(structures) - AT_ONCE))
            here = slice(start, start + AT_ONCE)
            result = trial.episodes(structures[here], key=key)
            returns, steps = np.asarray(result.returns).mean(axis=1), np.asarray(result.length).sum(axis=1)
            found = Scores(
                floats(with_values(found.returns, here, returns)), ints(with_values(found.steps, here, steps))
            )
            yield number + 1, found

    def choice(self, trial: Trial, found: Scores) -> Chosen:
        """The best; all steps are counted."""
        structures, returns = all_structures(trial.sizes), np.asarray(found.returns)
        best, steps = int(trial.worth(returns, margin=self.config.margin).argmax()), int(np.asarray(found.steps).sum())
        return Chosen(structures[best], "searched", steps, tuple(map(float, returns)))


@partial(jax.jit, static_argnums=1)
def repeated(key: PRNGKey, count: int) -> Array:
    """The same key so many times."""
    return jnp.repeat(key[None], count)


def with_values(array: Array, here: slice, values: np.ndarray) -> np.ndarray:
    """A copy with other values in some places."""
    copy = np.array(array)
    copy[here] = values
    return copy


def all_structures(sizes: tuple[int, ...]) -> tuple[Structure, ...]:
    """Every structure, the last factor changing fastest."""
    return tuple(itertools.product(*map(range, sizes)))


@dataclass(frozen=True)
class ChooseStructure:
    """The phase that settles the structure of a task, and evaluates the task with it before any learning."""

    task: Task
    judge: Judge
    """Evaluates as PPO acts."""
    known: Callable[[AgentState, Task], Chosen | None]
    """The structure, where it needs no search."""
    search: Any
    """A `Search`, asked where the structure is not known."""
    key_search: PRNGKey
    key_evaluate: PRNGKey
    will_learn: bool = True
    """If not, the task may as well have the structure of another: nothing has to be told apart."""
    name: str = "structure"

    def begin(self, state: AgentState) -> Pytree:
        """What the search knows; nothing where there is none."""
        return () if self.known(state, self.task) else self.search.init(state.params.sizes)

    def length(self, state: AgentState) -> int:
        """Steps of the search."""
        return 0 if self.known(state, self.task) else self.search.length(state.params.sizes)

    def run(self, state: AgentState) -> Iterator[tuple[int, Pytree, Reports]]:
        """Searches."""
        if self.known(state, self.task):
            return
        for done, found in self.search.run(self.trial(state), state.work, done=state.facts.done, key=self.key_search):
            yield done, found, ()

    def end(self, state: AgentState) -> tuple[AgentState, Reports]:
        """The structure is settled."""
        chosen = self.chosen(state)
        policy = state.params.pick(chosen.structure)
        zero_shot = self.judge.evaluate([self.task], [policy], key=self.key_evaluate)
        state = state.noting(structures=(*state.structures, chosen.structure), spent=chosen.steps)
        return replace(state, solved=bool(zero_shot.success.any())), (chosen, Evaluated("zero-shot", zero_shot))

    def trial(self, state: AgentState) -> Trial:
        """What the search tries structures with."""
        judge, taken = replace(self.judge, episodes=self.search.episodes), state.structures if self.will_learn else ()
        return Trial(judge, state.params, self.task, taken)

    def chosen(self, state: AgentState) -> Chosen:
        """What is known, or what was found; of structures that tie, the one whose modules serve fewest tasks."""
        chosen = self.known(state, self.task) or self.search.choice(self.trial(state), state.work)
        return replace(chosen, structure=least_used((chosen.structure, *chosen.tied), state.structures))


def found_structure(agent: Agent, state: AgentState, task: Task, *, key: PRNGKey) -> Structure | None:
    """The structure that the agent's own search finds for a task that it never met; nothing is learnt.

    None where there is nothing to search for: it has met the task, is told structures, or has none.
    """
    phase = None if agent.together or task in state.met else agent.phases([task], key=key)[0]
    if not isinstance(phase, ChooseStructure) or not phase.length(state):
        return None
    phase = replace(phase, will_learn=False)
    searching = begun(phase, state)
    for done, work, _ in phase.run(searching):
        searching = replace(searching.noting(done=done), work=work)
    return phase.chosen(searching).structure


def least_used(options: Sequence[Structure], structures: Sequence[Structure]) -> Structure:
    """Of structures that are as good, the first of those whose modules serve fewest tasks: they share least."""
    uses = Counter(place for structure in structures for place in enumerate(structure))
    return min(options, key=lambda one: sum(uses[place] for place in enumerate(one)))
