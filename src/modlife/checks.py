"""Checks of values that users give, each with a sentence about what is wrong."""

from typing import get_args, get_type_hints

from modlife.errors import InputError, unknown


def check_range(name: str, value: int, low: int, high: int, *, why: str = "") -> None:
    """A number lies between bounds, both included."""
    if not low <= value <= high:
        raise InputError(f"{name} = {value}, but it must be {low} to {high}{why and ' ' + why}.")


def check_choices(config: object) -> None:
    """Fields with a fixed set of values have one of them."""
    for field, hint in get_type_hints(type(config)).items():
        allowed = get_args(hint)
        if allowed and allowed[-1] is not ... and getattr(config, field) not in allowed:
            raise unknown(f"value for {field}", getattr(config, field), allowed)


def check_at_least(config: object, low: float, *names: str) -> None:
    """Fields are numbers of at least this size; NaN is not."""
    for name in names:
        if not getattr(config, name) >= low:
            what = f"at least {low}" if low else "0 or more"
            raise InputError(f"{name} = {getattr(config, name)}, but it must be {what}.")


def check_positive(config: object, *names: str) -> None:
    """Fields are numbers above 0; NaN is not."""
    for name in names:
        if not getattr(config, name) > 0:
            raise InputError(f"{name} = {getattr(config, name)}, but it must be more than 0.")
