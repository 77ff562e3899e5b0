"""Dividing one learner's work over several JAX devices: each does a share, and sums or means are exchanged."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from modlife.domains.env import PRNGKey
from modlife.types import Pytree

DEVICE = "device"
ALL, SECOND, THIRD = PartitionSpec(), PartitionSpec(None, DEVICE), PartitionSpec(None, None, DEVICE)
"""How an array lies on devices: the same on all; or shares along its second, or third, axis."""


def specs_of(kind: type, **specs: PartitionSpec) -> Any:
    """A value of a class of arrays with the spec of each in its place; all of its fields by name."""
    if set(specs) != {field.name for field in fields(kind)}:
        raise TypeError(f"{kind.__name__} has other fields than {sorted(specs)}")
    tree = object.__new__(kind)
    for name, spec in specs.items():
        object.__setattr__(tree, name, spec)
    return tree


@dataclass(frozen=True)
class Devices:
    """A fixed number of devices. With one, everything below is the plain thing."""

    count: int = 1

    @property
    def mesh(self) -> Mesh:
        """The devices in a row."""
        return Mesh(np.array(jax.devices()[: self.count]), (DEVICE,))

    def run(self, function: Callable, inputs: Any, outputs: Any) -> Callable:
        """The function as each device runs it on its share."""
        if self.count == 1:
            return function
        return jax.shard_map(function, mesh=self.mesh, in_specs=inputs, out_specs=outputs, check_vma=False)

    def reduce(self, how: Callable, tree: Pytree) -> Pytree:
        """A sum (`jax.lax.psum`) or mean (`jax.lax.pmean`) over all devices' shares, of floats.

        All of it is exchanged at once: of two exchanges that do not wait for each other each device may begin with
        another one, and then both wait for ever.
        """
        if self.count == 1:
            return tree
        flat, restore = ravel_pytree(tree)
        return restore(how(flat, DEVICE))

    def own_key(self, key: PRNGKey) -> PRNGKey:
        """A key of its own for each device."""
        return key if self.count == 1 else jax.random.fold_in(key, jax.lax.axis_index(DEVICE))

    def place(self, tree: Pytree, specs: Pytree) -> Pytree:
        """Host arrays put on the devices, each as its spec says."""
        if self.count == 1:
            return jax.device_put(tree)
        return jax.tree.map(
            lambda spec, part: jax.device_put(part, NamedSharding(self.mesh, spec)),
            specs,
            tree,
            is_leaf=lambda x: isinstance(x, PartitionSpec),
        )

    def zeros(self, shape: tuple[int, ...], spec: PartitionSpec, *, dtype: Any = jax.numpy.float32) -> Array:
        """An array of zeros, made where it lies."""
        where = None if self.count == 1 else NamedSharding(self.mesh, spec)
        return jax.numpy.zeros(shape, dtype, device=where)
