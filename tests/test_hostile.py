"""The run store, given files by someone who wishes it ill."""

import ast
import copy
import json
import os
import pickle
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save
from written import CONFIG, FIRST, TASKS, alone, everything, go_on, pipe, restore, step

import modlife
from modlife.errors import InputError, StoreError
from modlife.experiments.agents import build
from modlife.experiments.checkpoints import INDEX, STATE, File, sealed, unsealed
from modlife.experiments.config import LifeConfig, to_json
from modlife.experiments.disk import sha256
from modlife.experiments.restore import newest
from modlife.experiments.store import RunDirectory, RunWriter
from modlife.lifelong.compositional import Compositional

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


def read_all(run: RunDirectory, agent: Compositional) -> None:
    """Everything that any command reads."""
    config = RunDirectory.open(run.path).config()
    assert run.threads() >= 1
    newest(run, agent, config.curriculum)
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
@pytest.mark.parametrize("name", ["manifest.json", "metrics.jsonl", "summary.json", INDEX, STATE, "replay"])
def test_pickles_do_nothing(run: RunDirectory, agent, states, tmp_path: Path, name: str, kind: str):
    checkpoint = alone(run, states, "offline")
    path = {INDEX: checkpoint / INDEX, STATE: checkpoint / STATE, "replay": next(run.checkpoints.replay.iterdir())}
    path.get(name, run.path / name).write_bytes(bomb(kind, tmp_path / "marker") + b"\n")
    with pytest.raises(InputError, match=re.escape(str(path.get(name, run.path / name)))):
        read_all(run, agent)
    assert not (tmp_path / "marker").exists()


def reseal(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes what a checkpoint says, with the right checksum, as one who knows this program can."""
    body = unsealed(folder / INDEX)
    change(body)
    (folder / INDEX).write_bytes(sealed(body))


def strange_bytes(marker: Path) -> dict[str, bytes]:
    header = json.dumps({"rows": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}).encode()
    return {
        "pickle": bomb("pickle", marker),
        "npy": bomb("npy", marker),
        "nothing": b"",
        "a long header": b"\xff" * 8,
        "a type that NumPy has not": len(header).to_bytes(8, "little") + header + b"\0",
        "other arrays": save({"rows": np.zeros((2, 2), np.uint32), "x": np.zeros(1)}),
        "floats": save({"rows": np.zeros((2, 2, 2), np.float32)}),
        "other rows": save({"rows": np.zeros((2, 4, 3), np.uint32)}),
        "too many rows": save({"rows": np.zeros((999, 4, 14), np.uint32)}),
    }


@pytest.mark.parametrize("what", strange_bytes(Path()))
@pytest.mark.parametrize("part", ["state", "replay"])
def test_strange_bytes_with_the_right_checksum_do_nothing(
    run: RunDirectory, agent, states, tmp_path: Path, part: str, what: str
):
    folder, data = alone(run, states, "offline"), strange_bytes(tmp_path / "marker")[what]
    file = File(len(data), sha256(data))
    if part == "state":
        (folder / STATE).write_bytes(data)
        reseal(folder, lambda body: body.update(state=to_json(file)))
    else:
        run.checkpoints.replay_path(file).write_bytes(data)
        reseal(folder, lambda body: body["replay"].__setitem__(0, to_json(file)))
    with pytest.raises(InputError, match=f"^'{run.path}") as caught:
        read_all(run, agent)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "marker").exists()


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
    name = path[:2][-1]
    if name == "structure":
        return value == [0, 0, 0]
    if name in ("wall_seconds", "cpu_seconds", "peak_megabytes"):
        return value == 1.5 and (name == "peak_megabytes" or len(path) == 3)
    return name == "ended" and value is True


@pytest.mark.parametrize("name", ["online", "ended", "offline"])
def test_a_checkpoint_that_says_impossible_things_is_refused(run: RunDirectory, agent, states, tmp_path, name: str):
    folder = alone(run, states, name)
    right, outside, writer = unsealed(folder / INDEX), everything(tmp_path), RunWriter.reopen(run.path)
    tried = 0
    for path in [path for path in places(right) if path]:
        for value in HOSTILE:
            if is_harmless(path, value) or (take(right, path) == value and type(take(right, path)) is type(value)):
                continue
            body = copy.deepcopy(right)
            put(body, path, value)
            (folder / INDEX).write_bytes(sealed(body))
            try:
                restore(writer, agent)
            except InputError as error:
                tried += 1
                assert "\n" not in str(error)
                assert str(run.path) in str(error)
            else:
                pytest.fail(f"{path} = {value!r} was not noticed")
    assert tried > 400
    (folder / INDEX).write_bytes(sealed(right))
    restore(writer, agent)
    writer.close()
    assert everything(tmp_path) == outside


def says(**facts: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda body: body["description"].update(facts)


ONE, TWO, THREE = (str(task) for task in TASKS)
IMPOSSIBLE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "another format": (lambda body: body.update(format=2), "has format 2; this version reads 1"),
    "a field too many": (lambda body: body.update(hook="os.system"), "No field in"),
    "a fact too many": (says(hook="os.system"), "No field in"),
    "no replay": (lambda body: body.pop("replay"), "has no field 'replay'"),
    "no phase": (lambda body: body["description"].pop("phase"), "has no field 'phase'"),
    "no checksum": (lambda body: body["state"].pop("sha256"), "has no field 'sha256'"),
    "replay twice": (lambda body: body["replay"].append(body["replay"][0]), "replay of 3 tasks, not of 2"),
    "less replay": (lambda body: body["replay"].pop(), "replay of 1 tasks, not of 2"),
    "a path": (lambda body: body["state"].update(sha256="../../passwd"), "by '../../passwd', which is not a checksum"),
    "a path of replay": (lambda body: body["replay"][0].update(sha256="../lock"), "by '../lock', which is not a"),
    "a task that does not exist": (says(met=["wall/red/nothing"]), "its met is"),
    "a task too early": (says(met=[TWO]), "its met is"),
    "a task twice": (says(met=[ONE, ONE]), "its met is"),
    "a task that it is learning": (says(met=[ONE, TWO]), "its met is"),
    "too many tasks": (says(met=[ONE, TWO, THREE]), "its met is"),
    "a phase": (says(phase="x"), "its phase is 'x'"),
    "a stage": (says(stage=4), "is of stage 4, but the life has 3"),
    "the last stage": (says(stage=3), "its met is"),
    "modules beyond the bank": (says(structures=[[0, 2, 0]]), "its structures is"),
    "modules before the bank": (says(structure=[0, -1, 0]), "its structure is"),
    "a short structure": (says(structures=[[0, 0]]), "its structures is"),
    "a structure too many": (says(structures=[FIRST, FIRST]), "its structures is"),
    "steps beyond the end": (says(number=40), "its number is 40"),
    "steps before the start": (says(number=-1), "its number is -1"),
    "a search beyond the budget": (says(spent=1000), "its spent is 1000"),
    "a search that gives steps": (says(spent=-1), "its spent is -1"),
    "a clock": (says(wall_seconds=[1.0]), "its wall_seconds is"),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_what_is_impossible_is_said(run: RunDirectory, agent, states, what: str):
    change, sentence = IMPOSSIBLE[what]
    reseal(alone(run, states, "offline"), change)
    with pytest.raises(InputError) as caught:
        go_on(run.path, agent)
    assert sentence in str(caught.value)


def test_numbers_of_the_online_phase_are_bounded(run: RunDirectory, agent, states):
    folder = alone(run, states, "online")
    for number in (8, 10**12):  # 900 steps are left, which are eight updates of 128
        reseal(folder, lambda body, number=number: put(body, ("description", "number"), number))
        with pytest.raises(InputError, match=f"its number is {number}"):
            newest(run, agent, CONFIG.curriculum)


@pytest.mark.parametrize("agent_name", ["stl", "mtl"])
def test_checkpoints_of_one_agent_do_not_fit_another(run: RunDirectory, states, agent_name: str):
    config = LifeConfig(agent=agent_name, only=tuple(str(task) for task in TASKS), steps=1000, ppo=CONFIG.ppo)
    for name in ("start", "online", "ended", "offline"):
        alone(run, states, name)
        with pytest.raises(InputError):
            newest(run, build(config), config.curriculum)


@pytest.mark.parametrize("name", ["manifest.json", "metrics.jsonl", "summary.json", INDEX])
def test_deep_json_gets_one_sentence(run: RunDirectory, agent, states, name: str):
    folder = alone(run, states, "start")
    path = folder / INDEX if name == INDEX else run.path / name
    path.write_text("[" * 100_000 + "]" * 100_000 + "\n")
    with pytest.raises(InputError, match=re.escape(str(path))):
        read_all(run, agent)


@pytest.mark.parametrize(
    "machine", [None, {}, {"threads": "2; ls"}, {"threads": 3}, {"threads": "0"}, {"threads": []}, 7]
)
def test_threads_of_a_manifest_are_checked(run: RunDirectory, machine: Any):
    manifest = run.manifest() | {"machine": machine}
    (run.path / "manifest.json").write_text(json.dumps(manifest))
    if isinstance(machine, dict) and machine:
        with pytest.raises(InputError, match=r"manifest\.json' has .* for the number of threads\.$"):
            run.threads()
    else:
        assert run.threads() == 1


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", [*FILES, "summary.json", "lock", "checkpoints", "replay"])
def test_a_pipe_does_not_hang(run: RunDirectory, agent, name: str):
    path = run.path / name
    if path.is_dir():
        shutil.rmtree(path)
    pipe(run, path)
    with pytest.raises((InputError, StoreError)):
        writer = go_on(run.path, agent)
        writer.close()
        read_all(run, agent)
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", [*FILES, "summary.json.tmp", "lock", "checkpoints", "replay"])
def test_nothing_is_written_through_a_link(run: RunDirectory, agent, states, tmp_path: Path, name: str):
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
        writer = go_on(run.path, agent)
        step(writer, states["next"], 2)
        writer.finish({})
        writer.close()
        read_all(run, agent)
    except (InputError, StoreError):
        pass
    else:
        assert name == "summary.json.tmp"
    assert (everything(outside) if outside.is_dir() else outside.read_bytes()) == before
