"""The operating system, one of whose calls fails: the k-th that has to do with a folder."""

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from modlife.runs import durable

CALLS = (
    *("open", "read", "pread", "write", "fsync", "ftruncate", "replace", "mkdir", "unlink", "rmdir"),
    *("stat", "lstat", "fstat", "listdir", "scandir"),
)
"""What may fail. `close` is not among them: nobody can do anything about it."""


class Shim:
    """Stands between Python and the operating system, counts calls, and lets one fail."""

    def __init__(self, folder: Path, *, at: int = 0, error: int = 0):
        self.folder, self.at, self.error = str(folder), at, error
        self.calls, self.handles, self.struck = 0, set[int](), ""

    def concerns(self, where: Any, options: dict[str, Any]) -> bool:
        """Whether a call has to do with the folder, by name or by an open file."""
        if isinstance(where, int):
            return where in self.handles
        return os.fspath(where).startswith(self.folder) or options.get("dir_fd") in self.handles

    def count(self, name: str) -> None:
        """One more call; it may be the one that fails."""
        self.calls += 1
        if self.calls == self.at:
            self.struck = name
            raise OSError(self.error, os.strerror(self.error))

    def wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A call that is counted if it concerns the folder."""

        def call(where: Any = ".", *rest: Any, **options: Any) -> Any:
            if not self.concerns(where, options):
                return function(where, *rest, **options)
            self.count(name)
            found = function(where, *rest, **options)
            if name == "open":
                self.handles.add(found)
            return found

        return call

    def close(self, handle: int) -> None:
        """Forgets an open file."""
        self.handles.discard(handle)
        CLOSE(handle)

    def open(self, path: Any, mode: str = "r", *rest: Any, opener: Any = None, **options: Any) -> Any:
        """Opens a file, whose writing may fail."""
        if isinstance(path, int) or not self.concerns(path, {}):
            return OPEN(path, mode, *rest, opener=opener, **options)
        if opener is None:
            self.count("open")
        file = OPEN(path, mode, *rest, opener=opener, **options)
        self.handles.add(file.fileno())
        return Writing(file, self)

    @contextlib.contextmanager
    def between(self) -> Iterator["Shim"]:
        """While this lasts, calls are counted."""
        with contextlib.ExitStack() as stack:
            for name in CALLS:
                stack.enter_context(patch.object(os, name, self.wrapped(name, getattr(os, name))))
            stack.enter_context(patch.object(os, "close", self.close))
            stack.enter_context(patch.object(io, "open", self.open))
            stack.enter_context(patch.object(durable, "open", self.open, create=True))
            yield self


OPEN, CLOSE = io.open, os.close


class Writing:
    """An open file; half of what is written arrives before it fails."""

    def __init__(self, file: Any, shim: Shim):
        self.file, self.shim = file, shim

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def __enter__(self) -> "Writing":
        return self

    def __exit__(self, *error: object) -> None:
        self.shim.handles.discard(self.file.fileno())
        self.file.close()

    def write(self, data: bytes) -> int:
        """Writes all, or half."""
        try:
            self.shim.count("write")
        except OSError:
            self.file.write(data[: len(data) // 2])
            raise
        return self.file.write(data)

    def read(self, *size: int) -> Any:
        """Reads, or not."""
        self.shim.count("read")
        return self.file.read(*size)

    def truncate(self, size: int) -> int:
        """Cuts, or not."""
        self.shim.count("truncate")
        return self.file.truncate(size)
