"""Batch-constrained Q-learning: targets by hand, gradients against a plain version, data seen once per epoch."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hall.domain import Hall, HallEnv, small_modules
from jaxtyping import Array
from transitions import random_transitions, steps_in_the_hall

from modlife.domains.grid2d.environment import Grid2D
from modlife.domains.grid2d.world import World
from modlife.errors import InputError
from modlife.learners import losses, offline, replay_table
from modlife.learners.bcq import BCQ
from modlife.learners.config import BCQConfig
from modlife.learners.replay import Packing, Replay
from modlife.learners.replay_table import Layout, Lesson
from modlife.learners.sharding import Devices
from modlife.policies.acting import Rule
from modlife.policies.bank import Bank
from modlife.policies.conv_modules import ConvModules
from modlife.policies.modular import Modular, Output

HALL, GRID = HallEnv(Hall()), Grid2D(World())
NETWORK = Modular.with_q(HALL.graph, (3, 3, 3), small_modules())
STRUCTURES = [(0, 0, 0), (1, 1, 1), (0, 2, 1), (2, 0, 0), (2, 1, 0), (0, 1, 2), (0, 1, 0)]
"""The last is the current task; they stand for the seven patterns."""
PATTERNS = [tuple(a == b for a, b in zip(one, STRUCTURES[-1], strict=True)) for one in STRUCTURES]
TIMES, ENVS = 24, 4


def replay(seed: int, times: int = TIMES, env: Any = HALL) -> Replay:
    transitions = steps_in_the_hall((times + 1, ENVS), seed)
    if env is GRID:
        seen = random_transitions((times + 1, ENVS), seed).observation
        seen = replace(seen, cells=seen.cells % 10, direction=seen.direction % 4)
        transitions = replace(transitions, observation=seen)
    return Replay(np.asarray(Packing.of(env).pack(transitions)), times)


@dataclass(frozen=True)
class Scene:
    """Where it is learnt, by what."""

    env: Any
    network: Modular

    @cached_property
    def replays(self) -> list[Replay]:
        return [replay(n, TIMES if n % 2 else TIMES // 2, self.env) for n in range(len(STRUCTURES))]

    @property
    def lessons(self) -> list[Lesson]:
        return [Lesson(*one) for one in zip(STRUCTURES, PATTERNS, self.replays, strict=True)]

    def learner(self, **changes: object) -> BCQ:
        layout = Layout(self.env, self.network, room=10, times=TIMES, envs=ENVS)
        return BCQ(layout, replace(BCQConfig(batch=16), **changes), discount=0.9)

    def prepared(self, bcq: BCQ, bank: Bank, target: tuple) -> offline.Data:
        table = bcq.layout.fill(bank, self.lessons)
        *_, table = bcq.layout.with_features(table, self.lessons)
        values = jnp.zeros((10, *bcq.layout.extent, self.network.critic))
        for task in range(len(self.lessons)):
            values = bcq.valued(values, table, task, target)
        return offline.Data(table, values)


IN_THE_HALL = Scene(HALL, NETWORK)
IN_THE_GRID = Scene(GRID, Modular.with_q(GRID.graph, (3, 3, 3), ConvModules()))
LESSONS = IN_THE_HALL.lessons
learner = IN_THE_HALL.learner


@pytest.fixture(scope="module")
def bank() -> Bank:
    return NETWORK.init(key=jax.random.key(5))


# The target


def numpy_target(
    reward: float, discount: float, probs: np.ndarray, q: np.ndarray, target_q: np.ndarray, threshold: float
) -> float:
    """The target of one transition, written out."""
    best, best_value = -1, -np.inf
    for action in range(len(q)):
        if probs[action] / probs.max() > threshold and q[action] > best_value:
            best, best_value = action, q[action]
    return reward + discount * target_q[best]


@pytest.mark.parametrize("threshold", [0.3, 0.0])
def test_targets_are_those_of_a_plain_version(threshold: float):
    rng = np.random.default_rng(0)
    logits, q, target_q = (rng.normal(size=(6, 500)) * 2 for _ in range(3))
    reward, discount = rng.normal(size=500), np.where(rng.random(500) < 0.2, 0.0, 0.9)
    probs = np.exp(logits) / np.exp(logits).sum(axis=0)
    arrays = (jnp.asarray(x, jnp.float32) for x in (reward, discount, np.log(probs), q, target_q))
    found = losses.bcq_target(*arrays, threshold=threshold)
    expected = [
        numpy_target(reward[n], discount[n], probs[:, n], q[:, n], target_q[:, n], threshold) for n in range(500)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_the_two_targets_differ_only_where_the_best_action_is_unlikely():
    log_probs = jnp.log(jnp.array([[0.8, 0.4], [0.1, 0.3], [0.1, 0.3]]))
    q, target_q = jnp.array([[1.0, 1.0], [5.0, 5.0], [0.0, 0.0]]), jnp.array([[10.0, 10.0], [20.0, 20.0], [30.0, 30.0]])
    both = [
        losses.bcq_target(jnp.zeros(2), jnp.ones(2), log_probs, q, target_q, threshold=tau).tolist()
        for tau in (0.3, 0.0)
    ]
    assert both == [[10.0, 20.0], [20.0, 20.0]]


# The gradient


def plain_loss(scene: Scene, bcq: BCQ, own: tuple, bank: Bank, target: tuple, task: tuple[Array, Array]):
    """A task's loss without patterns, kept features or tables: everything computed where it is needed."""
    structure, drawn = task
    sample, after = map(Packing.of(scene.env).unpack, drawn)
    other = bank.pick(structure)

    def output(modules: tuple, observation) -> Output:
        shared = [same == here for same, here in zip(STRUCTURES[-1], structure, strict=True)]
        chain = [
            jax.tree.map(partial(jnp.where, one), mine, theirs)
            for one, mine, theirs in zip(shared, modules, other, strict=True)
        ]
        found = scene.network(tuple(chain), scene.env.parts(observation))
        assert isinstance(found, Output)
        return found

    now, following = output(own, sample.observation), output(jax.lax.stop_gradient(own), after.observation)
    probs = jax.nn.softmax(following.logits, axis=0)
    likely = probs / probs.max(axis=0, keepdims=True) > bcq.config.threshold
    if bcq.config.bootstrap == "released":
        likely = jnp.ones_like(likely)
    best = jnp.argmax(jnp.where(likely, following.values, -jnp.inf), axis=0)
    columns = jnp.arange(drawn.shape[1])
    future = output(target, after.observation).values[best, columns]
    goal = sample.reward + jnp.where(sample.ended, 0.0, bcq.discount) * future
    error = now.values[sample.action, columns] - goal
    likelihood = jax.nn.log_softmax(now.logits, axis=0)[sample.action, columns]
    config = bcq.config
    return (
        config.td_weight * (error**2).mean()
        - config.likelihood_weight * likelihood.mean()
        + config.logit_weight * (now.logits**2).sum(axis=0).mean()
    )


@pytest.mark.parametrize(
    ("scene", "bootstrap", "slots"),
    [(IN_THE_HALL, "constrained", 36), (IN_THE_HALL, "released", 1), (IN_THE_GRID, "constrained", 1)],
    ids=["hall-36", "hall-1", "grid2d-1"],
)
def test_gradients_are_those_of_a_plain_version(scene: Scene, bootstrap: str, slots: int, monkeypatch):
    """With room for all kept features, and for some."""
    monkeypatch.setattr(replay_table, "SLOTS", slots)
    bcq, bank = scene.learner(bootstrap=bootstrap, td_weight=0.7), scene.network.init(key=jax.random.key(5))
    target = scene.network.init(key=jax.random.key(6)).pick((0, 0, 0))
    own = bank.pick(STRUCTURES[-1])
    data = scene.prepared(bcq, bank, target)
    assert (np.asarray(data[0].slots) >= 0).sum() == {36: 3, 1: 1}[slots]
    plain = jax.jit(jax.grad(partial(plain_loss, scene, bcq)))
    for task, pattern in list(enumerate(PATTERNS))[:: 1 if slots > 1 else 6 if scene is IN_THE_GRID else 3]:
        rows = scene.replays[task].rows.reshape(-1, Packing.of(scene.env).words)
        index = np.random.default_rng(task).integers(0, ENVS * scene.replays[task].times, 16).astype(np.int32)

        @jax.jit
        def gradient(own: tuple, frozen: tuple, data: offline.Data, task: Array, index: Array, pattern=pattern):
            return offline.gradient(bcq, own, frozen, data, task, index, pattern=pattern)[0]

        with jax.numpy_dtype_promotion("standard"):
            found = gradient(own, bank.pick(STRUCTURES[task]), data, jnp.int32(task), index)
            drawn = jnp.stack([rows[index], rows[index + ENVS]])
            expected = plain(own, bank, target, (jnp.array(STRUCTURES[task]), drawn))
        for depth, moves in enumerate(pattern):
            for a, b in zip(*map(jax.tree.leaves, (found[depth], expected[depth])), strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-6)
            largest = max(np.abs(leaf).max() for leaf in jax.tree.leaves(found[depth]))
            assert (largest > 0) == moves


# The steps


@pytest.mark.usefixtures("optax_promotes")
def test_however_steps_are_cut_into_pieces_the_result_is_the_same(bank: Bank):
    bcq = learner()
    own = bank.pick(STRUCTURES[-1])
    table, values, *_ = IN_THE_HALL.prepared(bcq, bank, own)
    results = []
    for cuts in ([6], [1, 2, 3]):
        state, first = bcq.init(own).learner, 0
        for count in cuts:
            span = jnp.int32(first), jnp.int32(count)
            state = offline.train(bcq, state, table, values, *span, key=jax.random.key(1))
            first += count
        results.append(state)
    for a, b in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_array_equal(a, b)
    assert any((a != b).any() for a, b in zip(*map(jax.tree.leaves, (own, results[0].own)), strict=True))


@pytest.mark.usefixtures("optax_promotes")
def test_an_epoch_shows_every_transition_once(bank: Bank, monkeypatch):
    """The indices that gradients are taken at, over an epoch, are a random order of all."""
    bcq = learner()
    size = TIMES * ENVS
    assert size % bcq.config.batch == 0
    seen: list[np.ndarray] = []

    def watching(objective, own, frozen, data, task, index, *, pattern, is_new=False):
        jax.debug.callback(lambda i: seen.append(np.asarray(i)), index)
        return jax.tree.map(jnp.zeros_like, own), jnp.zeros(3)

    monkeypatch.setattr(offline, "gradient", watching)
    table = bcq.layout.fill(bank, [Lesson(STRUCTURES[-1], PATTERNS[-1], replay(1))])
    own, span = bank.pick(STRUCTURES[-1]), (jnp.int32(0), jnp.int32(bcq.epoch_steps))
    program = jax.jit(lambda own, table: offline.train_share(bcq, own, (table, None), *span, jax.random.key(3)))
    program(bcq.init(own).learner, table)
    jax.effects_barrier()
    assert sorted(np.concatenate(seen).tolist()) == list(range(size))
    assert not (np.concatenate(seen) == np.arange(size)).all()


@pytest.mark.usefixtures("optax_promotes")
def test_the_target_network_is_copied_when_its_time_has_come(bank: Bank):
    """And not in between; a learner that goes on from the middle ends the same."""
    bcq = learner(epochs=2, target_period=4)
    steps = list(bcq.run(bank, LESSONS, bcq.init(bank.pick(STRUCTURES[-1])), done=0, key=jax.random.key(0)))
    copies = {number: state.target for number, state, _ in reversed(steps)}  # as they were when first told
    assert [number for number, _, losses in steps if losses] == [bcq.epoch_steps, bcq.steps]
    assert set(steps[-1][2] or ()) == {"td", "likelihood", "logits"}
    leaves = {number: np.asarray(jax.tree.leaves(target)[0]) for number, target in copies.items()}
    assert np.array_equal(leaves[4], leaves[0])
    assert not np.array_equal(leaves[8], leaves[4])  # copied before step 5
    number, middle, _ = next(step for step in steps if step[0] == 6)
    *_, (_, end, _) = bcq.run(bank, LESSONS, middle, done=number, key=jax.random.key(0))
    for a, b in zip(*map(jax.tree.leaves, (end, steps[-1][1])), strict=True):
        np.testing.assert_array_equal(a, b)


def test_patterns_are_all_ways_in_which_modules_can_be_shared():
    assert len(NETWORK.patterns) == 7 and len(set(NETWORK.patterns)) == 7
    assert set(PATTERNS) == set(NETWORK.patterns)
    firsts = [pattern.index(True) for pattern in NETWORK.patterns]
    assert firsts == sorted(firsts)


def test_tables_have_room_for_more_tasks_in_large_steps():
    rooms = [replay_table.room_for(tasks) for tasks in range(1, 129)]
    assert all(room >= tasks for tasks, room in enumerate(rooms, start=1))
    assert sorted(set(rooms)) == [16, 32, 64, 128]


def test_a_table_holds_its_tasks_in_their_order(bank: Bank):
    table = learner().layout.fill(bank, LESSONS)
    assert int(table.count) == len(LESSONS)
    assert np.asarray(table.structures)[: len(LESSONS)].tolist() == [list(one) for one in STRUCTURES]
    assert [NETWORK.patterns[n] for n in table.patterns[: len(LESSONS)]] == PATTERNS


def test_a_batch_that_devices_cannot_share_evenly_is_refused():
    layout = replace(learner().layout, devices=Devices(3))
    with pytest.raises(InputError, match="3 devices cannot share a batch of 16 evenly"):
        BCQ(layout, BCQConfig(batch=16), discount=0.9)


# Acting


def test_rules_of_acting_by_hand():
    logits = jnp.log(jnp.array([[0.6], [0.3], [0.1]]))
    output = Output(logits, jnp.array([[0.0], [1.0], [9.0]]))
    boltzmann = np.exp([0.0, 1.0]) / np.exp([0.0, 1.0]).sum()
    expected = {
        "actor": [0.6, 0.3, 0.1],
        "actor-greedy": [1.0, 0.0, 0.0],
        "filtered-boltzmann": [*boltzmann, 0.0],
        "filtered-greedy": [0.0, 1.0, 0.0],
        "boltzmann": np.exp([0.0, 1.0, 9.0]) / np.exp([0.0, 1.0, 9.0]).sum(),
    }
    for name, probs in expected.items():
        found = np.exp(Rule(name, threshold=0.3).log_probs(output))[:, 0]  # pyright: ignore[reportArgumentType]  # any name
        np.testing.assert_allclose(found, probs, rtol=1e-5, atol=1e-7)
    never = Rule("filtered-greedy", threshold=0.3)(output).sample(jnp.array([0.999999]))
    assert never.tolist() == [1]
