"""What is taken out of a run is what is in it: policies as ONNX models, replay as Minari data sets."""

import importlib.util
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import minari
import numpy as np
import onnxruntime
import pytest
from lives import Lived, small
from terminal import command, lenient
from transitions import steps_in_the_hall

from modlife.domains.grid2d.gym import GridFace
from modlife.errors import InputError, StoreError, installing
from modlife.exports import minari_sets, onnx_policy
from modlife.exports.face import face_of, spec_of
from modlife.exports.jaxpr_onnx import as_onnx
from modlife.exports.minari_sets import datasets_at, export_minari, replays_of, unpacked, written
from modlife.exports.onnx_policy import answers, export_onnx, named, observed
from modlife.learners.replay import Packing, Replay, Transition, in_order, with_finals
from modlife.runs.config import build, life_from_options
from modlife.runs.load import Run

ARMS = {"preset": "fast", "horizon": 6}


def unlearnt(agent: str, domain: str, **options: Any) -> Run:
    """An agent at the beginning of its life."""
    config = small(agent, domain=domain) if domain == "hall" else life_from_options(agent, domain, options)
    made = build(config)
    return Run(Path("unlearnt"), config, made, made.init(key=jax.random.key(0)))


def session(path: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def said(model: onnxruntime.InferenceSession, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return dict(zip([one.name for one in model.get_outputs()], map(np.asarray, model.run(None, inputs)), strict=True))


@pytest.mark.parametrize("agent", ["comp-struct", "ewc", "clear-modular"])
def test_models_say_what_agents_of_a_plug_in_say(agent: str, tmp_path: Path):
    run = unlearnt(agent, "hall")
    task = run.agent.env.graph.tasks[0]
    with lenient():
        export_onnx(run, str(task), tmp_path / "policy.onnx")
    model, seen = session(tmp_path / "policy.onnx"), observed(run.agent.env, task)
    shown = named(face_of(run.domain, run.agent.env).seen(seen))
    assert {name: array.shape for name, array in shown.items()} == {"place": (1000, 1), "last": (1000, 1)}
    ours = answers(run, run.policy(task), run.agent.env.parts(seen))
    theirs = said(model, {name: np.asarray(array) for name, array in shown.items()})
    assert set(theirs) == {"probabilities", "logits", "values"}
    np.testing.assert_allclose(theirs["probabilities"].sum(axis=1), 1, atol=1e-5)
    for name, array in theirs.items():
        np.testing.assert_allclose(array, ours[name], atol=1e-5)


def test_a_model_of_the_2d_world_takes_what_gymnasium_gives(searched: Lived, tmp_path: Path):
    path, run = tmp_path / "policy.onnx", Run.load(searched.path)
    task = run.tasks[-1]
    end = command("export", str(searched.path), "--onnx", str(path), "--task", str(task))
    assert end.code == 0 and f"{task}: {path}, checked with 1000 observations" in end.out
    model, spec = session(path), spec_of(run.domain, run.config.world, task)
    facts = model.get_modelmeta().custom_metadata_map
    assert facts["task"] == str(task) and json.loads(facts["structure"]) == list(run.structures[str(task)])
    assert json.loads(facts["factors"]) == dict(zip(("static", "target", "dynamics"), task.components, strict=True))
    assert json.loads(facts["actions"]) == [f"action-{n}" for n in range(6)]
    assert spec is not None and json.loads(facts["gymnasium"]) == {"id": "modlife/Grid2D-v0", "kwargs": spec.kwargs}
    with lenient():
        env, policy = gymnasium.make(spec), run.policy(task)
        image, _ = env.reset(seed=3)
        for action in (0, 2, 2, 1, 2):
            state: Any = env.unwrapped
            seen = jax.tree.map(lambda leaf: leaf[None], run.agent.env.observe(state._state))
            ours = answers(run, policy, run.agent.env.parts(seen))
            for name, array in said(model, {"observation": image[None]}).items():
                np.testing.assert_allclose(array, ours[name], atol=1e-5)
            image, *_ = env.step(action)


@pytest.mark.parametrize("inputs", ["plain", "scaled"])
def test_a_model_of_an_arm_takes_what_gymnasium_gives(tmp_path: Path, inputs: str):
    run = unlearnt("comp-struct", "robot", world={**ARMS, "inputs": inputs})
    with lenient():
        assert "checked with 1000 observations" in export_onnx(run, "none/can/IIWA", tmp_path / "arm.onnx")
    model = session(tmp_path / "arm.onnx")
    face = face_of(run.domain, run.agent.env)
    assert {one.name: one.shape[1] for one in model.get_inputs()} == {
        "obstacle": 14,
        "object": 14,
        "goal": 17,
        "robot": 32,
    }
    spec = spec_of(run.domain, run.config.world, run.task("none/can/IIWA"))
    assert spec is not None
    env = gymnasium.make(spec)
    assert env.observation_space == face.observation_space
    seen, _ = env.reset(seed=0)
    answer = said(model, {name: part[None] for name, part in seen.items()})
    assert answer["mean"].shape == (1, 8) and np.abs(answer["mean"]).max() <= 1
    np.testing.assert_allclose(answer["log_std"], [*[0.0] * 7, -0.5])
    flat = jnp.concatenate([seen[part.name] for part in run.agent.env.graph.state])[None]
    ours = answers(run, run.policy(run.task("none/can/IIWA")), run.agent.env.parts(flat))
    np.testing.assert_allclose(answer["mean"], ours["mean"], atol=1e-5)
    np.testing.assert_array_equal(named(face.seen(flat))["object"][0], seen["object"])


def test_a_model_that_says_something_else_is_not_written(
    searched: Lived, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class Blind(GridFace):
        def parts(self, seen: Any) -> dict[str, Any]:
            return super().parts(seen * 0)

    monkeypatch.setattr(onnx_policy, "face_of", lambda domain, env: Blind(env))
    with lenient(), pytest.raises(StoreError, match="was not written: of 1000 observations"):
        export_onnx(Run.load(searched.path), None, tmp_path / "policy.onnx")
    assert not (tmp_path / "policy.onnx").exists()


def many_operations(inputs: dict[str, Any]) -> dict[str, Any]:
    """Most of what networks are made of, and some of what they are not yet."""
    x, codes = inputs["x"], inputs["codes"]  # [batch, 4, 3] and [batch]
    table = jnp.arange(10.0).reshape(5, 2)
    best = jnp.argmax(x.sum(axis=1), axis=-1)
    normal = (x - x.mean(axis=-1, keepdims=True)) * jax.lax.rsqrt(x.var(axis=-1, keepdims=True) + 1e-3)
    attention = jnp.einsum("bic,bjc->bij", jax.nn.softmax(x), x)
    return {
        "looked up": table[codes],
        "hot": jax.nn.one_hot(best, 3) * jax.nn.sigmoid(x[:, 0]) ** 3,
        "normal": jnp.where(normal > 0, jax.nn.softplus(normal), jax.nn.elu(normal)),
        "attention": jnp.clip(attention, -0.5, 2.0)[:, ::2, 1:],
        "pieces": jnp.concatenate(jnp.split(x.reshape(x.shape[0], -1), 3, axis=1)[::-1], axis=1),
        "any": ((x > 1).any(axis=(1, 2)) & ~(x < 0).all(axis=(1, 2))).astype(jnp.int32),
        "wide": jnp.broadcast_to(jnp.ones((1, 2)), (x.shape[0], 2)) - jnp.abs(x).max(axis=(1, 2))[:, None],
    }


def test_programs_are_the_same_in_onnx(tmp_path: Path):
    shapes = {"x": jax.ShapeDtypeStruct((4, 3), jnp.float32), "codes": jax.ShapeDtypeStruct((), jnp.uint8)}
    rng = np.random.default_rng(0)
    with lenient():
        model = onnxruntime.InferenceSession(as_onnx(many_operations, shapes).SerializeToString())
        for batch in (1, 9):
            inputs = {
                "x": rng.normal(size=(batch, 4, 3)).astype(np.float32),
                "codes": rng.integers(0, 5, batch).astype(np.uint8),
            }
            theirs = said(model, inputs)
            for name, ours in jax.jit(many_operations)(inputs).items():
                np.testing.assert_allclose(theirs[name], ours, atol=1e-5, err_msg=name)


def test_what_onnx_cannot_say_is_said():
    shape = {"x": jax.ShapeDtypeStruct((3,), jnp.float32)}
    with pytest.raises(InputError, match="operation 'sort'"):
        as_onnx(lambda inputs: {"y": jnp.sort(inputs["x"])}, shape)
    as_onnx(lambda inputs: {"y": (jnp.sort(inputs["x"]), inputs["x"])[1]}, shape)  # nobody needs it


# Minari


def reassembled(run: Run, dataset: minari.MinariDataset, replay: Replay) -> int:
    """Compares every step of a data set with the replay that it comes from; how many there are."""
    seen = unpacked(run.agent.env, face_of(run.domain, run.agent.env), replay)
    found = np.zeros(seen.steps.reward.shape, int)
    for episode in dataset.iterate_episodes():
        (about,) = dataset.storage.get_episode_metadata([episode.id])
        begin, column, length = int(about["time"]), int(about["column"]), len(episode)
        span = (slice(begin, begin + length), column)
        found[span] += 1
        jax.tree.map(np.testing.assert_array_equal, first(episode.observations, length), seen.at(column, *places(span)))
        np.testing.assert_array_equal(episode.actions, seen.steps.action[span])
        np.testing.assert_array_equal(episode.rewards, seen.steps.reward[span])
        np.testing.assert_array_equal(episode.terminations, seen.steps.terminated[span])
        np.testing.assert_array_equal(episode.truncations[:-1], seen.steps.truncated[span][:-1])
        assert not (episode.terminations | episode.truncations)[:-1].any()
        assert (episode.terminations | episode.truncations)[-1] and about["ends"] in ("terminated", "truncated", "cut")
        assert episode.truncations[-1] == (about["ends"] != "terminated") or seen.steps.truncated[span][-1]
        check_final(seen, episode, about, begin + length, column)
    unknown = seen.steps.truncated & ~seen.steps.terminated & (seen.finals is None)
    np.testing.assert_array_equal(found, np.where(unknown, 0, 1))
    return int(found.sum())


def first(tree: Any, count: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[:count], tree)


def places(span: tuple[slice, int]) -> tuple[int, int]:
    return span[0].start, span[0].stop


def check_final(seen: Any, episode: Any, about: Any, end: int, column: int) -> None:
    """The last observation is nothing, that of a time limit, or the next that was seen."""
    last = jax.tree.map(lambda leaf: leaf[-1], episode.observations)
    if about["final"] == "blank":
        assert about["ends"] == "terminated" and all((leaf == 0).all() for leaf in jax.tree.leaves(last))
    elif seen.steps.truncated[end - 1, column]:
        place = int(seen.steps.truncated[: end - 1, column].sum())
        jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b[place, column]), last, seen.finals)
    else:
        jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b[end, column]), last, seen.observations)


def test_replay_of_the_2d_world_comes_back_from_minari(searched: Lived, tmp_path: Path):
    end, root = command("export", str(searched.path), "--minari", "data", cwd=tmp_path), tmp_path / "data"
    assert end.code == 0 and len(end.out.splitlines()) == 4 and end.err == ""
    run = Run.load(searched.path)
    replays = replays_of(run)
    with lenient(), datasets_at(root):
        names = {minari_sets.id_of(run, task): task for task in replays}
        assert set(minari.list_local_datasets()) == set(names)
        for name, task in names.items():
            assert name == f"modlife/grid2d/{str(task).replace('/', '-')}-v0"
            dataset = minari.load_dataset(name)
            assert reassembled(run, dataset, replays[task].read()) == dataset.total_steps
            made: Any = dataset.recover_environment().unwrapped
            assert made.task == run.agent.env.graph.indices(task)
            assert made.observation_space == dataset.observation_space
            assert all(made.observation_space.contains(one.observations[0]) for one in dataset.iterate_episodes())
    end = command("export", str(searched.path), "--minari", str(root))
    assert end.code == 2 and "exists already" in end.err
    assert not [path for path in root.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("finals", [True, False])
def test_ends_of_episodes_are_what_is_known_of_them(finals: bool, tmp_path: Path):
    run, envs, times = unlearnt("comp-struct", "hall"), 3, 40
    steps, packing, task = steps_in_the_hall((times + 1, envs), 1), Packing.of(run.agent.env), run.config.chosen[0]
    with lenient():
        rows = np.asarray(packing.pack(steps))
        reached = np.asarray(packing.pack(steps_in_the_hall((times, envs), 2)))
        kept = Replay(rows, times)
        if finals:
            kept = with_finals(rows[:-1], rows[-1], reached, np.asarray(steps.truncated)[:-1])
        sentence = written(run, task, kept, tmp_path)
        with datasets_at(tmp_path):
            count = reassembled(run, minari.load_dataset(minari_sets.id_of(run, task)), kept)
    cut = int(np.asarray(steps.truncated)[:-1].sum())
    assert count == times * envs - (0 if finals else cut) and cut > 5
    assert (f"{cut} left out" in sentence) == (not finals)


def test_actions_of_arms_are_as_they_were_drawn(tmp_path: Path):
    run = unlearnt("comp-struct", "robot", world=ARMS)
    env, task, rng = run.agent.env, run.config.chosen[0], np.random.default_rng(0)
    ended = jnp.asarray(np.arange(9) % 6 == 5)[:, None]
    seen = jnp.asarray(rng.normal(size=(9, 1, 77)), jnp.float32)
    steps = Transition(seen, 3 * seen[..., :8], seen[..., 0], jnp.zeros_like(ended), ended)
    with lenient(), datasets_at(tmp_path):
        replay = Replay(np.asarray(Packing.of(env).pack(steps)), 8)
        written(run, task, replay, tmp_path)
        dataset = minari.load_dataset(minari_sets.id_of(run, task))
        assert reassembled(run, dataset, replay) == 7
        actions = next(dataset.iterate_episodes()).actions
        assert np.abs(actions).max() > 1 and dataset.action_space.contains(actions[0])


def test_single_moments_are_no_data_set(lives: Callable[[str], Lived], tmp_path: Path):
    for name, why in (("bounded", "keeps single moments"), ("ewc", "holds no replay")):
        end = command("export", str(lives(name).path), "--minari", str(tmp_path / name))
        assert end.code == 2 and why in end.err and not (tmp_path / name).exists()
    for name, kept in (("comp-search", True), ("reset-distill", False)):
        run = Run.load(lives(name).path)
        assert {in_order(run.agent, replay.read()) for replay in replays_of(run).values()} == {kept}, name
    agent: Any = unlearnt("clear", "hall").agent
    pieces = replace(agent, config=replace(agent.config, keep="reservoir"))
    replay = Replay(np.zeros((agent.times + 1, 4, 4), np.uint32), agent.times)
    assert in_order(agent, replay) and not in_order(pieces, replay)


def test_what_cannot_be_exported_is_said(searched: Lived, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = str(searched.path)
    assert "Say what to write" in command("export", path).err
    assert "must be a .onnx file" in command("export", path, "--onnx", str(tmp_path / "policy.txt")).err
    two = ["--task", "wall/red/dynamics-0", "wall/red/dynamics-1"]
    assert "one task" in command("export", path, "--onnx", str(tmp_path / "a.onnx"), *two).err
    assert "has not learnt any" not in command("export", path, "--onnx", str(tmp_path / "a.onnx"), "--task", "a").err
    with pytest.raises(InputError, match="holds no replay of"):
        list(export_minari(Run.load(path), ["wall/blue/dynamics-3"], tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    end = command("export", path, "--onnx", str(tmp_path / "a.onnx"))
    assert (end.code, end.err) == (
        2,
        f"modlife: This takes onnx and onnxruntime: {installing('onnx')}.\n",
    )
    assert list(tmp_path.iterdir()) == []
