"""How JAX runs in a command: how many threads, and where compiled programs are kept."""

import os
import warnings
from pathlib import Path

from modlife.errors import InputError
from modlife.memory import check_address_space

HALF_WRITTEN = "Error reading persistent compilation cache entry"
"""What JAX warns of where another process is still writing a program: it is compiled here, too."""

_started: list[int] = []
"""The number of threads, once JAX was started here."""


def start_jax(*, threads: int | None = 1) -> None:
    """Settles, before JAX starts, the number of threads and the cache of compiled programs.

    One thread by default: XLA's results on a CPU depend on the number of threads, and for networks as small as
    these one thread per life is also the best use of a machine. More threads become as many JAX devices, over which
    a learner divides its work; results are the same for the same number. The cache holds machine code, so it is the
    user's own, and never part of a run directory; where it cannot be had, programs are compiled anew each time.
    None: as many as JAX runs on already.
    """
    threads = threads if threads is not None else _started[0] if _started else 1
    if threads < 1:
        raise InputError(f"threads = {threads}, but it must be at least 1.")
    if _started and _started[0] != threads:
        raise InputError(f"JAX runs on {_started[0]} threads in this process, and cannot change to {threads}.")
    if _started:
        return
    check_address_space()
    os.environ["NPROC"] = str(threads)
    if threads > 1:
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={threads}"

    import jax  # here, because the above must be set first and most commands do not need JAX

    cache = cache_folder()
    if cache is not None:
        jax.config.update("jax_compilation_cache_dir", str(cache))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
        warnings.filterwarnings("ignore", HALF_WRITTEN)
    try:
        devices = len(jax.devices())
    except (RuntimeError, AssertionError) as error:  # what JAX raises for a platform that is not there
        platform = os.environ.get("JAX_PLATFORMS")
        raise InputError(
            f"JAX does not start here (JAX_PLATFORMS is {platform!r}): {str(error) or 'there is no such device'}"
        ) from error
    if devices < threads:
        raise InputError(f"JAX was started before with {devices} devices; {threads} threads need as many.")
    _started.append(threads)


def cache_folder() -> Path | None:
    """Where compiled programs are kept; None, with a warning, where nothing can be kept."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = base / "modlife" / "jax"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
        why = f"'{folder}' cannot be written"
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        why = str(error)
    warnings.warn(
        f"Compiled programs are not kept, so every start takes longer: {why}. Set XDG_CACHE_HOME.", stacklevel=3
    )
    return None
