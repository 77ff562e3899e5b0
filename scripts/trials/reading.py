"""What commands read of a run directory, in this process: a value that tells whether it is right, or a sentence."""

import contextlib
import hashlib
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax
import numpy as np
from lives import step

from modlife.analysis.lives import read_life
from modlife.cli.tables import summary_text
from modlife.errors import InputError, Sentence
from modlife.lifelong.agent import AgentState
from modlife.runs import load, restore, store
from modlife.runs.load import Run
from modlife.runs.store import RunDirectory, RunWriter

LONGEST = 1500
"""Characters of a sentence."""


@dataclass(frozen=True)
class Read:
    """What a reader found: a value, with complaints; or nothing but a sentence; or it crashed."""

    value: str | None
    said: tuple[str, ...] = ()
    crash: str | None = None

    def wrong(self, right: "Read", run: Path, *, older: set[str | None], forged: bool) -> str | None:
        """What is wrong with it, if the run directory was damaged; `older` are the values of older checkpoints.

        Files that somebody forged, with the right checksums, may say something else, but do no harm.
        """
        if self.crash:
            return self.crash
        for sentence in self.said:
            if not sentence.isprintable() or len(sentence) > LONGEST + 2 * len(str(run)):
                return f"it said something unfit for a terminal: {sentence[:300]!r}"
        if self.value is None:
            return None if self.said and str(run) in self.said[0] else f"it did not say which file: {self.said!r}"
        if self.value == right.value or forged:
            return None
        if not self.said:
            return "it read something else, and said nothing"
        return None if self.value in older else f"it read what never was, and said {self.said!r}"


def attempt(read: Callable[[], tuple[str, tuple[str, ...]]]) -> Read:
    """What a reader finds."""
    try:
        return Read(*read())
    except Sentence as error:
        return Read(None, (str(error),))
    except Exception as error:  # noqa: BLE001  # whatever it is, it is a failure
        place = traceback.extract_tb(error.__traceback__)[-1]
        return Read(
            None, crash=f"{type(error).__name__}: {str(error)[:200]!r} ({Path(place.filename).name}:{place.lineno})"
        )


@dataclass(frozen=True)
class Reader:
    """All that commands read of one run directory."""

    path: Path

    def all(self) -> dict[str, Read]:
        """What each command reads; the last one is to go on, and changes files as it does."""
        readers = {"eval": self.eval, "play": self.play, "figure": self.figure, "summary": self.summary}
        return {name: attempt(read) for name, read in {**readers, "resume": self.resume}.items()}

    @cached_property
    def loaded(self) -> Run:
        """The agent."""
        return Run.load(self.path)

    def eval(self) -> tuple[str, tuple[str, ...]]:
        """As `modlife eval`."""
        return digest(self.loaded.state), self.loaded.complaints

    def play(self) -> tuple[str, tuple[str, ...]]:
        """As `modlife play`."""
        return f"{self.loaded.task(None)} {digest(self.loaded.state)}", self.loaded.complaints

    def figure(self) -> tuple[str, tuple[str, ...]]:
        """As `modlife figure`."""
        return repr(read_life(self.path)), ()

    def summary(self) -> tuple[str, tuple[str, ...]]:
        """As `modlife train --resume` of a life that has ended."""
        run = RunDirectory.open(self.path)
        if not run.has_ended:
            raise InputError(f"'{self.path}' goes on: there is no summary yet.")
        text = summary_text(run.summary() or {}, highest=run.config().world.graph.highest_return)
        return fit_for_a_terminal(text), tuple(run.remarks())

    def resume(self) -> tuple[str, tuple[str, ...]]:
        """As `modlife train --resume` before it learns."""
        config = RunDirectory.open(self.path).config()
        with RunWriter.reopen(self.path) as writer:
            threads = writer.run.threads()
            if not writer.checkpoints.numbers():
                if writer.run.metrics():
                    raise InputError(f"'{writer.path}' has metrics but no checkpoints: they are missing.")
                return f"{config} {threads}", ()
            found = restore.newest(writer.run, config)
            fit_for_a_terminal(writer.differences(devices=threads) or "")
            writer.rewind_metrics(found.description.metrics)
            metrics = (self.path / "metrics.jsonl").read_bytes()
            value = f"{config} {threads} {digest(found.moment.state)} {hashlib.sha256(metrics).hexdigest()}"
            return value, found.complaints


def fit_for_a_terminal(text: str) -> str:
    """What is printed as it is."""
    if not text.replace("\n", "").isprintable():
        raise ValueError(f"This is printed as it is: {text!r}")
    return text


def go_on_and_save(path: Path) -> tuple[str, tuple[str, ...]]:
    """As `modlife train --resume` until its next checkpoint; which must then be the newest that is found."""
    run = RunDirectory.open(path)
    config = run.config()
    with RunWriter.reopen(path) as writer:
        found = restore.newest(writer.run, config)
        writer.rewind_metrics(found.description.metrics)
        for _ in range(2):
            facts = found.description
            step(writer, found.moment.state, facts.stage, planned=facts.planned, ended=facts.ended)
    again = restore.newest(run, config)
    if again.complaints:
        raise ValueError(f"What was saved is not the newest that is found: {again.complaints!r}")
    return digest(again.moment.state), found.complaints


DIGESTS: dict[int, tuple[Any, str]] = {}
"""Of states, by their identity; they are kept, so that it stays theirs."""
BUILT: dict[str, Any] = {}
"""States that were built, by what they were built from."""
MANY = 100
"""As many of them as memory is for."""


def digest(state: AgentState) -> str:
    """A checksum of all that a state holds."""
    if id(state) not in DIGESTS:
        forget_if_many(DIGESTS)
        found = hashlib.sha256(repr(state.facts).encode())
        for leaf in jax.tree.leaves((state.params, state.work, [one.rows for one in state.memory])):
            array = np.asarray(leaf)
            found.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
        DIGESTS[id(state)] = (state, found.hexdigest())
    return DIGESTS[id(state)][1]


@contextlib.contextmanager
def remembered() -> Iterator[None]:
    """States are built once from the same config, description and arrays, which are all that they depend on."""
    with (
        patch.object(restore, "moment_of", by_content(restore.moment_of)),
        patch.object(load, "acting_state", by_content(restore.acting_state)),
        same_configs(),
    ):
        yield


def forget_if_many(known: dict[Any, Any]) -> None:
    """Makes room."""
    if len(known) >= MANY:
        known.clear()


@contextlib.contextmanager
def same_configs() -> Iterator[None]:
    """Configs are built once from the same JSON."""
    known: dict[str, Any] = {}
    build = store.life_from_json

    def life_from_json(data: Any, *, where: str) -> Any:
        key = repr((data, where))
        if key not in known:
            known[key] = build(data, where=where)
        return known[key]

    with patch.object(store, "life_from_json", life_from_json):
        yield


def by_content(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a config, a checkpoint and perhaps its replay that remembers its results."""

    def remembers(config: Any, saved: Any, *rest: tuple[Any, ...], **options: Any) -> Any:
        replay = [(str(one.times), one.rows) for memory in rest for one in memory]
        found = hashlib.sha256(repr((function.__name__, config, saved.index, options)).encode())
        for name, array in [*sorted(saved.arrays.items(), key=itemgetter(0)), *replay]:
            found.update(f"{name} {array.dtype}{array.shape}".encode() + np.ascontiguousarray(array).data)
        key = found.hexdigest()
        if key not in BUILT:
            forget_if_many(BUILT)
            BUILT[key] = function(config, saved, *rest, **options)
        return BUILT[key]

    return remembers
