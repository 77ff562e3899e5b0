"""All writing of runs goes through here: whole files that survive a crash, and one seam where tests inject faults."""

import hashlib
import os
import shutil
import stat
from pathlib import Path

from modlife.errors import InputError, StoreError

ASIDE = ".tmp"
"""Ending of what is being written; left behind only by a kill, and removed by the next writer."""


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
        with open(path, "ab", opener=open_plain) as file:
            file.write(data)
            file.flush()
            if sync:
                os.fsync(file.fileno())

    def truncate(self, path: Path, size: int) -> None:
        """Cuts a file to a size."""
        with open(path, "r+b", opener=open_plain) as file:
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


def open_plain(path: str, flags: int) -> int:
    """Opens a file that is there, not what a link leads to; does not wait for the other end of a pipe."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)


def replace_file(disk: Disk, path: Path, data: bytes) -> None:
    """Writes a file aside and renames it: readers, and crashes, see all of the old one or all of the new one."""
    aside = path.with_name(path.name + ASIDE)
    try:
        disk.write(aside, data)
        disk.rename(aside, path)
    except OSError as error:
        clear(disk, aside)
        raise save_error(path, error) from error


def save_error(path: Path, error: OSError) -> StoreError:
    """What went wrong, in a sentence."""
    return StoreError(f"'{path}' could not be written: {error.strerror or error}. What was saved before is intact.")


def clear(disk: Disk, aside: Path) -> None:
    """Removes what a failed write left; a disk that refuses even this keeps it until the next writer comes."""
    if aside.exists():
        try:
            disk.remove(aside)
        except OSError:
            return


def read_regular(path: Path, *, size: int | None = None) -> bytes:
    """The content of a plain file: no link, device or pipe; of the expected size, where one is known."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}.") from error
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise InputError(f"'{path}' is not a plain file.")
    with os.fdopen(handle, "rb") as file:
        if size is not None and status.st_size != size:
            raise InputError(f"'{path}' has {status.st_size} bytes instead of {size}.")
        return file.read()


def sha256(data: bytes) -> str:
    """The checksum of some bytes."""
    return hashlib.sha256(data).hexdigest()
