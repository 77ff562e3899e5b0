"""Every test runs with JAX's strict rules, and with the user's cache of compiled programs, which all tests share.

Tests compile much and compute little: they, and the processes that they start, do without most optimisations. Their
files lie in memory where there is room: run directories are synced at every step, which takes a disk milliseconds.
"""

import gc
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("NPROC", "1")
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
os.environ["XLA_FLAGS"] = " ".join(
    # Halves the time to compile; an XLA that does not know the flag would end the process.
    {**dict.fromkeys(os.environ.get("XLA_FLAGS", "").split()), "--xla_cpu_use_fusion_emitters=false": None}
    if version("jaxlib").startswith("0.10.")
    else [os.environ.get("XLA_FLAGS", "")]
)

import jax
import pytest

from modlife.errors import InputError
from modlife.runtime import cache_folder, start_jax

with warnings.catch_warnings(action="ignore"):
    if cache_folder() is None:  # the user has none: tests, and the processes that they start, share one elsewhere
        os.environ["XDG_CACHE_HOME"] = str(Path(tempfile.gettempdir()) / f"modlife-tests-{os.getuid()}")
start_jax()
gc.set_threshold(100_000, 50, 100)  # programs are traced in millions of small objects, few of which are garbage
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)

pytest_plugins = ["lives"]  # fixtures; imported after this file, hence with its settings

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

MEMORY, ROOM = Path("/dev/shm"), 4 * 2**30
"""Where files lie in memory, and how much of it is to be free: tests take a third of that."""
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

FIRST = ("test_golden.py", "test_kill.py", "test_drill.py")
MOST_MAPS = 40_000
"""Pieces of memory, of the 65,530 that Linux lets a process have: every program takes some thirty."""
LAST = ("front_door", "store", "faults", "hostile", "compositional", "life")


@pytest.fixture
def optax_promotes() -> Iterator[None]:
    """Optax mixes types (0.9 ** count), so tests that run an optimiser allow it."""
    with jax.numpy_dtype_promotion("standard"):
        yield


@pytest.fixture(autouse=True, scope="module")
def few_programs() -> Iterator[None]:
    """Programs are forgotten, between files of tests, before there are so many that XLA gets no memory for the next."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture(scope="session")
def drawing() -> None:
    """Tests that draw robot scenes are left out where nothing can draw them."""
    from modlife.domains.robot import render

    try:
        render.gl_context(render.WIDTH, render.HEIGHT)
    except InputError as error:
        pytest.skip(str(error))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests come first, so that no worker is left alone with them at the end; they live the small lives.

    What needs those comes last: the second worker begins in the middle of the list, and waits for nothing.
    """
    last = {f"test_{name}.py" for name in LAST}
    items.sort(key=lambda item: (item.path.name in last, item.path.name not in FIRST))
