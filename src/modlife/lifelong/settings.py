"""What agents can be told: their settings, with the searches and consolidators that those name. No JAX here.

An agent's settings are a frozen dataclass; its fields, and those of the configs in it, are the agent's options on the
command line. `first_tasks` and `check` let the life's config ask what only the agent can know.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from modlife.checks import check_between, check_fields
from modlife.domains.graph import Discrete, ProblemGraph
from modlife.errors import InputError
from modlife.learners.config import (
    HEAVIEST,
    BCQConfig,
    ClearConfig,
    CompressConfig,
    DistillConfig,
    EWCConfig,
    PPOConfig,
)
from modlife.registry import Table
from modlife.types import Critic, Unsolved

LARGEST_REPLAY = 2**24
"""Rows are drawn from it with the precision of 32-bit floats (`learners.offline`)."""


class Settings(Protocol):
    """What a life's config knows of an agent's settings; what stands here will do for most."""

    def first_tasks(self, graph: ProblemGraph) -> int | None:
        """How many first tasks should share no component, in the paper's order; None for as many as can."""
        return None

    def check(self, *, tasks: int, steps: int, graph: ProblemGraph, horizon: int, usual: Any) -> None:
        """Says what is wrong in a life of so many tasks with so many steps each; `usual` is without any option."""

    def rows(self, *, tasks: int, steps: int) -> tuple[int, int, int]:
        """Transitions in memory, at most: of the task in hand, of old tasks in all, and those that a learner copies."""
        return 0, 0, 0

    def meant(self, graph: ProblemGraph) -> dict[str, Any]:
        """Options that were left out, by name, as what that comes to in a world."""
        return {}


@dataclass(frozen=True)
class SearchEntry:
    """A way to find structures, by name. What is a string is `package.module:name`, imported when needed."""

    name: str
    about: str
    config: str | type
    """A frozen dataclass with its options; it has `episodes` and `most_steps` as `ExhaustiveConfig` does."""
    build: str | Any
    """Takes its config, gives a `Search` (`lifelong.search`)."""
    takes: str = ""
    """Which of the combinations that it tried it takes, in words for people."""


@dataclass(frozen=True)
class ConsolidatorEntry:
    """A way to learn offline, by name. What is a string is `package.module:name`, imported when needed."""

    name: str
    about: str
    config: str | type
    """A frozen dataclass with its options."""
    build: str | Any
    """Takes a `Layout`, its config, and the discount; gives a `Consolidator` (`learners.offline`)."""
    acting: str | Any
    """How an agent acts whose modules were learnt so: takes its config, gives a `Rule`."""
    keeps_finals: str | Any = None
    """Whether replay must tell what time limits cut off: takes its config. Not by default."""


@dataclass(frozen=True)
class ExhaustiveConfig:
    """Every combination of modules is tried."""

    episodes: int = 10
    """Episodes with which each structure is tried; their steps count against the budget."""
    margin: float = 0.0
    """How much less than it returns a structure counts that another task has already."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_between(self, 1, 1000, "episodes")
        check_between(self, 0, HEAVIEST, "margin")

    def most_steps(self, structures: int, horizon: int) -> int:
        """Environment steps that a search takes if no episode ends early."""
        return structures * self.episodes * horizon


EIGHTHS = 8
"""Parts that an episode has, for searches that cut episodes short."""


@dataclass(frozen=True)
class Round:
    """Some structures are tried with the same episodes."""

    structures: int
    groups: int
    """Groups of episodes for each."""
    eighths: int
    """How much of an episode's time is given."""
    by_model: bool = False
    """Whether structures are chosen by what a model expects of them; else the best of the round before go on."""
    afresh: bool = False
    """Whether what was seen before is forgotten: not all of its structures have seen the same."""


@dataclass(frozen=True)
class HalvingConfig:
    """Many structures are tried for a short time, the better ones longer."""

    episodes: int = 4
    """Episodes of a structure at a time; their steps count against the budget."""
    keep: int = 4
    """One in so many structures goes on to the next round, until two are left."""
    each: int = 512
    """If there are more structures, not each is tried: a model says which are worth it."""
    margin: float = 0.2
    """How much less than it returns a structure counts that another task has already."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_between(self, 1, 1000, "episodes")
        check_between(self, 2, 64, "keep")
        check_between(self, 2, 2**16, "each")
        check_between(self, 0, HEAVIEST, "margin")

    def rounds(self, structures: int) -> tuple[Round, ...]:
        """The rounds: with half of an episode's time or less at first, and all of it in the end."""
        sizes, model = [structures], []
        if structures > self.each:
            half = max(2, self.each // 2)
            model = [Round(half, 1, 3), Round(max(2, half // 2), 1, 3, True), Round(max(2, half // 4), 1, 3, True)]
            sizes = [max(2, half // 16)]
        while sizes[-1] > 2:
            sizes.append(max(2, sizes[-1] // self.keep))
        plan = [(1, 3)] * max(0, len(sizes) - 3) + [(1, 4), (3, 6), (4, 8)][-len(sizes) :]
        rounds = [Round(size, *one) for size, one in zip(sizes, plan, strict=True)]
        if model:
            rounds[0] = replace(rounds[0], by_model=True, afresh=True)
        return (*model, *rounds)

    def most_steps(self, structures: int, horizon: int) -> int:
        """Environment steps that a search takes if no episode ends early."""
        piece = -(-horizon // EIGHTHS)
        return sum(r.structures * r.groups * self.episodes * r.eighths * piece for r in self.rounds(structures))


SEARCHES = Table(
    "search",
    SearchEntry(
        "exhaustive",
        "tries every combination of modules",
        config="modlife.lifelong.settings:ExhaustiveConfig",
        build="modlife.lifelong.search:Exhaustive",
        takes="the one with the highest return is taken",
    ),
    SearchEntry(
        "halving",
        "tries many combinations for a short time, the better ones longer: about 30 % of the steps",
        config="modlife.lifelong.settings:HalvingConfig",
        build="modlife.lifelong.halving:Halving",
        takes="of the two that stay to the end the better one is taken; one left out early may look better here",
    ),
)
CONSOLIDATORS = Table(
    "consolidator",
    ConsolidatorEntry(
        "bcq",
        "batch-constrained Q-learning, the paper's; for actions that can be counted",
        config="modlife.learners.config:BCQConfig",
        build="modlife.learners.bcq:BCQ",
        acting="modlife.learners.bcq:acting",
        keeps_finals="modlife.learners.bcq:keeps_finals",
    ),
    ConsolidatorEntry(
        "bounded",
        "cloning of a few old tasks, and of the new one or its Q-learning: its cost does not grow with the tasks",
        config="modlife.learners.config:BoundedConfig",
        build="modlife.learners.bounded:bounded",
        acting="modlife.learners.bcq:acting",
        keeps_finals="modlife.learners.bcq:keeps_finals",
    ),
    ConsolidatorEntry(
        "real-bcq",
        "batch-constrained Q-learning for actions that are real numbers, the paper's for robots",
        config="modlife.learners.config:RealBCQConfig",
        build="modlife.learners.real_bcq:RealBCQ",
        acting="modlife.learners.real_bcq:acting",
        keeps_finals="modlife.learners.bcq:keeps_finals",
    ),
    ConsolidatorEntry(
        "awac",
        "advantage-weighted actor-critic, for actions that are real numbers: learns most of what turned out well",
        config="modlife.learners.config:AWACConfig",
        build="modlife.learners.awac:AWAC",
        acting="modlife.learners.real_bcq:acting",
        keeps_finals="modlife.learners.bcq:keeps_finals",
    ),
)


def consolidated_rows(offline: Any, kept: int, tasks: int) -> tuple[int, int, int]:
    """Transitions in memory of agents with a consolidator that keep so many of a task."""
    old, at_once = (getattr(offline, name, None) for name in ("old_rows", "tasks"))  # where these are bounded
    return kept, min(kept, old or kept) * (tasks - 1), kept * min(tasks, at_once or tasks)


@dataclass(frozen=True)
class Online(Settings):
    """Settings of agents that only learn online."""

    ppo: PPOConfig = field(default_factory=PPOConfig)
    """How to learn online."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Elastic(Online):
    """Settings of EWC."""

    ewc: EWCConfig = field(default_factory=EWCConfig)
    """How the network is held back."""


@dataclass(frozen=True)
class Distilled(Online):
    """Settings of agents that distil what they learnt online."""

    replay_size: int = 100_000
    """Transitions of a task that are distilled: the last ones of its online phase."""
    distill: DistillConfig = field(default_factory=DistillConfig)
    """How to distil."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between(self, 1, LARGEST_REPLAY, "replay_size")

    def rows(self, *, tasks: int, steps: int) -> tuple[int, int, int]:
        """Of the task in hand and of old ones, and what is copied."""
        kept = min(self.replay_size, steps)
        old = min(kept, self.distill.old_rows) * (tasks - 1)
        return kept, old, kept + 2 * old


@dataclass(frozen=True)
class Compressed(Online):
    """Settings of Progress & Compress."""

    replay_size: int = 100_000
    """Transitions of a task that are compressed: the last ones of its online phase."""
    compress: CompressConfig = field(default_factory=CompressConfig)
    """How the active column is folded into the knowledge base."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between(self, 1, LARGEST_REPLAY, "replay_size")

    def rows(self, *, tasks: int, steps: int) -> tuple[int, int, int]:
        """Of the task in hand and of old ones, and what is copied."""
        kept = min(self.replay_size, steps)
        return kept, 0, kept


@dataclass(frozen=True)
class Rehearsed(Online):
    """Settings of CLEAR."""

    replay_size: int = 10_000
    """Transitions kept of each task: the last ones of its online phase, or pieces of it."""
    clear: ClearConfig = field(default_factory=ClearConfig)
    """How old tasks are rehearsed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between(self, 1, LARGEST_REPLAY, "replay_size")

    def rows(self, *, tasks: int, steps: int) -> tuple[int, int, int]:
        """Of the task in hand and of old ones, and what is copied."""
        kept = min(self.replay_size, steps)
        return kept, kept * (tasks - 1), 3 * kept * tasks

    def check(self, *, tasks: int, steps: int, graph: ProblemGraph, horizon: int, usual: Any) -> None:
        """States have values, replay holds at least one piece, and needs not tell what time limits cut off."""
        if not isinstance(graph.actions, Discrete):
            raise InputError(
                f"CLEAR learns from old tasks by the values of states, but critics in '{graph.name}' take an action "
                "of real numbers. Choose another agent, such as pc or reset-distill."
            )
        if self.ppo.bootstrap_truncated:
            raise InputError(
                "bootstrap_truncated = True, but what CLEAR rehearses ends with an episode, whatever ended it. Leave "
                "--ppo.bootstrap-truncated out."
            )
        if self.clear.keep == "reservoir" and self.ppo.length <= self.clear.unroll:
            raise InputError(
                f"length = {self.ppo.length}, but a piece of {self.clear.unroll} steps and what is seen after it must "
                "be of one update. Give a larger --ppo.length, or a smaller --clear.unroll."
            )
        least = (self.clear.unroll + (self.clear.keep == "reservoir")) * self.ppo.envs
        if min(self.replay_size, steps) < least:
            raise InputError(
                f"replay_size = {self.replay_size} and steps = {steps}, but a piece of {self.clear.unroll} steps in "
                f"{self.ppo.envs} environments takes {least}. Give more, or a smaller --clear.unroll."
            )


@dataclass(frozen=True)
class Told(Settings):
    """Settings of agents that are told what every task is made of, and learn offline from replay."""

    replay_size: int = 100_000
    """Transitions kept of each task: the last ones of its online phase."""
    critic: Critic = "actions"
    """What critics tell the worth of: actions, as the paper's do, or only states, as in single-task learning."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    """How to learn online."""
    offline: Any = field(default_factory=BCQConfig, metadata={"table": CONSOLIDATORS})
    """How to learn offline."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_between(self, 1, LARGEST_REPLAY, "replay_size")

    def rows(self, *, tasks: int, steps: int) -> tuple[int, int, int]:
        """As its consolidator needs them."""
        return consolidated_rows(self.offline, min(self.replay_size, steps), tasks)


@dataclass(frozen=True)
class Structured(Told):
    """Settings of the lifelong agent with modules that is told structures."""

    unsolved: Unsolved = "known"
    """What the online phase begins with where known modules do not meet the goal at all: them, or fresh ones."""
    fresh_critics: bool = False
    """Whether the online phase begins with fresh critics, not with those of known modules, which judge other tasks."""


@dataclass(frozen=True)
class Searching(Structured):
    """Settings of the lifelong agent that searches for structures."""

    modules: int | None = None
    """Modules per factor (k); by default as many as the largest factor has components."""
    search: Any = field(default_factory=ExhaustiveConfig, metadata={"table": SEARCHES})
    """How to find structures."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.modules is not None:
            check_between(self, 1, 64, "modules")

    def module_count(self, graph: ProblemGraph) -> int:
        """Modules per factor."""
        return self.modules or max(graph.shape)

    def meant(self, graph: ProblemGraph) -> dict[str, Any]:
        """How many modules there are, also where nobody said it."""
        return {"modules": self.module_count(graph)}

    def first_tasks(self, graph: ProblemGraph) -> int | None:
        """One for each module."""
        return min(self.module_count(graph), max(graph.shape))

    def check(self, *, tasks: int, steps: int, graph: ProblemGraph, horizon: int, usual: Any) -> None:
        """There is something to search for, and the search leaves something of the budget."""
        modules = self.module_count(graph)
        if self.modules is not None and tasks <= modules:
            raise InputError(
                f"modules = {modules}, but with {tasks} tasks the search would never begin: the first {modules} each "
                "get modules of their own. Give fewer modules, or more tasks."
            )
        if tasks <= modules and self.search not in (usual.search, type(self.search)()):
            raise InputError(
                f"A life of {tasks} tasks with {modules} modules per factor never searches: options of the search have "
                "no effect. Give more tasks or fewer modules, or leave them out."
            )
        structures = modules ** len(graph.factors)
        most = self.search.most_steps(structures, horizon)
        if tasks > modules and steps <= most:
            raise InputError(
                f"steps = {steps}, but the search alone may take {most}: {modules} modules per factor give "
                f"{structures} structures, and episodes have up to {horizon} steps. Give "
                "more steps, or fewer modules or search episodes."
            )
