"""Configs and descriptions as JSON, and back: every name and type is checked, nothing is run.

A field that may hold one of several configs names, in its metadata, the table that they stand in; its JSON then says
which one it is, as `{"domain": "grid2d", "size": 8, ...}`. What has a `from_text` is written as its text, and read from
that or from its fields.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING
from typing import Any

from modlife.checks import fitted, shown
from modlife.errors import InputError, unknown
from modlife.registry import resolve

TABLE = "table"
"""The name of the metadata."""
NOTHING: Mapping[str, Any] = types.MappingProxyType({})


def to_json(value: Any) -> Any:
    """A dataclass as plain JSON values."""
    if hasattr(value, "from_text"):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: tagged(one, getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [to_json(one) for one in value]
    return {name: to_json(one) for name, one in value.items()} if isinstance(value, dict) else value


def tagged(field: Any, value: Any) -> Any:
    """The value of a field, with its name in the field's table if it has one."""
    table = field.metadata.get(TABLE)
    return {table.kind: table.of(value).name, **to_json(value)} if table else to_json(value)


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """The values of nested tables, by their names as options have them."""
    if not isinstance(value, dict):
        return {prefix: value}
    inside = [
        flat(one, name if not prefix or prefix == "settings" else f"{prefix}.{name}") for name, one in value.items()
    ]
    return {name: one for part in inside for name, one in part.items()}


def from_json(kind: type, data: Any, *, where: str = "config", given: Mapping[str, Any] = NOTHING) -> Any:
    """A dataclass from JSON values that may come from anywhere; `given` are fields that need no reading."""
    if not isinstance(data, dict):
        raise InputError(f"{where} must be a table of fields, but is {shown(data)}.")
    hints, fields = typing.get_type_hints(kind), {one.name: one for one in dataclasses.fields(kind)}
    for name in data:
        if name not in fields:
            raise unknown(f"field in {where}", name, fields)
    for one in fields.values():
        if one.name not in {*data, *given} and one.default is MISSING and one.default_factory is MISSING:
            raise InputError(f"{where} has no field '{one.name}'.")
    values = {name: read(fields[name], hints[name], value, f"{where}.{name}") for name, value in data.items()}
    return kind(**values, **given)


def read(field: Any, hint: Any, value: Any, where: str) -> Any:
    """The value of a field."""
    table = field.metadata.get(TABLE)
    if table is None:
        return checked(hint, value, where=where)
    if not isinstance(value, dict):
        raise InputError(f"{where} must be a table of fields, but is {shown(value)}.")
    name = value.get(table.kind)
    if not isinstance(name, str):
        raise InputError(f"{where} does not say which {table.kind} it is: {table.kind} = {name!r}.")
    rest = {key: one for key, one in value.items() if key != table.kind}
    return from_json(resolve(table[name].config), rest, where=where)


def checked(hint: Any, value: Any, *, where: str) -> Any:
    """The value if it has the type that the field asks for."""
    options, origin = typing.get_args(hint), typing.get_origin(hint)
    if origin is typing.Annotated:
        return checked(options[0], value, where=where)
    if isinstance(value, str) and hasattr(hint, "from_text"):
        if (found := hint.from_text(value)) is None:
            raise InputError(f"{where} is {shown(value)}, which cannot be.")
        return found
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return from_json(hint, value, where=where)
    if origin in (tuple, list) and isinstance(value, list):
        return origin(checked(options[0], one, where=where) for one in value)
    if origin is dict and isinstance(value, dict):
        return {name: checked(options[1], one, where=f"{where}.{name}") for name, one in value.items()}
    return fitted(where, hint, value)
