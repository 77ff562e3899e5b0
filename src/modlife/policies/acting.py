"""How actions follow from what a network says: rules by name, each giving a distribution over actions."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from modlife.errors import InputError
from modlife.policies.distributions import Categorical, Distribution, Gaussian, likely, log_softmax
from modlife.policies.modular import AnyOutput, Output
from modlife.types import Acting

LogProbs = Float[Array, "A B"]


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
    """Which actions count as likely, by the actor: `distributions.likely`."""

    @property
    def needs_q(self) -> bool:
        """Whether it takes a critic with a value per action."""
        return self.name in BY_VALUE

    def __call__(self, output: AnyOutput) -> Distribution:
        """What actions are sampled from; where they are real numbers, only the actor can say."""
        if self.name == "actor":
            return output.distribution
        if isinstance(output, Output):
            return Categorical(self.log_probs(output))
        if self.needs_q:
            raise InputError(f"Acting by '{self.name}' takes a value per action; real-valued actions have none.")
        return Gaussian(output.mean, jnp.full_like(output.log_std, -math.inf))

    def log_probs(self, output: Output) -> LogProbs:
        """Log-probabilities of a few actions; minus infinity where one is never taken."""
        log_probs = log_softmax(output.logits)
        if not self.needs_q:
            return only_best(log_probs) if self.name == "actor-greedy" else log_probs
        threshold, spread = BY_VALUE[self.name]
        allowed = jnp.where(likely(log_probs, threshold=threshold * self.threshold), output.values, -math.inf)
        return spread(allowed)


def only_best(scores: LogProbs) -> LogProbs:
    """All probability on the first largest score."""
    return jnp.log(jax.nn.one_hot(jnp.argmax(scores, axis=0), scores.shape[0], axis=0))


BY_VALUE: dict[str, tuple[int, Callable[[LogProbs], LogProbs]]] = {
    "filtered-boltzmann": (1, log_softmax),
    "filtered-greedy": (1, only_best),
    "boltzmann": (0, log_softmax),
}
"""Rules that follow the critic: whether only among likely actions, and how probability follows from values."""
