"""Which 2-D world: its parameters, the switches to the released code's behaviour, its problem graph. No JAX here."""

import itertools
from dataclasses import dataclass
from typing import Literal

from modlife.checks import check_fields, check_range
from modlife.domains.graph import Discrete, Factor, Part, ProblemGraph
from modlife.errors import InputError, unknown

VIEW = 7
"""Cells along each side of the agent's field of view."""

STATICS = ("wall", "floor", "food", "lava")
"""The kinds of static object."""

COLOURS = (
    *("red", "green", "blue", "purple"),  # the paper's four
    *("yellow", "grey", "orange", "cyan", "pink", "brown", "olive", "navy"),
)

PRIMITIVES = ("turn_left", "turn_right", "move_forward", "pick_object", "drop_object", "open_door")
"""What the agent can do, in the order of dynamics 0."""

PERMUTED = (0, 1, 2, 5)
"""The primitives that dynamics permute: the two turns, forward, and the door."""

PERMUTATIONS = tuple(itertools.permutations(PERMUTED))
"""In lexicographic order; the paper uses the first four."""

LARGEST = 18
"""Largest grid: its inner cells still can be drawn exactly from 24 random bits (`environment.below`)."""


@dataclass(frozen=True)
class World:
    """The 2-D world as a family; the defaults are the paper's world with its 64 tasks.

    The last five fields are switches: their defaults follow the paper's text, `World.released()` follows the
    authors' released code.
    """

    size: int = 8
    """Cells along each side of the grid, the outer wall included."""
    statics: tuple[str, ...] = STATICS
    """Static objects that tasks are made of, from wall, floor, food, lava."""
    colour_count: int = 4
    """Target colours, 1 to 12; every task shows one target of each."""
    dynamics_count: int = 4
    """Agent dynamics, 1 to 24: permutations of what four of the actions do."""
    horizon: int = 64
    """Steps after which an episode is cut off."""
    channel_order: Literal["paper", "released"] = "paper"
    """Object channels: wall floor food lava door (paper) or wall floor door food lava (released)."""
    agent_channel: Literal["location", "centre"] = "location"
    """Where the agent channel holds the direction: at the agent's cell (paper) or mid-view (released)."""
    actions: Literal[6, 7] = 6
    """Six actions (paper), or seven with a last one that does nothing (released)."""
    gap_rows: Literal["all", "released"] = "all"
    """Rows where the gap or door may be: all (paper), or all but the last (released)."""
    time_limit: Literal["truncates", "terminates"] = "truncates"
    """Whether reaching the horizon is reported as truncated or, as in the released code, as terminated."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.statics:
            raise InputError(f"statics is empty; take some of {', '.join(STATICS)}.")
        for name in self.statics:
            if name not in STATICS:
                raise unknown("static object", name, STATICS)
        if len(set(self.statics)) < len(self.statics):
            raise InputError(f"statics = {', '.join(self.statics)} names an object twice.")
        check_range("colour_count", self.colour_count, 1, len(COLOURS))
        check_range("dynamics_count", self.dynamics_count, 1, len(PERMUTATIONS))
        check_range("horizon", self.horizon, 1, 2**20)
        check_range(
            "size", self.size, smallest_size(self.colour_count), LARGEST, why=f"with {self.colour_count} colours"
        )

    @classmethod
    def released(cls) -> "World":
        """The world as the authors' released code has it."""
        return cls(
            channel_order="released", agent_channel="centre", actions=7, gap_rows="released", time_limit="terminates"
        )

    @property
    def room(self) -> int:
        """Cells along each side inside the outer wall."""
        return self.size - 2

    @property
    def columns(self) -> range:
        """Where the column of static objects may stand: never next to the outer wall."""
        return range(2, self.size - 2)

    @property
    def gaps(self) -> range:
        """Rows where the column's gap may be."""
        return range(1, self.size - (1 if self.gap_rows == "all" else 2))

    @property
    def channels(self) -> tuple[str, ...]:
        """What the seven observation channels show, in order."""
        paper = ("wall", "floor", "food", "lava", "door")
        released = ("wall", "floor", "door", "food", "lava")
        return (*(paper if self.channel_order == "paper" else released), "target", "agent")

    @property
    def graph(self) -> ProblemGraph:
        """Static object, then target, then dynamics, each seeing its own channels (paper, Appendix D.1)."""
        return ProblemGraph(
            name="grid2d",
            factors=(
                Factor("static", self.statics, sees=("static",)),
                Factor("target", COLOURS[: self.colour_count], sees=("target",)),
                Factor("dynamics", tuple(f"dynamics-{n}" for n in range(self.dynamics_count)), sees=("agent",)),
            ),
            state=(Part("static", (5, VIEW, VIEW)), Part("target", (1, VIEW, VIEW)), Part("agent", (1, VIEW, VIEW))),
            actions=Discrete(tuple(f"action-{n}" for n in range(self.actions))),
        )

    def action_table(self) -> tuple[tuple[int, ...], ...]:
        """For each dynamics, the primitive that each action stands for; the seventh action is its own no-op."""
        rows = []
        for permutation in PERMUTATIONS[: self.dynamics_count]:
            row = list(range(self.actions))
            for place, primitive in zip(PERMUTED, permutation, strict=True):
                row[place] = primitive
            rows.append(tuple(row))
        return tuple(rows)


def smallest_size(colours: int) -> int:
    """The smallest grid with a column to split it and free cells for the agent and every target."""
    return next(size for size in itertools.count(5) if (size - 3) * (size - 2) >= 1 + colours)
