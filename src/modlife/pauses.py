"""Where long computations can be stopped and watched: loops pause between calls, and count what they have done."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

ItemT = TypeVar("ItemT")
Watcher = Callable[[str, int, int], None]
"""Is told what is counted, how much of it is done, and of how much."""

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


def counted(items: Sequence[ItemT], what: str, *, each: int = 1, whole: int | None = None) -> Iterator[ItemT]:
    """Items one by one, each of so many parts of a whole; who watches is told how far it is, but of nothing inside."""
    watch: Watcher | None = getattr(_here, "watch", None)
    if watch is None:
        yield from items
        return
    parts = len(items) * each if whole is None else whole
    for number, item in enumerate(items):
        watch(what, number * each, parts)
        with watched_by(None):
            yield item
    watch(what, parts, parts)


@contextmanager
def watched_by(watch: Watcher | None) -> Iterator[None]:
    """While this lasts, whatever this thread counts is told; or nothing is."""
    before, _here.watch = getattr(_here, "watch", None), watch
    try:
        yield
    finally:
        _here.watch = before
