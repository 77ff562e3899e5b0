"""Signals that ask lives to stop."""

import os
import signal
import threading
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(Exception):
    """A life was asked to stop; it is saved."""

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.number = number


class Interrupts:
    """Turns signals into a wish to stop: the handler only notes it, and a second one ends the program at once.

    Lives of one process share the handlers: the first takes them, and the last gives back those that were there. Python
    lets only the main thread have handlers: a life in another thread is not asked. Where a `parent` is named, a process
    that has another one by now is an orphan, and is to stop as if it had been sent SIGTERM.
    """

    live: "list[Interrupts]" = []
    """Those of lives that are being lived in the main thread."""
    before: dict[int, Any] = {}
    """The handlers that were there, while ours are."""

    def __init__(self, parent: int | None = None) -> None:
        self.wish: int | None = None
        self.parent = parent

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self.live.append(self)
            for number in SIGNALS:
                if signal.getsignal(number) is not note:
                    self.before[number] = signal.signal(number, note)
        return self

    def check(self) -> None:
        """Stops what is being done, if that was asked for."""
        if self.parent is not None and os.getppid() != self.parent:
            self.wish = self.wish or signal.SIGTERM
        if self.wish:
            raise Stopped(self.wish)

    def __exit__(self, *error: object) -> None:
        if self in self.live:
            self.live.remove(self)
        if not self.live:
            restore()


def note(number: int, frame: Any) -> None:
    """Tells all lives of the wish; from now on signals do what they did before."""
    for one in Interrupts.live:
        one.wish = number
    restore()


def restore() -> None:
    """Puts the handlers back that were there; for one that was not made by Python, the system's own."""
    for number, handler in Interrupts.before.items():
        if signal.getsignal(number) is note:
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    Interrupts.before.clear()
