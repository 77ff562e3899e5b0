"""The command line without a process of its own: for tests of what a command says and does, not of how it is killed."""

import contextlib
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import jax

from modlife.cli.main import main


@dataclass(frozen=True)
class End:
    """How a command ended."""

    code: int
    out: str
    err: str


def command(*arguments: str, cwd: Path | None = None) -> End:
    """Runs `modlife` with these arguments, here."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        contextlib.chdir(cwd or Path.cwd()),
        patch.object(sys, "argv", ["modlife", *arguments]),  # run directories tell the command
        lenient(),
    ):
        try:
            main(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1 if end.code else 0
    return End(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def lenient() -> Iterator[None]:
    """JAX with its own rules, as users have it: Optax mixes types."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
