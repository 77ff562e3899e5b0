"""Options whose meaning depends on other options: the domain decides on `--world.*`, the agent on its own ones."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from modlife.domains.domain import DOMAINS
from modlife.runs import config
from modlife.runs.config import LifeConfig

Flat = tyro.conf.arg(name="")
"""A group of options without a prefix."""

Life = Annotated[LifeConfig, Flat]
Json = Annotated[bool, tyro.conf.arg(name="json")]
REQUIRED: Any = tyro.MISSING


def given(arguments: Sequence[str], name: str) -> str | None:
    """The value of an option on the command line, before anything is parsed; the last one if it stands twice."""
    value, flag = None, f"--{name}"
    for here, word in enumerate(arguments):
        if word == flag and here + 1 < len(arguments):
            value = arguments[here + 1]
        elif word.startswith(f"{flag}="):
            value = word.removeprefix(f"{flag}=")
    return value


def usual_world(arguments: Sequence[str]) -> Any:
    """The world of the domain that the arguments name, without options."""
    return DOMAINS[given(arguments, "domain") or "grid2d"].usual_world()


def usual_life(arguments: Sequence[str]) -> LifeConfig:
    """The life of the domain, agent, search and consolidator that the arguments name, without options."""
    named = {option: name for option in ("search", "offline") if (name := given(arguments, option))}
    return config.usual_life(given(arguments, "agent") or LifeConfig.agent, usual_world(arguments), named)


def filed_life(path: Path, arguments: Sequence[str]) -> tuple[LifeConfig, int | None]:
    """The life, and its threads, of a file with options; what the arguments choose by name wins."""
    from modlife.runs.config_files import life_of, read_options_file

    named = {name: value for name in ("agent", "domain", "search", "offline") if (value := given(arguments, name))}
    either = {name: "" for name in ("tasks", "only") if given(arguments, name)}
    return life_of(read_options_file(path), where=str(path), chosen={**named, **either})
