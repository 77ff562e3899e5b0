"""The module bank: per factor, k modules of one shape stacked along a leading axis.

A structure is one index per factor. Picking is indexing, so all structures share one compiled program, and gradients
are exactly zero outside the picked modules.
"""

from typing import TypeVar

import jax
from jaxtyping import Array, Int

T = TypeVar("T")


@jax.jit
def pick(bank: tuple[T, ...], structure: Int[Array, " F"]) -> tuple[T, ...]:
    """One module per factor: the chain that a structure stands for."""
    return tuple(jax.tree.map(lambda leaf, n=n: leaf[structure[n]], factor) for n, factor in enumerate(bank))


@jax.jit
def place(bank: tuple[T, ...], structure: Int[Array, " F"], modules: tuple[T, ...]) -> tuple[T, ...]:
    """The bank with these modules put where the structure points."""
    return tuple(
        jax.tree.map(lambda leaf, new, n=n: leaf.at[structure[n]].set(new), factor, module)
        for n, (factor, module) in enumerate(zip(bank, modules, strict=True))
    )


def bank_of_one(modules: tuple[T, ...]) -> tuple[T, ...]:
    """A bank that holds nothing but one chain of modules."""
    return jax.tree.map(lambda leaf: leaf[None], modules)


def only_chain(bank: tuple[T, ...]) -> tuple[T, ...]:
    """The chain of modules of a bank of one."""
    return jax.tree.map(lambda leaf: leaf[0], bank)


def parameter_count(tree: object) -> int:
    """How many numbers a tree of arrays holds."""
    return sum(leaf.size for leaf in jax.tree.leaves(tree))
