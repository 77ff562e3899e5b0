"""The data of an offline stage: the replay of the tasks that share a module with the current one.

Shapes are the same all life long, however many tasks there are, so nothing is compiled anew as tasks accumulate.
A task has a *pattern*: which of its modules are the current task's, and so move. Modules that stand before the first
moving one give constant features, which are computed once per stage and kept, as far as there is room.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num, UInt32

from modlife.domains.env import Environment
from modlife.learners.devices import ALL, SECOND, THIRD, Devices
from modlife.learners.replay import Packing, Transition
from modlife.policies.bank import pick
from modlife.policies.networks import Modular

SLOT = 32
"""Features in a slot; a task takes as many slots as its features need."""
SLOTS = 36
"""Slots there are: 0.46 GB with 100,000 transitions per task; the 2-D world's true structures need 33."""
SAMPLES = 512
"""Samples in one pass while features or target values are computed."""

Pattern = tuple[bool, ...]
"""Which factors' modules move."""


def patterns(depth: int) -> tuple[Pattern, ...]:
    """All patterns with at least one moving module, in the order of the first that moves."""
    return tuple(sorted((p for p in itertools.product((False, True), repeat=depth) if any(p)), reverse=True))


class Lessons(eqx.Module):
    """What the compiled steps of an offline stage read; axis [task] has room for all tasks of the life."""

    rows: UInt32[Array, "task time E W"]
    """Packed transitions; the row after a task's last one holds the observation that came last."""
    values: Float[Array, "task time E A"]
    """Q of the target network in each row's observation."""
    features: Float[Array, "slot time E 32"]
    bank: tuple
    structures: Int[Array, "task F"]
    times: Int[Array, " task"]
    """Time steps in each task's replay."""
    slots: Int[Array, " task"]
    """Where each task's features lie; -1 where they are computed when needed."""
    patterns: Int[Array, " task"]
    """The number of each task's pattern."""
    count: Int[Array, ""]
    """How many tasks there are."""


PLACED = Lessons(THIRD, THIRD, THIRD, *[ALL] * 6)  # pyright: ignore[reportArgumentType]  # specs for arrays


@dataclass(frozen=True)
class Reader:
    """How lessons are laid out, and read, for one life."""

    env: Environment
    network: Modular
    capacity: int
    """Tasks in the life."""
    times: int
    """Most time steps in a replay."""
    envs: int
    """Environments in a replay."""
    devices: Devices

    @property
    def packing(self) -> Packing:
        """How rows are packed."""
        return Packing.of(self.env)

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """All patterns of this network."""
        return patterns(len(self.network.sizes))

    def open(
        self, bank: tuple, structures: Sequence[tuple[int, ...]], replays: Sequence[np.ndarray]
    ) -> tuple[Lessons, list[Pattern], list[tuple[int, int]]]:
        """Lessons over those of the tasks that share a module with the last one, which is the current one.

        Also the pattern of each of them, in the lessons' order; and (task, depth) for `keep`: the tasks whose modules
        before that depth are frozen and whose features there is room for.
        """
        current = structures[-1]
        shared = [tuple(a == b for a, b in zip(s, current, strict=True)) for s in structures]
        order = [n for n, pattern in enumerate(shared) if any(pattern)]
        needs = [-(-self.width(depth) // SLOT) for depth in range(len(current))]
        slots, todo, free = np.full(self.capacity, -1, np.int32), [], 0
        for task, n in enumerate(order):
            depth = shared[n].index(True)
            if depth and free + needs[depth] <= SLOTS:
                slots[task], free = free, free + needs[depth]
                todo.append((task, depth))
        kinds = [self.patterns.index(shared[n]) for n in order]
        lessons = self.lessons(bank, [structures[n] for n in order], [replays[n] for n in order], slots, kinds)
        return lessons, [shared[n] for n in order], todo

    def lessons(
        self,
        bank: tuple,
        structures: list[tuple[int, ...]],
        replays: list[np.ndarray],
        slots: np.ndarray,
        kinds: list[int],
    ) -> Lessons:
        """Lessons with features and target values yet to be filled in."""
        extent = (self.times + 1, self.envs)
        table = np.zeros((self.capacity, len(self.network.sizes)), np.int32)
        times = np.zeros(self.capacity, np.int32)
        for task, (structure, replay) in enumerate(zip(structures, replays, strict=True)):
            table[task], times[task] = structure, len(replay) - 1
        actions = self.network.graph.actions.size
        host: dict[str, Any] = {
            "rows": self.rows(replays),
            "structures": table,
            "times": times,
            "slots": slots,
            "patterns": np.pad(np.array(kinds, np.int32), (0, self.capacity - len(kinds))),
            "count": np.int32(len(kinds)),
        }
        lessons = Lessons(
            values=self.devices.zeros((self.capacity, *extent, actions), THIRD),
            features=self.devices.zeros((SLOTS, *extent, SLOT), THIRD),
            bank=bank,
            **host,
        )
        return self.devices.place(lessons, PLACED)

    def rows(self, replays: list[np.ndarray]) -> UInt32[Array, "task time E words"]:
        """The replays on the devices, put there one by one: together they are never in memory twice."""
        extent = (self.times + 1, self.envs, self.packing.words)
        table = self.devices.zeros((self.capacity, *extent), THIRD, dtype=jnp.uint32)
        for task, replay in enumerate(replays):
            padded = np.zeros(extent, np.uint32)
            padded[: len(replay)] = replay
            table = put(table, jnp.int32(task), self.devices.place(padded, SECOND))
        return table

    def width(self, depth: int) -> int:
        """How many features the modules before a depth give."""
        if depth == 0:
            return 0
        policy = tuple(self.network.module(d, rng=np.random.default_rng(0)) for d in range(depth))
        rows = jax.ShapeDtypeStruct((1, self.packing.words), jnp.uint32)
        shape = jax.eval_shape(
            lambda rows: self.network.features(policy, self.parts(self.packing.unpack(rows)), depth=depth), rows
        )
        return shape.shape[0]

    def parts(self, transitions: Transition) -> dict:
        """What networks take."""
        return self.env.parts(transitions.observation)

    def samples(self, lessons: Lessons, task: Array, index: Int[Array, " B"]) -> Transition:
        """Rows of a task, counted over time and environments."""
        return self.packing.unpack(gather(lessons.rows, task, index))

    def features(
        self, lessons: Lessons, task: Array, index: Int[Array, " B"], *, depth: int
    ) -> Float[Array, "n B"] | None:
        """What the modules before a depth make of rows of a task: kept, or computed."""
        if depth == 0:
            return None
        slot, width = lessons.slots[task], self.width(depth)

        def kept() -> Float[Array, "n B"]:
            pieces = [gather(lessons.features, slot + n, index).T for n in range(-(-width // SLOT))]
            return jnp.concatenate(pieces)[:width]

        return jax.lax.cond(slot >= 0, kept, lambda: self.computed(lessons, task, index, depth=depth))

    def computed(self, lessons: Lessons, task: Array, index: Int[Array, " B"], *, depth: int) -> Float[Array, "n B"]:
        """What the modules before a depth make of rows of a task."""
        frozen = pick(lessons.bank[:depth], lessons.structures[task][:depth])
        return self.network.features(frozen, self.parts(self.samples(lessons, task, index)), depth=depth)

    def keep(self, lessons: Lessons, task: int, *, depth: int) -> Lessons:
        """The lessons with the features of a task in their slots; the old lessons' features are gone."""
        found = self.frozen_features(lessons, jnp.int32(task), depth=depth)
        table = lessons.features
        for n in range(found.shape[-1] // SLOT):
            table = put(table, lessons.slots[task] + n, found[..., n * SLOT : (n + 1) * SLOT])
        return eqx.tree_at(lambda x: x.features, lessons, table)

    @partial(jax.jit, static_argnums=0, static_argnames="depth")
    def frozen_features(self, lessons: Lessons, task: Int[Array, ""], *, depth: int) -> Float[Array, "time E n"]:
        """What the modules before a depth make of all rows of a task, padded to whole slots."""
        width = self.width(depth)

        def share(lessons: Lessons, task: Array) -> Array:
            def found(index: Int[Array, " B"]) -> Array:
                features = self.computed(lessons, task, index, depth=depth)
                return jnp.pad(features, ((0, -width % SLOT), (0, 0))).T

            return over_rows(found, lessons, task)

        return self.devices.run(share, (PLACED, ALL), SECOND)(lessons, task)

    def value(self, lessons: Lessons, task: int, own: tuple, shared: Pattern) -> Lessons:
        """The lessons with Q, by the current task's modules as given, in each of a task's rows."""
        values = self.values(lessons, jnp.int32(task), own, jnp.array(shared), depth=shared.index(True))
        return eqx.tree_at(lambda x: x.values, lessons, put(lessons.values, jnp.int32(task), values))

    @partial(jax.jit, static_argnums=0, static_argnames="depth")
    def values(
        self, lessons: Lessons, task: Int[Array, ""], own: tuple, shared: Array, *, depth: int
    ) -> Float[Array, "time E A"]:
        """Q in each of a task's rows, with these modules where it shares them with the current task."""

        def share(lessons: Lessons, task: Array, own: tuple, shared: Array) -> Array:
            frozen = pick(lessons.bank, lessons.structures[task])
            policy = tuple(
                jax.tree.map(lambda mine, other, n=n: jnp.where(shared[n], mine, other), mine, other)
                for n, (mine, other) in enumerate(zip(own, frozen, strict=True))
            )

            def found(index: Int[Array, " B"]) -> Array:
                parts = self.parts(self.samples(lessons, task, index))
                features = self.features(lessons, task, index, depth=depth)
                return self.network.onward(policy, parts, features, depth=depth).values.T

            return over_rows(found, lessons, task)

        return self.devices.run(share, (PLACED, ALL, ALL, ALL), SECOND)(lessons, task, own, shared)


@partial(jax.jit, donate_argnums=0)
def put(table: Num[Array, "n time E w"], number: Array, rows: Num[Array, "time E w"]) -> Num[Array, "n time E w"]:
    """The table with the rows of one task, or slot, replaced; in place."""
    return jax.lax.dynamic_update_index_in_dim(table, rows, number, 0)


def gather(table: Array, task: Array, index: Int[Array, " B"]) -> Array:
    """Rows of one task of a table [task, time, env, ...], counted over time and environments, as one gather."""
    tasks, times, envs, width = table.shape
    flat = table.reshape(tasks * times * envs, width)
    return flat.at[task * (times * envs) + index].get(mode="promise_in_bounds")


def over_rows(
    function: Callable[[Int[Array, " B"]], Float[Array, "B w"]], lessons: Lessons, task: Array
) -> Float[Array, "time E w"]:
    """The function of all rows of a task, some at a time; zero after the task's last row."""
    _, times, envs, _ = lessons.rows.shape
    size = min(SAMPLES, times * envs)
    width = jax.eval_shape(function, jax.ShapeDtypeStruct((size,), jnp.int32)).shape[1]

    def body(number: Array, result: Array) -> Array:
        # The last piece begins earlier, so that it ends with the table: some rows are computed twice.
        start = jnp.minimum(number * size, times * envs - size)
        found = function(start + jnp.arange(size, dtype=jnp.int32))
        return jax.lax.dynamic_update_slice(result, found, (start, jnp.int32(0)))

    pieces = -(-(lessons.times[task] + 1) * envs // size)
    result = jax.lax.fori_loop(0, pieces, body, jnp.zeros((times * envs, width)))
    return result.reshape(times, envs, width)
