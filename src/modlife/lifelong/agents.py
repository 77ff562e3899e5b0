"""The table of agents: each one value, from which commands, configs and figures work. No JAX here."""

from dataclasses import dataclass
from typing import Any

from modlife.domains.domain import Domain
from modlife.registry import Table


@dataclass(frozen=True)
class AgentEntry:
    """An agent by name. What is a string is `package.module:name`, imported when needed."""

    name: str
    about: str
    label: str
    """What figures call it."""
    colour: str
    """What figures draw it in; every agent has its own."""
    build: str | Any
    """Takes a `Plan`, gives an `Agent`."""
    settings: str | type = "modlife.lifelong.settings:Online"
    """A frozen dataclass that satisfies `Settings`: its fields are the agent's options."""
    curriculum: str = "paper"
    """Its usual one."""
    alone: bool = False
    """Whether it learns every task by itself: its lives are what transfer in all others is measured against."""
    slower: float = 1.0
    """How many times as long as `comp-struct` it learns online, doing more in a step: for estimates of its time."""


@dataclass(frozen=True)
class Plan:
    """What an agent is built from."""

    domain: Domain
    env: Any
    """Its `Environment`."""
    modules: Any
    """The `Modules` that its networks are chained from."""
    settings: Any
    steps: int
    """Environment steps per task."""
    episodes: int
    """Episodes per task of evaluations on the way."""
    tasks: int
    """How many are planned."""
    devices: int = 1


AGENTS = Table(
    "agent",
    AgentEntry(
        "comp-struct",
        "the lifelong agent with modules, told the structure of every task",
        "Comp.+Struct.",
        "#2a7f62",
        "modlife.lifelong.compositional:told",
        "modlife.lifelong.settings:Structured",
    ),
    AgentEntry(
        "comp-search",
        "the lifelong agent with modules, searching for structures; first tasks with distinct components",
        "Comp.+Search",
        "#1f6fb4",
        "modlife.lifelong.compositional:searching",
        "modlife.lifelong.settings:Searching",
    ),
    AgentEntry(
        "comp-search-nc",
        "the same with no curriculum: tasks in random order",
        "Comp.+Search-NC",
        "#7b5ea7",
        "modlife.lifelong.compositional:searching",
        "modlife.lifelong.settings:Searching",
        curriculum="random",
    ),
    AgentEntry(
        "stl",
        "single-task learning: a fresh network for each task",
        "STL",
        "#777777",
        "modlife.lifelong.single_task:build",
        alone=True,
    ),
    AgentEntry(
        "finetune",
        "one network goes on from task to task, and nothing protects what it has learnt",
        "Fine-tuning",
        "#a65628",
        "modlife.lifelong.finetune:build",
    ),
    AgentEntry(
        "ewc",
        "online EWC: one network, drawn back in parameters that old tasks depend on",
        "EWC",
        "#e377c2",
        "modlife.lifelong.ewc:build",
        "modlife.lifelong.settings:Elastic",
        slower=1.15,
    ),
    AgentEntry(
        "pc",
        "Progress & Compress: an active column learns beside a frozen knowledge base, and is folded into it with EWC",
        "P&C",
        "#ff7f0e",
        "modlife.lifelong.progress_compress:build",
        "modlife.lifelong.settings:Compressed",
        slower=3.2,
    ),
    AgentEntry(
        "pc-bcq",
        "Progress & Compress whose knowledge base learns by batch RL from replay of all tasks (ablation)",
        "P&C+BCQ",
        "#c44e00",
        "modlife.lifelong.progress_batch:build",
        "modlife.lifelong.settings:Told",
        slower=3.2,
    ),
    AgentEntry(
        "clear",
        "CLEAR: one network that rehearses old tasks in every gradient step, off-policy and by cloning",
        "CLEAR",
        "#bcbd22",
        "modlife.lifelong.clear:build",
        "modlife.lifelong.settings:Rehearsed",
        slower=2.5,
    ),
    AgentEntry(
        "clear-modular",
        "the same with a module for each component, the structure given (ablation)",
        "CLEAR modular",
        "#6b8e23",
        "modlife.lifelong.clear:modular",
        "modlife.lifelong.settings:Rehearsed",
        slower=4.2,
    ),
    AgentEntry(
        "reset-distill",
        "a fresh network learns each task, and is distilled into one network together with samples of old tasks",
        "Reset & Distill",
        "#556b2f",
        "modlife.lifelong.reset_distill:build",
        "modlife.lifelong.settings:Distilled",
    ),
    AgentEntry(
        "mtl",
        "multi-task learning with one module per component, the structure given",
        "MTL modular",
        "#17a2b8",
        "modlife.lifelong.multi_task:modular",
        curriculum="together",
    ),
    AgentEntry(
        "mtl-chain",
        "the same with chained input: only the first module sees the state (ablation)",
        "MTL chain",
        "#e8a33d",
        "modlife.lifelong.multi_task:chained",
        curriculum="together",
    ),
    AgentEntry(
        "mtl-monolithic",
        "multi-task learning with one network that is told the task's components",
        "MTL monolithic",
        "#d1495b",
        "modlife.lifelong.multi_task:monolithic",
        curriculum="together",
    ),
)
