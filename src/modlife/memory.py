"""Memory is counted before it is asked for (a system without any left ends programs without a word), and given back."""

import contextlib
import ctypes
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

from modlife.errors import InputError

GROUP = Path("/sys/fs/cgroup")
LEAST_SPACE = 2_500_000_000
"""Bytes of address space without which JAX does not start, or dies without a word."""


def check_memory(need: float, what: str, *, way_out: str) -> None:
    """There is memory for something that takes at least so many bytes."""
    free = free_memory()
    if free is not None and need > free:
        raise InputError(
            f"{what} takes at least {need / 1e9:,.1f} GB of memory, and {free / 1e9:,.1f} GB are free. {way_out}"
        )


def give_back() -> None:
    """Hands memory that was freed back to the system, where the C library keeps it otherwise, in pieces.

    What phases of a life take and free differs in size, so that without this the process grows from task to task.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library than GNU's
            ctypes.CDLL(None).malloc_trim(0)


def check_address_space() -> None:
    """The limit on this process (`ulimit -v`) leaves room for JAX."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < LEAST_SPACE:
        raise InputError(
            f"This process may use {limit / 1e9:.1f} GB of addresses, and JAX needs {LEAST_SPACE / 1e9}. Raise "
            "`ulimit -v`."
        )


def free_memory() -> int | None:
    """Bytes that this process can still get: the least that the system, its group and its own limit say."""
    known = [*free_in_system(), *free_in_group(), *free_in_limit()]
    return min(known) if known else None


def free_in_system() -> Iterator[int]:
    """What the system has left."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) * 1024


def free_in_group() -> Iterator[int]:
    """What the control group, such as a container or a job, has left; nothing where it has no limit."""
    for folder in {GROUP, GROUP / own_group()}:
        with contextlib.suppress(OSError, ValueError):
            limit = (folder / "memory.max").read_text().strip()
            if limit.isdecimal():
                yield int(limit) - int((folder / "memory.current").read_text()) + reclaimable(folder)


def own_group() -> str:
    """The path of this process's control group."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::/"):
                return line[4:]
    return ""


def reclaimable(folder: Path) -> int:
    """Bytes of files that a control group keeps in memory only because nobody needs the room."""
    with contextlib.suppress(OSError, ValueError):
        for line in (folder / "memory.stat").read_text().splitlines():
            if line.startswith("inactive_file "):
                return int(line.split()[1])
    return 0


def free_in_limit() -> Iterator[int]:
    """What the limit of this process leaves."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        with contextlib.suppress(OSError, ValueError, IndexError):
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            yield limit - pages * resource.getpagesize()
