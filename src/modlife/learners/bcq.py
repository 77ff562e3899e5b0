"""Discrete batch-constrained Q-learning over many tasks at once, of which one task's modules move.

The gradient is taken by the current task's modules only, and the optimiser knows no others: all the rest of the bank
cannot change, not even through an optimiser's momentum.
"""

from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from modlife.domains.env import PRNGKey, Pytree
from modlife.errors import InputError
from modlife.learners import losses
from modlife.learners.config import BCQConfig
from modlife.learners.devices import ALL
from modlife.learners.lessons import PLACED, Lessons, Pattern, Reader, gather
from modlife.learners.ppo import shuffle
from modlife.learners.replay import Transition
from modlife.policies.bank import pick
from modlife.policies.networks import Output

PIECE = 300_000
"""Samples, about, in one call of `train`: one to two seconds on one core."""


class BCQState(eqx.Module):
    """The learner between two gradient steps."""

    own: tuple
    """The current task's modules."""
    opt_state: Pytree
    target: tuple
    """The modules as they were when last copied."""
    losses: Float[Array, " 3"]
    """Sums over the steps of this epoch of the three terms of the loss, without their weights."""


@dataclass(frozen=True)
class BCQ:
    """The learner: one compiled function, `train`, over a `BCQState` and `Lessons`."""

    reader: Reader
    config: BCQConfig
    discount: float

    def __post_init__(self) -> None:
        if self.config.offline_batch % self.reader.devices.count:
            raise InputError(
                f"{self.reader.devices.count} devices cannot share offline_batch = {self.config.offline_batch} evenly."
            )

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """Adam on all parameters as one vector (which saves a kernel per array)."""
        return optax.flatten(optax.adam(self.config.offline_learning_rate))

    @property
    def epoch_steps(self) -> int:
        """Gradient steps in an epoch."""
        return -(-self.reader.times * self.reader.envs // self.config.offline_batch)

    @property
    def steps(self) -> int:
        """Gradient steps in all."""
        return self.config.offline_epochs * self.epoch_steps

    def steps_at_once(self, number: int, *, tasks: int) -> int:
        """How many steps to make in one call from step `number` on: up to two seconds, an epoch, or a new target."""
        to_epoch = self.epoch_steps - number % self.epoch_steps
        to_target = self.config.target_period - number % self.config.target_period
        return min(max(1, PIECE // (self.config.offline_batch * tasks)), to_epoch, to_target)

    @partial(jax.jit, static_argnums=0)
    def init(self, bank: tuple, structure: Int[Array, " F"]) -> BCQState:
        """A learner of the modules that a structure picks."""
        own = pick(bank, structure)
        return BCQState(own, self.optimiser.init(own), own, jnp.zeros(3))

    @partial(jax.jit, static_argnums=0)
    def train(
        self,
        state: BCQState,
        lessons: Lessons,
        first: Int[Array, ""],
        count: Int[Array, ""],
        *,
        key: PRNGKey,
    ) -> BCQState:
        """Some gradient steps of an epoch, from number `first` on; the key is the epoch's."""
        share = self.reader.devices.run(self.train_share, (ALL, PLACED, ALL, ALL, ALL), ALL)
        return share(state, lessons, first, count, key)

    def train_share(self, state: BCQState, lessons: Lessons, first: Array, count: Array, key: PRNGKey) -> BCQState:
        """One device's part of `train`."""
        devices, batch = self.reader.devices, self.config.offline_batch // self.reader.devices.count
        key_order, key_offset = jax.random.split(devices.own_key(key))
        size = self.reader.times * lessons.rows.shape[2]
        order = shuffle(size, key=key_order)
        order = jnp.concatenate([order, jnp.resize(order, (batch,))])
        offset = jax.random.randint(key_offset, lessons.times.shape, 0, size)
        tasks = lessons.count.astype(jnp.float32)

        def index(step: Array, task: Array) -> Int[Array, " B"]:
            """Every task goes through its rows in the same random order, each from another place on."""
            drawn = jax.lax.dynamic_slice(order, ((step * batch + offset[task]) % size,), (batch,))
            share = lessons.times[task].astype(jnp.float32) / self.reader.times
            return jnp.floor(drawn.astype(jnp.float32) * share).astype(jnp.int32)

        def body(step: Array, state: BCQState) -> BCQState:
            def add(task: Array, total: tuple) -> tuple:
                # What a switch takes is in memory: inside other operations, each use would look the modules up again.
                frozen = pick(lessons.bank, lessons.structures[task])
                branches = [partial(self.gradient, pattern=pattern) for pattern in self.reader.patterns]
                at = index(step, task)
                gradient = jax.lax.switch(lessons.patterns[task], branches, state.own, frozen, lessons, task, at)
                return jax.tree.map(jnp.add, total, gradient)

            total = (jax.tree.map(jnp.zeros_like, state.own), jnp.zeros(3))
            total = jax.lax.fori_loop(0, lessons.count, add, total)
            flat, restore = ravel_pytree(total)  # one exchange between devices instead of one per array
            gradient, terms = restore(devices.reduce(jax.lax.pmean, flat / tasks))
            change, opt_state = self.optimiser.update(gradient, state.opt_state, state.own)
            own: tuple = optax.apply_updates(state.own, change)  # pyright: ignore[reportAssignmentType]  # Optax says less
            return BCQState(own, opt_state, state.target, state.losses + terms)

        return jax.lax.fori_loop(first, first + count, body, state)

    def gradient(
        self, own: tuple, frozen: tuple, lessons: Lessons, task: Array, index: Int[Array, " B"], *, pattern: Pattern
    ) -> tuple[tuple, Float[Array, " 3"]]:
        """The gradient of a task's loss by the current task's modules, and the terms of the loss.

        `frozen` are the task's modules in the bank; those that the pattern says are its own move instead.
        """
        reader, depth = self.reader, pattern.index(True)
        envs = lessons.rows.shape[2]
        sample, after = (reader.samples(lessons, task, at) for at in (index, index + envs))
        parts, next_parts = reader.parts(sample), reader.parts(after)
        features = reader.features(lessons, task, index, depth=depth)
        next_features = reader.features(lessons, task, index + envs, depth=depth)

        def output(own: tuple, parts: dict, features: Array | None) -> Output:
            policy = tuple(mine if moves else other for mine, other, moves in zip(own, frozen, pattern, strict=True))
            return reader.network.onward(policy, parts, features, depth=depth)

        following = output(own, next_parts, next_features)
        target = losses.bcq_target(
            sample.reward,
            jnp.where(sample.ended, 0.0, self.discount),
            losses.log_softmax(following.logits),
            following.values,
            gather(lessons.values, task, index + envs).T,
            threshold=self.config.threshold if self.config.bootstrap == "constrained" else 0.0,
        )

        def loss(own: tuple) -> tuple[Array, Array]:
            terms = self.terms(output(own, parts, features), sample, target)
            return terms @ self.weights, terms

        return jax.grad(loss, has_aux=True)(own)

    @property
    def weights(self) -> Float[Array, " 3"]:
        """Weights of the three terms."""
        return jnp.array([self.config.td_weight, self.config.likelihood_weight, self.config.logit_weight])

    def terms(self, output: Output, sample: Transition, target: Float[Array, " B"]) -> Float[Array, " 3"]:
        """Squared error of Q, negative log-likelihood, sum of squared logits; each the mean over a batch."""
        error = losses.chosen(output.values, sample.action) - target
        likelihood = losses.chosen(losses.log_softmax(output.logits), sample.action)
        return jnp.stack([(error**2).mean(), -likelihood.mean(), (output.logits**2).sum(axis=0).mean()])
