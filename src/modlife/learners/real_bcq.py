"""Learning from replay where actions are real numbers: an actor that clones the data, and two critics beside it.

    y = r + discount max over k of [c min Q'ᵢ(s', aₖ) + (1 - c) max Q'ᵢ(s', aₖ)],   a₁ ... a₁₀ ~ π(·|s')
    L = w₁ Σᵢ (Qᵢ(s, a) - y)² - w₂ log π(a|s)                                mean over a batch and over tasks
    θ' <- θ' + τ (θ - θ')                                                     Q': target networks, after every step

Batch-constrained Q-learning as the paper has it for robots (Fujimoto et al. 2019, without the perturbation).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from modlife.domains.env import PRNGKey
from modlife.domains.graph import Continuous
from modlife.errors import InputError
from modlife.learners import losses
from modlife.learners.config import RealBCQConfig
from modlife.learners.offline import Consolidator, check_batch
from modlife.learners.replay_table import Layout, Rows
from modlife.policies.acting import Rule
from modlife.policies.bank import Chain
from modlife.policies.modular import AnyOutput, GaussianOutput, tells_actions


@dataclass(frozen=True)
class RealBCQ(Consolidator):
    """All tasks that share a module, in every step."""

    layout: Layout
    config: RealBCQConfig
    discount: float

    def __post_init__(self) -> None:
        check_batch(self)
        graph, network, config = self.layout.env.graph, self.layout.network, self.config
        if not isinstance(graph.actions, Continuous):
            raise InputError(
                f"Learning offline so takes critics of real-valued actions, and actions of '{graph.name}' can be "
                "counted: choose another way, such as `--offline bounded`."
            )
        if not tells_actions(graph, network.critic):
            raise InputError(
                "Learning offline so takes critics of actions: leave `--critic states` out, or choose another way, "
                "such as `--offline bounded`."
            )
        if Rule(config.acting).needs_q:
            raise InputError(
                f"acting = {config.acting}, but the actions of '{graph.name}' are real numbers, which have no value "
                "each. Give `--offline.acting actor`."
            )

    @property
    def follows(self) -> float | None:
        """As the config says."""
        return self.config.target_rate

    @property
    def weights(self) -> Mapping[str, float]:
        """The terms of the loss."""
        return {"td": self.config.td_weight, "likelihood": self.config.likelihood_weight}

    def targets(self, own: Chain, rows: Rows, extra: None) -> tuple[Float[Array, " B"], Float[Array, " B"]]:
        """What Q of the actions taken is drawn to, and how much the actor learns of them."""
        assert rows.key is not None
        following = self.following(own, rows, key=rows.key)
        aim = losses.mixed_target(*self.gained(rows), following, caution=self.config.caution)
        return aim, jnp.ones_like(aim)

    def gained(self, rows: Rows) -> tuple[Float[Array, " B"], Float[Array, " B"]]:
        """Rewards, and what counts of what comes after."""
        sample = rows.transition
        ends = sample.terminated if self.config.bootstrap_truncated else sample.ended
        return sample.reward, jnp.where(ends, 0.0, self.discount)

    def following(self, own: Chain, rows: Rows, *, key: PRNGKey) -> Float[Array, "critics n B"]:
        """What target networks say in next states of actions that the actor might take there."""
        assert rows.target is not None
        reader = rows.after.reader()
        drawn = real(reader(own)).drawn(self.config.candidates, key=key)
        return jnp.stack([critic(drawn) for critic in real(reader(rows.target)).critics])

    def terms(self, output: AnyOutput, rows: Rows, targets: tuple[Array, Array]) -> Float[Array, " terms"]:
        """Squared errors of both Q, and the negative log-likelihood."""
        (aim, weight), action = targets, rows.transition.action
        error = output.valued(action) - aim[None]
        return jnp.stack([(error**2).mean(axis=1).sum(), -(weight * output.distribution.log_prob(action)).mean()])


def real(output: AnyOutput) -> GaussianOutput:
    """What a network says where actions are real numbers."""
    assert isinstance(output, GaussianOutput)
    return output


def acting(config: RealBCQConfig) -> Rule:
    """How an agent acts whose modules were learnt so: by its actor."""
    return Rule(config.acting)
