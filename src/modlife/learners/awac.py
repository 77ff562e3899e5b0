"""Advantage-weighted actor-critic: as `real_bcq`, but the actor learns most of what turned out better than it would do.

    y = r + discount mean over k of min Q'ᵢ(s', aₖ),   a₁ ... a₁₀ ~ π(·|s')
    L = w₁ Σᵢ (Qᵢ(s, a) - y)² - w₂ w(s, a) log π(a|s)      w: exp of the action's advantage (`losses.advantage_weights`)

Nair et al. 2020.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from modlife.learners import losses
from modlife.learners.config import AWACConfig
from modlife.learners.real_bcq import RealBCQ, real
from modlife.learners.replay_table import Rows
from modlife.policies.bank import Chain


@dataclass(frozen=True)
class AWAC(RealBCQ):
    """Batch-constrained Q-learning with other targets, and an actor that heeds its critics."""

    config: AWACConfig

    def targets(self, own: Chain, rows: Rows, extra: None) -> tuple[Float[Array, " B"], Float[Array, " B"]]:
        """What Q of the actions taken is drawn to, and how much the actor learns of them."""
        assert rows.key is not None
        key_after, key_now = jax.random.split(rows.key)
        aim = losses.mean_target(*self.gained(rows), self.following(own, rows, key=key_after))
        now, config = real(rows.reader()(own)), self.config
        drawn = now.drawn(config.candidates, key=key_now)
        values = jnp.stack([critic(drawn) for critic in now.critics])
        taken = now.valued(rows.transition.action)
        return aim, losses.advantage_weights(taken, values, temperature=config.temperature, most=config.most)
