"""Processes of the program, for tests that kill them: they begin with its packages loaded, which is most of their time.

A process that has loaded the packages, and has begun nothing, waits to be asked for another: that one is its fork, with
arguments, folder and environment of its own. What packages read from the environment when they are loaded is as in the
tests.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from terminal import End

MESSAGE = 1 << 20


class Child:
    """`modlife` with some arguments in a process of its own: as much of `subprocess.Popen` as tests use."""

    def __init__(self, *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None):
        self.said = [os.memfd_create(name) for name in ("out", "err")]
        about = {"arguments": arguments, "cwd": str(cwd or Path.cwd()), "env": env or dict(os.environ)}
        self.pid: int = asked(about, *self.said)
        self.handle = os.pidfd_open(self.pid)
        self.returncode: int | None = None
        self.texts: tuple[str, ...] = ()

    def poll(self, seconds: float = 0) -> int | None:
        """The exit code, if it ends within this time."""
        if self.returncode is None and select.select([self.handle], [], [], seconds)[0]:
            self.returncode = asked({"ended": self.pid})
            self.texts = tuple(os.pread(file, os.fstat(file).st_size, 0).decode() for file in self.said)
            for file in (self.handle, *self.said):
                os.close(file)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def end(self, seconds: float = 600) -> End:
        """How it ends, and what it has said."""
        if (code := self.poll(seconds)) is None:
            raise subprocess.TimeoutExpired("modlife", seconds)
        return End(code, *self.texts)


def asked(message: dict[str, Any], *files: int) -> int:
    """Asks the process that forks."""
    line = nursery()
    socket.send_fds(line, [json.dumps(message).encode()], files)
    return json.loads(line.recv(MESSAGE))


@cache
def nursery() -> socket.socket:
    """The process that forks, one for all tests here; it ends with them."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    alone = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # no threads of NumPy's: only the one that forks lives on
    process = subprocess.Popen([sys.executable, __file__, str(its.fileno())], pass_fds=[its.fileno()], env=alone)
    its.close()
    atexit.register(process.wait, 60)
    atexit.register(mine.close)  # which is what it waits for
    return mine


def preload() -> None:
    """All that a life in the 2-D world takes; nothing has begun: no thread, no device, no package's plugin."""
    from modlife import cli, learners, lifelong, policies, registry
    from modlife.domains import grid2d

    every = [f"{of.__name__}.{one.name}" for of in (learners, lifelong, policies) for one in iter_modules(of.__path__)]
    for name in (*every, f"{grid2d.__name__}.environment", f"{cli.__name__}.train", "modlife.runs.life"):
        import_module(name)
    assert not registry._loaded
    assert len(os.listdir("/proc/self/task")) == 1


def serve(line: socket.socket) -> dict[str, Any] | None:
    """Forks as often as it is asked to; returns in every fork what was asked for, and nothing when nobody asks more."""
    while True:
        text, files, *_ = socket.recv_fds(line, MESSAGE, 2)
        if not text:
            return None
        about = json.loads(text)
        if "ended" in about:
            answer = os.waitstatus_to_exitcode(os.waitpid(about["ended"], 0)[1])
        elif (answer := os.fork()) == 0:
            line.close()
            for number, file in enumerate(files, start=1):
                os.dup2(file, number)
                os.close(file)
            return about
        for file in files:
            os.close(file)
        line.sendall(json.dumps(answer).encode())


def main() -> None:
    """The process that forks; and what its forks do."""
    preload()
    about = serve(socket.socket(fileno=int(sys.argv[1])))
    if about is not None:
        os.environ.clear()
        os.environ.update(about["env"])
        os.chdir(about["cwd"])
        sys.path[:0] = [path for path in about["env"].get("PYTHONPATH", "").split(os.pathsep) if path not in sys.path]
        sys.argv = ["modlife", *about["arguments"]]
        from modlife_command import main

        main()


if __name__ == "__main__":
    main()
