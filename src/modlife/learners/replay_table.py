"""The replay of several tasks on the devices, for learners that go through it many times.

A task has a *pattern*: which of its modules move. Modules that stand before the first moving one give constant
features, which are computed once and kept, as far as there is room. Shapes only depend on how many tasks there is room
for, so little is compiled anew as tasks accumulate.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num, UInt32

from modlife.domains.env import Environment, PRNGKey
from modlife.learners.replay import AnyReplay, Packing, Transition, cut_off, following
from modlife.learners.sharding import ALL, SECOND, THIRD, Devices, specs_of
from modlife.policies.bank import Bank, Chain
from modlife.policies.modular import AnyOutput, Described, Modular, Pattern
from modlife.types import Structure

SLOT = 32
"""Features in a slot; a task takes as many slots as its features need."""
SLOTS = 36
"""Slots there are: 0.46 GB with 100,000 transitions per task; the 2-D world's true structures need 33."""
SAMPLES = 512
"""Samples in one pass while something is computed for all rows."""
ROOM = 16
"""Tasks that the smallest table has room for; a larger one has room for twice as many, and so on."""

ONE = Devices()


def room_for(tasks: int) -> int:
    """The room of the smallest table that holds this many tasks."""
    return ROOM << max(0, (tasks - 1) // ROOM).bit_length()


@dataclass(frozen=True)
class Lesson:
    """One task's part of a table."""

    structure: Structure
    pattern: Pattern
    replay: AnyReplay
    weight: float = 1.0
    """How much it counts, where 1 is the mean over the tasks of a table."""


class ReplayTable(eqx.Module):
    """What compiled steps read; axis [task] may have room for more tasks than there are."""

    rows: UInt32[Array, "task time E W"]
    """Packed transitions, then the rows that `Replay` has after them."""
    following: Int[Array, "task step E"]
    """Where the observation after each transition stands; without finals, in the next row, and this is empty."""
    features: Float[Array, "slot kept E 32"]
    bank: Bank
    structures: Int[Array, "task F"]
    times: Int[Array, " task"]
    """Time steps of transitions in each task's replay."""
    lengths: Int[Array, " task"]
    """All rows of it."""
    slots: Int[Array, " task"]
    """Where each task's features lie; -1 where they are computed when needed."""
    patterns: Int[Array, " task"]
    """The number of each task's pattern."""
    weights: Float[Array, " task"]
    """How much each task counts."""
    count: Int[Array, ""]
    """How many tasks there are."""


PLACED = specs_of(
    ReplayTable,
    **dict.fromkeys(("rows", "following", "features"), THIRD),
    **dict.fromkeys(("bank", "structures", "times", "lengths", "slots", "patterns", "weights", "count"), ALL),
)
"""How a table lies on devices: rows in shares of environments, all else everywhere."""


@dataclass(frozen=True)
class Layout:
    """How tables are laid out, filled and read."""

    env: Environment
    network: Modular | Described
    room: int
    """Tasks that there is room for."""
    times: int
    """Most time steps in a replay."""
    envs: int
    """Environments in a replay."""
    finals: bool = False
    """Whether replays tell what time limits cut off."""
    devices: Devices = ONE
    old_times: int | None = None
    """Most time steps in the replay of a task of which some module stands still, where that is less."""

    @property
    def packing(self) -> Packing:
        """How rows are packed."""
        return Packing.of(self.env)

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """All patterns of this network."""
        return self.network.patterns

    @property
    def extent(self) -> tuple[int, int]:
        """Rows of a task: over time, and over environments."""
        return self.times + 1 + (self.times // self.env.horizon + 1 if self.finals else 0), self.envs

    @property
    def kept_extent(self) -> tuple[int, int]:
        """Rows of a task of which features are kept: some module stands still before the first one that moves."""
        return self.extent if self.old_times is None else (self.old_times + 1, self.envs)

    @property
    def slot_count(self) -> int:
        """Slots for features; none where nothing ever stands before the first module that moves."""
        return SLOTS if any(self.network.width(pattern.index(True)) for pattern in self.patterns) else 0

    # Filling

    def refill(self, table: ReplayTable, lessons: Sequence[Lesson]) -> ReplayTable:
        """The table with other tasks in the place of all but the first, which stays; features yet to be kept."""
        rows = table.rows
        for task, lesson in enumerate(lessons[1:], start=1):
            rows = put(rows, np.int32(task), self.devices.place(lesson.replay.rows, SECOND))
        parts = {**self.facts(lessons), "following": self.following([lesson.replay for lesson in lessons])}
        return replace(table, rows=rows, **self.placed(parts))

    def with_features(self, table: ReplayTable, lessons: Sequence[Lesson]) -> Iterator[ReplayTable]:
        """The table with more and more features kept, as far as there is room; the last one is complete."""
        yield table
        for task, (lesson, slot) in enumerate(zip(lessons, self.slots(lessons), strict=True)):
            if slot >= 0:
                table = jax.block_until_ready(self.keep_features(table, task, depth=lesson.pattern.index(True)))
                yield table

    def fill(self, bank: Bank, lessons: Sequence[Lesson]) -> ReplayTable:
        """A table of these tasks, features yet to be kept."""
        replays = [lesson.replay for lesson in lessons]
        parts: dict[str, Any] = {
            "bank": bank,
            "features": self.devices.zeros((self.slot_count, *self.kept_extent, SLOT), THIRD),
            "rows": self.rows(replays),
            "following": self.following(replays),
            **self.facts(lessons),
        }
        return ReplayTable(**self.placed(parts))

    def facts(self, lessons: Sequence[Lesson]) -> dict[str, np.ndarray]:
        """What a table says of its tasks besides their rows."""
        replays, weights = [lesson.replay for lesson in lessons], np.zeros(self.room, np.float32)
        weights[: len(lessons)] = [lesson.weight for lesson in lessons]
        return {
            "structures": self.padded([lesson.structure for lesson in lessons], (len(self.patterns[0]),)),
            "times": self.padded([replay.times for replay in replays]),
            "lengths": self.padded([replay.length for replay in replays]),
            "slots": self.padded(self.slots(lessons), fill=-1),
            "patterns": self.padded([self.patterns.index(lesson.pattern) for lesson in lessons]),
            "weights": weights,
            "count": np.array(len(lessons), np.int32),
        }

    def placed(self, parts: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of a table, where they lie on the devices."""
        return {name: self.devices.place(part, getattr(PLACED, name)) for name, part in parts.items()}

    def padded(self, values: Sequence[Any], shape: tuple[int, ...] = (), *, fill: int = 0) -> Int[np.ndarray, "..."]:
        """Whole numbers of each task, and of those that there is room for."""
        table = np.full((self.room, *shape), fill, np.int32)
        table[: len(values)] = values
        return table

    def slots(self, lessons: Sequence[Lesson]) -> list[int]:
        """The first slot of each task whose features can be kept, -1 for the others."""
        slots, free = [], 0
        for lesson in lessons:
            needed = -(-self.network.width(lesson.pattern.index(True)) // SLOT)
            fits = 0 < needed <= SLOTS - free
            slots.append(free if fits else -1)
            free += needed if fits else 0
        return slots

    def rows(self, replays: Sequence[AnyReplay]) -> UInt32[Array, "task time E words"]:
        """The replays on the devices, put there one by one: together they are never in memory twice."""
        table = self.devices.zeros((self.room, *self.extent, self.packing.words), THIRD, dtype=jnp.uint32)
        for task, replay in enumerate(replays):
            table = put(table, np.int32(task), self.devices.place(replay.rows, SECOND))
        return table

    def following(self, replays: Sequence[AnyReplay]) -> Int[np.ndarray, "task step E"]:
        """Where the observation after each transition stands; empty where that is the next row anyway."""
        table = np.zeros((self.room, self.times if self.finals else 0, self.envs), np.int32)
        for task, replay in enumerate(replays if self.finals else ()):
            truncated = np.asarray(cut_off(self.packing, replay.rows[: replay.times]))
            table[task, : replay.times] = following(truncated, shares=self.devices.count)
        return table

    def keep_features(self, table: ReplayTable, task: int, *, depth: int) -> ReplayTable:
        """The table with the features of a task in their slots; the old table's features are gone."""
        kept = over_rows(self, depth, self.kept_extent[0], frozen_features, table, np.int32(task))
        features, first = table.features, np.asarray(table.slots)[task]
        for n in range(kept.shape[-1] // SLOT):
            features = put(features, first + np.int32(n), kept[..., n * SLOT : (n + 1) * SLOT])
        return eqx.tree_at(lambda x: x.features, table, features)

    # Reading

    def samples(self, table: ReplayTable, task: Array, index: Int[Array, " B"]) -> Transition:
        """Rows of a task, counted over time and environments."""
        return self.packing.unpack(gather(table.rows, task, index))

    def after(self, table: ReplayTable, task: Array, index: Int[Array, " B"]) -> Int[Array, " B"]:
        """Where the observations after transitions stand."""
        if self.finals:
            return gather(table.following[..., None], task, index)[:, 0]
        return index + table.rows.shape[2]

    def features(
        self, table: ReplayTable, task: Array, index: Int[Array, " B"], *, depth: int
    ) -> Float[Array, "n B"] | None:
        """What the modules before a depth make of rows of a task: kept, or computed."""
        if depth == 0:
            return None
        slot, width = table.slots[task], self.network.width(depth)

        def kept() -> Float[Array, "n B"]:
            pieces = [gather(table.features, slot + n, index).T for n in range(-(-width // SLOT))]
            return jnp.concatenate(pieces)[:width]

        return jax.lax.cond(slot >= 0, kept, lambda: self.computed(table, task, index, depth=depth))

    def computed(self, table: ReplayTable, task: Array, index: Int[Array, " B"], *, depth: int) -> Float[Array, "n B"]:
        """What the modules before a depth make of rows of a task."""
        frozen = Bank(table.bank.factors[:depth]).pick(table.structures[task][:depth])
        parts = self.env.parts(self.samples(table, task, index).observation)
        return self.network.features(frozen, parts, depth=depth)


@dataclass(frozen=True)
class Rows:
    """Some rows of one task, while a program is being compiled."""

    layout: Layout
    table: ReplayTable
    task: Array
    index: Int[Array, " B"]
    frozen: Chain
    """The task's modules in the bank."""
    pattern: Pattern
    is_new: bool = False
    """Whether it is known to be the task in hand."""
    target: Chain | None = None
    """The current task's modules as they follow slowly, and ..."""
    key: PRNGKey | None = None
    """... a key for what is drawn: where a consolidator asks for such (`learners.offline.Consolidator.follows`)."""

    @cached_property
    def transition(self) -> Transition:
        """What they hold."""
        return self.layout.samples(self.table, self.task, self.index)

    @cached_property
    def after(self) -> "Rows":
        """The rows that hold what was seen after each of these transitions."""
        index = self.layout.after(self.table, self.task, self.index)
        return replace(self, index=index)

    def reader(self) -> Callable[[Chain], AnyOutput]:
        """What the task's chain says of these rows, by its modules that move; everything else is read here, once."""
        depth, network = self.pattern.index(True), self.layout.network
        parts = self.layout.env.parts(self.transition.observation)
        features = self.layout.features(self.table, self.task, self.index, depth=depth)

        def output(own: Chain) -> AnyOutput:
            pairs = zip(own, self.frozen, self.pattern, strict=True)
            policy = tuple(mine if moves else other for mine, other, moves in pairs)
            return network.onward(policy, parts, features, depth=depth)

        return output


@partial(jax.jit, donate_argnums=0)
def put(table: Num[Array, "n time E w"], number: Array, rows: Num[Array, "some E w"]) -> Num[Array, "n time E w"]:
    """The table with the rows of one task, or slot, replaced, from the first time step on; in place."""
    none = jnp.int32(0)
    return jax.lax.dynamic_update_slice(table, rows[None].astype(table.dtype), (number, none, none, none))


def gather(table: Num[Array, "n time E w"], task: Array, index: Int[Array, " B"]) -> Num[Array, "B w"]:
    """Rows of one task of a table [task, time, env, ...], counted over time and environments, as one gather."""
    tasks, times, envs, width = table.shape
    flat = table.reshape(tasks * times * envs, width)
    return flat.at[task * (times * envs) + index].get(mode="promise_in_bounds")


def frozen_features(
    layout: Layout, depth: int, table: ReplayTable, task: Array, index: Int[Array, " B"]
) -> Float[Array, "B w"]:
    """What the modules before a depth make of rows, padded to whole slots."""
    features = layout.computed(table, task, index, depth=depth)
    return jnp.pad(features, ((0, -features.shape[0] % SLOT), (0, 0))).T


OfRows = Callable[..., Float[Array, "B w"]]
"""Some numbers for each row of a task: takes what `frozen_features` takes, and `more`."""


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def over_rows(
    layout: Layout, depth: int, times: int, function: OfRows, table: ReplayTable, task: Array, *more: Any
) -> Float[Array, "time E w"]:
    """The function of all rows of a task, of which there are so many over time, some at a time; zero after its last."""

    def share(table: ReplayTable, task: Array, *more: Any) -> Array:
        envs = table.rows.shape[2]
        size = min(SAMPLES, times * envs)
        some = jax.ShapeDtypeStruct((size,), jnp.int32)
        width = jax.eval_shape(partial(function, layout, depth, table, task), some, *more).shape[1]

        def body(number: Array, result: Array) -> Array:
            # The last piece begins earlier, so that it ends with the table: some rows are computed twice.
            start = jnp.minimum(number * size, times * envs - size)
            found = function(layout, depth, table, task, start + jnp.arange(size, dtype=jnp.int32), *more)
            return jax.lax.dynamic_update_slice(result, found, (start, jnp.int32(0)))

        pieces = -(-table.lengths[task] * envs // size)
        result = jax.lax.fori_loop(0, pieces, body, jnp.zeros((times * envs, width)))
        return result.reshape(times, envs, width)

    return layout.devices.run(share, (PLACED, ALL, *[ALL] * len(more)), SECOND)(table, task, *more)
