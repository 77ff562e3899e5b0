"""Options whose meaning depends on other options: the domain decides on `--world.*`, the agent on its own ones."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Annotated, Any

import tyro

from modlife.domains.domain import DOMAINS
from modlife.errors import InputError
from modlife.lifelong.agents import AGENTS
from modlife.registry import resolve
from modlife.runs.codec import TABLE
from modlife.runs.config import LifeConfig, usual_options, usual_settings

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
    agent = given(arguments, "agent") or LifeConfig.agent
    world = usual_world(arguments)
    settings = usual_settings(AGENTS[agent], DOMAINS.of(world))
    choices = {field.name: field.metadata[TABLE] for field in fields(settings) if TABLE in field.metadata}
    for option in ("search", "offline"):
        name = given(arguments, option)
        if name and option not in choices:
            raise InputError(f"The agent '{agent}' has no --{option}: leave it out, or choose another agent.")
        if name and choices[option].of(getattr(settings, option)).name != name:
            settings = replace(settings, **{option: resolve(choices[option][name].config)()})
    return LifeConfig(agent=agent, world=world, settings=settings, **usual_options(DOMAINS.of(world)))
