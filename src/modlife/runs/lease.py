"""Who writes a run directory: a lock, and beside it a lease, because locks can be local to one machine.

    lock            locked (`flock`) by the one process that writes; says which
    lease-7.json    who that is: machine, boot, process; its time of change is the last sign of life

The seventh writer has the seventh lease. It gives a sign of life every `BEAT` seconds by touching the file, so the
storage's own clock tells how long ago that was, and no two machines' clocks are compared. Whoever comes next takes the
next number, which only one can have, and removes the lease before: its holder, should it wake up again, finds it gone
and writes no more. A lease is free when it was given back (its time is then 0), when its process is gone from this very
machine, or after `STALE` seconds without a sign of life.
"""

import contextlib
import errno
import fcntl
import os
import re
import secrets
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from modlife.errors import Busy, InputError, ReadError, StoreError, plain
from modlife.runs.codec import from_json, to_json
from modlife.runs.durable import ASIDE, Disk, reading, saving, unsaved
from modlife.runs.sealed import sealed, unsealed

BEAT = 10.0
"""Seconds between two signs of life."""
STALE = 60.0
"""Seconds without a sign of life after which another may write."""
LATE = 20.0
"""Seconds after its last sign of life that a holder gives another before it writes on."""
NAME = re.compile(r"lease-([1-9][0-9]{0,8})\.json")
MOST = 10**9
"""More writers than a run directory ever has."""
GONE = (errno.ENOENT, errno.ESTALE)
"""What a disk says of a file that is not there any more."""
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""What a disk says on which a file cannot have two names."""
AWAKE = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The clock that goes on while a machine sleeps, if there is one."""


@dataclass(frozen=True)
class Place:
    """Where processes know each other by their numbers: one machine since it was started, one container on it."""

    host: str
    boot: str
    space: str


@dataclass(frozen=True)
class Holder:
    """Who has a lease."""

    place: Place
    process: int
    started: int
    """When the process started, by its machine's count: numbers of processes are used again."""
    folder: int
    """The run directory's own number on its disk: a copy has another."""
    token: str
    """No two leases have the same."""

    def __str__(self) -> str:
        return f"process {self.process} on {self.place.host}"


HELD: set[str] = set()
"""Tokens of the leases that this process has. A process that is forked off it has none."""
os.register_at_fork(after_in_child=HELD.clear)


def here() -> Place:
    """Where this process is."""
    boot = space = ""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = os.readlink("/proc/self/ns/pid")
    return Place(socket.gethostname(), boot, space)


def start_of(process: int) -> int | None:
    """When a process of this machine started; 0 where that cannot be known, None if there is none, or only its end."""
    if not 0 < process < 2**31:
        return None
    try:
        state, *fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return None if state in "ZX" else int(fields[18])
    except OSError:
        if Path("/proc/self/stat").exists():
            return None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except OSError:
        return 0  # it is there, and somebody else's
    return 0


class Lease:
    """A lease in the hands of its holder, who gives signs of life until it is given back."""

    def __init__(self, path: Path, token: str):
        self.path, self.token = path, token
        self.beaten, self.guard, self.ended = time.clock_gettime(AWAKE), threading.Lock(), threading.Event()
        HELD.add(token)

    def keep(self) -> "Lease":
        """Gives signs of life from now on, whatever else this process does."""
        threading.Thread(target=self.beats, daemon=True, name=f"lease {self.path}").start()
        return self

    def beats(self) -> None:
        """One sign of life after the other; where one fails, the next write says so."""
        while not self.ended.wait(BEAT):
            with contextlib.suppress(StoreError):
                self.beat()

    def beat(self) -> None:
        """A sign of life, unless somebody else has taken over."""
        with self.guard:
            if self.ended.is_set():
                return
            now = time.clock_gettime(AWAKE)
            try:
                is_held = self.is_own()
                if is_held:
                    os.utime(self.path)
                    is_held = leases_in(self.path.parent)[-1:] == [self.path]
            except InputError as error:
                raise StoreError(str(error)) from error
            except OSError as error:
                if error.errno not in GONE:
                    raise unsaved(self.path, error) from error
                is_held = False
            if not is_held:
                raise Busy(
                    f"'{self.path.parent}' was given to another process, because this one gave no sign of life for "
                    f"{STALE:.0f} seconds; it writes no more. What was saved before is intact."
                )
            self.beaten = now

    def is_own(self) -> bool:
        """Whether the file is this lease: where it was removed by hand, another can have its number."""
        try:
            return unsealed(self.path).get("token") == self.token
        except ReadError:  # it may be read another time
            raise
        except InputError:  # damaged, or gone
            return False

    def check(self) -> None:
        """Before something is written: the lease is still held, or it is said that it is not."""
        if time.clock_gettime(AWAKE) - self.beaten > LATE:
            self.beat()

    def give_back(self) -> None:
        """Lets the next one in at once."""
        self.forget()
        with self.guard, contextlib.suppress(OSError, InputError):
            if self.is_own():
                os.utime(self.path, (0, 0))

    def forget(self) -> None:
        """Gives no more signs of life."""
        self.ended.set()
        HELD.discard(self.token)


@dataclass(frozen=True)
class Guarded(Disk):
    """A disk that is changed only while a lease is held."""

    disk: Disk
    lease: Lease

    def write(self, path: Path, data: bytes) -> None:
        """A new file."""
        self.lease.check()
        self.disk.write(path, data)

    def append(self, path: Path, data: bytes, *, sync: bool) -> None:
        """Adds to the end of a file."""
        self.lease.check()
        self.disk.append(path, data, sync=sync)

    def truncate(self, path: Path, size: int) -> None:
        """Cuts a file to a size."""
        self.lease.check()
        self.disk.truncate(path, size)

    def make(self, path: Path) -> None:
        """A new directory."""
        self.lease.check()
        self.disk.make(path)

    def rename(self, old: Path, new: Path) -> None:
        """A new name."""
        self.lease.check()
        self.disk.rename(old, new)

    def sync(self, folder: Path) -> None:
        """Makes the names in a directory durable."""
        self.disk.sync(folder)

    def remove(self, path: Path) -> None:
        """A file or directory."""
        self.lease.check()
        self.disk.remove(path)


def take(folder: Path, lock: int) -> Lease:
    """The lease on a run directory whose lock is held; or it is said who has it."""
    try:
        before = leases_in(folder)
        os.utime(lock)
        now = os.fstat(lock).st_mtime
        seen = {path: check_free(path, now) for path in before}
        lease = claim(folder, max(map(number_of, before), default=0) + 1)
        try:
            if succeeds(lease, seen):
                return lease
        except BaseException:
            lease.give_back()
            raise
    except (FileExistsError, FileNotFoundError) as error:
        raise quicker(folder) from error
    except OSError as error:
        raise unsaved(folder, error) from error
    raise quicker(folder)


def succeeds(lease: Lease, free: dict[Path, int]) -> bool:
    """Removes the leases that were free, and tells whether they were so until then and no other has come.

    One who stands back when some are removed leaves its own: with no lease left, a number would be given again.
    """
    if not all(is_still(path, changed) for path, changed in free.items()):
        lease.forget()
        lease.path.unlink(missing_ok=True)
        return False
    for path in free:
        path.unlink(missing_ok=True)
    if leases_in(lease.path.parent) == [lease.path]:
        return True
    lease.give_back()
    return False


def is_still(path: Path, changed: int) -> bool:
    """Whether a lease is there, and was not touched since."""
    try:
        return status_of(path).st_mtime_ns == changed
    except OSError as error:
        if error.errno in GONE:
            return False
        raise


def quicker(folder: Path) -> Busy:
    """The error where two wanted a free lease."""
    return Busy(f"'{folder}' is being written by another process (which has just begun).")


def leases_in(folder: Path) -> list[Path]:
    """The leases that there are, whatever they are; several where somebody was killed on the way, or stood back."""
    found = [path for path in folder.iterdir() if NAME.fullmatch(path.name)]
    if any(number_of(path) >= MOST - 1 for path in found):
        raise InputError(f"'{folder / name_of(MOST - 1)}' is not of this life: it had fewer writers. Remove it.")
    return sorted(found, key=number_of)


def number_of(path: Path) -> int:
    """The number in a lease's name."""
    found = NAME.fullmatch(path.name)
    assert found is not None
    return int(found[1])


def name_of(number: int) -> str:
    """The name of a lease."""
    return f"lease-{number}.json"


def status_of(path: Path) -> os.stat_result:
    """What the storage says of a file now; a file that is opened is asked for anew, also over a network."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        return os.fstat(handle)
    finally:
        os.close(handle)


def check_free(path: Path, now: float) -> int:
    """When a lease was touched last, if it is free; or else it is said who has it."""
    try:
        status = status_of(path)
    except FileNotFoundError:
        raise  # another was quicker
    except OSError:
        with reading(path):
            raise
    if status.st_mtime_ns == 0:
        return 0
    try:
        holder = from_json(Holder, unsealed(path), where=f"'{path}'")
    except InputError as error:
        check_old(path, now - status.st_mtime, str(error).rstrip("."))
        return status.st_mtime_ns
    if holder.place != here():
        check_old(path, now - status.st_mtime, str(holder))
    elif is_alive(holder, path.parent):
        raise Busy(f"'{path.parent}' is being written by another process ({holder}).")
    return status.st_mtime_ns


def is_held(folder: Path) -> bool:
    """Whether somebody writes a run directory, for those who only look: nothing is locked or changed."""
    try:
        for path in leases_in(folder):
            check_free(path, max(time.time(), status_of(path).st_mtime))  # clocks differ
    except Busy:
        return True
    except (InputError, StoreError, OSError):
        return False  # the next who wants to write is told
    return False


def is_alive(holder: Holder, folder: Path) -> bool:
    """Whether a holder of this place still writes there; what it has elsewhere was copied here."""
    if holder.process == os.getpid():
        return holder.token in HELD
    return holder.folder == folder.stat().st_ino and start_of(holder.process) == holder.started


def check_old(path: Path, age: float, holder: str) -> None:
    """The last sign of life was long ago."""
    if age < -STALE:
        raise InputError(
            f"'{path}' ({holder}) was changed {-age:.0f} seconds from now, in the future. If nobody writes this run, "
            "remove the file."
        )
    if age <= STALE:
        raise Busy(
            f"'{path.parent}' is being written by another process ({holder}), whose last sign of life was "
            f"{max(age, 0):.0f} seconds ago. It can be gone on with {STALE:.0f} seconds after the last."
        )


def claim(folder: Path, number: int) -> Lease:
    """The lease of a number, which only one can have: it appears whole, or `FileExistsError` is raised."""
    token, path = secrets.token_hex(8), folder / name_of(number)
    holder = Holder(here(), os.getpid(), start_of(os.getpid()) or 0, folder.stat().st_ino, token)
    aside = path.with_name(f"{path.name}.{token[:8]}{ASIDE}")
    try:
        write_new(aside, sealed(to_json(holder)))
        link(aside, path)
    finally:
        with contextlib.suppress(OSError):
            aside.unlink()
    return Lease(path, token)


def link(old: Path, new: Path) -> None:
    """A second name, which must be free; over a network it may have got it although that is denied."""
    try:
        os.link(old, new, follow_symlinks=False)
    except OSError as error:
        if error.errno in NO_LINKS:
            write_new(new, old.read_bytes())
        elif old.stat().st_nlink != 2:
            raise


def write_new(path: Path, data: bytes) -> None:
    """A file that was not there."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        os.write(handle, data)
    finally:
        os.close(handle)


def locked(path: Path) -> int:
    """The lock on a run directory, held until its handle is closed or the process ends."""
    file = path / "lock"
    with saving(file):
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = plain(os.pread(handle, 200, 0).decode(errors="replace").strip()) or "which has just begun"
        os.close(handle)
        if error.errno not in (errno.EAGAIN, errno.EACCES):  # there are no locks on this disk
            raise unsaved(file, error) from error
        raise Busy(f"'{path}' is being written by another process ({holder}).") from error
    try:
        if os.fstat(handle).st_nlink > 1:  # a copy of the run shares it: from now on, this one has its own
            file.unlink()
            os.close(handle)
            return locked(path)
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
    except OSError as error:
        os.close(handle)
        raise unsaved(file, error) from error
    return handle
