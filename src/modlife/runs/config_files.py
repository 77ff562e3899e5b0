"""Configs as files that people write and read: TOML, with the names that options have on the command line.

    agent = "comp-search"
    steps = 100_000

    [ppo]
    learning-rate = 0.0003

    [offline]
    consolidator = "bounded"
    epochs = 3

Where one of several can be chosen, the table says which, or its name stands for it: offline = "bounded".
"""

import dataclasses
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from modlife.checks import shown
from modlife.domains.domain import DOMAINS
from modlife.errors import InputError, unknown
from modlife.lifelong.agents import AGENTS
from modlife.runs.codec import TABLE, to_json
from modlife.runs.config import LifeConfig, life_from_options, settings_class, usual_life
from modlife.runs.durable import read_regular, reading
from modlife.runs.sealed import MEGABYTE
from modlife.runs.store import MANIFEST, RunDirectory

Options = dict[str, Any]
BARE = re.compile("[A-Za-z0-9_-]+")
"""Names that need no quotes."""
NONE = "None"
"""How None is written, as on the command line; TOML has no word for it."""
EITHER = {"tasks": "only", "only": "tasks"}
"""Of these a life has one: where the command line names it, that of a file is not meant."""


def options_of(config: LifeConfig) -> Options:
    """A life's config as options: its own, its agent's, and a table for each group."""
    told = to_json(config)
    settings, world = told.pop("settings"), told.pop("world")
    life = {"domain": world.pop("domain"), **told}
    if not life["grown"]:
        del life["grown"]
    return {**life, **settings, "world": world}


def to_toml(config: LifeConfig, *, threads: int = 1) -> str:
    """A life's config as the text of a file, from which it can be read again."""
    options, usual = options_of(config), options_of(usual_like(config))
    if threads != 1:
        options = {**options, "threads": threads}
    lines = ["# modlife train --config THIS-FILE --out RUN", *lines_of(options, usual, ())]
    return "\n".join(lines) + "\n"


def usual_like(config: LifeConfig) -> LifeConfig:
    """The life without options, of the same agent, domain, search and consolidator."""
    fields = [one for one in dataclasses.fields(config.settings) if TABLE in one.metadata]
    named = {one.name: one.metadata[TABLE].of(getattr(config.settings, one.name)).name for one in fields}
    return usual_life(config.agent, config.domain.usual_world(), named)


def lines_of(options: Mapping[str, Any], usual: Any, inside: tuple[str, ...]) -> Iterator[str]:
    """The lines of a table: its values, then the tables in it. What is nothing, and usually is, is left out."""
    usual = usual if isinstance(usual, dict) else {}
    for name, value in options.items():
        if not isinstance(value, dict) and (value or value != usual.get(name)):
            yield f"{key(name)} = {written(value)}"
    for name, value in options.items():
        if isinstance(value, dict):
            yield from ("", f"[{'.'.join(map(key, (*inside, name)))}]")
            yield from lines_of(value, usual.get(name), (*inside, name))


def key(name: str) -> str:
    """A name as a file has it."""
    name = dashed(name)
    return name if BARE.fullmatch(name) else written(name)


def written(value: Any) -> str:
    """A value in TOML."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(NONE if value is None else value, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_options_file(path: Path) -> Options:
    """The options in a TOML file; or those of a life, from its run directory or its manifest."""
    if path.is_dir() or path.name == MANIFEST:
        run = RunDirectory.open(path if path.is_dir() else path.parent)
        return {**options_of(run.config()), "threads": run.threads()}
    with reading(path):
        if not path.is_file():
            raise InputError(f"'{path}' is no file with options, and no run directory.")
    try:
        found = tomllib.loads(read_regular(path.resolve(), most=MEGABYTE).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"'{path}' cannot be read as TOML: {error}.") from error
    return underscored(found, str(path))


def underscored(value: Any, where: str) -> Any:
    """Tables with names as fields have them, and None where it is written."""
    if isinstance(value, list):
        return [underscored(one, where) for one in value]
    if not isinstance(value, dict):
        return None if value == NONE else value
    found = {name.replace("-", "_"): underscored(one, where) for name, one in value.items()}
    if len(found) < len(value):
        raise InputError(f"An option stands twice in '{where}', once with - and once with _ in its name.")
    return found


def life_of(options: Options, *, where: str, chosen: Mapping[str, str]) -> tuple[LifeConfig, int | None]:
    """The life, and its threads, of the options in a file; what was chosen beside it, by name, wins."""
    usual = {"agent": LifeConfig.agent, "domain": "grid2d", "threads": None}
    first: Options = {name: chosen.get(name, options.get(name, one)) for name, one in usual.items()}
    for name, kind, what in (("agent", str, "a text"), ("domain", str, "a text"), ("threads", int, "a whole number")):
        if first[name] is not None and type(first[name]) is not kind:
            raise InputError(f"{name} = {shown(first[name])} in '{where}', which is not {what}.")
    agent, domain = AGENTS[first["agent"]], DOMAINS[first["domain"]]
    tables = {one.name: one.metadata.get(TABLE) for one in dataclasses.fields(settings_class(agent))}
    rest = {name: value for name, value in options.items() if name not in usual}
    check_names(rest, tables, where=where)
    for name, value in chosen.items():
        table = tables.get(name)
        if table and named_in(rest.get(name), table.kind) != value:
            rest[name] = value
        rest.pop(EITHER.get(name, ""), None)
    try:
        return life_from_options(agent.name, domain.name, rest), first["threads"]
    except InputError as error:
        raise InputError(f"'{where}': {error}") from error


def check_names(options: Options, settings: Iterable[str], *, where: str) -> None:
    """There are such options."""
    own = {one.name for one in dataclasses.fields(LifeConfig)} - {"settings"}
    for name in options:
        if name not in {*own, *settings}:
            known = sorted({*own, *settings, "domain", "threads"} - {"grown"})
            raise unknown(f"option in '{where}'", dashed(name), map(dashed, known))


def dashed(name: str) -> str:
    """A name, as options have it."""
    return name.replace("_", "-")


def named_in(value: Any, kind: str) -> Any:
    """The name that a choice has in a file."""
    return value.get(kind) if isinstance(value, dict) else value
