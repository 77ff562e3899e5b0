"""JSON under a checksum of its own: `"sha256"` is its last field, and every byte must be as it was written.

Plain JSON of older versions has none. Numbers must be such: neither NaN nor infinity, which JSON does not have.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from modlife.errors import Diverged, InputError
from modlife.runs.durable import read_regular, sha256

SEAL = "sha256"
MEGABYTE = 2**20
NAMED = re.compile("([0-9]{1,18}):([0-9a-f]{64})")


Data = bytes
"""The type, where a field has its name."""


@dataclass(frozen=True)
class File:
    """So many bytes, with this checksum: a whole file, or what stands first in one that grows."""

    bytes: int
    sha256: str

    @classmethod
    def of(cls, data: Data) -> Self:
        """What some bytes are known by."""
        return cls(len(data), sha256(data))

    def begins(self, data: Data) -> bool:
        """Whether data begins with these bytes."""
        return len(data) >= self.bytes and sha256(data[: self.bytes]) == self.sha256


class Named(File):
    """A file that has its checksum for a name; in JSON a text, since there may be a thousand of them in a list."""

    def __str__(self) -> str:
        return f"{self.bytes}:{self.sha256}"

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """The file that was written so, if one was."""
        found = NAMED.fullmatch(text)
        return cls(int(found[1]), found[2]) if found else None


def sealed(body: dict[str, Any]) -> bytes:
    """JSON with its checksum, as people may read it."""
    return as_bytes({**body, SEAL: sha256(canonical(body))}, indent=1)


def sealed_densely(body: dict[str, Any]) -> bytes:
    """JSON with its checksum, in as few bytes as it takes."""
    return as_bytes({**body, SEAL: sha256(canonical(body))}, separators=(",", ":"))


def canonical(body: dict[str, Any]) -> bytes:
    """The same bytes for the same values."""
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def sealed_line(body: dict[str, Any]) -> bytes:
    """A line of JSON with its checksum."""
    return as_bytes({**body, SEAL: sha256(canonical(body))})


def as_bytes(body: dict[str, Any], **layout: Any) -> bytes:
    """JSON, of numbers that are such; a line, unless it is indented."""
    try:
        return json.dumps(body, **layout, allow_nan=False).encode() + b"\n"
    except ValueError as error:
        raise Diverged(f"A number is not finite, and cannot be written: {body!r}.") from error


def unsealed(path: Path, *, most: int = 16 * MEGABYTE) -> dict[str, Any]:
    """The body of sealed JSON, if its checksum is right, and every byte as it is written."""
    body, has_seal = read_body(path, most=most)
    if not has_seal:
        raise damaged(path, "it has no checksum")
    return body


def read_body(path: Path, *, most: int) -> tuple[dict[str, Any], bool]:
    """The body of JSON, and whether it has a checksum; which is then right."""
    data = read_regular(path, most=most)
    body = parsed(path, data)
    if not isinstance(body, dict):
        raise damaged(path, "it is not a table of fields")
    if SEAL not in body:
        return body, False
    inside = {name: value for name, value in body.items() if name != SEAL}
    if not any(is_written_as(data, write, inside) for write in (sealed, sealed_densely)):
        raise damaged(path, "its checksum is wrong")
    return inside, True


def is_written_as(data: bytes, write: Callable[[dict[str, Any]], bytes], body: dict[str, Any]) -> bool:
    """Whether a body is written as these bytes; one with an infinite number is never written."""
    try:
        return data == write(body)
    except Diverged:
        return False


def unsealed_line(path: Path, line: bytes, *, sealed: bool) -> dict[str, Any]:
    """What a line of JSON says; its checksum, if it should have one, must be right."""
    body = parsed(path, line)
    if not isinstance(body, dict):
        raise damaged(path, "a line is not a table of fields")
    if not sealed:
        return body
    inside = {name: value for name, value in body.items() if name != SEAL}
    if not is_written_as(line, sealed_line, inside):
        raise damaged(path, "the checksum of a line is wrong")
    return inside


def parsed(path: Path, data: bytes) -> Any:
    """What JSON of a file says."""
    try:
        return json.loads(data, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"it is not JSON ({error})") from error


def no_constant(name: str) -> Any:
    """JSON has no such number."""
    raise ValueError(f"{name} is not a number")


def damaged(path: Path, how: str) -> InputError:
    """The error for a file that is not as it was written."""
    return InputError(f"'{path}' is damaged: {how}.")
