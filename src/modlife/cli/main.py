"""Finds the command, reads its options, and turns what goes wrong into one sentence."""

import contextlib
import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from modlife import __version__
from modlife.errors import InputError, Sentence, StoreError, plain, unknown

COMMANDS = {
    "list": "what there is: domains, their factors, components and tasks; agents, figures",
    "graph": "draw a domain's problem graph",
    "train": "let an agent learn tasks, into a run directory",
    "config": "print the options of a life as a file, for `train --config`",
    "eval": "evaluate the agent of a run directory, on tasks it learnt or on unseen ones",
    "play": "watch an agent in a task, as a GIF",
    "show": "see lives in the terminal: curves, forgetting, modules; several side by side",
    "export": "take a policy (ONNX) or data (Minari) out of a run directory",
    "sync": "copy the metrics of run directories to TensorBoard, W&B or MLflow",
    "figure": "draw a figure of the paper from run directories",
    "reproduce": "live what a figure of the paper needs, then draw it",
    "table": "compare the agents of run directories: return, transfer, change since learnt, cost",
    "metrics": "transfer, forgetting and the like of run directories or of anybody's numbers, with intervals",
    "report": "write a page that shows lives, for a browser: curves, memory, modules, times",
    "sweep": "live many lives, some at a time: agents x settings x seeds, or a file of lives",
    "tune": "search for hyper-parameters as the paper did, in many lives at once",
    "bench": "measure speed on this machine, one JSON object a line",
}
"""Each is a module of this package: a dataclass `Options` and a function `run`; and `usual`, where defaults follow from
arguments."""

OVERVIEW = f"""\
modlife {__version__}: lifelong reinforcement learning with neural modules

usage: modlife COMMAND [OPTIONS]

{chr(10).join(f"  {name:<9} {what}" for name, what in COMMANDS.items())}

  modlife COMMAND --help    explains a command and its options
  modlife --version         prints the version

first steps:
  modlife list                                   the 64 tasks of the 2-D world
  modlife play --task lava/blue/dynamics-1       a trained agent in one of them; --policy random for one that is not
  modlife eval --unseen                          how it does on combinations that it never met
  modlife train --tasks 8 --steps 100000 --out runs/a
  modlife show runs/a                            what it learnt, forgot, and uses which module for
"""


def main(argv: Sequence[str] | None = None) -> None:
    """The program `modlife`."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if sys.stderr is None:  # closed by the caller, who does not want to hear; a file opened next would take its place
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # until the end
    try:
        if sys.stdout is None:
            raise StoreError("Standard output is closed: let it lead somewhere, such as > /dev/null.")
        try:
            with warnings.catch_warnings():
                warnings.showwarning = show
                run(arguments)
        finally:
            sys.stdout.flush()  # here, where a full disk can still be told
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        settle(sys.stdout)  # the reader, such as `head`, has seen enough
        sys.exit(141)
    except (Sentence, OSError, MemoryError, RuntimeError) as error:
        sentence = told(error)
        if sentence is None:
            raise
        settle(sys.stdout)
        with contextlib.suppress(OSError):
            print(f"modlife: {plain(sentence)}", file=sys.stderr)
        sys.exit(2 if isinstance(error, InputError) else 1)
    finally:
        settle(sys.stderr)  # else Python would end with a code of its own


def told(error: BaseException) -> str | None:
    """What went wrong, in a sentence; None if it is a fault of the program."""
    if isinstance(error, Sentence):
        return str(error)
    if isinstance(error, OSError):
        what = f"'{error.filename}' could not be read or written" if error.filename else "Writing failed"
        return f"{what}: {error.strerror or error}."
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
        return "There is not enough memory: take fewer environments, episodes or modules, or a smaller batch or replay."
    return None


def settle(stream: TextIO | None) -> None:
    """Keeps Python from writing once more, at its end, what cannot be written."""
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def show(message: Warning | str, *where: object) -> None:
    """A warning as a sentence, without the place in the program."""
    with contextlib.suppress(OSError):
        print(f"modlife: {plain(message)}", file=sys.stderr)


def run(arguments: list[str]) -> None:
    """Runs the command that the first argument names."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(OVERVIEW, end="")
        return
    if arguments[0] == "--version":
        print(f"modlife {__version__}")
        return
    name, *rest = arguments
    if name not in COMMANDS:
        raise unknown("command", name, COMMANDS, hint="`modlife --help` explains them.")

    from modlife.cli.words import read_options  # here, so that the overview comes at once

    command = importlib.import_module(f"modlife.cli.{name}")
    usual = command.usual(rest) if hasattr(command, "usual") else None
    command.run(read_options(command.Options, usual, prog=f"modlife {name}", arguments=rest))
