"""The values that layers pass to each other: frozen, named, without logic and without JAX."""

from dataclasses import dataclass
from typing import Any, Literal

Structure = tuple[int, ...]
"""One module index per factor."""

Pytree = Any
"""Any nesting of arrays."""

Acting = Literal["filtered-boltzmann", "filtered-greedy", "boltzmann", "actor", "actor-greedy"]
"""How actions follow from what a network says: see `policies.acting`."""

Critic = Literal["actions", "states"]
"""What critics tell the worth of: Q, or V."""

Unsolved = Literal["known", "fresh"]
"""What the online phase begins with where known modules do not meet the goal at all."""


@dataclass(frozen=True, order=True)
class Task:
    """One component per factor, in the order of the problem graph's factors."""

    components: tuple[str, ...]

    def __str__(self) -> str:
        return "/".join(self.components)

    @classmethod
    def from_text(cls, text: str) -> "Task":
        """The task of this name."""
        return cls(tuple(text.split("/")))


@dataclass(frozen=True)
class Curriculum:
    """What an agent meets, in order: stages, each a group of tasks learnt together.

    Lifelong learning has one task per stage, multi-task learning one stage with all tasks.
    """

    stages: tuple[tuple[Task, ...], ...]

    @property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks in the order in which they are first met."""
        return tuple(task for stage in self.stages for task in stage)


@dataclass(frozen=True)
class Facts:
    """All that an agent's state says besides arrays. A checkpoint holds it as it is."""

    met: tuple[Task, ...] = ()
    """Tasks in the order in which they were learnt."""
    structures: tuple[Structure, ...] = ()
    """The structure of each task met, and of the one in hand once it has one; where the agent has such."""
    spent: int = 0
    """Environment steps of the task in hand that were taken before its online phase."""
    phase: str = ""
    """The phase that the agent is in; empty between tasks."""
    done: int = 0
    """Steps done in it."""
