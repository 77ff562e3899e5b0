"""Finds the command, reads its options, and turns what goes wrong into one sentence."""

import importlib
import os
import sys
import warnings
from collections.abc import Sequence

from modlife import __version__
from modlife.errors import Diverged, InputError, StoreError, plain, unknown

COMMANDS = {
    "list": "what there is: domains, their factors, components and tasks; agents, figures",
    "graph": "draw a domain's problem graph",
    "train": "let an agent learn tasks, into a run directory",
    "eval": "evaluate the agent of a run directory, on tasks it learnt or on unseen ones",
    "play": "watch an agent in a task, as a GIF",
    "figure": "draw a figure of the paper from run directories",
    "bench": "measure speed on this machine, one JSON object a line",
}
"""Each is a module of this package: a dataclass `Options`, what they are by default (`usual`), and a function `run`."""

OVERVIEW = f"""\
modlife {__version__}: lifelong reinforcement learning with neural modules

usage: modlife COMMAND [OPTIONS]

{chr(10).join(f"  {name:<8} {what}" for name, what in COMMANDS.items())}

  modlife COMMAND --help    explains a command and its options
  modlife --version         prints the version

first steps:
  modlife list                                   the 64 tasks of the 2-D world
  modlife play --task lava/blue/dynamics-1       a random agent in one of them
  modlife train --tasks 8 --steps 100000 --out runs/a
  modlife eval runs/a --unseen                   how it does on combinations it never met
"""


def main(argv: Sequence[str] | None = None) -> None:
    """The program `modlife`."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show
            run(arguments)
    except InputError as error:
        print(f"modlife: {error}", file=sys.stderr)
        sys.exit(2)
    except (StoreError, Diverged) as error:
        print(f"modlife: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough; keep Python from writing to the closed pipe once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def show(message: Warning | str, *where: object) -> None:
    """A warning as a sentence, without the place in the program."""
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

    import tyro  # here, so that the overview comes at once

    command = importlib.import_module(f"modlife.cli.{name}")
    command.run(tyro.cli(command.Options, default=command.usual(rest), prog=f"modlife {name}", args=rest))
