"""Command lines and configs that are nearly right, or not at all: a sentence and an exit code, never a traceback.

Lives are not lived here, and films not made: what is under trial is everything before that.
"""

import contextlib
import copy
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lives import NAMES, small
from terminal import command, lenient

import modlife
from modlife.domains import film
from modlife.errors import Sentence
from modlife.lifelong.agents import AGENTS
from modlife.registry import resolve
from modlife.runs import life, load
from modlife.runs.codec import to_json
from modlife.runs.config import build, life_from_json, life_json
from modlife.runs.many import as_options
from modlife.runs.store import RunWriter
from trials.bench import Bench, Tally, parts_of
from trials.bits import copied
from trials.damage import VALUES, cells
from trials.reading import attempt

PER_UNIT = 100
LONGEST = 60.0
"""Seconds that no command needs here."""
ALPHABET = "abcxyz019 -=_,:~é\t"
WORDS = [
    *(
        "",
        "-",
        "--",
        "-h",
        "--help",
        "--version",
        "help",
        "x",
        "-1",
        "0",
        "1",
        "2",
        "3",
        "7",
        "1.5",
        "1e400",
        "nan",
        "inf",
    ),
    *("True", "false", "None", "[]", "{}", "wall/red/dynamics-2", "wall/red", "//", "é", "\x1b[31m", "x" * 300),
    *(
        str(2**31),
        str(2**63),
        str(10**30),
        "--out",
        "--seed",
        "--tasks",
        "--agent",
        "--world.size",
        "--nothing",
        ".",
        "..",
    ),
]


def run(bench: Bench, unit: str) -> Tally:
    """Some command lines, and some configs from Python."""
    (_, count), rng, tally = parts_of(unit), bench.rng("fuzz", unit), Tally()
    lived = bench.life("comp-search")
    with bench.scratch("fuzz", unit, tally=tally) as folder, quick(lived.run.summary() or {}), lenient():
        copied(lived, folder / "run", "finished", "")
        for number in range(count):
            kind = rng.choices(["a command line", "a config from Python", "a config from JSON"], [6, 2, 2])[0]
            start = time.monotonic()
            if kind == "a command line":
                words = command_line(rng)
                what, wrong = f"modlife {' '.join(words)}", tried(words, folder, tally)
            else:
                data = options(rng) if kind.endswith("Python") else changed(rng)
                what, wrong = repr(data), tried_config(data, from_json=kind.endswith("JSON"))
            if time.monotonic() - start > LONGEST:
                wrong.append(f"it took {time.monotonic() - start:.0f} s")
            tally.trials += 1
            tally.seen[kind] += 1
            tally.fail(f"{number}: {what[:300]!r}", *wrong)
    return tally


@contextlib.contextmanager
def quick(summary: dict[str, Any]) -> Iterator[None]:
    """Nothing is learnt: lives begin and end at once; evaluations are short; films have no pictures."""
    evaluate = load.evaluate_agent

    def run_life(config: Any, out: Path, *, devices: int = 1, **options: Any) -> dict[str, Any]:
        if config:
            build(config, devices=devices)
        with RunWriter.create(out, config, devices=devices) if config else RunWriter.reopen(out) as writer:
            return writer.run.summary() or summary

    def evaluate_agent(*arguments: Any, episodes: int, **options: Any) -> Any:
        return evaluate(*arguments, episodes=min(episodes, 4), **options)

    with (
        patch.object(life, "run_life", run_life),
        patch.object(load, "evaluate_agent", evaluate_agent),
        patch.object(film, "film", lambda *arguments, **options: ([0.0], [False])),
    ):
        yield


def command_line(rng: random.Random) -> list[str]:
    """One that is right, changed a few times."""
    train = ["train", *as_options(small(rng.choice(NAMES))), "--out", rng.choice(["new", "run", "deep/new"])]
    lines = [
        *[train] * 5,
        ["train", "--resume", "--out", "run", *rng.choice([[], ["--tasks", "5"], ["--seed", "0"]])],
        [
            "list",
            *rng.choice([[], ["--json"], ["--domain", "grid2d"], ["--world.size", "9"], ["--world.colour-count", "3"]]),
        ],
        ["graph", "--task", "wall/red/dynamics-2", "--out", "graph.svg"],
        [
            "eval",
            "run",
            "--episodes",
            "2",
            *rng.choice([[], ["--unseen"], ["--json"], ["--task", "wall/red/dynamics-2"]]),
        ],
        ["play", "run", "--episodes", "1", "--out", "film.gif"],
        ["figure", rng.choice(["fig2", "fig3", "stl"]), "run", "--out", "figure.png"],
        [rng.choice(["", "trian", "--help", "--version", "help", "\x1b", "-v"])],
    ]
    words = list(rng.choice(lines))
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        change(words, rng)
    return words


def change(words: list[str], rng: random.Random) -> None:
    """Changes a command line a little; what stands after the command."""
    if len(words) < 2:
        return
    place = rng.randrange(1, len(words))
    how = rng.choice(["remove", "double", "swap", "replace", "replace", "insert", "letter"])
    if how == "remove":
        del words[place]
    elif how == "double":
        words.insert(place, words[place])
    elif how == "swap":
        other = rng.randrange(1, len(words))
        words[place], words[other] = words[other], words[place]
    elif how in ("replace", "insert"):
        words[place : place + (how == "replace")] = [rng.choice(WORDS)]
    elif words[place]:
        letter = rng.randrange(len(words[place]))
        words[place] = words[place][:letter] + rng.choice(ALPHABET) + words[place][letter + rng.randint(0, 1) :]


def tried(words: list[str], folder: Path, tally: Tally) -> list[str]:
    """What is wrong with how a command ended."""
    try:
        end = command(*words, cwd=folder)
    except BaseException as error:  # whatever it is, it is a failure
        if isinstance(error, KeyboardInterrupt):
            raise
        return [crash(error)]
    finally:
        for path in folder.iterdir():
            if path.name != "run":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    tally.seen[f"exit code {end.code}"] += 1
    wrong = ["it showed a traceback"] if "Traceback" in end.err else []
    wrong += [f"it ended with code {end.code}"] if end.code not in (0, 1, 2) else []
    return wrong + (["it failed, and did not say why"] if end.code and not end.err.strip() else [])


def crash(error: BaseException) -> str:
    """An exception in short."""
    found = attempt(lambda: raised(error)) if isinstance(error, Exception) else None
    return found.crash or str(found) if found else f"{type(error).__name__}: {error}"


def raised(error: Exception) -> Any:
    """Raises it again."""
    raise error


def options(rng: random.Random) -> dict[str, Any]:
    """Options for `modlife.config`, some of them strange."""
    agent = rng.choice([*AGENTS.names, *AGENTS.names, "x", ""])
    settings = to_json(resolve(AGENTS[agent].settings)()) if agent in AGENTS.names else {}
    known = {
        "tasks": 2,
        "steps": 500,
        "seed": 1,
        "episodes": 4,
        "curriculum": "paper",
        "world": {"size": 8},
        **settings,
    }
    chosen = {name: copy.deepcopy(known[name]) for name in rng.sample(sorted(known), rng.randint(0, len(known)))}
    for _ in range(rng.randint(0, 2) if chosen else 0):
        table, key = rng.choice(list(cells(chosen)))
        table[key] = rng.choice(VALUES)
    if rng.random() < 0.1:
        chosen["nothing"] = 1
    return {"agent": agent, **chosen}


def changed(rng: random.Random) -> dict[str, Any]:
    """The JSON of a config, with some values changed."""
    data = copy.deepcopy(life_json(small(rng.choice(NAMES))))
    for _ in range(rng.randint(1, 2)):
        table, key = rng.choice(list(cells(data)))
        table[key] = rng.choice(VALUES)
    return data


def tried_config(data: dict[str, Any], *, from_json: bool) -> list[str]:
    """What is wrong with how a config was taken or refused."""
    try:
        build(life_from_json(data) if from_json else modlife.config(**data))
    except Sentence as error:
        return [] if str(error).isprintable() else [f"it said something unfit for a terminal: {error}"]
    except Exception as error:  # noqa: BLE001  # whatever it is, it is a failure
        return [crash(error)]
    return []
