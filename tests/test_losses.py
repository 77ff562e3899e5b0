"""Losses against plain NumPy, and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from modlife.learners import losses
from modlife.policies.distributions import Categorical, Gaussian, log_softmax

RNG = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def test_gae_equals_the_sum_written_out():
    """A_t = sum over k of the product of (discount * lambda) before it, times delta at t + k."""
    reward, value, next_value = numbers(12), numbers(12), numbers(12)
    ends = np.isin(np.arange(12), (4, 9))
    discount = np.where(np.arange(12) == 4, 0, 0.9).astype(np.float32)  # terminated at 4, truncated at 9
    lam = np.where(ends, 0, 0.8).astype(np.float32)
    delta = reward + discount * next_value - value
    expected = [sum(np.prod((discount * lam)[t:k]) * delta[k] for k in range(t, 12)) for t in range(12)]
    np.testing.assert_allclose(
        losses.gae(*map(jnp.asarray, (reward, discount, value, next_value, lam))), expected, rtol=1e-5
    )


def test_gae_with_lambda_1_is_the_return_minus_the_value():
    reward, value = numbers(6), numbers(6)
    discount = np.array([0.9] * 5 + [0], np.float32)
    expected = [sum(0.9**k * reward[t + k] for k in range(6 - t)) - value[t] for t in range(6)]
    ones, following = np.ones(6, np.float32), np.append(value[1:], 0).astype(np.float32)
    np.testing.assert_allclose(
        losses.gae(*map(jnp.asarray, (reward, discount, value, following, ones))), expected, rtol=1e-5
    )


def test_surrogate_equals_numpy():
    new, old, advantage = numbers(50), numbers(50), numbers(50)
    ratio = np.exp(new - old)
    expected = -np.mean(np.minimum(ratio * advantage, np.clip(ratio, 0.8, 1.2) * advantage))
    assert float(losses.surrogate(*map(jnp.asarray, (new, old, advantage)), clip=0.2)) == pytest.approx(
        expected, rel=1e-5
    )


@pytest.mark.parametrize(("ratio", "advantage", "slope"), [(1.3, 1, 0), (0.7, 1, -0.7), (0.7, -1, 0), (1.3, -1, 1.3)])
def test_surrogate_stops_pulling_where_it_is_clipped(ratio: float, advantage: float, slope: float):
    """Its derivative by log-probability is -ratio * advantage, or 0 where the ratio has moved far enough."""

    def loss(log_prob):
        return losses.surrogate(log_prob[None], jnp.zeros(1), jnp.full(1, float(advantage)), clip=0.2)

    assert float(jax.grad(loss)(jnp.log(jnp.float32(ratio)))) == pytest.approx(slope, abs=1e-6)


def test_value_loss_equals_numpy():
    new, old, target = numbers(50), numbers(50), numbers(50)
    near = old + np.clip(new - old, -0.2, 0.2)
    expected = np.mean(np.maximum((new - target) ** 2, (near - target) ** 2))
    loss = losses.clipped_value_loss(*map(jnp.asarray, (new, old, target)), clip=0.2)
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_entropy_of_known_distributions():
    assert float(Categorical(log_softmax(jnp.zeros((6, 4)))).entropy()) == pytest.approx(np.log(6), rel=1e-6)
    sure = jnp.zeros((6, 1)).at[2].set(50.0)
    assert float(Categorical(log_softmax(sure)).entropy()) == pytest.approx(0, abs=1e-6)


def test_entropy_and_density_of_gaussians_are_scipys():
    mean, log_std, action = numbers(3, 5), numbers(3), numbers(5, 3)
    gaussian = Gaussian(jnp.asarray(mean), jnp.asarray(log_std))
    expected = stats.norm.logpdf(action, mean.T, np.exp(log_std)).sum(axis=1)
    np.testing.assert_allclose(gaussian.log_prob(jnp.asarray(action)), expected, rtol=1e-4)
    assert float(gaussian.entropy()) == pytest.approx(stats.norm.entropy(0, np.exp(log_std)).sum(), rel=1e-5)


def test_chosen_takes_the_log_probability_of_the_action():
    logits, action = numbers(6, 9), RNG.integers(6, size=9)
    log_probs = np.log(np.exp(logits) / np.exp(logits).sum(axis=0))
    taken = Categorical(log_softmax(jnp.asarray(logits))).log_prob(jnp.asarray(action))
    np.testing.assert_allclose(taken, log_probs[action, np.arange(9)], rtol=1e-5)


def test_sampling_follows_the_probabilities():
    """A chi-squared test with a false-alarm rate of 1e-4; and every action can come, none beyond the last."""
    probabilities = np.array([0.05, 0.4, 0.0, 0.25, 0.2, 0.1])
    logits = np.log(np.maximum(probabilities, 1e-30)).astype(np.float32)
    count = 100_000
    uniform = jax.random.uniform(jax.random.key(0), (count,))
    drawn = Categorical(log_softmax(jnp.tile(jnp.asarray(logits)[:, None], (1, count)))).sample(uniform)
    counts = np.bincount(np.asarray(drawn), minlength=6)
    assert counts[2] == 0
    some = probabilities > 0
    assert stats.chisquare(counts[some], count * probabilities[some]).pvalue > 1e-4
    edge = Categorical(log_softmax(jnp.zeros((6, 2)))).sample(jnp.array([0.0, np.nextafter(np.float32(1), 0)]))
    assert edge.tolist() == [0, 5]
