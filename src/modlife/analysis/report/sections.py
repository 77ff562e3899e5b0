"""What panels have in common: a question, an answer in words, and what shows it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from modlife.analysis.report.charts import Chart, Table
from modlife.analysis.report.markup import Markup, element
from modlife.analysis.report.told import Study, Told


@dataclass(frozen=True)
class Fold:
    """Parts that open on demand."""

    title: str
    parts: "Sequence[Part]"
    is_open: bool = False
    is_late: bool = False
    """Whether a script makes its elements when it is opened first: a page of many lives has too many to begin with."""


Part = Chart | Markup | Fold


@dataclass(frozen=True)
class Section:
    """A question and what answers it."""

    name: str
    """Its place in the address of the page."""
    title: str
    short: str
    """The title in the list of contents."""
    about: object
    """How to read what follows."""
    parts: Sequence[Part]


Panel = Callable[[Study], Section | None]
"""Gives the section that answers one question; None where these lives say nothing about it."""


def shown_table(table: Table, caption: str) -> Markup:
    """A table that stands open."""
    return element("div", table.html(caption), class_="scroll open", tabindex="0", role="group", aria_label=caption)


def of_each(study: Study, make: Callable[[Told], Sequence[Part]]) -> list[Part]:
    """What is made of each life; of several, under its name, and only the first stands open."""
    made = [(told, parts) for told in study.lives if (parts := make(told))]
    if study.only:
        return [part for _, parts in made for part in parts]
    return [
        Fold(study.title(told), parts, is_open=place == 0, is_late=place > 0)
        for place, (told, parts) in enumerate(made)
    ]


def note(text: object) -> Markup:
    """A sentence below a chart."""
    return element("p", text, class_="note")


def plural(count: int, what: str, many: str = "") -> str:
    """A number of things."""
    return f"{count:,} {what if count == 1 else many or what + 's'}"
