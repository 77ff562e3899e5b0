"""What a machine of a cluster does for one life. It imports nothing of modlife: the life is a process of its own."""

import os
import signal
import subprocess
import sys


def live_here(options: list[str], log: str) -> int:
    """Lives a life by `modlife train`, into a run directory that all machines share: its exit code.

    When this is cancelled, the life is asked to save and stop; when it is killed, the life sees that by itself.
    """
    os.makedirs(os.path.dirname(log), exist_ok=True)
    command = [sys.executable, "-m", "modlife", "train", *options, "--parent", str(os.getpid())]
    with open(log, "ab") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait()
