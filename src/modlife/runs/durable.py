"""All reading and writing of runs goes through here: whole files that survive a crash, and no surprises in reading."""

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modlife.errors import InputError, ReadError, StoreError

ASIDE = ".tmp"
"""Ending of what is being written; left behind only by a kill, and removed by the next writer."""
NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG)
"""What the system says of a file that is not there, or is something else."""
LARGE = 2**32
"""More bytes than any file of a run needs."""


class Disk:
    """The operations that change a disk. Each has happened when it returns, or raises `OSError`."""

    def write(self, path: Path, data: bytes) -> None:
        """A new file, synced. It may be torn if this fails, so it is written under a name that nobody reads."""
        with path.open("xb") as file:  # never through a link that somebody put there
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def append(self, path: Path, data: bytes, *, sync: bool) -> None:
        """Adds to the end of a file."""
        with open(path, "ab", opener=open_own) as file:
            file.write(data)
            file.flush()
            if sync:
                os.fsync(file.fileno())

    def truncate(self, path: Path, size: int) -> None:
        """Cuts a file to a size."""
        with open(path, "r+b", opener=open_own) as file:
            file.truncate(size)
            file.flush()
            os.fsync(file.fileno())

    def make(self, path: Path) -> None:
        """A new directory."""
        path.mkdir()
        self.sync(path.parent)

    def rename(self, old: Path, new: Path) -> None:
        """A new name, durable."""
        os.replace(old, new)
        self.sync(new.parent)

    def sync(self, folder: Path) -> None:
        """Makes the names in a directory durable."""
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def remove(self, path: Path) -> None:
        """A file or directory with all that is in it."""
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def open_own(path: str, flags: int) -> int:
    """Opens a file to change it in place: a plain one with no other name, not what a link or a device leads to."""
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    try:
        status = os.fstat(handle)
    except OSError:
        os.close(handle)
        raise
    if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
        return handle
    os.close(handle)
    if stat.S_ISREG(status.st_mode):
        raise OSError(errno.EMLINK, "It has a second name (a hard link), under which it would change too")
    raise OSError(errno.EINVAL, "It is not a plain file")


def replace_file(disk: Disk, path: Path, data: bytes) -> None:
    """Writes a file aside and renames it: readers, and crashes, see all of the old one or all of the new one."""
    aside = path.with_name(path.name + ASIDE)
    try:
        disk.write(aside, data)
        disk.rename(aside, path)
    except OSError as error:
        clear(disk, aside)
        raise unsaved(path, error) from error


def make_parents(disk: Disk, path: Path) -> None:
    """The directories above a path that are not there yet, each durable before the next is made in it."""
    missing = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(missing):
        try:
            disk.make(folder)
        except FileExistsError:  # somebody else made it in the meantime
            disk.sync(folder.parent)


def unsaved(path: Path, error: OSError) -> StoreError:
    """What went wrong, in a sentence."""
    return StoreError(f"'{path}' could not be written: {error.strerror or error}. What was saved before is intact.")


def clear(disk: Disk, aside: Path) -> None:
    """Removes what a failed write left; a disk that refuses even this keeps it until the next writer comes."""
    try:
        if aside.exists():
            disk.remove(aside)
    except OSError:
        return


def read_regular(path: Path, *, size: int | None = None, most: int = LARGE) -> bytes:
    """The content of a plain file: no link, device or pipe; of the expected size, or at most so many bytes."""
    with reading(path):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise InputError(f"'{path}' is not a plain file.")
            if size is not None and status.st_size != size:
                raise InputError(f"'{path}' is damaged: it has {status.st_size} bytes instead of {size}.")
            if status.st_size > most:
                raise InputError(f"'{path}' has {status.st_size} bytes; such a file has at most {most}.")
            return read_whole(handle, status.st_size)
        finally:
            os.close(handle)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What the system says against reading a path is said in a sentence; whether it may be read another time or not."""
    try:
        yield
    except OSError as error:
        why = "It is a link" if error.errno == errno.ELOOP else error.strerror
        kind = InputError if error.errno in NOT_THERE else ReadError
        raise kind(f"'{path}' cannot be read: {why}.") from error


@contextmanager
def saving(path: Path) -> Iterator[None]:
    """What the system says against writing a path is said in a sentence."""
    try:
        yield
    except OSError as error:
        raise unsaved(path, error) from error


def read_whole(handle: int, size: int) -> bytes:
    """So many bytes of an open file, or all that there are if it was cut meanwhile."""
    pieces = []
    while size > 0 and (piece := os.read(handle, min(size, 2**26))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def sha256(data: bytes) -> str:
    """The checksum of some bytes."""
    return hashlib.sha256(data).hexdigest()
