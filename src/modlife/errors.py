"""Errors that are written for the person at the keyboard."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """A value from the user that cannot be used.

    The message is one sentence or two: what came, what was expected, the way out. The command line prints
    it without a traceback and ends with exit code 2.
    """


def unknown(kind: str, name: object, known: Iterable[object], *, hint: str = "") -> InputError:
    """The error for a name that is not among the known ones, with the nearest one suggested."""
    names = [str(one) for one in known]
    near = difflib.get_close_matches(str(name), names, n=1)
    guess = f" Did you mean '{near[0]}'?" if near else ""
    return InputError(f"No {kind} '{name}'.{guess} Known: {', '.join(names)}.{hint and ' ' + hint}")


class StoreError(Exception):
    """A run could not be written: the program stops, and prints the sentence."""
