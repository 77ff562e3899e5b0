"""Nothing wrong in silence: other machines, damage, numbers that are none, and stopping at any time."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lives import Lived, small
from terminal import command, lenient

from modlife import memory, metrics, runtime
from modlife.errors import Diverged, InputError, StoreError, plain
from modlife.learners.ppo import PPO
from modlife.lifelong import evaluation
from modlife.lifelong.evaluation import Judge
from modlife.lifelong.loop import Moment
from modlife.pauses import pause, stopped_by
from modlife.runs import durable, provenance
from modlife.runs.checkpoints import INDEX
from modlife.runs.config import LifeConfig
from modlife.runs.durable import Disk
from modlife.runs.interrupts import Stopped
from modlife.runs.life import grow_life, living, run_life
from modlife.runs.load import Run
from modlife.runs.numbers import check_numbers
from modlife.runs.records import checked_records
from modlife.runs.sealed import sealed
from modlife.runs.store import RunDirectory, RunWriter


@pytest.fixture
def run(searched: Lived, tmp_path: Path) -> RunDirectory:
    """A copy of a life in the middle of the offline phase."""
    return searched.copy(tmp_path / "run", searched.amid("offline"))


# Other machines


def test_where_there_is_no_git_nothing_is_said_of_a_commit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance.git_state() is None
    RunWriter.create(tmp_path / "run", small("stl")).close()
    assert RunDirectory(tmp_path / "run").manifest()["git"] is None


@pytest.mark.parametrize("place", ["file", "file/cache", "/proc/nothing"])
def test_without_a_cache_there_is_a_warning_and_nothing_else(monkeypatch: Any, tmp_path: Path, place: str):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / place))
    with pytest.warns(UserWarning, match="Compiled programs are not kept, so every start takes longer: "):
        assert runtime.cache_folder() is None


def test_without_a_home_there_is_a_warning_and_nothing_else(monkeypatch: pytest.MonkeyPatch):
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.warns(UserWarning, match="Could not determine home directory"):
        assert runtime.cache_folder() is None


def test_a_platform_that_is_not_there_gets_one_sentence():
    environment = os.environ | {"JAX_PLATFORMS": "cuda"}
    out = subprocess.run(
        [sys.executable, "-m", "modlife", "play", "--out", "x.gif"], capture_output=True, text=True, env=environment
    )
    assert out.returncode == 2 and "Traceback" not in out.stderr
    assert out.stderr.startswith("modlife: JAX does not start here (JAX_PLATFORMS is 'cuda'): ")


# What files say


def test_sentences_have_an_end_and_no_control_characters():
    assert plain("a\x1b[31mb\nc\x07\u202e") == "a\\x1b[31mb\\nc\\x07\\u202e"
    assert len(str(InputError("x" * 10**6))) < 1100
    assert plain("wörter, 漢字 'x'") == "wörter, 漢字 'x'"


def test_escapes_in_files_do_not_reach_the_terminal(searched: Lived, tmp_path: Path):
    run = searched.copy(tmp_path / "run", max(searched.described()))
    summary = searched.run.summary()
    assert summary is not None
    for name, value in (("agent", "\x1b[31mevil"), ("seen", summary["seen"] | {"tasks": ["\x1b]0;x\x07"]})):
        (run.path / "summary.json").write_bytes(sealed({**summary, name: value}))
        end = command("train", "--resume", "--out", str(run.path))
        assert "\x1b" not in end.out + end.err and "\x07" not in end.out + end.err
        assert (end.code == 2 and "cannot be printed" in end.err) or "lists of" in end.err


@pytest.mark.parametrize("name", ["manifest.json", "metrics.jsonl", "history.jsonl", "summary.json", "index"])
def test_a_file_that_is_absurdly_large_is_not_read(run: RunDirectory, name: str):
    newest = run.checkpoints.path(run.checkpoints.numbers()[-1])
    path = newest / INDEX if name == "index" else run.path / name
    with path.open("ab") as file:
        file.truncate(20 * 2**30)
    with pytest.raises(InputError, match="such a file has at most"):
        run.checkpoints.verify(newest) if name == "index" else getattr(run, path.stem)()


def test_a_checkpoint_with_an_absurd_number_is_refused(run: RunDirectory, searched: Lived):
    (run.path / "checkpoints/99999999").mkdir()
    for opened in (lambda: Run.load(run.path), lambda: run_life(None, run.path)):
        with pytest.raises(InputError, match=r"checkpoints/99999999' is not of this life.* Move it away\."):
            opened()


@pytest.mark.parametrize("which", ["checkpoints", "newest"])
def test_nothing_is_read_through_a_link(run: RunDirectory, tmp_path: Path, which: str):
    folder = run.path / "checkpoints"
    path = folder if which == "checkpoints" else sorted(folder.iterdir())[-1]
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    if which == "newest":
        assert f"'{path}' is a link" in Run.load(run.path).complaints[0]
    else:
        with pytest.raises(InputError, match="is a link, not a directory of the run"):
            Run.load(run.path)


def test_copies_by_hard_links_are_not_changed(run: RunDirectory, tmp_path: Path):
    """As `cp -al` makes them."""
    for path in [path for path in run.path.rglob("*") if path.is_file()]:
        twin = tmp_path / "backup" / path.relative_to(run.path)
        twin.parent.mkdir(parents=True, exist_ok=True)
        os.link(path, twin)
    (run.path / "lock").write_text("precious\n")
    os.link(run.path / "lock", tmp_path / "backup/lock")
    before = {path: path.read_bytes() for path in (tmp_path / "backup").rglob("*") if path.is_file()}
    with lenient():
        run_life(None, run.path)
    assert {path: path.read_bytes() for path in (tmp_path / "backup").rglob("*") if path.is_file()} == before


def test_a_file_that_gets_a_second_name_is_not_changed_in_place(run: RunDirectory, tmp_path: Path):
    with RunWriter.reopen(run.path) as writer:
        os.link(run.path / "metrics.jsonl", tmp_path / "twin")
        with pytest.raises(StoreError, match="It has a second name"):
            writer.append({"kind": "x"})


@pytest.mark.parametrize("where", ["2>/dev/full", "2</dev/null", "2>&-"])
def test_nobody_need_listen_at_standard_error(where: str):
    out = subprocess.run(f"{sys.executable} -m modlife list {where}", shell=True, capture_output=True, text=True)
    assert out.returncode == 0 and "64 tasks" in out.stdout


def test_a_device_is_not_written(run: RunDirectory):
    (run.path / "history.jsonl").unlink()
    (run.path / "history.jsonl").symlink_to("/dev/null")
    with pytest.raises((InputError, StoreError)):
        run_life(None, run.path)
    with pytest.raises(OSError, match="not a plain file"):
        Disk().append(Path("/dev/null"), b"x", sync=False)


def test_damage_to_what_tells_of_a_life_is_said_by_every_command(searched: Lived, tmp_path: Path):
    run = searched.copy(tmp_path / "run", max(searched.described()))
    (run.path / "summary.json").write_bytes((searched.path / "summary.json").read_bytes())
    assert run.remarks() == []
    metrics = run.path / "metrics.jsonl"
    metrics.write_bytes(metrics.read_bytes().replace(b"curve", b"curse", 1))
    sentence = f"'{metrics}' is damaged: its first {metrics.stat().st_size} bytes are not those that were written."
    for arguments in (["eval", "--episodes", "4"], ["play", "--episodes", "1", "--out", str(tmp_path / "x.gif")]):
        assert sentence in command(arguments[0], str(run.path), *arguments[1:]).err
    assert sentence in command("train", "--resume", "--out", str(run.path)).err
    drawn = command("figure", "fig3", str(run.path), "--out", str(tmp_path / "x.png"))
    assert drawn.code == 2 and sentence in drawn.err


def test_run_directories_without_checksums_are_read_with_a_remark():
    results = Path(__file__).parent.parent / "results/comp-search-64-0"
    (remark,) = RunDirectory(results).remarks()
    assert "is from an older version, without checksums" in remark


def test_going_on_from_an_older_checkpoint_ends_with_the_same_bytes(searched: Lived, tmp_path: Path):
    """Damage to replay that only the newest checkpoint needs, and to metrics that only it knows."""
    for part in ("replay", "metrics"):
        run = searched.copy(tmp_path / part, searched.amid("offline"))
        index, _ = run.checkpoints.verify(run.checkpoints.path(run.checkpoints.numbers()[-1]))
        path = run.checkpoints.replay_path(index.replay[-1]) if part == "replay" else run.path / "metrics.jsonl"
        path.write_bytes(path.read_bytes()[:-1])
        with lenient(), pytest.warns(UserWarning, match="An older checkpoint is tried"):
            run_life(None, run.path)
        assert (run.path / "metrics.jsonl").read_bytes() == (searched.path / "metrics.jsonl").read_bytes()
        assert run.remarks() == []


def test_a_torn_line_of_the_history_is_cut(run: RunDirectory):
    before = len(run.history())
    with (run.path / "history.jsonl").open("ab") as file:
        file.write(b'{"started": "20')
    with RunWriter.reopen(run.path) as writer:
        writer.note(devices=1)
    assert len(run.history()) == before + 1


def test_a_life_that_goes_on_with_more_tasks_is_known_by_its_checkpoints(lives: Callable[[str], Lived], tmp_path: Path):
    shutil.copytree(lives("stl").path, tmp_path / "run")
    run = RunDirectory(tmp_path / "run")
    with lenient():
        grow_life(run.path, 4)
        for moment in living(None, run.path, save_every=0):
            if moment.reports:
                break
    data = (run.path / "metrics.jsonl").read_bytes()
    (run.path / "metrics.jsonl").write_bytes(data[:-5] + b"9" + data[-4:])
    assert "metrics.jsonl' is damaged" in run.complaints()[0]


def test_other_peoples_lines_of_metrics_are_their_own_business():
    records = [{"kind": "curriculum", "stages": [["a/b"]]}, {"kind": "mine", "when": "online"}]
    assert metrics.summarise(records) == {}
    for odd in ({"returns": []}, {"returns": "abc"}, {"steps": 10**400}, {"steps": -1}):
        record = {"kind": "structure", "stage": 0, "structure": [0, 0], "how": "searched", "steps": 5, **odd}
        with pytest.raises(InputError):
            list(checked_records([records[0], record], Path("x")))


# Numbers that are none


def test_a_life_that_comes_to_nan_stops_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What was good is saved; and going on with it leads to the same point."""
    config, right, calls = small("comp-struct"), PPO.update, []

    def update(self: PPO, learner: Any, rehearsal: Any = None, *, key: Any) -> Any:
        calls.append(1)
        after, happened, progress = right(self, learner, rehearsal, key=key)
        return (
            jax.tree.map(lambda leaf: leaf * jnp.nan if leaf.dtype.kind == "f" else leaf, after),
            happened,
            progress,
        )

    run = RunDirectory(tmp_path / "run")
    with lenient(), monkeypatch.context() as patch, pytest.raises(Diverged) as caught:
        run_life(config, run.path, save_every=1000, watch=Until(2, lambda: patch.setattr(PPO, "update", update)))
    sentence = str(caught.value)
    assert len(calls) == 1
    assert sentence.startswith(f"Learning {config.chosen[0]}, online, step 2 of 4: the work of this phase (learner.")
    assert "not finite" in sentence and "--ppo.learning-rate (now 0.001)" in sentence
    saved = run.checkpoints.read(run.checkpoints.path(run.checkpoints.numbers()[-1]))
    assert saved.index.description.facts.done == 1
    assert all(np.isfinite(array).all() for array in saved.arrays.values() if array.dtype.kind == "f")
    assert run.remarks() == []
    monkeypatch.setattr(PPO, "update", update)
    end = command("train", "--resume", "--out", str(run.path))
    assert end.code == 1 and end.err.splitlines()[-1] == f"modlife: {sentence}"


@dataclass
class Until:
    """Does something at the moment of a number."""

    left: int
    do: Callable[[], Any]

    def moment(self, moment: Moment) -> None:
        self.left -= 1
        if self.left == 0:
            self.do()

    def say(self, sentence: str) -> None:
        raise AssertionError(sentence)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_reports_that_are_not_finite_are_noticed(searched: Lived, bad: float):
    class Told:
        def numbers(self) -> dict[str, Any]:
            return {"fine": np.ones(3), "likelihood": np.array([1.0, bad])}

        def record(self) -> dict[str, Any]:
            return {"kind": "told"}

    state = Run.load(searched.path).state
    moment = Moment(0, state, (Told(),), 0, "offline", 3, 9)
    with pytest.raises(Diverged, match=r"offline, step 3 of 9: its likelihood is not finite"):
        check_numbers(moment, searched.config)
    check_numbers(replace(moment, reports=()), searched.config)


# Memory


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"ppo": {"envs": 10**6, "length": 2000, "minibatch": 1000}}, "What an update collects takes at least "),
        ({"replay_size": 2**24, "steps": 10**10, "tasks": 64}, "Replay of 64 tasks takes at least "),
    ],
)
def test_memory_is_counted_before_it_is_asked_for(tmp_path: Path, options: dict[str, Any], sentence: str):
    with pytest.raises(InputError, match=rf"^{sentence}[0-9,.]+ GB of memory, and .* GB are free\. Give "):
        run_life(small("comp-struct", **options), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_free_memory_is_the_least_of_what_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "GROUP", tmp_path)
    here = memory.free_memory()
    assert here is not None and 10**8 < here < 10**13
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("400000\n")
    assert memory.free_memory() == 600_000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.free_memory() != 600_000


# Stopping


def test_evaluation_in_pieces_gives_the_same_numbers(lives: Callable[[str], Lived], monkeypatch: pytest.MonkeyPatch):
    run = Run.load(lives("clear-modular").path)
    judge = Judge(run.agent.env, run.agent.network, run.agent.acting, 5)
    policies = [run.policy(task) for task in run.tasks]
    whole = judge.evaluate(run.tasks, policies, key=jax.random.key(7))
    monkeypatch.setattr(evaluation, "at_once", lambda env: 250)  # 16 tasks x 5 episodes: 3 of 8 steps a call
    pieces = judge.evaluate(run.tasks, policies, key=jax.random.key(7))
    for name in evaluation.OUTCOMES:
        np.testing.assert_array_equal(getattr(whole, name), getattr(pieces, name))


def test_more_episodes_than_fit_are_evaluated_in_groups(lives: Callable[[str], Lived], monkeypatch: pytest.MonkeyPatch):
    run = Run.load(lives("clear-modular").path)
    monkeypatch.setattr(evaluation, "EPISODES", 4)
    result = Judge(run.agent.env, run.agent.network, run.agent.acting, 10).evaluate(
        run.tasks[:1], [run.policy(run.tasks[0])], key=jax.random.key(7)
    )
    assert result.returns.shape == (1, 10) and len(set(result.returns[0].tolist())) > 2


def test_a_long_evaluation_can_be_stopped(lives: Callable[[str], Lived], monkeypatch: pytest.MonkeyPatch):
    run, calls = Run.load(lives("clear-modular").path), []
    monkeypatch.setattr(evaluation, "at_once", lambda env: 1000)

    def stop() -> None:
        calls.append(1)
        if len(calls) == 3:
            raise Stopped(signal.SIGTERM)

    with stopped_by(stop), pytest.raises(Stopped):
        run.evaluate(episodes=100)
    assert len(calls) == 3
    pause()  # nobody listens any more
    assert len(calls) == 3


def test_a_signal_in_the_evaluation_after_a_stage_saves_what_was_learnt(
    lives: Callable[[str], Lived], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It arrives in the middle of the evaluation, and again in the one at the end; the life ends as if it had not."""
    life = lives("clear-modular")
    monkeypatch.setattr(evaluation, "at_once", lambda env: 250)
    asked = iter([4, 9])
    stops = 0
    with lenient():
        while True:
            begun = None if (tmp_path / "run").exists() else life.config
            try:
                watch = Until(next(asked, -1), lambda: os.kill(os.getpid(), signal.SIGTERM))
                run_life(begun, tmp_path / "run", watch=watch, save_every=1000)
                break
            except Stopped:
                stops += 1
    assert stops == 2
    assert (tmp_path / "run/metrics.jsonl").read_bytes() == (life.path / "metrics.jsonl").read_bytes()


def test_lives_side_by_side_share_the_handlers_and_give_them_back(tmp_path: Path):
    before = signal.getsignal(signal.SIGINT)
    with lenient():
        one, other = (living(small("stl"), tmp_path / name) for name in ("one", "other"))
        next(one)
        next(other)
        one.close()
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(Stopped):
            next(other)
    assert signal.getsignal(signal.SIGINT) is before


# One process


def test_of_threads_that_make_one_directory_one_wins(tmp_path: Path):
    for number in range(20):
        path, won, lost, gate = tmp_path / f"{number}/run", [], [], threading.Barrier(4)

        def make(path: Path = path, won: list = won, lost: list = lost, gate: threading.Barrier = gate) -> None:
            gate.wait()
            try:
                won.append(RunWriter.create(path, LifeConfig()))
            except (InputError, StoreError) as error:
                lost.append(str(error))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1 and len(lost) == 3 and all("exists already" in one for one in lost), lost
        assert RunDirectory(path).config() == LifeConfig() and RunDirectory(path).remarks() == []
        assert [one.name for one in path.parent.iterdir()] == ["run"]
        won[0].close()


def test_a_forked_process_does_not_keep_the_lock(run: RunDirectory):
    writer = RunWriter.reopen(run.path)
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX has threads; this child does nothing with them
        child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    writer.close()
    RunWriter.reopen(run.path).close()
    os.close(write)
    os.waitpid(child, 0)


# Durability


class Recording(Disk):
    """Notes which directories were synced, and when names were made."""

    def __init__(self) -> None:
        self.did: list[tuple[str, Path]] = []

    def sync(self, folder: Path) -> None:
        self.did.append(("sync", folder))
        super().sync(folder)

    def make(self, path: Path) -> None:
        self.did.append(("make", path))
        super().make(path)


def test_parents_that_are_made_are_durable(tmp_path: Path):
    disk = Recording()
    RunWriter.create(tmp_path / "a/b/run", LifeConfig(), disk).close()
    for folder in (tmp_path / "a", tmp_path / "a/b"):
        made = disk.did.index(("make", folder))
        assert ("sync", folder.parent) in disk.did[made:]


def test_going_on_syncs_what_a_killed_process_had_no_time_to(run: RunDirectory):
    disk = Recording()
    RunWriter.reopen(run.path, disk).close()
    folders = {run.path, run.path.parent, run.path / "checkpoints", run.path / "replay"}
    assert folders <= {folder for what, folder in disk.did if what == "sync"}


def test_a_read_error_removes_no_checkpoint(run: RunDirectory, monkeypatch: pytest.MonkeyPatch):
    checkpoints, path = run.checkpoints, run.checkpoints.path(run.checkpoints.numbers()[0])
    assert checkpoints.look(run.checkpoints.numbers()[0]).ended

    def failing(*arguments: Any) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(durable.os, "read", failing)
        with pytest.raises(InputError, match=r"cannot be read: Input/output error"):
            checkpoints.verify(path)
        checkpoints.prune(max(checkpoints.numbers()) + 5)
    assert path.exists() and checkpoints.look(int(path.name)).ended


def test_what_killed_processes_left_beside_a_run_is_removed(tmp_path: Path):
    left, other = tmp_path / "run.0123abcd.tmp", tmp_path / "run.mine.tmp"
    for folder in (left, other):
        folder.mkdir()
        (folder / "lock").write_text("")
    os.utime(left, (1, 1))
    os.utime(other, (1, 1))
    young = tmp_path / "run.89abcdef.tmp"
    young.mkdir()  # it may be about to be locked
    RunWriter.create(tmp_path / "run", LifeConfig()).close()
    assert not left.exists() and other.exists() and young.exists()
    os.utime(young, (1, 1))
    RunWriter.reopen(tmp_path / "run").close()
    assert not young.exists() and other.exists()


def test_a_manifest_of_another_kind_is_refused_in_one_sentence(run: RunDirectory):
    manifest = run.manifest()
    for name in [name for name in ("versions", "git", "machine") if manifest[name]]:  # there may be no git
        (run.path / "manifest.json").write_bytes(sealed({**manifest, name: 5}))
        with RunWriter.reopen(run.path) as writer:
            assert "Since this life began" in (writer.differences(devices=1) or "")
    (run.path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"manifest\.json' is damaged: it has no checksum"):
        run.config()
