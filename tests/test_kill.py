"""Lives that are killed, told to stop, or run out of disk: real processes. Whatever happens, the results are the same.

The lives are as small as ones with all phases can be. They save at every step.
"""

import contextlib
import json
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from lives import NAMES, Lived
from nursery import Child
from terminal import End, command, lenient

from modlife.runs.life import run_life
from modlife.runs.many import as_options
from modlife.runs.store import RunDirectory

pytestmark = pytest.mark.timeout(900)

FROM_BIRTH = "comp-search"
"""The life with most to lose is killed twice: before there is a run directory, and after its first checkpoint.

Others are killed once, in a late task, when there is something of earlier tasks to lose."""


@dataclass(frozen=True)
class Home:
    """A life that was never interrupted, and how processes live it again."""

    life: Lived

    @property
    def reference(self) -> Path:
        return self.life.path

    def begin(self, out: Path) -> Child:
        return process(*as_options(self.life.config), "--out", str(out))

    def go_on(self, out: Path) -> Child:
        return process("--resume", "--out", str(out))


def process(*arguments: str) -> Child:
    """`modlife train` in a process of its own."""
    return Child("train", "--save-every", "0", *arguments)


def train(*arguments: str) -> End:
    """`modlife train`, here."""
    return command("train", "--save-every", "0", *arguments)


@pytest.fixture
def home(searched: Lived) -> Home:
    return Home(searched)


@pytest.fixture
def told(lives: Callable[[str], Lived]) -> Home:
    """A life with an online and an offline phase."""
    return Home(lives("comp-struct"))


@pytest.fixture
def alone(lives: Callable[[str], Lived]) -> Home:
    """The shortest life."""
    return Home(lives("stl"))


def ended(process: Child) -> End:
    end = process.end()
    assert "Traceback" not in end.err, end.err
    return end


def killed(process: Child) -> End:
    """Kills it, if it has not ended."""
    process.kill()
    return ended(process)


@contextlib.contextmanager
def living(process: Child) -> Iterator[Child]:
    """None is left when a test fails."""
    try:
        yield process
    finally:
        if process.poll() is None:
            killed(process)


def newest(run: Path) -> int:
    return max(RunDirectory(run).checkpoints.numbers(), default=-1)


def phase(run: Path) -> str | None:
    """What the newest checkpoint says the life was in the middle of; None before there is one."""
    with contextlib.suppress(OSError):  # the life goes on, and may remove it now
        index = json.loads((run / f"checkpoints/{newest(run):08d}/checkpoint.json").read_text())
        return index["description"]["facts"]["phase"]
    return None


def wait_for(process: Child, happened: Callable[[], bool]) -> None:
    """Until it happened, or the process ended."""
    while process.poll() is None and not happened():
        time.sleep(0.003)


def assert_newest_is_intact(run: Path) -> None:
    checkpoints = RunDirectory(run).checkpoints
    index, _ = checkpoints.verify(checkpoints.path(newest(run)))
    checkpoints.memory(index)
    assert (run / "metrics.jsonl").stat().st_size >= index.description.metrics.bytes


def results(run: Path) -> dict:
    """All that a life comes to, except how long it took."""
    summary = json.loads((run / "summary.json").read_text())
    return {
        "metrics": (run / "metrics.jsonl").read_bytes(),
        "state": (run / f"checkpoints/{newest(run):08d}/state.safetensors").read_bytes(),
        "replay": RunDirectory(run).checkpoints.look(newest(run)).replay,
        "summary": {name: summary.get(name) for name in ("seen", "unseen", "wrong_module", "by_phase", "structures")},
    }


def contents(folder: Path) -> dict[str, bytes]:
    """Every file; without the lock and the lease, which say who had the run directory last."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock" and not path.match("lease-*.json")
    }


def strike(process: Child, run: Path, *, processes: int, rng: random.Random) -> End:
    """Kills a process at a random moment, if it has not ended by then."""
    before = newest(run)
    if processes == 0:
        time.sleep(rng.uniform(0, 0.1))  # before there is a run directory
    elif processes == 1:
        wait_for(process, lambda: newest(run) >= 0)  # nothing but the state before the first task is saved
        time.sleep(rng.uniform(0, 0.3))
    elif rng.random() < 0.25:
        time.sleep(rng.uniform(0, 1.5))  # while it reads its checkpoint
    else:
        wait_for(process, lambda: newest(run) > before)
        time.sleep(rng.uniform(0, 0.02))
    return killed(process)


@pytest.mark.parametrize("agent", NAMES)
def test_a_life_killed_at_random_moments_ends_with_the_same_bytes(
    lives: Callable[[str], Lived], tmp_path: Path, agent: str
):
    """Killed by the system, at moments that nobody chose; the last time it is resumed, it is left alone."""
    home, rng, run, phases = Home(lives(agent)), random.Random(agent), tmp_path / "life", list[str | None]()
    if agent != FROM_BIRTH:
        home.life.copy(run, home.life.amid(rng.choice(sorted(home.life.phases() - {"", "structure"}))))
    moments = (0, 1) if agent == FROM_BIRTH else (2,)
    for moment in moments:
        before = newest(run)
        with living(home.go_on(run) if run.exists() else home.begin(run)) as process:
            end = strike(process, run, processes=moment, rng=rng)
        assert end.code == -signal.SIGKILL, end.err
        phases.append(phase(run))
        assert newest(run) >= before
        if newest(run) >= 0:
            assert_newest_is_intact(run)
    with lenient():
        run_life(None if run.exists() else home.life.config, run, save_every=0)
    assert results(run) == results(home.reference)
    assert not list(run.rglob("*.tmp"))
    needed = [RunDirectory(run).checkpoints.look(number).replay for number in RunDirectory(run).checkpoints.numbers()]
    assert {path.stem for path in (run / "replay").iterdir()} == {name for names in needed for name in names}
    print(f"kills: {Counter(phases)}")
    assert agent != FROM_BIRTH or phases[0] is None  # the first before there was a run directory


def test_signals_save_the_life_and_it_goes_on(told: Home, tmp_path: Path):
    run, start = tmp_path / "run", told.begin
    for number, when in ((signal.SIGTERM, "online"), (signal.SIGINT, "offline")):
        with living(start(run)) as process:
            wait_for(process, lambda when=when: phase(run) == when)
            process.send_signal(number)
            end = ended(process)
        assert end.code == 128 + number
        assert end.err.splitlines()[-1] == (
            f"stopped by {number.name}, and saved. Go on with: modlife train --resume --out {run}"
        )
        index, _ = RunDirectory(run).checkpoints.verify(run / f"checkpoints/{newest(run):08d}")
        assert index.description.metrics.bytes == (run / "metrics.jsonl").stat().st_size
        start = told.go_on
    assert train("--resume", "--out", str(run)).code == 0
    assert results(run) == results(told.reference)


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Callable[[str], None]]:
    """A disk of its own at a folder; gives a function that changes its size."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield lambda size: subprocess.run(["mount", "-o", f"remount,size={size}", folder], check=True) and None
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_full_disk_stops_the_life_and_space_lets_it_go_on(alone: Home, tmp_path: Path):
    with small_disk(tmp_path / "disk", "700k") as resize:
        run = tmp_path / "disk/run"
        for arguments in (as_options(alone.life.config), ["--resume"]):  # the second time it is still full
            end = train(*arguments, "--out", str(run))
            assert end.code == 1
            sentence = end.err.splitlines()[-1]
            assert sentence.startswith(f"modlife: '{run}/")
            assert sentence.endswith("could not be written: No space left on device. What was saved before is intact.")
            assert newest(run) > 0
            assert_newest_is_intact(run)
        resize("64m")
        assert train("--resume", "--out", str(run)).code == 0
        assert results(run) == results(alone.reference)
        assert not list(run.rglob("*.tmp"))


def test_a_life_has_one_writer(alone: Home, tmp_path: Path):
    run = tmp_path / "run"
    with living(alone.begin(run)) as first:
        wait_for(first, lambda: newest(run) >= 0)
        second = train("--resume", "--out", str(run))
        assert first.poll() is None
        assert second.code == 1
        assert second.err.startswith(f"modlife: '{run}' is being written by another process (process {first.pid} on ")
        assert killed(first).code == -signal.SIGKILL
    assert train("--resume", "--out", str(run)).code == 0
    assert results(run) == results(alone.reference)


def test_going_on_with_a_finished_life_changes_nothing(home: Home, tmp_path: Path):
    run = tmp_path / "run"
    shutil.copytree(home.reference, run)
    before, end = contents(run), train("--resume", "--out", str(run))
    assert end.code == 0
    assert "comp-search: 4 tasks x 1,000 steps in " in end.out
    assert contents(run) == before


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--seed", "5"], "whose seed is 0, not 5."),
        (["--agent", "mtl"], "whose agent is comp-search, not mtl."),
        (["--steps", "1000000"], "whose steps is 1000, not 1000000."),  # the default of a new life
        (["--ppo.envs", "16"], "whose ppo.envs is 4, not 16."),
        (["--world.size", "9"], "whose world.size is 5, not 9."),
        (["--curriculum", "random"], "whose curriculum is None, not random."),
    ],
)
def test_going_on_with_another_life_is_refused(home: Home, tmp_path: Path, options: list[str], sentence: str):
    run = tmp_path / "run"
    shutil.copytree(home.reference, run, ignore=shutil.ignore_patterns("summary.json", "checkpoints"))
    before = contents(run)
    end = train("--resume", *options, "--out", str(run))
    assert end.code == 2
    assert end.err.startswith(f"modlife: --resume goes on with the life in '{run}', {sentence}"), end.err
    assert contents(run) == before


def test_going_on_with_no_life_is_refused(tmp_path: Path):
    end = train("--resume", "--out", str(tmp_path))
    assert end.code == 2
    assert end.err.startswith(f"modlife: '{tmp_path}' is not a run directory: it has no manifest.json.")
    assert not list(tmp_path.iterdir())


def test_a_new_life_leaves_what_exists_alone(home: Home):
    before = contents(home.reference)
    end = train(*as_options(home.life.config), "--out", str(home.reference))
    assert end.code == 2
    assert end.err.startswith(f"modlife: '{home.reference}' exists already;")
    assert contents(home.reference) == before


def test_eval_tells_the_structures_that_a_life_found(home: Home):
    arguments = ["eval", str(home.reference), "--episodes", "40"]
    table = command(*arguments).out.splitlines()
    assert table[0].split() == ["task", "return", "+-", "success", "length", "structure", "by-parts"]
    assert "by-parts: the modules first used for these components" in "\n".join(table)
    found = [line.split()[-2] for line in table[1:5]]
    assert found[:2] == ["0-0-0", "1-1-1"]
    structures = json.loads((home.reference / "summary.json").read_text())["structures"]
    assert ["-".join(map(str, structure)) for structure in structures["tasks"].values()] == found
    right = sum(line.split()[-1] == line.split()[-2] for line in table[3:5])  # the first two were not searched for
    assert table[-1].startswith(f"searched structures: {right} of 2 take the modules that first learnt these")
    record = json.loads(command(*arguments, "--unseen", "--by-components", "--json").out)
    # Two modules per factor stand for two components each: eight combinations, two to four of them learnt.
    assert len(record["tasks"]) in (4, 5, 6) and record["acting"] == "filtered-boltzmann"
    assert record["structure"] == record["expected"]
