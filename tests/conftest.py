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


@pytest.fixture(autouse=True, scope="module")
def quick_compilation(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests that compile much and compute little do without most optimisations."""
    quick = request.path.name in ("test_bcq.py", "test_compositional.py", "test_ppo.py", "test_robot.py")
    jax.config.update("jax_disable_most_optimizations", quick)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests come first, so that no worker is left alone with them at the end."""
    items.sort(key=lambda item: item.path.name not in ("test_kill.py", "test_compositional.py"))
