"""What a life is made from: one frozen, documented value, written to and read from JSON."""

import dataclasses
import types
import typing
from dataclasses import MISSING, dataclass, field
from typing import Any, Literal

from modlife.domains import curricula
from modlife.domains.grid2d.spec import World
from modlife.errors import InputError, unknown
from modlife.learners.config import BCQConfig, PPOConfig
from modlife.types import Curriculum, Task

AGENTS = {
    "comp-struct": "the lifelong agent with modules, told the structure of every task",
    "comp-search": "the lifelong agent with modules, searching for structures; first tasks with distinct components",
    "comp-search-nc": "the same with no curriculum: tasks in random order",
    "stl": "single-task learning: a fresh network for each task",
    "mtl": "multi-task learning with one module per component, the structure given",
    "mtl-chain": "the same with chained input: only the first module sees the state (ablation)",
    "mtl-monolithic": "multi-task learning with one network that is told the task's components",
}


@dataclass(frozen=True)
class LifeConfig:
    """One agent over one curriculum with one seed."""

    agent: str = "mtl"
    """Who learns; `modlife list` shows all agents."""
    tasks: int | None = None
    """How many tasks: the first of the order (stl), or as many to train on at once (mtl); by default all."""
    only: tuple[str, ...] = ()
    """Exactly these tasks instead, each as one component per factor, such as wall/red/dynamics-2."""
    steps: int = 1_000_000
    """Environment steps per task."""
    seed: int = 0
    """Everything random follows from it."""
    episodes: int = 100
    """Episodes per task in the evaluation after each stage; ten times as many at the end."""
    world: World = field(default_factory=World)
    """Which 2-D world; the defaults are the paper's."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    """How to learn online."""
    modules: int | None = None
    """Modules per factor of the agents that search (k); by default as many as the largest factor has components."""
    search_episodes: int = 10
    """Episodes with which the search tries each structure; their steps count against the budget."""
    bcq: BCQConfig = field(default_factory=BCQConfig)
    """How to learn offline."""

    def __post_init__(self) -> None:
        if self.agent not in AGENTS:
            raise unknown("agent", self.agent, AGENTS)
        if self.steps < 1:
            raise InputError(f"steps = {self.steps}, but an agent needs at least 1 environment step per task to learn.")
        if self.episodes < 2:
            raise InputError(f"episodes = {self.episodes}, but an evaluation needs at least 2.")
        if self.seed < 0:
            raise InputError(f"seed = {self.seed}, but a seed is 0 or more.")
        if self.only and self.tasks is not None:
            raise InputError("Give either how many tasks or which ones, not both.")
        self.check_search()

    def check_search(self) -> None:
        """The search for structures makes sense, and leaves something of the budget."""
        if self.modules is not None and self.modules < 1:
            raise InputError(f"modules = {self.modules}, but an agent needs at least 1 per factor.")
        if self.search_episodes < 1:
            raise InputError(f"search_episodes = {self.search_episodes}, but a structure needs at least 1 to be tried.")
        if self.searches and len(self.chosen_tasks()) > self.module_count and self.steps <= self.most_search_steps:
            raise InputError(
                f"steps = {self.steps}, but the search alone may take {self.most_search_steps}: {self.module_count} "
                f"modules per factor give {self.structure_count} structures, tried for {self.search_episodes} episodes "
                f"of up to {self.world.horizon} steps. Give more steps, or fewer modules or search episodes."
            )

    @property
    def multi_task(self) -> bool:
        """Whether all tasks are learnt at once."""
        return self.agent.startswith("mtl")

    @property
    def searches(self) -> bool:
        """Whether the agent looks for structures."""
        return self.agent.startswith("comp-search")

    @property
    def module_count(self) -> int:
        """Modules per factor of an agent that searches."""
        return self.modules or max(self.world.graph.shape)

    @property
    def structure_count(self) -> int:
        """Structures that a search tries."""
        return self.module_count ** len(self.world.graph.factors)

    @property
    def most_search_steps(self) -> int:
        """Environment steps that a search takes if no episode ends early."""
        return self.structure_count * self.search_episodes * self.world.horizon

    @property
    def curriculum(self) -> Curriculum:
        """One task after the other, or one stage of training tasks in which every component occurs."""
        chosen = self.chosen_tasks()
        if self.multi_task:
            return curricula.multi_task(chosen)
        return curricula.lifelong(f"{self.agent}, seed {self.seed}", chosen)

    def chosen_tasks(self) -> tuple[Task, ...]:
        """The tasks to learn."""
        graph = self.world.graph
        if self.only:
            return tuple(graph.parse(text) for text in self.only)
        count = graph.task_count if self.tasks is None else self.tasks
        if self.multi_task:
            return curricula.held_out(graph, train=count, seed=self.seed).train
        if not 1 <= count <= graph.task_count:
            raise InputError(f"tasks = {count}, but '{graph.name}' has {graph.task_count}.")
        if self.agent == "comp-search-nc":
            return curricula.random_order(graph, seed=self.seed).tasks[:count]
        disjoint = min(self.module_count, max(graph.shape)) if self.searches else None
        return curricula.paper_order(graph, seed=self.seed, disjoint=disjoint).tasks[:count]


def to_json(value: Any) -> Any:
    """A config as plain JSON values."""
    return dataclasses.asdict(value)


def from_json(kind: type, data: Any, *, where: str = "config") -> Any:
    """A config from JSON values that may come from anywhere: every name and type is checked, nothing is run."""
    if not isinstance(data, dict):
        raise InputError(f"{where} must be a table of fields, but is {data!r}.")
    hints = typing.get_type_hints(kind)
    for name in data:
        if name not in hints:
            raise unknown(f"field in {where}", name, hints)
    for one in dataclasses.fields(kind):
        if one.name not in data and one.default is MISSING and one.default_factory is MISSING:
            raise InputError(f"{where} has no field '{one.name}'.")
    return kind(**{name: checked(hints[name], value, where=f"{where}.{name}") for name, value in data.items()})


def checked(hint: Any, value: Any, *, where: str) -> Any:
    """The value if it has the type that the field asks for."""
    options = typing.get_args(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return from_json(hint, value, where=where)
    if typing.get_origin(hint) is tuple and isinstance(value, list):
        return tuple(checked(options[0], one, where=where) for one in value)
    if typing.get_origin(hint) is Literal and value in options:
        return value
    if isinstance(hint, types.UnionType) and any(type(value) is option for option in options):
        return value
    if type(value) is hint or (hint is float and type(value) is int):
        return value
    raise InputError(f"{where} = {value!r}, which is not of the type {hint}.")
