"""HTML and SVG from values. Whatever is not markup already is text: it is escaped, and has no control characters."""

import html
from collections.abc import Iterable

from modlife.errors import plain

ALONE = frozenset({"img", "input", "meta", "path", "rect", "circle", "line"})
"""Elements without content."""


class Markup(str):
    """Text that is HTML."""

    __slots__ = ()


def escaped(value: object) -> Markup:
    """A value as HTML: markup as it is, anything else as text."""
    return value if isinstance(value, Markup) else Markup(html.escape(plain(value)))


def joined(parts: Iterable[object]) -> Markup:
    """Parts one after the other."""
    return Markup("".join(map(escaped, parts)))


def element(name: str, *content: object, **attributes: object) -> Markup:
    """An element. Attributes that are None are left out, and `class_` and `data_x` are `class` and `data-x`."""
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    words = "".join(f' {key}="{escaped(value)}"' for key, value in given.items())
    return Markup(f"<{name}{words}/>" if name in ALONE else f"<{name}{words}>{joined(content)}</{name}>")


def text_at(x: float, y: float, text: object, **attributes: object) -> Markup:
    """Text in a picture, at a place in per cent of its width and height."""
    return element("text", text, x=per_cent(x), y=per_cent(y), **attributes)


def per_cent(part: float) -> str:
    """A part of the whole, as short as two digits allow."""
    return f"{100 * part:.2f}".rstrip("0").rstrip(".") + "%"
