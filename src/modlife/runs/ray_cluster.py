"""A Ray cluster as a place for lives: each is a Ray task that starts a process and waits for it.

Nothing but a command line and its exit code crosses; results are read from run directories, which all machines share.
"""

import os
import signal
import socket
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from modlife.errors import InputError, installing
from modlife.runs.remote import live_here

CANNOT = 1
"""The exit code of a life that could not be begun."""
LOST = -int(signal.SIGKILL)
"""The exit code of a process that went down with its machine, or with the Ray worker that had started it."""
SAVING = 60.0
"""Seconds that lives are waited for that were asked to stop."""
ANSWER = 5.0
"""Seconds in which a cluster must answer; Ray itself would ask for minutes."""


class RayCluster:
    """The machines of an existing Ray cluster."""

    tries = 20

    def __init__(self, address: str):
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
            import ray.exceptions
        except ModuleNotFoundError as error:
            raise InputError(f"--ray needs Ray: {installing('ray')}.") from error
        check_there(address)
        try:
            ray.init(address=address, log_to_driver=False, configure_logging=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise InputError(f"There is no Ray cluster at '{address}': {str(error).splitlines()[0]}") from error
        self.ray, self.errors = ray, ray.exceptions
        self.task = ray.remote(num_cpus=1, max_calls=1, max_retries=0)(live_here)

    @property
    def cores(self) -> int:
        """Cores of all machines that are there now."""
        return max(int(self.ray.cluster_resources().get("CPU", 1)), 1)

    def begin(self, command: list[str], log: Path) -> Any:
        """Gives a life to the cluster, which finds a machine with a free core for it."""
        return self.task.remote(command, str(log.absolute()))

    def code(self, process: Any) -> int | None:
        """Its exit code, if it has ended; a life that was lost with its worker is as one that was killed."""
        done, _ = self.ray.wait([process], timeout=0)
        if not done:
            return None
        try:
            return self.ray.get(process)
        except self.errors.TaskCancelledError:
            return LOST
        except self.errors.RayTaskError as error:  # it could not be begun there, and would not be elsewhere
            warnings.warn(f"A life could not be begun on its machine: {error.cause}", stacklevel=2)
            return CANNOT
        except self.errors.RayError:
            return LOST

    def stop(self, processes: Sequence[Any]) -> None:
        """Asks all to save and stop, and waits for them."""
        for process in processes:
            self.ray.cancel(process)
        if processes:
            self.ray.wait(list(processes), num_returns=len(processes), timeout=SAVING)

    def close(self) -> None:
        """Leaves the cluster; it stays as it is."""
        self.ray.shutdown()


def check_there(address: str) -> None:
    """Somebody answers at HOST:PORT; other addresses are Ray's own affair."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or "//" in host:
        return
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"There is no Ray cluster at '{address}': {error}.") from error
