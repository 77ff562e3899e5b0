"""Learners where actions are real numbers: closed forms, and probes in which the right actions and values are known."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from scipy.stats import norm
from steer import MODULES, SEEN, SPREAD, STEER, real, replay_of

from modlife.errors import InputError
from modlife.learners import losses, offline
from modlife.learners.awac import AWAC
from modlife.learners.bounded import bounded
from modlife.learners.config import AWACConfig, BoundedConfig, PPOConfig, RealBCQConfig
from modlife.learners.ppo import PPO, Batch, met_so_far, piece_count
from modlife.learners.real_bcq import RealBCQ
from modlife.learners.replay_table import Layout, Lesson
from modlife.policies.bank import Bank, Chain
from modlife.policies.distributions import Gaussian
from modlife.policies.modular import Modular, OnePolicy, of_actor

pytestmark = pytest.mark.usefixtures("optax_promotes")

KEY = jax.random.key(0)
NETWORK = Modular.with_q(STEER.graph, (2, 2), MODULES)
RNG = np.random.default_rng(0)


# Closed forms


def test_divergence_and_entropy_of_gaussians():
    mean, other, spread = RNG.normal(size=(3, 5)), RNG.normal(size=(3, 5)), RNG.normal(size=3)
    gaussian = Gaussian(jnp.array(mean, jnp.float32), jnp.array(spread, jnp.float32))
    expected = sum(norm.entropy(scale=np.exp(one)) for one in spread)
    assert float(gaussian.entropy()) == pytest.approx(expected, rel=1e-5)
    found = np.asarray(gaussian.divergence(jnp.array(other, jnp.float32)))
    grid = np.linspace(-30, 30, 200_001)
    for sample in range(5):
        whole = 0.0
        for n in range(3):
            p, q = (norm.logpdf(grid, one[n, sample], np.exp(spread[n])) for one in (other, mean))
            whole += float((np.exp(p) * (p - q)).sum() * (grid[1] - grid[0]))
        assert found[sample] == pytest.approx(whole, rel=1e-3)


def test_targets_by_hand():
    reward, discount = RNG.normal(size=5), np.array([0.9, 0.9, 0, 0.9, 0.9])
    values = RNG.normal(size=(2, 10, 5))
    given = [jnp.array(one, jnp.float32) for one in (reward, discount, values)]
    mixed = 0.75 * values.min(axis=0) + 0.25 * values.max(axis=0)
    np.testing.assert_allclose(
        losses.mixed_target(*given, caution=0.75), reward + discount * mixed.max(axis=0), rtol=1e-5
    )
    np.testing.assert_allclose(
        losses.mean_target(*given), reward + discount * values.min(axis=0).mean(axis=0), rtol=1e-5
    )


def test_what_follows_a_sample_matters_to_no_other():
    """A target of shape (B, B) would be each reward with every sample's future."""
    values = jnp.array(RNG.normal(size=(2, 10, 5)), jnp.float32)
    reward, discount = jnp.zeros(5), jnp.full(5, 0.9)
    before = losses.mixed_target(reward, discount, values, caution=0.75)
    after = losses.mixed_target(reward, discount, values.at[:, :, 3].add(1.0), caution=0.75)
    assert before.shape == (5,)
    np.testing.assert_allclose(after - before, [0, 0, 0, 0.9, 0], atol=1e-6)


def test_weights_of_advantages_by_hand():
    taken, drawn = RNG.normal(size=(2, 6)), RNG.normal(size=(2, 4, 6))
    advantage = taken.min(axis=0) - drawn.min(axis=0).mean(axis=0)
    expected = np.minimum(np.exp(advantage / (0.5 * advantage.std())), 2.0)
    given = jnp.array(taken, jnp.float32), jnp.array(drawn, jnp.float32)
    found = np.asarray(losses.advantage_weights(*given, temperature=0.5, most=2.0))
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert (found == 2).any() and (found < 1).any()


@pytest.mark.parametrize("temperature", [AWACConfig().temperature, 1.0])
def test_weights_move_the_actor_as_far_as_the_temperature_says(temperature: float):
    """Of actions from N(0, 1), exp(a / beta) leaves those of N(1 / beta, 1), however steep the advantage is."""
    action, steep = RNG.normal(size=(40_000, 3)), np.array([6.0, -8.0, 0.0])
    taken, drawn = np.tile(action @ steep, (2, 1)), np.zeros((2, 1, 40_000))
    given = jnp.array(taken, jnp.float32), jnp.array(drawn, jnp.float32)
    weight = np.asarray(losses.advantage_weights(*given, temperature=temperature, most=1e9))
    moved = (weight[:, None] * action).sum(axis=0) / weight.sum()
    np.testing.assert_allclose(moved, np.array([0.6, -0.8, 0.0]) / temperature, atol=0.05)
    assert 0.5 * float((moved**2).sum()) == pytest.approx(1 / (2 * temperature**2), rel=0.15)


def test_errors_of_several_critics_add_up():
    values, old, target = (jnp.array(RNG.normal(size=shape), jnp.float32) for shape in ((2, 7), 7, 7))
    plain = losses.value_loss(values, old, target, clip=None)
    expected = sum(float(((one - target) ** 2).mean()) for one in values)
    assert float(plain) == pytest.approx(expected, rel=1e-5)
    clipped = losses.value_loss(values, old, target, clip=0.2)
    parts = [losses.clipped_value_loss(one, old, target, clip=0.2) for one in values]
    assert float(clipped) == pytest.approx(float(sum(parts)), rel=1e-5)


# PPO

SMALL = PPOConfig(
    envs=8,
    length=16,
    minibatch=64,
    learning_rate=3e-3,
    discount=0.5,
    entropy_weight=0.0,
    max_grad_norm=None,
    clip_value=False,
    normalise_advantages=True,
    bootstrap_truncated=True,
    stop_divergence=0.075,
)


def test_ppo_finds_the_place_and_what_it_is_worth():
    """Rewards are 1 - variance for ever, since time limits are no ends; each counts half as much as the one before."""
    ppo = PPO(STEER, OnePolicy(NETWORK), SMALL)
    task = jnp.array([[1, 0]])
    state = ppo.init(ppo.network.init(key=KEY), task, jnp.zeros_like(task), key=KEY)
    halted = False
    for number in range(80):
        state, _, _ = ppo.update(state, key=jax.random.fold_in(KEY, number))
        halted = halted or bool(state.halted)
    output = real(NETWORK(state.params, SEEN))
    np.testing.assert_allclose(output.mean[0], [0.5, -0.5], atol=0.1)
    np.testing.assert_allclose(output.worth(key=KEY), 2 * (1 - np.exp(2 * SPREAD)), atol=0.15)
    assert halted


def test_an_actor_that_has_halted_stays_bit_for_bit_and_critics_go_on():
    ppo = PPO(STEER, NETWORK, SMALL)
    task = jnp.array([[0, 1]])
    state = ppo.init(NETWORK.init(key=KEY), task, task, key=KEY)
    state, batch, _, _ = ppo.collect(state, key=KEY)
    gradient, far = ppo.gradient(state.params, task, batch, jnp.arange(64)[None], key=KEY)
    assert abs(float(far)) < 1e-5
    for leaf in jax.tree.leaves(gradient.factors[0]) + jax.tree.leaves(gradient.factors[1]):
        assert leaf.shape[0] == 2
    for factor, used in zip(gradient.factors, (0, 1), strict=True):  # zero outside the modules picked
        for leaf in jax.tree.leaves(factor):
            assert not np.asarray(leaf[1 - used]).any() and np.asarray(leaf[used]).any()
    mine = jax.tree.leaves(of_actor(state.params))
    for halted in (False, True):
        params, opt_state = ppo.moved(state.params, state.opt_state, gradient, jnp.array(halted))
        pairs = zip(jax.tree.leaves(state.params), jax.tree.leaves(params), strict=True)
        same = [np.array_equal(one, other) for one, other in pairs]
        assert same == [halted and own for own in mine]
        actors, others = (np.asarray(one[0].mu) for one in opt_state)
        assert actors.any() != halted and others.any()


def test_an_actor_that_halted_goes_on_as_by_an_optimiser_of_its_own():
    """Adam divides by what it has counted: steps of the critics are none of the actor's."""
    ppo = PPO(STEER, NETWORK, SMALL)
    task = jnp.array([[0, 1]])
    state = ppo.init(NETWORK.init(key=KEY), task, task, key=KEY)
    gradient = jax.tree.map(lambda leaf: jnp.asarray(RNG.normal(size=leaf.shape), jnp.float32), state.params)
    params, opt_state = state.params, state.opt_state
    for halted in (False, *[True] * 30, False, False):
        params, opt_state = ppo.moved(params, opt_state, gradient, jnp.array(halted))
    rows = zip(*map(jax.tree.leaves, (of_actor(params), state.params, gradient, params)), strict=True)
    for own, before, slope, after in rows:
        np.testing.assert_allclose(after, by_adam(before, slope, steps=3 if own else 33), rtol=1e-4, atol=1e-6)


def by_adam(start: Array, slope: Array, *, steps: int) -> np.ndarray:
    """Where Adam comes to with the same gradient again and again: both means are that of one step, once corrected."""
    by = np.asarray(slope, float)
    return np.asarray(start, float) - steps * SMALL.learning_rate * by / (np.abs(by) + SMALL.adam_eps)


def test_the_gradient_of_many_samples_is_that_of_their_pieces():
    config = PPOConfig(envs=8, length=250, minibatch=2000, clip_value=False, max_grad_norm=None)
    ppo = PPO(STEER, OnePolicy(Modular(STEER.graph, (1, 1), 1, MODULES)), config)
    rows = [jnp.array(RNG.normal(size=shape), jnp.float32) for shape in ((2000, 2), (2000, 1), *[2000] * 4)]
    batch, task, params = Batch(*rows), jnp.zeros(2, int), ppo.network.init(key=KEY)
    assert [piece_count(n) for n in (256, 500, 2000, 8000, 1009)] == [1, 1, 4, 16, 1]
    whole = jax.jit(jax.grad(lambda params: ppo.loss(params, task, batch, key=KEY)[0]))(params)
    found, _ = jax.jit(lambda params: ppo.in_pieces(params, task, batch, key=KEY))(params)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5), found, whole)


def test_a_goal_that_was_met_counts_until_the_episode_ends():
    success = jnp.array([[0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0]], bool).T
    ended = jnp.array([[0, 0, 1, 0, 0, 1], [0, 0, 1, 0, 0, 1]], bool).T
    found = np.asarray(met_so_far(success, ended) & ended)
    assert found.T.tolist() == [[False, False, True, False, False, False], [False, False, False, False, False, True]]


# Learning from replay


def layout(times: int, *, finals: bool = True, room: int = 2) -> Layout:
    return Layout(STEER, NETWORK, room, times, 4, finals)


def learnt(learner: Any, bank: Bank, lessons: list[Lesson]) -> Chain:
    fresh = learner.init(bank.pick(lessons[-1].structure))
    *_, (_, state, _) = learner.run(bank, lessons, fresh, done=0, key=KEY)
    return learner.modules(state)


WHOLE = (True, True)
TIMES = 256
BEHAVED = (-0.2, 0.2)
"""Less than the best, which is half the sign."""


@pytest.fixture(scope="module")
def bank() -> Bank:
    return NETWORK.init(key=jax.random.key(5))


def test_bcq_clones_what_was_done_and_values_it(bank: Bank):
    """Without a future, Q is the reward of each action."""
    config = RealBCQConfig(epochs=40, batch=128, learning_rate=3e-3)
    learner = RealBCQ(layout(TIMES), config, 0.0)
    own = learnt(learner, bank, [Lesson((0, 0), WHOLE, replay_of(BEHAVED, times=TIMES))])
    output = real(NETWORK(own, SEEN))
    np.testing.assert_allclose(output.mean[0], BEHAVED, atol=0.06)
    for shift in (-0.3, 0.0, 0.3):
        action = jnp.array([[BEHAVED[0] + shift], [BEHAVED[1] + shift]])
        expected = 1 - (np.asarray(action)[:, 0] - [-0.5, 0.5]) ** 2
        np.testing.assert_allclose(output.valued(action), np.tile(expected, (2, 1)), atol=0.08)


def test_awac_learns_better_than_what_was_done(bank: Bank):
    config = AWACConfig(epochs=40, batch=128, learning_rate=3e-3, temperature=0.5)
    own = learnt(AWAC(layout(TIMES), config, 0.5), bank, [Lesson((0, 0), WHOLE, replay_of(BEHAVED, times=TIMES))])
    mean = np.asarray(real(NETWORK(own, SEEN)).mean[0])
    assert -0.7 < mean[0] < BEHAVED[0] - 0.05 and BEHAVED[1] + 0.05 < mean[1] < 0.7


def test_distilling_learns_what_was_meant_not_what_chance_made_of_it(bank: Bank):
    """From few transitions: the noise of what was done is many times as large as the error that is left."""
    config = BoundedConfig(epochs=150, batch=32, learning_rate=3e-3, td="none", acting="actor", repair=0)
    learner = bounded(layout(16, finals=False), config, 0.5)
    teacher = NETWORK.init(key=jax.random.key(9)).pick((1, 1))
    few = replay_of(BEHAVED, times=16)
    replay = learner.explored(replace(few, rows=few.rows[:17]), teacher)
    assert replay.taught.shape == (16, 4, 3)
    own = learnt(learner, bank, [Lesson((0, 0), WHOLE, replay)])
    student, expected = (real(NETWORK(one, SEEN)) for one in (own, teacher))
    np.testing.assert_allclose(student.mean, expected.mean, atol=0.01)
    taken = jnp.array([[-0.1], [0.3]])
    np.testing.assert_allclose(student.valued(taken), expected.valued(taken), atol=0.1)
    drift = learner.drifts(bank.place((0, 0), own), [Lesson((0, 0), WHOLE, replay)], rows=offline.PROBE)
    assert 0 <= float(drift[0]) < 1e-3
    assert np.array_equal(learner.kept(replay, own, key=KEY).taught, replay.taught)  # nothing is taught twice over


def test_modules_that_are_not_the_tasks_own_get_no_gradient_and_targets_follow_slowly(bank: Bank):
    learner = RealBCQ(layout(8), RealBCQConfig(epochs=1, batch=32, target_rate=0.25), 0.5)
    replay = replay_of(BEHAVED, times=8)
    lessons = [Lesson((1, 0), (False, True), replay), Lesson((0, 0), WHOLE, replay)]
    table = learner.layout.fill(bank, lessons)
    own = bank.pick((0, 0))
    data = offline.Data(table, None, own, KEY)
    found, terms = offline.gradient(
        learner, own, bank.pick((1, 0)), data, jnp.int32(0), jnp.arange(32), pattern=(False, True)
    )
    assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(found[0]))
    assert all(np.asarray(leaf).any() for leaf in jax.tree.leaves(found[1])) and terms.shape == (2,)
    *_, (_, after, _) = learner.run(bank, lessons, learner.init(own), done=0, key=KEY)
    assert learner.steps == 1
    assert after.target is not None
    for old, new, target in zip(*map(jax.tree.leaves, (own, after.own, after.target)), strict=True):
        np.testing.assert_allclose(target, 0.75 * old + 0.25 * new, rtol=1e-4, atol=1e-6)


def test_a_time_limit_is_no_end_unless_it_is_asked_to_be(bank: Bank):
    """What was seen where an episode was cut off is what the target goes on from."""
    replay, own = replay_of(BEHAVED, times=8), bank.pick((0, 0))
    aims = {}
    for goes_on in (True, False):
        config = RealBCQConfig(epochs=1, batch=32, bootstrap_truncated=goes_on)
        learner = RealBCQ(layout(8), config, 0.5)
        table = learner.layout.fill(bank, [Lesson((0, 0), WHOLE, replay)])
        rows = offline.Rows(learner.layout, table, jnp.int32(0), jnp.arange(32), own, WHOLE, False, own, KEY)
        aims[goes_on] = np.asarray(learner.targets(own, rows, None)[0] - rows.transition.reward)
        cut = np.asarray(rows.transition.truncated)
    assert (aims[False][cut] == 0).all() and (aims[True] != 0).all()
    np.testing.assert_array_equal(aims[True][~cut], aims[False][~cut])


def test_what_goes_with_other_actions_is_refused():
    wrong: list[dict[str, Any]] = [{"td": "current"}, {"acting": "boltzmann"}, {"logit_weight": 0.1}]
    for options in wrong:
        with pytest.raises(InputError, match=f"{next(iter(options))} = .* real numbers"):
            bounded(layout(8), replace(BoundedConfig(td="none", acting="actor"), **options), 0.5)
    with pytest.raises(InputError, match="acting = boltzmann, but the actions of 'steer' are real numbers"):
        RealBCQ(layout(8), RealBCQConfig(acting="boltzmann"), 0.5)
    with pytest.raises(InputError, match="takes critics of actions"):
        RealBCQ(replace(layout(8), network=replace(NETWORK, critic=1)), RealBCQConfig(), 0.5)
    with pytest.raises(InputError, match="leave it out"):
        AWACConfig(caution=0.5)
