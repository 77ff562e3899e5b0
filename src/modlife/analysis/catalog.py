"""Every experiment as a value: the lives that a figure is drawn from, at three scales. No JAX here.

`smoke` shows within minutes that everything runs, in tiny worlds: its figures say nothing about agents. `small` is the
paper's worlds (of robots, a part) with fewer steps and seeds; there the agents with modules learn offline by bounded
rehearsal and search by halving, and networks of robots are given scaled numbers. `paper` has the paper's steps, seeds
and settings. In the 2-D world baselines have at every scale what was chosen for them (`studies.TUNED`): the paper's
lambdas go with another count of information. Lives of several figures are the same lives: a name stands for one config,
whoever asks.
"""

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from modlife.analysis.studies import TUNED
from modlife.registry import Table

if TYPE_CHECKING:
    from modlife.runs.config import LifeConfig
    from modlife.runs.many import Planned

Scale = Literal["smoke", "small", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "small", "paper")


@dataclass(frozen=True)
class Lot:
    """Lives that differ in nothing but the seed."""

    name: str
    """Their run directories are called so, with the seed behind it."""
    agent: str
    seeds: int
    options: Mapping[str, Any] = field(default_factory=dict)
    """As for `modlife.config`; of groups of options each agent takes those that it has."""
    domain: str = "grid2d"

    def config(self, seed: int) -> "LifeConfig":
        """The life with a seed."""
        from modlife.domains.domain import DOMAINS
        from modlife.lifelong.agents import AGENTS
        from modlife.runs.config import LifeConfig, life_from_options, usual_settings

        settings = usual_settings(AGENTS[self.agent], DOMAINS[self.domain])
        known = {one.name for of in (LifeConfig, settings) for one in dataclasses.fields(of)}
        own = {name: value for name, value in self.options.items() if name in known}
        return life_from_options(self.agent, self.domain, {**own, "seed": seed})

    def planned(self, seed: int, folder: Path) -> "Planned":
        """The life with a seed, and its run directory in a folder."""
        from modlife.runs.many import Planned

        return Planned(self.config(seed), folder / f"{self.name}-{seed}")

    def line(self) -> str:
        """All of them as a line of a file for `modlife sweep`."""
        from modlife.runs.many import as_options

        seeds = "0" if self.seeds == 1 else f"{{0..{self.seeds - 1}}}"
        return f"{self.name}-{seeds}  {shlex.join(as_options(self.config(0)))} --seed {seeds}"


@dataclass(frozen=True)
class Experiment:
    """Lives at each scale, and the figure that shows them."""

    name: str
    about: str
    figure: str
    lots: Mapping[Scale, Sequence[Lot]]

    def planned(self, scale: Scale, folder: Path) -> list["Planned"]:
        """Its lives, seed after seed, so that an early look sees all agents."""
        lots = self.lots[scale]
        seeds = range(max(lot.seeds for lot in lots))
        return [lot.planned(seed, folder) for seed in seeds for lot in lots if seed < lot.seeds]


TINY = {"statics": ("floor", "food"), "colour_count": 2, "dynamics_count": 2}
"""A 2-D world of 8 tasks."""
QUICK: dict[str, Any] = {"steps": 12_288, "episodes": 20, "search": {"episodes": 3}, "offline": {"epochs": 5}}
ARMS = {"obstacles": ("none", "door"), "objects": ("can", "milk"), "robots": ("IIWA", "Gen3"), "preset": "fast"}
"""Eight robot tasks, with the arms that learn soonest."""
QUICK_ARMS: dict[str, Any] = {
    "world": {**ARMS, "obstacles": ("none",), "horizon": 20},
    "steps": 1600,
    "episodes": 3,
    "ppo": {"envs": 4, "length": 40, "epochs": 2, "minibatch": 40},
    "search": {"episodes": 1},
    "offline": {"epochs": 2, "batch": 64, "old_rows": 256},
    "compress": {"epochs": 2, "batch": 100, "samples": 100},
    "replay_size": 400,
}
PAPERS_ARMS: dict[str, Any] = {
    "steps": 3_600_000,
    "ppo": {"epochs": 80, "minibatch": 8000},
    "search": "exhaustive",
    "offline": "real-bcq",
    "fresh_critics": False,
}
"""What the paper did, where the usual settings cost less or learn sooner."""
BOUNDED: dict[str, Any] = {"offline": "bounded"}
OURS: dict[str, Any] = {**BOUNDED, "search": "halving"}
"""Our way to learn offline, and to search."""


def chosen(agent: str) -> Mapping[str, Any]:
    """The settings that were chosen for an agent in the 2-D world, where there are any."""
    return TUNED.get(agent, {})


def tiny(agent: str, *, tasks: int = 6, tag: str = "", **options: Any) -> Lot:
    """One life in a tiny 2-D world."""
    return Lot(f"{agent}-smoke{tag}", agent, 1, {**QUICK, "world": TINY, "tasks": tasks, **chosen(agent), **options})


def quarter(agent: str, *, tasks: int | None = None, seeds: int = 3, tag: str = "", **options: Any) -> Lot:
    """Lives in the paper's 2-D world with 250,000 steps a task; of all 64 tasks, unless so many are said."""
    length = {"steps": 250_000, "tasks": tasks}
    return Lot(f"{agent}-{tasks or 64}x250k{tag}", agent, seeds, {**length, **chosen(agent), **options})


def full(agent: str, *, tasks: int | None = None, tag: str = "", **options: Any) -> Lot:
    """The paper's lives: a million steps a task, six seeds."""
    length = {"steps": 1_000_000, "tasks": tasks}
    return Lot(f"{agent}-{tasks or 64}x1M{tag}", agent, 6, {**length, **chosen(agent), **options})


def tiny_arms(agent: str) -> Lot:
    """One life with robots whose episodes are over before anything is lifted."""
    return Lot(f"{agent}-robot-smoke", agent, 1, QUICK_ARMS, "robot")


def some_arms(agent: str, *, tag: str = "", **options: Any) -> Lot:
    """Lives with eight robot tasks, coarser physics, scaled inputs and 400,000 steps a task: most are lifted."""
    length = {"world": {**ARMS, "inputs": "scaled"}, "steps": 400_000}
    return Lot(f"{agent}{tag}-robot-8x400k", agent, 2, {**length, **options}, "robot")


def all_arms(agent: str) -> Lot:
    """The paper's lives with robots: all 48 tasks, 3.6 million steps each, three seeds."""
    return Lot(f"{agent}-robot-48x3.6M", agent, 3, PAPERS_ARMS, "robot")


INGREDIENTS: Mapping[str, Mapping[str, Any]] = {
    "": {},
    "-tasks-4": {"tasks": 4},
    "-tasks-all": {"tasks": None},
    "-epochs-10": {"epochs": 10},
    "-epochs-1": {"epochs": 1},
    "-actions": {"clone": "actions"},
    "-old-rows-all": {"old_rows": None},
    "-td-all": {"td": "all", "old_rows": None},
    "-td-none": {"td": "none"},
    "-repair-0": {"repair": 0},
    "-constant-rate": {"anneal": 1.0},
    "-new-share": {"new_share": 0.15},
}
"""Bounded rehearsal as it is, and with one of its choices made differently; `td` all needs all rows."""


def with_other(tag: str, change: Mapping[str, Any]) -> Lot:
    """Lives of 24 tasks with a choice of bounded rehearsal made differently."""
    options = {"steps": 100_000, "tasks": 24, "replay_size": 50_000, "offline": {"consolidator": "bounded", **change}}
    return Lot(f"comp-struct-24x100k-bounded{tag}", "comp-struct", 2, options)


COUNTS = (16, 32, 48)
"""Training tasks of multi-task agents, of 64."""
SEARCH, STRUCT = quarter("comp-search", tag="-halving", **OURS), quarter("comp-struct", tag="-bounded", **BOUNDED)
RANDOM_ORDER = quarter("comp-search-nc", tag="-halving", **OURS)
SEARCHING = ("comp-search-nc", "comp-search")
PLAIN = ("stl", "finetune", "ewc", "pc", "clear", "reset-distill")
BATCH_PC, MODULAR_CLEAR = quarter("pc-bcq", seeds=2, **BOUNDED), quarter("clear-modular", seeds=2)
ROBOTS = ("comp-struct", "comp-search", "stl", "pc")
ROBOTS_ABLATED = ("comp-struct", "stl", "pc", "pc-bcq")

EXPERIMENTS = Table(
    "experiment",
    Experiment(
        "fig2",
        "multi-task learning with modules and with one network: learning curves, unseen combinations",
        "fig2",
        {
            "smoke": [
                *(tiny(agent, tasks=n, tag=f"-{n}") for agent in ("mtl", "mtl-monolithic") for n in (4, 6)),
                tiny("stl"),
            ],
            "small": [
                *(quarter(agent, tasks=n, seeds=2) for agent in ("mtl", "mtl-monolithic") for n in COUNTS),
                quarter("stl"),
            ],
            "paper": [*(full(agent, tasks=n) for agent in ("mtl", "mtl-monolithic") for n in COUNTS), full("stl")],
        },
    ),
    Experiment(
        "fig3",
        "lifelong learning in the 2-D world: agents with modules beside all baselines",
        "fig3",
        {
            "smoke": [tiny(agent) for agent in ("comp-search", "comp-struct", "stl", "pc", "ewc", "clear")],
            "small": [SEARCH, STRUCT, RANDOM_ORDER, *(quarter(agent) for agent in PLAIN)],
            "paper": [full(agent) for agent in ("comp-search", "comp-struct", "comp-search-nc", *PLAIN)],
        },
    ),
    Experiment(
        "fig4",
        "lifelong learning with robots: agents with modules, single tasks, P&C",
        "fig4",
        {
            "smoke": [tiny_arms(agent) for agent in ROBOTS],
            "small": [
                *(some_arms(agent) for agent in ROBOTS),
                some_arms("comp-struct", tag="-known", fresh_critics=False),
            ],
            "paper": [all_arms(agent) for agent in ROBOTS],
        },
    ),
    Experiment(
        "figE1",
        "ablations in the 2-D world: wrong modules, chained modules, CLEAR with modules, P&C with batch RL",
        "figE1",
        {
            "smoke": [
                *(tiny(agent, tasks=n, tag=f"-{n}") for agent in ("mtl", "mtl-chain") for n in (4, 6)),
                *(tiny(agent) for agent in ("clear", "clear-modular", "pc", "pc-bcq")),
            ],
            "small": [
                *(quarter(agent, tasks=n, seeds=2) for agent in ("mtl", "mtl-chain") for n in COUNTS),
                *(SEARCH, quarter("clear"), MODULAR_CLEAR, quarter("pc"), BATCH_PC),
            ],
            "paper": [
                *(full(agent, tasks=n) for agent in ("mtl", "mtl-chain") for n in COUNTS),
                *(full(agent) for agent in ("comp-search", "clear", "clear-modular", "pc", "pc-bcq")),
            ],
        },
    ),
    Experiment(
        "figE2",
        "the searching agent with fewer and more modules than components, in the paper's order and in a random one",
        "figE2",
        {
            "smoke": [
                *(tiny(agent) for agent in SEARCHING),
                *(tiny(agent, tag=f"-modules-{n}", modules=n) for agent in SEARCHING for n in (1, 3)),
            ],
            "small": [
                *(RANDOM_ORDER, SEARCH),
                *(
                    quarter(agent, seeds=2, tag=f"-halving-modules-{n}", modules=n, **OURS)
                    for agent in SEARCHING
                    for n in (2, 3, 6)
                ),
            ],
            "paper": [
                *(full(agent) for agent in SEARCHING),
                *(full(agent, tag=f"-modules-{n}", modules=n) for agent in SEARCHING for n in (2, 3, 6, 8)),
            ],
        },
    ),
    Experiment(
        "figE3",
        "ablation with robots: P&C with batch RL",
        "figE3",
        {
            "smoke": [tiny_arms(agent) for agent in ROBOTS_ABLATED],
            "small": [some_arms(agent) for agent in ROBOTS_ABLATED],
            "paper": [all_arms(agent) for agent in ROBOTS_ABLATED],
        },
    ),
    Experiment(
        "rehearsal",
        "bounded rehearsal beside the paper's way to learn offline, drawn as Figure 3",
        "fig3",
        {
            "smoke": [tiny("comp-struct"), tiny("comp-struct", tag="-bounded", offline={"consolidator": "bounded"})],
            "small": [
                *(quarter(agent, tasks=32, tag="-bcq") for agent in ("comp-search", "comp-struct")),
                *(quarter(agent, tasks=32, tag="-bounded", **BOUNDED) for agent in ("comp-search", "comp-struct")),
                quarter("comp-search", tasks=32, tag="-halving", **OURS),
                *(SEARCH, STRUCT, quarter("comp-search", tag="-bounded", **BOUNDED)),
                quarter("comp-search", seeds=1, tag="-bcq"),
            ],
            "paper": [
                *(full(agent) for agent in ("comp-search", "comp-struct")),
                *(full(agent, tag="-bounded", **BOUNDED) for agent in ("comp-search", "comp-struct")),
                *(full(agent, tag="-halving", **OURS) for agent in SEARCHING),
            ],
        },
    ),
    Experiment(
        "ingredients",
        "bounded rehearsal with each of its choices made differently in turn, drawn as Figure 3",
        "fig3",
        {
            "smoke": [
                tiny("comp-struct", tag=f"-bounded{tag}", offline={"consolidator": "bounded", **INGREDIENTS[tag]})
                for tag in ("", "-tasks-4", "-epochs-1", "-repair-0")
            ],
            "small": [with_other(*one) for one in INGREDIENTS.items()],
            "paper": [
                quarter("comp-struct", tag=f"-bounded{tag}", offline={"consolidator": "bounded", **change})
                for tag, change in INGREDIENTS.items()
            ],
        },
    ),
)
