"""How far a command has come that says nothing else for long: a line on a terminal, gone when all is done."""

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from modlife.pauses import watched_by

ROOM = 60
"""Letters of the line."""


@contextlib.contextmanager
def counting() -> Iterator[None]:
    """While this lasts, what is counted stands in a line of the terminal; where there is none, nothing is written."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    line = Line()
    try:
        with watched_by(line.show):
            yield
    finally:
        line.close()


@dataclass
class Line:
    """The line."""

    is_open: bool = True

    def show(self, what: str, done: int, whole: int) -> None:
        """How far it is; nothing once all is done."""
        self.write(f"{what}: {done} of {whole} ..." if done < whole else "")

    def close(self) -> None:
        """Nothing more, also if somebody who was interrupted goes on counting."""
        self.write("")
        self.is_open = False

    def write(self, text: str) -> None:
        """In the place of what stood there before."""
        with contextlib.suppress(OSError, AttributeError):
            if self.is_open:
                sys.stderr.write(f"\r{text:<{ROOM}}\r{text}")
                sys.stderr.flush()
