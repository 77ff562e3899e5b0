"""What an agent keeps of a task: its last transitions, as rows of 32-bit words.

A row holds an observation, the action taken, the reward, and how the episode ended, if it did. The next observation is
that of the next row in time, so each is kept once; except where a time limit cut an episode off: if asked for, what was
seen there stands in rows behind the others. One row of the 2-D world has 56 bytes. Words can be gathered with the
batch last, as networks want it, at half the cost of bytes (`docs/performance.md`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float16, Float32, Int, Integer, UInt8, UInt32

from modlife.arrays import zeros
from modlife.domains.env import Environment, PRNGKey
from modlife.domains.graph import Continuous, Discrete
from modlife.types import Pytree


class Transition(eqx.Module):
    """One step, or arrays of them."""

    observation: Pytree
    action: Integer[Array, "*batch"] | Float[Array, "*batch A"]
    reward: Float[Array, "*batch"]
    terminated: Bool[Array, "*batch"]
    truncated: Bool[Array, "*batch"]

    @property
    def ended(self) -> Bool[Array, "*batch"]:
        """Nothing of the same episode comes after."""
        return self.terminated | self.truncated


class Experience(eqx.Module):
    """Transitions in the order of time, and what was seen after each before any restart, where it is kept."""

    transitions: Transition
    reached: Pytree
    """Observations; or None."""
    said: Float[Array, "*batch n"] | None = None
    """What the policy said: the numbers of its distribution, and the value."""


NOTHING = np.zeros((0, 0, 0), np.float16)
UNKNOWN = np.zeros(0, np.float32)


class Replay(eqx.Module):
    """The last transitions of one task; or, where it was thinned, some of them."""

    rows: UInt32[np.ndarray, "time E W"]
    """Packed transitions; then a row that only holds what was seen last; then what time limits cut off (`finals`)."""
    times: int = eqx.field(static=True)
    """Time steps of transitions."""
    taught: Float16[np.ndarray, "taught columns n"] = eqx.field(default_factory=lambda: NOTHING)
    """What a policy of the task said of each transition, as the agent keeps it; empty where it does not."""
    measured: Float32[np.ndarray, " m"] = eqx.field(default_factory=lambda: UNKNOWN)
    """How well the task was done when it had been folded in (`lifelong.retention.Mark`); empty where nobody looks."""

    @property
    def last(self) -> UInt32[np.ndarray, "E W"]:
        """The row after the last transition."""
        return self.rows[self.times]

    @property
    def finals(self) -> UInt32[np.ndarray, "final E W"]:
        """In each environment's column, what was seen where time limits cut its episodes off, in their order."""
        return self.rows[self.times + 1 :]

    def thinned(self, times: int, *, key: PRNGKey) -> "Replay":
        """So many time steps of it, drawn evenly; what came after a transition is then not known any more."""
        if times >= self.times:
            return self
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
        drawn = np.sort(rng.choice(self.times, times, replace=False))
        taught = self.taught[drawn] if len(self.taught) else self.taught
        return Replay(np.concatenate([self.rows[drawn], self.last[None]]), times, taught, self.measured)

    def some(self, count: int) -> tuple[UInt32[np.ndarray, "n W"], Float16[np.ndarray, "n t"]]:
        """So many transitions from all over it, and what the policy said of them."""
        places = np.linspace(0, self.times * self.rows.shape[1] - 1, count).astype(int)
        time, env = np.divmod(places, self.rows.shape[1])
        return self.rows[time, env], self.taught[time, env]

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.rows.nbytes + self.taught.nbytes

    @property
    def length(self) -> int:
        """All rows, over time."""
        return len(self.rows)

    def read(self) -> "Replay":
        """It is here."""
        return self


@dataclass(frozen=True, eq=False)
class Shelved:
    """Replay that lies elsewhere, and is read when it is needed; only what is asked of it in every phase stays here."""

    read: Callable[[], Replay]
    times: int
    length: int
    measured: Float32[np.ndarray, " m"]
    asked: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    """Answers of `some`."""

    @property
    def rows(self) -> UInt32[np.ndarray, "time E W"]:
        """As in `Replay`."""
        return self.read().rows

    @property
    def taught(self) -> Float16[np.ndarray, "taught columns n"]:
        """As in `Replay`."""
        return self.read().taught

    def some(self, count: int) -> tuple[UInt32[np.ndarray, "n W"], Float16[np.ndarray, "n t"]]:
        """As in `Replay`."""
        if count not in self.asked:
            self.asked[count] = self.read().some(count)
        return self.asked[count]


AnyReplay = Replay | Shelved


def in_order(keeper: Any, replay: AnyReplay) -> bool:
    """Whether what stands in a replay happened in a row; an agent or consolidator that leaves some out has a method."""
    asked = getattr(keeper, "in_order", None)
    return asked is None or asked(replay)


WORD = 4
"""Bytes in a word."""


@dataclass(frozen=True)
class Packing:
    """How a domain's transitions lie in words: array by array, then single yes-or-no values, which take a bit each."""

    arrays: tuple[jax.ShapeDtypeStruct, ...]
    structure: Any

    @staticmethod
    @cache
    def of(env: Environment) -> "Packing":
        """The packing of a domain's transitions; a discrete action takes as few bytes as hold every action."""
        arrays, structure = jax.tree.flatten(blank(env))
        return Packing(tuple(arrays), structure)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes that each array takes in a row by itself."""
        return tuple(0 if is_flag(one) else math.prod(one.shape) * one.dtype.itemsize for one in self.arrays)

    @property
    def words(self) -> int:
        """Words in a row."""
        return -(-(sum(self.sizes) + -(-sum(map(is_flag, self.arrays)) // 8)) // WORD)

    @partial(jax.jit, static_argnums=0)
    def pack(self, transitions: Transition) -> UInt32[Array, "*batch W"]:
        """Transitions with any leading axes, as rows."""
        batch, leaves = transitions.reward.shape, jax.tree.leaves(transitions)
        parts = [
            as_bytes(leaf.astype(kept.dtype)).reshape(*batch, size)
            for leaf, kept, size in zip(leaves, self.arrays, self.sizes, strict=True)
            if size
        ]
        flags = [leaf.astype(jnp.uint8) for leaf, kept in zip(leaves, self.arrays, strict=True) if is_flag(kept)]
        for start in range(0, len(flags), 8):
            shifted = [flag << n for n, flag in enumerate(flags[start : start + 8])]
            parts.append(jnp.stack(shifted, axis=-1).sum(axis=-1, keepdims=True, dtype=jnp.uint8))
        parts.append(jnp.zeros((*batch, self.words * WORD - sum(part.shape[-1] for part in parts)), jnp.uint8))
        rows = jnp.concatenate(parts, axis=-1).reshape(*batch, self.words, WORD)
        return jax.lax.bitcast_convert_type(rows, jnp.uint32)

    def unpack(self, rows: UInt32[Array, "B W"]) -> Transition:
        """Rows as transitions, batch first. Bytes are shifted out of words so that the batch may lie last in memory."""
        shifts = jnp.arange(0, 8 * WORD, 8, dtype=jnp.uint32)  # the lowest byte of a word comes first
        last = (rows.T[:, None, :] >> shifts[None, :, None]).astype(jnp.uint8).reshape(self.words * WORD, -1)
        leaves, start, flags, bit = [], 0, sum(self.sizes), 0
        for kept, size in zip(self.arrays, self.sizes, strict=True):
            if is_flag(kept):
                leaves.append((last[flags + bit // 8] >> jnp.uint8(bit % 8)) & jnp.uint8(1) != 0)
                bit += 1
            else:
                leaves.append(from_bytes(last[start : start + size], kept))
                start += size
        return jax.tree.unflatten(self.structure, leaves)

    @partial(jax.jit, static_argnums=(0, 1))
    def seen(self, env: Environment, observations: Pytree) -> UInt32[Array, "*batch W"]:
        """Rows that only hold observations, with any leading axes."""
        one = blank(env)
        batch = jax.tree.leaves(observations)[0].shape[: -len(jax.tree.leaves(one.observation)[0].shape) or None]
        rest = jax.tree.map(lambda leaf: jnp.zeros((*batch, *leaf.shape), leaf.dtype), one)
        return self.pack(eqx.tree_at(lambda t: t.observation, rest, observations))


def is_flag(kept: jax.ShapeDtypeStruct) -> bool:
    """Whether an array takes a bit."""
    return kept.shape == () and kept.dtype == bool


def blank(env: Environment) -> Transition:
    """The shapes and kept dtypes of one transition."""
    task = zeros(len(env.graph.factors), dtype=np.int32)

    def made_up(key: PRNGKey) -> Transition:
        no = jnp.zeros((), bool)
        return Transition(env.observe(env.reset(task, key=key)), no_action(env.graph.actions), jnp.float32(0), no, no)

    return jax.eval_shape(made_up, jax.random.key(0))


def no_action(actions: Discrete | Continuous) -> Integer[Array, ""] | Float[Array, " A"]:
    """A zero of the shape and dtype in which actions are kept."""
    if isinstance(actions, Continuous):
        return jnp.zeros(actions.size)
    return jnp.zeros((), np.min_scalar_type(actions.size - 1))


def as_bytes(x: Array) -> Array:
    """The bytes of an array, along a new last axis where an element has several."""
    return x.astype(jnp.uint8) if x.dtype == jnp.bool_ else jax.lax.bitcast_convert_type(x, jnp.uint8)


def from_bytes(x: UInt8[Array, "bytes B"], kept: jax.ShapeDtypeStruct) -> Array:
    """Arrays of a shape, batch first, from their bytes, batch last."""
    if kept.dtype.itemsize == 1:  # one transposition, so that the next one undoes it
        return jnp.moveaxis((x != 0 if kept.dtype == bool else x).reshape(*kept.shape, -1), -1, 0)
    return jax.lax.bitcast_convert_type(x.T.reshape(-1, *kept.shape, kept.dtype.itemsize), kept.dtype)


@partial(jax.jit, static_argnums=0)
def cut_off(packing: Packing, rows: UInt32[Array, "T E W"]) -> Bool[Array, "T E"]:
    """Which transitions a time limit ended."""
    return packing.unpack(rows.reshape(-1, packing.words)).truncated.reshape(rows.shape[:2])


def with_finals(
    rows: UInt32[np.ndarray, "T E W"],
    last: UInt32[np.ndarray, "E W"],
    reached: UInt32[np.ndarray, "T E W"],
    truncated: Bool[np.ndarray, "T E"],
) -> Replay:
    """Replay of transitions, what was seen last, and of what came after each transition what a time limit cut off."""
    most = int(truncated.sum(axis=0).max(initial=0))
    finals = np.zeros((most, *rows.shape[1:]), np.uint32)
    for env in range(rows.shape[1]):
        cut = reached[truncated[:, env], env]
        finals[: len(cut), env] = cut
    return Replay(np.concatenate([rows, last[None], finals]), len(rows))


def following(truncated: Bool[np.ndarray, "T E"], *, shares: int) -> Int[np.ndarray, "T E"]:
    """For each transition of a replay with finals, the place of the row that holds what was seen after it.

    Places count over time and environments, within each of the shares that the environments are divided into.
    """
    times, envs = truncated.shape
    row = np.where(truncated, times + np.cumsum(truncated, axis=0), 1 + np.arange(times)[:, None])
    width = envs // shares
    return (row * width + np.arange(envs) % width).astype(np.int32)
