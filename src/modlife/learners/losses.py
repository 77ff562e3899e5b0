"""The mathematics of the learners, and random orders: arrays in, arrays out; no network, environment or config."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from modlife.domains.env import PRNGKey
from modlife.policies.distributions import chosen, likely

Steps = Float[Array, " T"]
Samples = Float[Array, " B"]
PerAction = Float[Array, "A B"]


def gae(reward: Steps, discount: Steps, value: Steps, next_value: Steps, lam: Steps) -> Steps:
    """Generalised advantage estimates of one trajectory.

    δₜ = rₜ + γₜ V(sₜ₊₁) - V(sₜ),   Aₜ = δₜ + γₜ λₜ Aₜ₊₁        Schulman et al. 2016, eq. 16

    γₜ = 0 where nothing comes after step t; λₜ = 0 where what comes after it belongs to another episode.
    """
    delta = reward + discount * next_value - value

    def back(advantage: Float[Array, ""], step: tuple[Float[Array, ""], Float[Array, ""]]):
        delta, decay = step
        advantage = delta + decay * advantage
        return advantage, advantage

    return jax.lax.scan(back, jnp.float32(0), (delta, discount * lam), reverse=True)[1]


def vtrace(
    log_ratio: Steps,
    reward: Steps,
    discount: Steps,
    value: Steps,
    next_value: Steps,
    *,
    clip_step: float = 1.0,
    clip_trace: float = 1.0,
) -> tuple[Steps, Steps]:
    """Values of a policy by a trajectory of another one, and advantages for its gradient.

    δₜ = ρₜ (rₜ + γₜ V(sₜ₊₁) - V(sₜ)),   vₜ = V(sₜ) + δₜ + γₜ cₜ (vₜ₊₁ - V(sₜ₊₁))        Espeholt et al. 2018, eq. 1
    Aₜ = ρₜ (rₜ + γₜ vₜ₊₁ - V(sₜ)),   ρₜ = min(`clip_step`, π(aₜ|sₜ) / μ(aₜ|sₜ)),   cₜ: `clip_trace`

    γₜ = 0 where an episode ends. What comes after the last step is V.
    """
    ratio, trace = (jnp.minimum(jnp.exp(log_ratio), bar) for bar in (clip_step, clip_trace))
    delta = ratio * (reward + discount * next_value - value)

    def back(later: Float[Array, ""], step: tuple[Float[Array, ""], Float[Array, ""]]):
        delta, decay = step
        excess = delta + decay * later
        return excess, excess

    excess = jax.lax.scan(back, jnp.float32(0), (delta, discount * trace), reverse=True)[1]
    after = jnp.concatenate([(value + excess)[1:], next_value[-1:]])
    return value + excess, ratio * (reward + discount * after - value)


def surrogate(log_prob: Samples, old_log_prob: Samples, advantage: Samples, *, clip: float) -> Float[Array, ""]:
    """Clipped policy loss, mean over the batch.

    L = -min(r A, clip(r, 1-ε, 1+ε) A),   r = π(a|s) / π_old(a|s)        Schulman et al. 2017, eq. 7
    """
    ratio = jnp.exp(log_prob - old_log_prob)
    return -jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage).mean()


def clipped_value_loss(value: Samples, old_value: Samples, target: Samples, *, clip: float) -> Float[Array, ""]:
    """Squared error of the value, never better than that of the value kept within ε of the old one.

    L = max((V - R)², (V_old + clip(V - V_old, -ε, ε) - R)²), mean over the batch
    """
    near = old_value + jnp.clip(value - old_value, -clip, clip)
    return jnp.maximum((value - target) ** 2, (near - target) ** 2).mean()


def value_loss(
    values: Float[Array, "critics B"], old_value: Samples, target: Samples, *, clip: float | None
) -> Float[Array, ""]:
    """The squared errors of some critics, each a mean over the batch, added up; clipped where a clip is given."""
    if clip is None:
        return ((values - target[None]) ** 2).mean(axis=1).sum()
    first, *more = (clipped_value_loss(one, old_value, target, clip=clip) for one in values)
    return sum(more, start=first)


def mixed_target(
    reward: Samples, discount: Samples, next_values: Float[Array, "critics n B"], *, caution: float
) -> Samples:
    """What Q(s, a) is drawn to, in batch-constrained Q-learning with real-valued actions.

    y = r + γₜ max over k of [c min over i of Q'ᵢ(s', aₖ) + (1 - c) max over i]        Fujimoto et al. 2019, eq. 13

    aₖ are drawn from the actor, Q'ᵢ are target networks, c is the caution. γₜ = 0 where nothing comes after.
    """
    mixed = caution * next_values.min(axis=0) + (1 - caution) * next_values.max(axis=0)
    return reward + discount * mixed.max(axis=0)


def mean_target(reward: Samples, discount: Samples, next_values: Float[Array, "critics n B"]) -> Samples:
    """What Q(s, a) is drawn to by the policy itself: y = r + γₜ mean over drawn actions of the lowest Q' (AWAC)."""
    return reward + discount * next_values.min(axis=0).mean(axis=0)


def advantage_weights(
    taken: Float[Array, "critics B"], drawn: Float[Array, "critics n B"], *, temperature: float, most: float
) -> Samples:
    """How much the actor should learn of the actions taken.

    w = min(exp(A / (β d)), most),   A = min Qᵢ(s, a) - mean over k of min Qᵢ(s, aₖ)        Nair et al. 2020, eq. 13

    d is the deviation of A in the batch, so that β has no unit.
    """
    advantage = taken.min(axis=0) - drawn.min(axis=0).mean(axis=0)
    scaled = advantage / (temperature * (advantage.std() + 1e-6))
    return jnp.minimum(jnp.exp(jnp.minimum(scaled, 50.0)), most)


def bcq_target(
    reward: Samples,
    discount: Samples,
    next_log_probs: PerAction,
    next_values: PerAction,
    target_values: PerAction,
    *,
    threshold: float,
) -> Samples:
    """What Q(s, a) is drawn to, in discrete batch-constrained Q-learning.

    y = r + γₜ Q'(s', a'),   a' = argmax of Q(s', ·) over the likely actions        Fujimoto et al. 2019; Algorithm 1

    Q' is the target network. γₜ = 0 where the episode ended. A threshold of 0 lets every action be chosen.
    """
    allowed = jnp.where(likely(next_log_probs, threshold=threshold), next_values, -jnp.inf)
    return reward + discount * chosen(target_values, jnp.argmax(allowed, axis=0).astype(jnp.int32))


def shuffle(count: int, *, key: PRNGKey) -> Int[Array, " count"]:
    """The numbers below `count` in random order: one sort, where `jax.random.permutation` makes two."""
    return jnp.argsort(jax.random.bits(key, (count,)))
