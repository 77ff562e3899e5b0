"""`modlife train`."""

from pathlib import Path

from modlife.experiments.config import LifeConfig


def run(config: LifeConfig, out: Path, threads: int = 1) -> None:
    """Let an agent learn tasks, into a new run directory.

    Args:
        config: The life.
        out: The run directory to make.
        threads: Processor threads for this life; results depend on their number.
    """
    config.curriculum  # noqa: B018  # says what is wrong with it before JAX is loaded

    from modlife.runtime import start_jax

    start_jax(threads=threads)
    from modlife.cli.progress import progress_for
    from modlife.cli.tables import summary_text
    from modlife.experiments.life import run_life

    with progress_for(config) as progress:
        summary = run_life(config, out, progress=progress, devices=threads)
    print(summary_text(summary))
    print(f"run directory: {out}")
