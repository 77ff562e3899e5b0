"""How actions follow from what a network says: five rules, each a distribution over actions."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from modlife.errors import InputError
from modlife.learners import losses
from modlife.learners.config import Acting
from modlife.learners.distributions import Categorical, Gaussian
from modlife.policies.networks import GaussianOutput, Output


@dataclass(frozen=True)
class Rule:
    """A rule by its name.

    filtered-boltzmann    softmax(Q) over the likely actions
    filtered-greedy       the largest Q among the likely actions
    boltzmann             softmax(Q) over all actions
    actor                 the actor's own distribution, as PPO acts
    actor-greedy          the actor's likeliest action
    """

    name: Acting = "actor"
    threshold: float = 0.0
    """Which actions count as likely, by the actor: `losses.likely`."""

    @property
    def needs_q(self) -> bool:
        """Whether it takes a critic with a value per action."""
        return not self.name.startswith("actor")

    def __call__(self, output: Output | GaussianOutput) -> Categorical | Gaussian:
        """What actions are sampled from; where they are real numbers, only the actor can say."""
        if isinstance(output, GaussianOutput):
            if self.needs_q:
                raise InputError(f"Acting by '{self.name}' takes a value per action; real-valued actions have none.")
            spread = -math.inf if self.name == "actor-greedy" else output.log_std
            return Gaussian(output.mean, jnp.broadcast_to(spread, output.log_std.shape))
        return Categorical(self.log_probs(output))

    def log_probs(self, output: Output) -> Float[Array, "A B"]:
        """Log-probabilities of a few actions; minus infinity where one is never taken."""
        log_probs = losses.log_softmax(output.logits)
        if self.name == "actor":
            return log_probs
        if self.name == "actor-greedy":
            return only_best(log_probs)
        if self.name == "boltzmann":
            return losses.log_softmax(output.values)
        allowed = jnp.where(losses.likely(log_probs, threshold=self.threshold), output.values, -math.inf)
        return losses.log_softmax(allowed) if self.name == "filtered-boltzmann" else only_best(allowed)


def only_best(scores: Float[Array, "A B"]) -> Float[Array, "A B"]:
    """All probability on the first largest score."""
    return jnp.log(jax.nn.one_hot(jnp.argmax(scores, axis=0), scores.shape[0], axis=0))
