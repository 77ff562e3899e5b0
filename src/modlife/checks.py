"""Checks of values that users give, each with a sentence about what is wrong."""

import functools
import numbers
import sys
import types
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from modlife.errors import InputError, unknown
from modlife.types import Acting

SEEDS = 2**32
"""JAX makes its keys of so many different seeds; a larger one would be taken for a smaller one in silence."""
LARGEST = sys.float_info.max
MOST_THREADS = 1024
"""More is a slip of the finger."""

KINDS = {int: "a whole number", float: "a finite number", bool: "True or False", str: "a text", types.NoneType: "None"}
SEVERAL = {int: "whole numbers", float: "finite numbers", bool: "True and False", str: "texts"}

hints_of = functools.cache(get_type_hints)


def check_fields(config: object) -> None:
    """Every field of a frozen config has a value of its type: numbers are finite, words are among those allowed.

    Numbers of NumPy become Python's, lists become tuples. The first line of a config's `__post_init__`.
    """
    hints = hints_of(type(config))
    for one in fields(config):  # pyright: ignore[reportArgumentType]  # a dataclass, but "object" is all that is known
        given = getattr(config, one.name)
        check_table(one.name, one.metadata.get("table"), given)
        value = fitted(one.name, hints[one.name], given)
        if value is not given:
            object.__setattr__(config, one.name, value)


def check_table(name: str, table: Any, value: Any) -> None:
    """Where one of several configs can be chosen, the value is one of them."""
    try:
        if table is not None:
            table.of(value)
    except InputError as error:
        raise InputError(f"{name} = {shown(value)}: {error}") from error


def fitted(name: str, hint: Any, value: Any) -> Any:
    """The value as its type wants it, or a sentence about why it cannot be had."""
    options, origin = get_args(hint), get_origin(hint)
    if hint is Any:
        return value
    if origin is Literal:
        value = pythonic(value)
        if not any(type(value) is type(option) and value == option for option in options):
            raise unknown(f"value for {name}", shown(value, str), options)
        return value
    if origin is tuple and isinstance(value, list | tuple):
        parts = tuple(fitted(f"a part of {name}", options[0], one) for one in value)
        return value if parts == value else parts
    kinds = options if isinstance(hint, types.UnionType) else (hint,)
    value = pythonic(value)
    if type(value) in kinds and -LARGEST <= (value if isinstance(value, float) else 0) <= LARGEST:
        return value
    if float in kinds and type(value) is int and -LARGEST <= value <= LARGEST:
        return value
    if origin is None and hint not in KINDS and isinstance(hint, type) and isinstance(value, hint):
        return value
    raise InputError(f"{name} = {shown(value)}, which is not {kind_of(hint)}.{rewritten(kinds, value)}")


def pythonic(value: Any) -> Any:
    """Python's own number or text for one of NumPy's; anything else is itself."""
    if isinstance(value, bool | numbers.Integral):
        return value if isinstance(value, bool) else int(value)
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Rational):
        return float(value)
    return str(value) if isinstance(value, str) else value


def kind_of(hint: Any) -> str:
    """A type in words."""
    if isinstance(hint, types.UnionType):
        return " or ".join(kind_of(one) for one in get_args(hint))
    if get_origin(hint) is tuple:
        return f"a list of {SEVERAL.get(get_args(hint)[0], 'parts')}"
    return KINDS.get(hint) or f"a {getattr(hint, '__name__', hint)}"


def rewritten(kinds: Sequence[Any], value: Any) -> str:
    """The way out for a whole number that was written as another."""
    whole = int in kinds and isinstance(value, float) and value.is_integer()
    return f" Write {shown(int(value))}." if whole else ""


def shown(value: object, how: Any = repr) -> str:
    """What came, as far as it fits into a sentence."""
    try:
        text = how(value)
    except ValueError:  # Python does not print whole numbers of more than 4300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"


def check_range(name: str, value: float, low: float, high: float, *, why: str = "") -> None:
    """A number lies between bounds, both included; NaN does not."""
    if not low <= value <= high:
        raise InputError(f"{name} = {shown(value)}, but it must be {low} to {high}{why and ' ' + why}.")


def check_between(config: object, low: float, high: float, *names: str) -> None:
    """Fields are numbers between bounds, both included; NaN is not."""
    for name in names:
        value = getattr(config, name)
        if not low <= value <= high:
            what = f"at most {high}" if value > high else f"at least {low}" if low else "0 or more"
            raise InputError(f"{name} = {shown(value)}, but it must be {what}.")


def check_positive(config: object, *names: str, most: float) -> None:
    """Fields are numbers above 0 and up to a bound; NaN is not."""
    for name in names:
        if not getattr(config, name) > 0:
            raise InputError(f"{name} = {shown(getattr(config, name))}, but it must be more than 0.")
    check_between(config, 0, most, *names)


def check_count(name: str, value: Any, most: int) -> int:
    """A whole number from 1 to a bound."""
    count = fitted(name, int, value)
    check_range(name, count, 1, most)
    return count


def check_seed(seed: Any, name: str = "seed") -> int:
    """A whole number of 32 bits."""
    value = fitted(name, int, seed)
    if not 0 <= value < SEEDS:
        raise InputError(f"{name} = {shown(value)}, but a seed is 0 to {SEEDS - 1}.")
    return value


def check_episodes(episodes: Any, *, most: int = 10**6) -> None:
    """Enough episodes for a mean and its error, and not more than memory can hold."""
    count = fitted("episodes", int, episodes)
    if count < 2:
        raise InputError(f"episodes = {shown(count)}, but an evaluation needs at least 2.")
    check_range("episodes", count, 2, most)


def check_evaluation(tasks: Any, *, episodes: Any, acting: Any, seed: Any) -> None:
    """An evaluation can be made: of tasks that are named once, by a rule that exists."""
    if isinstance(tasks, str):
        raise InputError(f"tasks = {shown(tasks)}, which is a single text; give a list of tasks.")
    check_once("task", tasks or ())
    check_episodes(episodes)
    if acting is not None:
        fitted("acting", Acting, acting)
    check_seed(seed)


def check_seconds(name: str, value: Any, *, most: int = 10**9) -> None:
    """A length of time that passes: not negative, not infinite."""
    check_range(name, fitted(name, float, value), 0, most, why="seconds")


def check_once(name: str, values: Sequence[object]) -> None:
    """Nothing stands twice in a list."""
    seen = [str(one) for one in values]
    twice = next((one for one in seen if seen.count(one) > 1), None)
    if twice is not None:
        raise InputError(f"{name} names '{shown(twice, str)}' twice; name each once.")
