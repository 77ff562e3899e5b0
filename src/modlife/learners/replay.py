"""What an agent keeps of a task: its last transitions, as rows of 32-bit words.

A row holds an observation, the action taken, the reward, and whether the episode ended. The next observation is that
of the next row in time, so each is kept once. One row of the 2-D world has 56 bytes. Words can be gathered with the
batch last, as networks want it, at half the cost of bytes (`docs/performance.md`).
"""

import math
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, UInt8, UInt32

from modlife.domains.env import Environment, Pytree
from modlife.domains.graph import Continuous


class Transition(eqx.Module):
    """One step, or arrays of them."""

    observation: Pytree
    action: Array
    reward: Float[Array, "*batch"]
    ended: Bool[Array, "*batch"]
    """Nothing of the same episode comes after: it terminated, or the time limit cut it off."""


WORD = 4
"""Bytes in a word."""


@dataclass(frozen=True)
class Packing:
    """How a domain's transitions lie in words: the shape and kept dtype of each array, in order."""

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    structure: Any

    @staticmethod
    @cache
    def of(env: Environment) -> "Packing":
        """The packing of a domain's transitions; a discrete action takes one byte."""
        task = jnp.zeros(len(env.graph.factors), jnp.int32)
        observation = jax.eval_shape(lambda key: env.observe(env.reset(task, key=key)), jax.random.key(0))
        actions = env.graph.actions
        shape: Any = jax.ShapeDtypeStruct  # in place of an array
        action = shape((actions.size,), np.float32) if isinstance(actions, Continuous) else shape((), np.uint8)
        fields = Transition(observation, action, shape((), np.float32), shape((), np.bool_))
        leaves, structure = jax.tree.flatten(fields)
        return Packing(tuple(leaf.shape for leaf in leaves), tuple(leaf.dtype.name for leaf in leaves), structure)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes that each array takes in a row."""
        return tuple(math.prod(s) * np.dtype(d).itemsize for s, d in zip(self.shapes, self.dtypes, strict=True))

    @property
    def words(self) -> int:
        """Words in a row."""
        return -(-sum(self.sizes) // WORD)

    @partial(jax.jit, static_argnums=0)
    def pack(self, transitions: Transition) -> UInt32[Array, "*batch W"]:
        """Transitions with any leading axes, as rows."""
        batch = transitions.reward.shape
        parts = [
            as_bytes(leaf.astype(dtype)).reshape(*batch, size)
            for leaf, dtype, size in zip(jax.tree.leaves(transitions), self.dtypes, self.sizes, strict=True)
        ]
        parts.append(jnp.zeros((*batch, self.words * WORD - sum(self.sizes)), jnp.uint8))
        rows = jnp.concatenate(parts, axis=-1).reshape(*batch, self.words, WORD)
        return jax.lax.bitcast_convert_type(rows, jnp.uint32)

    def unpack(self, rows: UInt32[Array, "B W"]) -> Transition:
        """Rows as transitions, batch first. Bytes are shifted out of words so that the batch may lie last in memory."""
        shifts = jnp.arange(0, 8 * WORD, 8, dtype=jnp.uint32)  # the lowest byte of a word comes first
        last = (rows.T[:, None, :] >> shifts[None, :, None]).astype(jnp.uint8).reshape(self.words * WORD, -1)
        leaves, start = [], 0
        for shape, dtype, size in zip(self.shapes, self.dtypes, self.sizes, strict=True):
            leaves.append(from_bytes(last[start : start + size], shape, dtype))
            start += size
        return jax.tree.unflatten(self.structure, leaves)


def as_bytes(x: Array) -> Array:
    """The bytes of an array, along a new last axis where an element has several."""
    return x.astype(jnp.uint8) if x.dtype == jnp.bool_ else jax.lax.bitcast_convert_type(x, jnp.uint8)


def from_bytes(x: UInt8[Array, "bytes B"], shape: tuple[int, ...], dtype: str) -> Array:
    """Arrays of a shape, batch first, from their bytes, batch last."""
    if dtype == "bool":
        x, dtype = x != 0, "uint8"
    if np.dtype(dtype).itemsize == 1:
        return jnp.moveaxis(x.reshape(*shape, -1), -1, 0)  # one transposition, so that the next one undoes it
    return jax.lax.bitcast_convert_type(x.T.reshape(-1, *shape, np.dtype(dtype).itemsize), dtype)


def last_rows(pieces: tuple[Array, ...], after: Array, *, keep: int) -> np.ndarray:
    """The last `keep` time steps of consecutive pieces [time, env, word], and the row after them."""
    return np.concatenate([np.asarray(piece) for piece in (*pieces, after[None])])[-keep - 1 :]
