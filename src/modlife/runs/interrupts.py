"""Signals that ask a life to stop."""

import signal
import threading
from typing import Any


class Stopped(Exception):
    """A life was asked to stop; it is saved."""

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.number = number


class Interrupts:
    """Turns signals into a wish to stop: the handler only notes it, and a second one ends the program at once.

    Python lets only the main thread have handlers: a life in another thread is not asked.
    """

    def __init__(self) -> None:
        self.wish: int | None = None
        self.before: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self.before = {number: signal.signal(number, self.note) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def note(self, number: int, frame: Any) -> None:
        """Notes the wish; from now on signals do what they did before."""
        self.wish = number
        self.restore()

    def check(self) -> None:
        """Stops what is being done, if that was asked for."""
        if self.wish:
            raise Stopped(self.wish)

    def restore(self) -> None:
        """Puts the handlers back that were there."""
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before = {}

    def __exit__(self, *error: object) -> None:
        self.restore()
