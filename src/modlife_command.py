"""The program `modlife`. Before anything is loaded, Ctrl-C ends it at once: there is nothing to lose yet.

While a life runs, Ctrl-C and SIGTERM save it first (`modlife.runs.interrupts`).
"""

import signal


def main() -> None:
    """Runs the command line."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from modlife.cli.main import main

    main()
