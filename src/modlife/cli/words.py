"""From words on the command line to values: numbers, files, and what a config says against them."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from modlife.checks import shown
from modlife.cli.choices import given
from modlife.errors import InputError, StoreError, plain

registry = ConstructorRegistry()


@registry.primitive_rule
def numbers(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
    """How numbers are read and explained."""
    kinds = [kind for kind in (int, float) if info.type in (kind, kind | None)]
    if not kinds:
        return None
    kind, maybe = kinds[0], info.type is not kinds[0]
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=kind.__name__.upper(),
        instance_from_str=lambda words: None if maybe and words == ["None"] else number(kind, words[0]),
        is_instance=lambda value: type(value) in (int, kind) or (maybe and value is None),
        str_from_instance=lambda value: [str(value)],
    )


def number(kind: type, word: str) -> Any:
    """The number that a word stands for."""
    try:
        return kind(word)
    except ValueError as error:
        example = int(float(word)) if is_whole(word) else 100000 if kind is int else 0.001
        what = "a whole number" if kind is int else "a number"
        raise InputError(f"'{shown(word, str)}' is not {what}; write it in digits, as {example}.") from error


def is_whole(word: str) -> bool:
    """Whether a word is a whole number in another notation, such as 1e5."""
    with contextlib.suppress(ValueError):
        return float(word).is_integer() and abs(float(word)) < 1e15
    return False


def read_options(kind: type, usual: Any = None, *, prog: str, arguments: Sequence[str]) -> Any:
    """The options of a command. What a config says against one of them is said as it is, without a frame."""
    for name in ("out", "picture"):
        if given(arguments, name) == "":
            raise InputError(f"--{name} '' is empty; name a file or directory.")
    frame, default = io.StringIO(), tyro.MISSING_NONPROP if usual is None else usual
    try:
        with contextlib.redirect_stderr(frame):
            options = tyro.cli(kind, default=default, prog=prog, args=arguments, registry=registry)
    except (SystemExit, InputError) as end:
        sentence = cause(end)
        if sentence is None:
            tell_all(frame)
            raise
        raise InputError(as_typed(str(sentence), arguments)) from end
    tell_all(frame)
    return options


def tell_all(frame: io.StringIO) -> None:
    """What was caught, line by line as it was."""
    with contextlib.suppress(OSError, AttributeError):
        if frame.getvalue():
            sys.stderr.write(frame.getvalue())
            sys.stderr.flush()


def tell(sentence: str) -> None:
    """A sentence to whoever listens at standard error; nobody need."""
    with contextlib.suppress(OSError, AttributeError):
        print(plain(sentence), file=sys.stderr, flush=True)


def cause(error: BaseException | None) -> InputError | None:
    """The first error in a chain that was written for people."""
    while error is not None and not isinstance(error, InputError):
        error = error.__context__
    return error


def as_typed(sentence: str, arguments: Sequence[str]) -> str:
    """The sentence with the option that it is about as it was typed: the one with this field, or with this word."""
    field, _, rest = sentence.partition(" = ")
    came = rest.partition(", ")[0]
    for option, value in typed(arguments):
        if option.rpartition(".")[2].removeprefix("--").replace("-", "_") == field and is_same(value, came):
            return f"{option} = {rest}"
        if sentence.startswith(f"'{shown(value, str)}' is not"):
            return f"{option}: {sentence}"
    return sentence


def is_same(word: str, came: str) -> bool:
    """Whether a word on the command line is the value that a sentence names."""
    try:
        return word == came or float(word) == float(came)
    except ValueError:
        return False


def typed(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Options with the word that follows each."""
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        if option.startswith("--"):
            yield option, value if equals else following


def check_file(what: str, path: Path, *endings: str) -> None:
    """A file can be written there, as far as its name tells."""
    if path.suffix.lower() not in endings:
        raise InputError(f"The {what} '{path}' must be a {' or '.join(endings)} file.")
    if path.is_dir():
        raise InputError(f"The {what} '{path}' is a directory; name a file.")


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A name to write to; what was written gets its own name when it is whole, and is gone if it never is."""
    aside = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        yield aside
        aside.replace(path)
    except OSError as error:
        raise StoreError(f"'{path}' could not be written: {error.strerror or error}.") from error
    finally:
        with contextlib.suppress(OSError):
            aside.unlink()
