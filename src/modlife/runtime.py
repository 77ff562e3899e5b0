"""How JAX runs in a command: how many threads, and where compiled programs are kept."""

import os
from pathlib import Path


def start_jax(*, threads: int = 1) -> None:
    """Settles, before JAX starts, the number of threads and the cache of compiled programs.

    One thread by default: XLA's results on a CPU depend on the number of threads, and for networks as small as
    these one thread per life is also the best use of a machine. The cache holds machine code, so it is the user's
    own, and never part of a run directory.
    """
    os.environ.setdefault("NPROC", str(threads))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "modlife" / "jax"
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)

    import jax  # here, because NPROC must be set first and most commands do not need JAX

    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
