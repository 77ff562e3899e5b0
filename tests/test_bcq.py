"""Batch-constrained Q-learning: targets by hand, gradients against a plain version, data seen once per epoch."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from transitions import random_transitions

from modlife.domains.grid2d.spec import World
from modlife.domains.grid2d.world import Grid2D
from modlife.errors import InputError
from modlife.learners import lessons as lessons_module
from modlife.learners import losses
from modlife.learners.acting import Rule
from modlife.learners.bcq import BCQ
from modlife.learners.config import BCQConfig
from modlife.learners.devices import Devices
from modlife.learners.lessons import Reader, patterns
from modlife.learners.replay import Packing
from modlife.policies.bank import pick
from modlife.policies.networks import Modular, Output

GRID = Grid2D(World())
NETWORK = Modular(GRID.graph, (3, 3, 3), critic=6)
STRUCTURES = [(0, 0, 0), (1, 1, 1), (0, 2, 1), (2, 0, 0), (1, 2, 2), (2, 1, 0), (0, 1, 2), (0, 1, 0)]
"""The last is the current task; the fifth shares nothing with it, the others stand for the seven patterns."""
TIMES, ENVS = 24, 4


def replay(seed: int, times: int = TIMES) -> np.ndarray:
    transitions = random_transitions((times + 1, ENVS), seed)
    cells = transitions.observation.cells % 10
    observation = replace(transitions.observation, cells=cells, direction=transitions.observation.direction % 4)
    rewards = jnp.asarray(np.random.default_rng(seed).normal(size=(times + 1, ENVS)), jnp.float32)
    return np.asarray(Packing.of(GRID).pack(replace(transitions, observation=observation, reward=rewards)))


REPLAYS = [replay(n, TIMES if n % 2 else TIMES // 2) for n in range(len(STRUCTURES))]


def learner(**changes: object) -> BCQ:
    reader = Reader(GRID, NETWORK, capacity=10, times=TIMES, envs=ENVS, devices=Devices(1))
    return BCQ(reader, replace(BCQConfig(offline_batch=16), **changes), discount=0.9)


@pytest.fixture(scope="module")
def bank() -> tuple:
    return NETWORK.init(key=jax.random.key(5))


def prepared(bcq: BCQ, bank: tuple, target: tuple):
    lessons, shared, todo = bcq.reader.open(bank, STRUCTURES, REPLAYS)
    for task, depth in todo:
        lessons = bcq.reader.keep(lessons, task, depth=depth)
    for task, pattern in enumerate(shared):
        lessons = bcq.reader.value(lessons, task, target, pattern)
    return lessons, shared


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


def plain_loss(bcq: BCQ, own: tuple, bank: tuple, target: tuple, task: int, structure: tuple, index: jax.Array):
    """A task's loss without patterns, kept features or tables: everything computed where it is needed."""
    packing, rows = Packing.of(GRID), jnp.asarray(REPLAYS[task]).reshape(-1, 14)
    sample, after = packing.unpack(rows[index]), packing.unpack(rows[index + ENVS])
    current = STRUCTURES[-1]

    def output(modules: tuple, observation) -> Output:
        other = pick(bank, jnp.array(structure))
        chain = tuple(m if a == b else o for m, o, a, b in zip(modules, other, structure, current, strict=True))
        return NETWORK(chain, GRID.parts(observation))

    now, following = output(own, sample.observation), output(jax.lax.stop_gradient(own), after.observation)
    probs = jax.nn.softmax(following.logits, axis=0)
    likely = probs / probs.max(axis=0, keepdims=True) > bcq.config.threshold
    if bcq.config.bootstrap == "released":
        likely = jnp.ones_like(likely)
    best = jnp.argmax(jnp.where(likely, following.values, -jnp.inf), axis=0)
    columns = jnp.arange(len(index))
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


@pytest.mark.parametrize(("bootstrap", "slots"), [("constrained", 36), ("released", 1)])
def test_gradients_are_those_of_a_plain_version(bank: tuple, bootstrap: str, slots: int, monkeypatch):
    """With room for all kept features, and for some."""
    monkeypatch.setattr(lessons_module, "SLOTS", slots)
    bcq = learner(bootstrap=bootstrap, td_weight=0.7)
    target = pick(NETWORK.init(key=jax.random.key(6)), jnp.array([0, 0, 0]))
    own = pick(bank, jnp.array(STRUCTURES[-1]))
    lessons, shared = prepared(bcq, bank, target)
    order = [n for n in range(len(STRUCTURES)) if n != 4]
    assert len(shared) == len(order) == 7
    assert (np.asarray(lessons.slots) >= 0).sum() == {36: 3, 1: 1}[slots]
    for task, (n, pattern) in enumerate(zip(order, shared, strict=True)):
        index = jax.random.randint(jax.random.key(n), (16,), 0, ENVS * (len(REPLAYS[n]) - 1))
        with jax.numpy_dtype_promotion("standard"):
            frozen = pick(bank, jnp.array(STRUCTURES[n]))
            found, _ = bcq.gradient(own, frozen, lessons, jnp.int32(task), index, pattern=pattern)
            expected = jax.grad(plain_loss, argnums=1)(bcq, own, bank, target, n, STRUCTURES[n], index)
        for depth, moves in enumerate(pattern):
            for a, b in zip(*map(jax.tree.leaves, (found[depth], expected[depth])), strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-6)
            largest = max(np.abs(leaf).max() for leaf in jax.tree.leaves(found[depth]))
            assert (largest > 0) == moves


# The steps


@pytest.mark.usefixtures("optax_promotes")
def test_however_steps_are_cut_into_pieces_the_result_is_the_same(bank: tuple):
    bcq = learner()
    own = pick(bank, jnp.array(STRUCTURES[-1]))
    lessons, _ = prepared(bcq, bank, own)
    results = []
    for cuts in ([6], [1, 2, 3]):
        state, first = bcq.init(bank, jnp.array(STRUCTURES[-1])), 0
        for count in cuts:
            state = bcq.train(state, lessons, jnp.int32(first), jnp.int32(count), key=jax.random.key(1))
            first += count
        results.append(state)
    for a, b in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_array_equal(a, b)
    assert any((a != b).any() for a, b in zip(*map(jax.tree.leaves, (own, results[0].own)), strict=True))


@pytest.mark.usefixtures("optax_promotes")
def test_an_epoch_shows_every_transition_once(bank: tuple):
    """The indices that gradients are taken at, over an epoch, are a random order of all."""
    bcq = learner(td_weight=0.0, likelihood_weight=0.0, logit_weight=0.0)
    size = TIMES * ENVS
    assert size % bcq.config.offline_batch == 0
    seen: list[np.ndarray] = []

    class Watching(BCQ):
        def gradient(self, own, frozen, lessons, task, index, *, pattern):
            jax.debug.callback(lambda i: seen.append(np.asarray(i)), index)
            return jax.tree.map(jnp.zeros_like, own), jnp.zeros(3)

    watching = Watching(bcq.reader, bcq.config, bcq.discount)
    lessons, _, _ = bcq.reader.open(bank, [STRUCTURES[-1]], [replay(1)])
    state = watching.init(bank, jnp.array(STRUCTURES[-1]))
    watching.train(state, lessons, jnp.int32(0), jnp.int32(bcq.epoch_steps), key=jax.random.key(3))
    jax.effects_barrier()
    assert sorted(np.concatenate(seen).tolist()) == list(range(size))
    assert not (np.concatenate(seen) == np.arange(size)).all()


def test_patterns_are_all_ways_in_which_modules_can_be_shared():
    assert len(patterns(3)) == 7 and len(set(patterns(3))) == 7
    firsts = [pattern.index(True) for pattern in patterns(3)]
    assert firsts == sorted(firsts)


def test_only_tasks_that_share_a_module_are_opened(bank: tuple):
    lessons, shared, _ = learner().reader.open(bank, STRUCTURES, REPLAYS)
    assert len(shared) == len(STRUCTURES) - 1
    assert (1, 2, 2) not in np.asarray(lessons.structures)[: len(shared)].tolist()
    assert int(lessons.count) == len(shared)
    assert [patterns(3)[n] for n in lessons.patterns[: len(shared)]] == shared


def test_a_batch_that_devices_cannot_share_evenly_is_refused():
    reader = replace(learner().reader, devices=Devices(3))
    with pytest.raises(InputError, match="3 devices cannot share offline_batch = 16 evenly"):
        BCQ(reader, BCQConfig(offline_batch=16), discount=0.9)


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
