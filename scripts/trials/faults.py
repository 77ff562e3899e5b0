"""The k-th call of the operating system fails, for every k: a sentence says so, and nothing that was saved is lost."""

import errno
import gc
import itertools
import os
import random
import shutil
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lives import NAMES, Lived, step

from modlife.analysis.lives import read_life
from modlife.errors import InputError, Sentence
from modlife.lifelong.agent import AgentState
from modlife.runs import restore
from modlife.runs.checkpoints import INDEX, Description
from modlife.runs.life import grow_life
from modlife.runs.load import Run
from modlife.runs.sealed import sealed, unsealed
from modlife.runs.store import RunDirectory, RunWriter
from trials.bench import Bench, Tally, litter
from trials.bits import copied
from trials.damage import fresh
from trials.reading import Reader, attempt, digest, remembered
from trials.shim import Shim

ERRORS = ("EIO", "ENOSPC", "EACCES", "EMFILE")
PARTS = 8
"""Each series of calls is tried in so many units: every eighth call from the first, from the second, and so on."""


@dataclass
class Scene:
    """A run directory, and what is to be done with it."""

    life: Lived
    run: Path
    base: Path
    state: AgentState
    facts: Description

    def prepare(self, what: str) -> Any:
        """What is open before anything fails."""
        fresh(self.base, self.run.parent)
        if what == "create":
            shutil.rmtree(self.run)
        if what in ("save", "finish"):
            writer = RunWriter.reopen(self.run)
            writer.rewind_metrics(restore.newest(writer.run, self.life.config).description.metrics)
            return writer
        return None

    def create(self, writer: Any) -> str:
        """Makes a run directory, and those above it."""
        RunWriter.create(self.run / "deep" / "run", self.life.config).close()
        return "created"

    def save(self, writer: RunWriter) -> str:
        """Saves a checkpoint, and removes an old one."""
        step(writer, self.state, self.facts.stage, planned=self.facts.planned, ended=self.facts.ended)
        return "saved"

    def finish(self, writer: RunWriter) -> str:
        """Writes the summary."""
        writer.finish({name: value for name, value in (self.life.run.summary() or {}).items() if name != "files"})
        return "finished"

    def resume(self, writer: Any) -> str:
        """Opens it to go on."""
        config = RunDirectory.open(self.run).config()
        with RunWriter.reopen(self.run) as writer:
            found = restore.newest(writer.run, config)
            writer.rewind_metrics(found.description.metrics)
            writer.note(devices=1)
            return "" if found.complaints else digest(found.moment.state)

    def eval(self, writer: Any) -> str:
        """Loads the agent."""
        found = Run.load(self.run)
        return "" if found.complaints else digest(found.state)

    def figure(self, writer: Any) -> str:
        """Reads what a figure is drawn from."""
        return repr(read_life(self.run))

    def grow(self, writer: Any) -> str:
        """Plans one more task."""
        grow_life(self.run, len(self.life.config.chosen) + 1)
        return "grown"


OPERATIONS = ("create", "save", "finish", "resume", "eval", "figure", "grow")


def units(size: str) -> Iterator[str]:
    """Which agent, operation, error, and part of the calls; mixed."""
    combinations = list(itertools.product(NAMES, OPERATIONS, ERRORS))
    random.Random(0).shuffle(combinations)
    for part in range(PARTS):
        yield from (f"{' '.join(one)} {part}" for one in combinations)


def run(bench: Bench, unit: str) -> Tally:
    """One operation; some of its calls fail, one at a time."""
    agent, what, error, part = unit.split()
    tally = Tally()
    with bench.scratch("faults", unit.replace(" ", "-"), tally=tally) as folder, remembered():
        scene = made(bench.life(agent), folder, what)
        goal, before, after, count = undisturbed(scene, what)
        for at in range(1 + int(part), count + 1, PARTS):
            handles, shim = open_files(), Shim(scene.run, at=at, error=getattr(errno, error))
            wrong = disturbed(scene, what, shim, goal)
            kept = judged(scene, what, before, after, done=wrong is None)
            wrong = [*([wrong] if wrong else []), *kept] if wrong != SAID else kept
            wrong += ["a file stays open"] if stay_open(handles) else []
            tally.trials += 1
            tally.seen[f"{what}: {shim.struck} failed"] += 1
            tally.fail(f"{agent}, {what}: call {at} of {count} ({shim.struck}, {error})", *wrong)
    return tally


SAID = "it was said"
"""An operation failed, and said so."""


def made(life: Lived, folder: Path, what: str) -> Scene:
    """A run directory to fail with: of a life that has ended where that is needed; else one that saves, and prunes."""
    if what in ("figure", "grow"):
        base = copied(life, folder / "base", "finished", "")
    else:
        base = copied(life, folder / "base", "running", "online")
        for number in base.checkpoints.numbers():  # none is at the end of a stage: the next one sends the first away
            path = base.checkpoints.path(number) / INDEX
            body = unsealed(path)
            body["description"]["ended"] = False
            path.write_bytes(sealed(body))
    (folder / "run").mkdir()
    number = next(one for one, facts in life.described().items() if facts.ended and facts.stage)
    return Scene(life, folder / "run", base.path, life.state(number, folder / "state"), life.described()[number])


@dataclass(frozen=True)
class Whole:
    """All that counts of a run directory."""

    resumed: str | None
    numbers: frozenset[int]
    summary: str

    @staticmethod
    def of(path: Path) -> "Whole":
        """As it is, once it was opened to go on."""
        resumed = attempt(Reader(path).resume)
        run = RunDirectory(path)
        checkpoints = run.checkpoints
        numbers = [number for number in checkpoints.numbers() if is_whole(run, number)]
        return Whole(resumed.value if not resumed.said else None, frozenset(numbers), repr(run.summary()))


def is_whole(run: RunDirectory, number: int) -> bool:
    """Whether every byte of a checkpoint is there."""
    try:
        run.checkpoints.memory(run.checkpoints.verify(run.checkpoints.path(number))[0])
    except InputError:
        return False
    return True


def undisturbed(scene: Scene, what: str) -> tuple[str, Whole | None, Whole | None, int]:
    """What an operation gives, how the run directory is before and after it, and how many calls it takes."""
    if opened := scene.prepare(what):
        opened.close()
    before = Whole.of(scene.run) if what != "create" else None
    writer, shim = scene.prepare(what), Shim(scene.run)
    with shim.between():
        goal = getattr(scene, what)(writer)
    if writer:
        writer.close()
    after = Whole.of(scene.run) if what != "create" else None
    return goal, before, after, shim.calls


def disturbed(scene: Scene, what: str, shim: Shim, goal: str) -> str | None:
    """Does it while a call fails: None if it was done nevertheless, `SAID` if it was said that it was not."""
    writer, operation = scene.prepare(what), getattr(scene, what)
    try:
        with shim.between():
            found = operation(writer)
        return None if found in (goal, "") else "it read something else, and said nothing"
    except Sentence as error:
        fit = str(scene.run) in str(error) and str(error).isprintable()
        return SAID if fit else f"it did not say where: {error}"
    except Exception as error:  # noqa: BLE001  # whatever it is, it is a failure
        return f"{type(error).__name__}: {error} ({place_of(error)})"
    finally:
        if writer:
            writer.close()


def place_of(error: Exception) -> str:
    """Where in the program an error came out of Python's own library."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if "modlife" in one.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"


def judged(scene: Scene, what: str, before: Whole | None, after: Whole | None, *, done: bool) -> list[str]:
    """What is wrong with the run directory, once nothing fails any more."""
    if what == "create":
        return judged_creation(scene, done=done)
    assert before is not None and after is not None
    now = attempt_whole(scene.run)
    if isinstance(now, str):
        return [now]
    wrong = []
    if (now.resumed, now.summary) not in {(one.resumed, one.summary) for one in ([after] if done else [before, after])}:
        wrong.append("afterwards it is neither as before nor as it should be")
    if lost := (before.numbers & after.numbers) - now.numbers:
        wrong.append(f"checkpoints {sorted(lost)} are lost")
    return wrong + [f"'{path}' was left behind" for path in litter(scene.run.parent)]


def attempt_whole(path: Path) -> Whole | str:
    """All that counts of a run directory, or why it cannot be told."""
    try:
        return Whole.of(path)
    except Sentence as error:
        return f"afterwards it cannot be read: {error}"


def judged_creation(scene: Scene, *, done: bool) -> list[str]:
    """The run directory is there or not; what is not can be made."""
    path = scene.run / "deep" / "run"
    try:
        if not path.exists():
            RunWriter.create(path, scene.life.config).close()
        elif not done and not (path / "manifest.json").exists():
            return ["it is there, and has no manifest"]
        with RunWriter.reopen(path) as writer:
            same = writer.run.config() == scene.life.config and not writer.run.remarks()
    except Sentence as error:
        return [f"afterwards it cannot be made or opened: {error}"]
    wrong = [] if same else ["it is there, and not whole"]
    return wrong + [f"'{one}' was left behind" for one in litter(scene.run.parent)]


def stay_open(before: int) -> bool:
    """Whether more files are open than before, also once errors that refer to them are forgotten."""
    if open_files() > before:
        gc.collect()  # takes a second where much is in memory
    return open_files() > before


def open_files() -> int:
    """How many files this process has open."""
    return len(os.listdir("/proc/self/fd"))
