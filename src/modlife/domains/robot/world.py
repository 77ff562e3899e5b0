"""Which robot tasks: their parameters, the switches to the released code's behaviour, the problem graph.

No MuJoCo here, so that the command line can read it quickly and without the `robot` extra.
"""

import itertools
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from modlife.checks import check_fields, check_range
from modlife.domains.domain import Rates
from modlife.domains.graph import Continuous, Factor, Part, ProblemGraph
from modlife.errors import InputError, unknown

OBSTACLES = ("none", "wall", "door")
OBJECTS = ("can", "milk", "cereal", "bread")
ROBOTS = ("Sawyer", "IIWA", "Gen3", "Panda")

JOINTS = 7
ACTIONS = JOINTS + 1

SEEN = (Part("obstacle", (14,)), Part("object", (14,)), Part("goal", (17,)), Part("robot", (32,)))
"""What is observed, in order."""
*SPLITS, OBSERVED = itertools.accumulate(part.shape[0] for part in SEEN)
"""Where one part of an observation ends and the next begins, and the whole length."""


USUAL: dict[str, Any] = {
    "ppo": {
        "length": 500,
        "epochs": 10,
        "minibatch": 500,
        "adam_eps": 1e-5,
        "discount": 0.995,
        "gae_lambda": 0.97,
        "value_weight": 1.0,
        "entropy_weight": 0.0,
        "max_grad_norm": None,
        "clip_value": False,
        "stop_divergence": 0.075,
        "timid_start": 0.01,
        "normalise_advantages": True,
        "bootstrap_truncated": True,
    },
    "search": {"search": "halving", "margin": 0.0},
    "offline": {"consolidator": "bounded", "epochs": 10, "td": "none", "acting": "actor", "drop": 10.0},
    "compress": {"epochs": 100, "batch": 1200},
    "fresh_critics": True,
    "episodes": 10,
}
"""What agents are told here: the paper's and the released code's numbers, but for what would cost too much.

The released code makes 80 gradient steps, with all 8,000 samples (`epochs` 80, `minibatch` 8000) for single tasks and
P&C, with some 240 for agents with modules; it tries every structure, and learns offline by `real-bcq`. A drop of 10 is
2 % of the highest return; a margin for structures that no other task has was not tried here.
"""


class Preset(NamedTuple):
    """How finely physics is integrated: an action takes 50 ms in any case."""

    timestep: float
    substeps: int


PresetName = Literal["paper", "fast"]
PRESETS: dict[PresetName, Preset] = {"paper": Preset(0.002, 25), "fast": Preset(0.005, 10)}
RATES: dict[PresetName, Rates] = {
    "paper": Rates(800, 0.2, 10, 300_000, 1_000),
    "fast": Rates(1_500, 0.35, 10, 300_000, 2_300),
}


@dataclass(frozen=True)
class RobotWorld:
    """The robot domain as a family of tasks; the defaults are the paper's 48."""

    obstacles: tuple[str, ...] = OBSTACLES
    """Obstacles that tasks are made of, from none, wall, door."""
    objects: tuple[str, ...] = OBJECTS
    """Objects to lift, from can, milk, cereal, bread."""
    robots: tuple[str, ...] = ROBOTS
    """Arms, from Sawyer, IIWA, Gen3, Panda."""
    preset: PresetName = "paper"
    """Physics steps of 2 ms, 25 to an action (paper), or of 5 ms, 10 to an action (fast)."""
    reward: Literal["paper", "released"] = "paper"
    """The paper's formulas, or those of the authors' released code."""
    object_area: Literal["strip", "half"] = "strip"
    """Where objects start: the released code's strip behind the table's middle, or all of the table's right half."""
    horizon: int = 500
    """Steps after which an episode is cut off."""
    inputs: Literal["plain", "scaled"] = "plain"
    """What networks are given: numbers as they are observed, as in the paper (plain); or these centred and scaled to
    about 1, in the same way for all tasks."""

    def __post_init__(self) -> None:
        check_fields(self)
        for field, known in (("obstacles", OBSTACLES), ("objects", OBJECTS), ("robots", ROBOTS)):
            chosen = getattr(self, field)
            if not chosen or len(set(chosen)) < len(chosen):
                raise InputError(f"{field} = {', '.join(chosen) or 'nothing'}: name at least one, and none twice.")
            for name in chosen:
                if name not in known:
                    raise unknown(field.removesuffix("s"), name, known)
        check_range("horizon", self.horizon, 1, 2**20)

    @property
    def timing(self) -> Preset:
        """Length and number of physics steps in an action."""
        return PRESETS[self.preset]

    @property
    def graph(self) -> ProblemGraph:
        """Obstacle, then object, then robot, which also sees the goal (paper, Appendix D.2)."""
        return ProblemGraph(
            name="robot",
            factors=(
                Factor("obstacle", self.obstacles, sees=("obstacle",)),
                Factor("object", self.objects, sees=("object",)),
                Factor("robot", self.robots, sees=("goal", "robot")),
            ),
            state=SEEN,
            actions=Continuous(ACTIONS),
            highest_return=float(self.horizon),
        )


def rates(world: RobotWorld) -> Rates:
    """How fast lives go in a world."""
    return RATES[world.preset]
