"""What names in labels mean that only the code would tell: options, ways to learn offline and to search."""

import ast
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from modlife.analysis.groups import Group
from modlife.lifelong.settings import CONSOLIDATORS, SEARCHES
from modlife.runs.codec import flat
from modlife.runs.config import LifeConfig

PLAIN = ("only",)
"""Options that say what they mean, beside their values."""


def meanings(groups: Sequence[Group], letters: int) -> list[str]:
    """What must be known to read the groups' labels, in lines of so many letters."""
    options = {name: about for group in groups for name, about in options_of(group).items()}
    told = [*(f"{name}: {about}" for name, about in options.items()), *words_of(group.label for group in groups)]
    return [line for one in told for line in textwrap.wrap(one, letters)]


def words_of(labels: Iterable[str]) -> list[str]:
    """What names of ways to learn offline and to search mean that stand in labels."""
    words = {word for label in labels for word in re.findall(r"[\w-]+", label)}
    meanings = {"learn offline": CONSOLIDATORS.names, "search for modules": SEARCHES.names}
    known = {what: [name for name in names if name in words] for what, names in meanings.items()}
    return [f"{', '.join(names)}: ways to {what} (modlife list)" for what, names in known.items() if names]


def options_of(group: Group) -> dict[str, str]:
    """The options that a label names, each at the beginning of a part, and what `--help` says of them."""
    life = group.lives[0]
    names, known = [part.split()[0] for part in group.label.split(", ") if part.strip()], flat(life.plan)
    return {
        name: about
        for name in names
        if name in known and name not in PLAIN and (about := about_option(life.config, name))
    }


def about_option(config: LifeConfig, name: str) -> str:
    """The first sentence of what stands under an option's field; nothing where that is not known."""
    *tables, field = name.split(".")
    holder: Any = config.settings if hasattr(config.settings, [*tables, field][0]) else config
    for table in tables:
        holder = getattr(holder, table, None)
    found = next((texts[field] for kind in type(holder).__mro__ if field in (texts := texts_below(kind))), "")
    sentence = re.split(r"\.\s|\.$", " ".join(found.split()))[0]
    return sentence if sentence[:2].isupper() else sentence[:1].lower() + sentence[1:]


@cache
def texts_below(kind: type) -> dict[str, str]:
    """The text under each field in the source of its class; none where the source is not there."""
    try:
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (OSError, TypeError):
        return {}
    found = {}
    for one, after in itertools.pairwise(body.body if isinstance(body, ast.ClassDef) else []):
        match one, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = text
            case _:
                pass
    return found
