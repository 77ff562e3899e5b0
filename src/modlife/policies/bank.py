"""The module bank: per factor, k modules of one shape stacked along a leading axis.

A structure is one index per factor. Picking is indexing, so all structures share one compiled program, and gradients
are exactly zero outside the picked modules.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from modlife.arrays import ints
from modlife.types import Structure

Chain = tuple
"""One module per factor: a policy of a modular network."""
AnyStructure = Structure | Int[Array, " F"] | Int[np.ndarray, " F"]


class Bank(eqx.Module):
    """All modules of an agent."""

    factors: tuple[Any, ...]
    """For each factor, its modules stacked along the first axis of every array."""

    @staticmethod
    def of(modules: Sequence[Sequence[eqx.Module]]) -> "Bank":
        """A bank of these modules, for each factor some of one shape."""
        stack = partial(jax.tree.map, lambda *leaves: jax.device_put(np.stack(leaves)))
        return Bank(tuple(stack(*same) for same in modules))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Modules per factor."""
        return tuple(jax.tree.leaves(factor)[0].shape[0] for factor in self.factors)

    def pick(self, structure: AnyStructure) -> Chain:
        """The chain that a structure stands for."""
        return _pick(self.factors, as_array(structure))

    def place(self, structure: AnyStructure, modules: Chain) -> "Bank":
        """The bank with these modules put where the structure points."""
        return Bank(_place(self.factors, as_array(structure), modules))

    def joined(self, more: "Bank") -> "Bank":
        """The bank with further modules behind those of each factor."""
        return Bank(jax.tree.map(lambda one, other: jnp.concatenate([one, other]), self.factors, more.factors))


@jax.jit
def _pick(factors: tuple, structure: Int[Array, " F"]) -> Chain:
    return tuple(jax.tree.map(lambda leaf, n=n: leaf[structure[n]], factor) for n, factor in enumerate(factors))


@jax.jit
def _place(factors: tuple, structure: Int[Array, " F"], modules: Chain) -> tuple:
    return tuple(
        jax.tree.map(lambda leaf, new, n=n: leaf.at[structure[n]].set(new), factor, module)
        for n, (factor, module) in enumerate(zip(factors, modules, strict=True))
    )


def as_array(structure: AnyStructure) -> Int[Array, " F"]:
    """The indices of a structure, wherever they come from."""
    return structure if isinstance(structure, jax.Array) else ints(structure)


def parameter_count(tree: object) -> int:
    """How many numbers a tree of arrays holds."""
    return sum(leaf.size for leaf in jax.tree.leaves(tree))
