"""Where long computations can be stopped: loops between compiled calls pause, and whoever runs them may raise there."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_here = threading.local()


def pause() -> None:
    """A moment at which what is being done can be given up."""
    check = getattr(_here, "check", None)
    if check:
        check()


@contextmanager
def stopped_by(check: Callable[[], None]) -> Iterator[None]:
    """While this lasts, every pause of this thread calls `check`, which raises if all should stop."""
    before, _here.check = getattr(_here, "check", None), check
    try:
        yield
    finally:
        _here.check = before
