"""Errors that are written for the person at the keyboard."""

import difflib
from collections.abc import Iterable

LONGEST = 1000
"""Characters of a sentence; what is longer is cut in its middle."""


def plain(text: object, longest: int = LONGEST) -> str:
    """Text from anywhere, fit for a terminal: control characters are written out, and it has an end."""
    shown = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in str(text))
    half = longest // 2
    return shown if len(shown) <= longest else f"{shown[:half]} [...] {shown[-half:]}"


class Sentence(Exception):
    """Something to tell the person at the keyboard, in a sentence or two: what came, what was expected, the way out.

    The command line prints it without a traceback.
    """

    def __init__(self, message: str):
        super().__init__(plain(message))


class InputError(Sentence, ValueError):
    """A value from the user, or a file, that cannot be used: exit code 2."""


class ReadError(InputError):
    """A file cannot be read now, whatever is in it: the disk, or the system, says no."""


class StoreError(Sentence):
    """A run could not be written: exit code 1."""


class Busy(StoreError):
    """A run is being written by another process: it may be free later."""


class Diverged(Sentence):
    """Learning came to values that are not numbers: exit code 1. The life was saved as it was before."""


def installing(extra: str) -> str:
    """How to install what an optional part of the program needs."""
    return f"pip install -e '.[{extra}]' in the checkout of modlife"


def unknown(kind: str, name: object, known: Iterable[object], *, hint: str = "") -> InputError:
    """The error for a name that is not among the known ones, with the nearest one suggested."""
    names = [str(one) for one in known]
    by_letters = {one.lower(): one for one in names}
    near = difflib.get_close_matches(str(name)[:100].lower(), by_letters, n=1)
    guess = f" Did you mean '{by_letters[near[0]]}'?" if near else ""
    return InputError(f"No {kind} '{plain(name, 200)}'.{guess} Known: {', '.join(names)}.{hint and ' ' + hint}")
