"""Every test runs with JAX's strict rules: no silent promotion of shapes or types."""

import os
from collections.abc import Iterator

os.environ.setdefault("NPROC", "1")

import jax
import pytest

pytest_plugins = ["written"]  # fixtures; imported after this file, hence with its settings

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture
def optax_promotes() -> Iterator[None]:
    """Optax mixes types (0.9 ** count), so tests that run an optimiser allow it."""
    with jax.numpy_dtype_promotion("standard"):
        yield
