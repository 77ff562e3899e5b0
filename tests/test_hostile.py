"""The run store, given files by someone who wishes it ill."""

import ast
import copy
import json
import os
import pickle
import random
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lives import Lived, everything, found_in, go_on, pipe, restore, small, step
from safetensors.numpy import load, save

import modlife
from modlife.errors import InputError, StoreError
from modlife.runs.checkpoints import INDEX, STATE
from modlife.runs.codec import to_json
from modlife.runs.durable import sha256
from modlife.runs.sealed import File, Named, canonical, sealed, unsealed
from modlife.runs.store import RunDirectory, RunWriter

FILES = ["manifest.json", "metrics.jsonl", "history.jsonl"]
FORBIDDEN = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "torch", "yaml"}
CALLS = {"eval", "exec", "compile", "__import__"}


def dangers(source: str) -> list[str]:
    """What could run code from a file."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [(node.module or "").split(".")[0], *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Attribute):
            names = [node.attr]
        found += [name for name in names if name in FORBIDDEN]
        if isinstance(node, ast.Name) and node.id in CALLS:
            found.append(node.id)
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            found.append("allow_pickle")
    return found


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import os, joblib.memory as m",
        "def f():\n    from torch import load",
        "from yaml import load",
        "from numpy.compat import pickle",
        "eval(text)",
        "run = exec",
        "compile(text, '', 'exec')",
        "np.load(path, allow_pickle=True)",
        "x = pandas.compat.pickle",
    ],
)
def test_the_search_for_dangers_finds(source: str):
    assert dangers(source)


def test_no_module_can_run_code_from_a_file():
    paths = list(Path(modlife.__file__).parent.rglob("*.py"))
    assert len(paths) > 50
    assert {str(path): found for path in paths if (found := dangers(path.read_text()))} == {}


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


def bomb(kind: str, marker: Path) -> bytes:
    if kind == "pickle":
        return pickle.dumps(Bomb(marker))
    file = BytesIO()
    np.save(file, np.array([Bomb(marker)], dtype=object), allow_pickle=True)
    return file.getvalue()


@pytest.fixture
def run(searched: Lived, tmp_path: Path) -> RunDirectory:
    """A copy that a test may change, in the middle of the offline phase.

    Of one agent, for tests of what is the same whoever lives: manifest, metrics, history, summary, lock, folders, and
    how JSON is read. What agents save themselves, which is the state, replay, and what is said of them, is tried with
    the `life` of each.
    """
    return alone(searched, tmp_path / "run", "offline")


def fullest(life: Lived, folder: Path) -> RunDirectory:
    """The same of any agent, in the phase with most to save."""
    return alone(life, folder, "offline" if "offline" in life.phases() else "online")


def alone(life: Lived, folder: Path, phase: str) -> RunDirectory:
    """A copy with a single checkpoint, in the middle of a phase."""
    run = life.copy(folder, life.amid(phase))
    for number in run.checkpoints.numbers()[:-1]:
        shutil.rmtree(run.checkpoints.path(number))
    return run


def only(run: RunDirectory) -> Path:
    (number,) = run.checkpoints.numbers()
    return run.checkpoints.path(number)


def saved(run: RunDirectory) -> list[Path]:
    """The files of the only checkpoint, with those of its replay."""
    replay = run.checkpoints.verify(only(run))[0].replay
    return [only(run) / INDEX, only(run) / STATE, *map(run.checkpoints.replay_path, replay)]


def read_all(run: RunDirectory) -> None:
    """Everything that any command reads."""
    config = RunDirectory.open(run.path).config()
    assert run.threads() >= 1
    found_in(run, config)
    list(run.metrics())
    run.summary()


@pytest.mark.parametrize("kind", ["pickle", "npy"])
def test_the_bombs_go_off_where_pickle_is_used(tmp_path: Path, kind: str):
    data = bomb(kind, tmp_path / "marker")
    if kind == "pickle":
        pickle.loads(data)  # noqa: S301  # to see that it would do something
    else:
        np.load(BytesIO(data), allow_pickle=True)
    assert (tmp_path / "marker").exists()


@pytest.mark.parametrize("kind", ["pickle", "npy"])
@pytest.mark.parametrize("name", ["manifest.json", "metrics.jsonl", "summary.json"])
def test_pickles_do_nothing(run: RunDirectory, tmp_path: Path, name: str, kind: str):
    (run.path / name).write_bytes(bomb(kind, tmp_path / "marker") + b"\n")
    with pytest.raises(InputError, match=re.escape(str(run.path / name))):
        read_all(run)
    assert not (tmp_path / "marker").exists()


def test_pickles_among_what_an_agent_saves_do_nothing(life: Lived, tmp_path: Path):
    run = fullest(life, tmp_path / "run")
    for path in saved(run):
        right = path.read_bytes()
        for kind in ("pickle", "npy"):
            path.write_bytes(bomb(kind, tmp_path / "marker") + b"\n")
            with pytest.raises(InputError, match=re.escape(str(path))):
                read_all(run)
        path.write_bytes(right)
    read_all(run)
    assert not (tmp_path / "marker").exists()


def forged(body: dict[str, Any]) -> bytes:
    """As `sealed_densely` writes it, but whatever it says."""
    return json.dumps({**body, "sha256": sha256(canonical(body))}, separators=(",", ":")).encode() + b"\n"


def reseal(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes what a checkpoint says, with the right checksum, as one who knows this program can."""
    body = unsealed(folder / INDEX)
    change(body)
    (folder / INDEX).write_bytes(forged(body))


def strange_bytes(right: dict[str, np.ndarray], names: Sequence[str], marker: Path) -> dict[str, bytes]:
    """What holds no arrays, or not those that a file should hold: some by name are not there, or are others."""
    header = json.dumps({"rows": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}).encode()
    arrays = {
        "none": {},
        "others": {"rows": np.zeros((2, 2), np.uint32), "x": np.zeros(1)},
        "one more": right | {"x": np.zeros(1)},
        **{f"no {name}": {other: array for other, array in right.items() if other != name} for name in names},
        **{f"{name} of another type": right | {name: right[name].astype(np.float64)} for name in names},
        **{f"{name} of another shape": right | {name: right[name][None]} for name in names},
    }
    if "rows" in right:
        rows, times = right["rows"], right["times"]
        arrays |= {
            "longer rows": right | {"rows": np.concatenate([rows, rows], axis=-1)},
            "too many rows": right | {"rows": np.concatenate([rows] * 9), "times": 9 * times},
            "too many times": right | {"times": np.array([len(rows)])},
            "times before the start": right | {"times": np.array([-1])},
        }
    return {
        "pickle": bomb("pickle", marker),
        "npy": bomb("npy", marker),
        "nothing": b"",
        "a long header": b"\xff" * 8,
        "a type that NumPy has not": len(header).to_bytes(8, "little") + header + b"\0",
        **{what: save(some) for what, some in arrays.items()},
    }


def test_strange_bytes_with_the_right_checksum_do_nothing(life: Lived, tmp_path: Path):
    """In place of the state, and of the oldest and the newest replay."""
    run, rng = fullest(life, tmp_path / "run"), random.Random(life.config.agent)
    folder = only(run)
    index, replay = folder / INDEX, run.checkpoints.verify(folder)[0].replay
    for place in ("state", *{0, len(replay) - 1}) if replay else ("state",):
        path = folder / STATE if place == "state" else run.checkpoints.replay_path(replay[place])
        before, right = {one: one.read_bytes() for one in (path, index)}, load(path.read_bytes())
        names = rng.sample(sorted(right), 1) if place == "state" else list(right)
        for what, data in strange_bytes(right, names, tmp_path / "marker").items():
            put_in_place(run, place, data)
            try:
                read_all(run)
            except InputError as error:
                assert "\n" not in str(error) and str(error).startswith(f"'{run.path}")
            else:
                pytest.fail(f"{place}: {what} was not noticed")
        for one, data in before.items():
            one.write_bytes(data)
    read_all(run)
    assert not (tmp_path / "marker").exists()


def put_in_place(run: RunDirectory, place: str | int, data: bytes) -> None:
    """The bytes as the state of the checkpoint, or as the replay of a task, with the right checksum."""
    folder, file = only(run), File.of(data)
    if isinstance(place, str):
        (folder / STATE).write_bytes(data)
        reseal(folder, lambda body: body.update(state=to_json(file)))
    else:
        run.checkpoints.replay_path(file).write_bytes(data)
        reseal(folder, lambda body: body["replay"].__setitem__(place, to_json(Named.of(data))))


def places(value: Any, path: tuple = ()) -> Iterator[tuple]:
    """The way to every value in JSON."""
    yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def put(body: Any, path: tuple, value: Any) -> None:
    for key in path[:-1]:
        body = body[key]
    body[path[-1]] = value


def take(body: Any, path: tuple) -> Any:
    for key in path:
        body = body[key]
    return body


HOSTILE = [
    *(-1, 10**30, -(10**30), 2**63, 1.5, 1e308, float("nan"), float("inf")),
    *("", "x", "../../etc/passwd", "/etc/passwd", "\0", "\ud800", "0" * 64, "online", "offline"),
    *(None, True, [], {}, [[]], [0], [-1], ["x"], [0, 0, 0], [9, 9, 9], [[9, 9, 9]], {"x": 1}),
]


def is_harmless(path: tuple[Any, ...], value: Any) -> bool:
    """Whether a checkpoint may say this: another structure that there is, or how long things took, is possible."""
    if path[:3] == ("description", "facts", "structures"):
        return value in ([0, 0, 0], 0) and len(path) > 3
    if path[:3] == ("description", "facts", "spent"):
        return False
    if path[1] in ("wall_seconds", "cpu_seconds", "peak_megabytes"):
        named = path[1] != "peak_megabytes" and value in ({}, {"x": 1})
        return named or (value == 1.5 and (path[1] == "peak_megabytes" or path[2] != ""))
    return path[1] == "ended" and value is True


def at_every_place(right: Any, rng: random.Random, count: int) -> Iterator[tuple[tuple, Any, Any]]:
    """JSON with one value at a time replaced by some hostile ones: where, by what, and the whole."""
    for path in [path for path in places(right) if path]:
        for value in rng.sample(HOSTILE, count):
            before = take(right, path)
            if not is_harmless((*path, "", ""), value) and not (before == value and type(before) is type(value)):
                body = copy.deepcopy(right)
                put(body, path, value)
                yield path, value, body


def test_a_checkpoint_that_says_impossible_things_is_refused(life: Lived, tmp_path: Path):
    """Of every agent, in each of its phases: some values at every place; all values where most is saved."""
    tried, rng, most = 0, random.Random(life.config.agent), life.config.agent == "comp-search"
    for phase in life.phases():
        run = alone(life, tmp_path / f"at-{phase}", phase)
        folder = only(run)
        right, outside, writer = unsealed(folder / INDEX), everything(tmp_path), RunWriter.reopen(run.path)
        for path, value, body in at_every_place(right, rng, len(HOSTILE) if most and phase == "offline" else 3):
            (folder / INDEX).write_bytes(forged(body))
            try:
                restore(writer, life.config)
            except InputError as error:
                tried += 1
                assert "\n" not in str(error)
                assert str(run.path) in str(error)
            else:
                pytest.fail(f"{phase}: {path} = {value!r} was not noticed")
        (folder / INDEX).write_bytes(forged(right))
        restore(writer, life.config)
        writer.close()
        assert everything(tmp_path) == outside
    assert tried > (900 if most else 60)


def says(**facts: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda body: body["description"].update(facts)


def knows(**facts: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda body: body["description"]["facts"].update(facts)


ONE, TWO, THREE, FOUR = (str(task) for task in small("comp-search").chosen)
IMPOSSIBLE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "another format": (lambda body: body.update(format=5), "has format 5; this version reads 3 and 4"),
    "a field too many": (lambda body: body.update(hook="os.system"), "No field in"),
    "a fact too many": (says(hook="os.system"), "No field in"),
    "no replay": (lambda body: body.pop("replay"), "has no field 'replay'"),
    "no facts": (lambda body: body["description"].pop("facts"), "has no field 'facts'"),
    "no checksum": (lambda body: body["state"].pop("sha256"), "has no field 'sha256'"),
    "replay twice": (lambda body: body["replay"].append(body["replay"][0]), "its replay is of 4 tasks"),
    "less replay": (lambda body: body["replay"].pop(), "its replay is of 2 tasks"),
    "a path": (lambda body: body["state"].update(sha256="../../passwd"), "by '../../passwd', which is not a checksum"),
    "a path of replay": (lambda body: body["replay"].__setitem__(0, "9:../lock"), "is '9:../lock', which cannot be"),
    "a task that does not exist": (knows(met=["wall/red/nothing", TWO]), "its met is"),
    "a task too early": (knows(met=[TWO, ONE]), "its met is"),
    "a task twice": (knows(met=[ONE, ONE]), "its met is"),
    "a task that it is learning": (knows(met=[ONE, TWO, THREE]), "its met is"),
    "too many tasks": (knows(met=[ONE, TWO, THREE, FOUR]), "its met is"),
    "a phase": (knows(phase="x"), "its phase is 'x'"),
    "a stage": (says(stage=5), "is of stage 5, but the life has 4"),
    "the last stage": (says(stage=4), "its met is"),
    "a plan that there never was": (says(planned=3), "its planned is 3"),
    "modules beyond the bank": (knows(structures=[[0, 2, 0]] * 3), "its structures is"),
    "modules before the bank": (knows(structures=[[0, -1, 0]] * 3), "its structures is"),
    "a short structure": (knows(structures=[[0, 0]] * 3), "its structures is"),
    "a structure too many": (knows(structures=[[0, 0, 0]] * 4), "its structures is"),
    "steps beyond the end": (knows(done=12), "its done is 12"),
    "steps before the start": (knows(done=-1), "its done is -1"),
    "a search beyond the budget": (knows(spent=1000), "its spent is 1000"),
    "a search that gives steps": (knows(spent=-1), "its spent is -1"),
    "a clock": (says(wall_seconds={"online": -1.0}), "its wall_seconds is"),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_what_is_impossible_is_said(searched: Lived, tmp_path: Path, what: str):
    third = next(
        number
        for number, facts in searched.described().items()
        if facts.stage == 2 and facts.facts.phase == "offline" and facts.facts.done
    )
    run = searched.copy(tmp_path / "run", third)
    shutil.rmtree(run.checkpoints.path(run.checkpoints.numbers()[0]))
    change, sentence = IMPOSSIBLE[what]
    reseal(only(run), change)
    with pytest.raises(InputError) as caught:
        go_on(run.path, searched.config)
    assert sentence in str(caught.value)


def test_checkpoints_of_one_agent_do_not_fit_another(life: Lived, lives: Callable[[str], Lived], tmp_path: Path):
    other = lives("stl" if life.config.agent != "stl" else "mtl")
    for phase in life.phases() - {""}:
        run = alone(life, tmp_path / phase, phase)
        with pytest.raises(InputError):
            found_in(run, other.config)


@pytest.mark.parametrize("name", ["manifest.json", "metrics.jsonl", "summary.json", INDEX])
def test_deep_json_gets_one_sentence(run: RunDirectory, name: str):
    folder = only(run)
    path = folder / INDEX if name == INDEX else run.path / name
    path.write_text("[" * 100_000 + "]" * 100_000 + "\n")
    with pytest.raises(InputError, match=re.escape(str(path))):
        read_all(run)


@pytest.mark.parametrize(
    "machine", [None, {}, {"threads": "2; ls"}, {"threads": True}, {"threads": 0}, {"threads": []}, 7]
)
def test_threads_of_a_manifest_are_checked(run: RunDirectory, machine: Any):
    (run.path / "manifest.json").write_bytes(sealed(run.manifest() | {"machine": machine}))
    if isinstance(machine, dict) and machine:
        with pytest.raises(InputError, match=r"manifest\.json' has .* for the number of threads\.$"):
            run.threads()
    else:
        assert run.threads() == 1


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", [*FILES, "summary.json", "lock", "checkpoints", "replay"])
def test_a_pipe_does_not_hang(run: RunDirectory, searched: Lived, name: str):
    path = run.path / name
    if path.is_dir():
        shutil.rmtree(path)
    pipe(run, path)
    with pytest.raises((InputError, StoreError)):
        writer = go_on(run.path, searched.config)
        writer.close()
        read_all(run)
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", [*FILES, "summary.json.tmp", "lock", "checkpoints", "replay"])
def test_nothing_is_written_through_a_link(run: RunDirectory, searched: Lived, tmp_path: Path, name: str):
    state = found_in(run, searched.config).moment.state
    outside, path = tmp_path / "outside", run.path / name
    if path.is_dir():
        path.rename(outside)
        (outside / "mine.tmp").write_text("precious")
    else:
        outside.write_bytes(path.read_bytes() if path.exists() else b"precious")
        path.unlink(missing_ok=True)
    path.symlink_to(outside)
    before = everything(outside) if outside.is_dir() else outside.read_bytes()
    try:
        writer = go_on(run.path, searched.config)
        step(writer, state, 2, planned=4)
        writer.finish({})
        writer.close()
        read_all(run)
    except (InputError, StoreError):
        pass
    else:
        assert name == "summary.json.tmp"
    assert (everything(outside) if outside.is_dir() else outside.read_bytes()) == before
