"""Proximal policy optimisation, for one task or for many at once, over any domain and network."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

from modlife.arrays import zeros
from modlife.domains.env import Environment, PRNGKey
from modlife.errors import InputError
from modlife.learners import losses, rollout
from modlife.learners.config import PPOConfig
from modlife.learners.replay import Experience, Transition
from modlife.learners.rollout import Actors, Asked, Rollout
from modlife.learners.sharding import ALL, SECOND, THIRD, Devices, specs_of
from modlife.pauses import pause
from modlife.policies.modular import Network, of_actor
from modlife.types import Pytree

REHEARSAL, VALUES = 0x6707, 0x7A1E
"""Set the keys of what old tasks add to gradient steps, and of actions that states are valued by, apart from others."""


FEWEST, MOST = 250, 500
"""Samples whose gradient is computed at once, where there are more."""


class Batch(eqx.Module):
    """Samples to learn from; axes [task, sample, ...]."""

    observation: Pytree
    action: Int[Array, "*n"] | Float[Array, "*n A"]
    log_prob: Float[Array, "*n"]
    value: Float[Array, "*n"]
    advantage: Float[Array, "*n"]
    target: Float[Array, "*n"]


class Anchor(eqx.Module):
    """Where parameters are drawn back to: the loss gains ½ Σᵢ wᵢ (θᵢ - θ*ᵢ)²."""

    params: Pytree
    weights: Pytree
    means: Float[Array, "4"]
    """Norms of the gradient of the loss without this, and of this; that loss, and this: over the last epoch's steps."""

    @staticmethod
    def at(params: Pytree, weights: Pytree) -> "Anchor":
        """Before the first step."""
        return Anchor(params, weights, zeros(4))

    def over(self, steps: int) -> "Anchor":
        """With means, where there are sums over so many steps."""
        return replace(self, means=self.means / steps)

    @property
    def told(self) -> tuple[float, ...]:
        """The means, for people."""
        return tuple(float(mean) for mean in self.means)


class LearnerState(eqx.Module):
    """A learner between two updates."""

    params: Pytree
    opt_state: Pytree
    """Where the actor may halt, its own and that of all else: Adam counts steps, and the actor makes fewer."""
    actors: Actors
    """Axes [task, environment, ...]."""
    structures: Int[Array, "N F"]
    """Which policy of the network each task uses."""
    updates: Int[Array, ""]
    anchor: Anchor | None = None
    before: Pytree = None
    """The parameters before the last update; None where nobody asks for them."""
    halted: Bool[Array, ""] | None = None
    """Whether the actor has moved far enough in this update; None where nobody asks, or it shares all parameters."""


STATE = specs_of(
    LearnerState,
    actors=SECOND,
    **dict.fromkeys(("params", "opt_state", "structures", "updates", "anchor", "before", "halted"), ALL),
)
"""How a learner lies on devices: environments in shares, all else everywhere."""


class Progress(eqx.Module):
    """How the episodes of one update were; axis [task]."""

    episode_return: Float[Array, " N"]
    """Mean return of the episodes that ended; NaN where none did."""
    success: Float[Array, " N"]
    """Share of them that met the goal in any step."""
    episodes: Int[Array, " N"]
    entropy: Float[Array, " N"]
    """Entropy of the policy, before the update."""


Carry = tuple[Pytree, Pytree, Array | None]
"""Parameters, optimiser, and whether the actor has halted."""


class Rehearsal(eqx.Module):
    """What of old tasks takes part in every gradient step: arrays, and what they add to the loss."""

    @abstractmethod
    def gradient(self, ppo: "PPO", params: Pytree, number: Int[Array, ""], *, key: PRNGKey) -> Pytree:
        """The gradient of what is added, in the step of this number of an epoch; the key is the epoch's."""


@dataclass(frozen=True)
class PPO:
    """The learner: two compiled functions, `collect` and `epoch`, over a `LearnerState`.

    With several devices, each steps its share of the environments and learns from its share of every minibatch, and
    gradients are averaged: the same algorithm with minibatches drawn evenly from the shares.
    """

    env: Environment
    network: Network
    config: PPOConfig
    devices: int = 1
    keeps_reached: bool = False
    """Whether what happened tells what was seen before restarts, ..."""
    keeps_said: bool = False
    """... and what the policy said."""

    def __post_init__(self) -> None:
        if self.config.envs % self.devices or self.config.minibatch % self.devices:
            raise InputError(
                f"{self.devices} devices cannot share envs = {self.config.envs} and minibatch = "
                f"{self.config.minibatch} evenly; choose numbers that {self.devices} divides."
            )

    @property
    def share(self) -> Devices:
        """How the work is divided."""
        return Devices(self.devices)

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """Adam, after clipping, on all parameters as one vector (which saves a kernel per array).

        Where the actor may halt, there is one for its parameters and one for all others, clipped by themselves.
        """
        config = self.config
        adam, norm = optax.adam(config.learning_rate, eps=config.adam_eps), config.max_grad_norm
        return optax.flatten(adam if norm is None else optax.chain(optax.clip_by_global_norm(norm), adam))

    @partial(jax.jit, static_argnums=0)
    def init(
        self,
        params: Pytree,
        tasks: Int[Array, "N F"],
        structures: Int[Array, "N F"],
        anchor: Anchor | None = None,
        *,
        key: PRNGKey,
    ) -> LearnerState:
        """A learner with these parameters, at the start of these tasks."""
        begin = partial(rollout.start, self.env, count=self.config.envs)
        actors = jax.vmap(lambda task, key: begin(task, key=key))(tasks, jax.random.split(key, len(tasks)))
        halted, opt_state, own = None, self.optimiser.init(params), of_actor(params)
        if self.config.stop_divergence is not None:
            if not any(jax.tree.leaves(own)):
                raise InputError(
                    f"stop_divergence = {self.config.stop_divergence}, but actor and critic share parameters here, and "
                    "neither can halt alone. Leave --ppo.stop-divergence out."
                )
            halted, opt_state = jnp.zeros((), bool), tuple(map(self.optimiser.init, eqx.partition(params, own)))
        return LearnerState(params, opt_state, actors, structures, jnp.int32(0), anchor, halted=halted)

    def update(
        self, state: LearnerState, rehearsal: "Rehearsal | None" = None, *, key: PRNGKey
    ) -> tuple[LearnerState, Experience, Progress]:
        """Collects from every task, then learns from it; also returns what happened, axes [task, time, env, ...]."""
        key_collect, *key_epochs = jax.random.split(key, 1 + self.config.epochs)
        if state.before is not None:
            state = replace(state, before=state.params)
        state, batch, happened, progress = self.collect(state, key=key_collect)
        for key_epoch in key_epochs:
            pause()
            state = jax.block_until_ready(self.epoch(state, batch, rehearsal, key=key_epoch))
        return state, happened, progress

    @partial(jax.jit, static_argnums=0)
    def collect(self, state: LearnerState, *, key: PRNGKey) -> tuple[LearnerState, Batch, Experience, Progress]:
        """Acts in all tasks, one after the other in one program, and estimates advantages."""
        outputs = (STATE, SECOND, THIRD, ALL)
        return self.share.run(self.collect_share, (STATE, ALL), outputs)(state, key)

    @partial(jax.jit, static_argnums=0)
    def epoch(
        self, state: LearnerState, batch: Batch, rehearsal: "Rehearsal | None" = None, *, key: PRNGKey
    ) -> LearnerState:
        """One pass over the data in random minibatches, each with the same number of samples from every task."""
        return self.share.run(self.epoch_share, (STATE, SECOND, ALL, ALL), STATE)(state, batch, rehearsal, key)

    def collect_share(self, state: LearnerState, key: PRNGKey) -> tuple[LearnerState, Batch, Experience, Progress]:
        """One device's part of `collect`."""

        def one(task: tuple[Actors, Int[Array, " F"], PRNGKey]) -> tuple[Actors, Batch, Experience, dict[str, Array]]:
            actors, structure, key = task
            policy = self.network.pick(state.params, structure)
            actors, data, last_value = rollout.collect(
                self.env,
                self.network,
                policy,
                actors,
                steps=self.config.length,
                asked=Asked(self.config.bootstrap_truncated, self.keeps_reached, self.keeps_said),
                key=key,
            )
            return actors, self.batch(data, last_value), experience_of(data), totals_of(data)

        keys = jax.random.split(self.share.own_key(key), len(state.structures))
        actors, batch, happened, totals = jax.lax.map(one, (state.actors, state.structures, keys))
        state = eqx.tree_at(lambda s: (s.actors, s.updates), state, (actors, state.updates + 1))
        if state.halted is not None:
            state = eqx.tree_at(lambda s: s.halted, state, jnp.zeros((), bool))
        return state, batch, happened, progress_of(self.share.reduce(jax.lax.psum, totals))

    def batch(self, data: Rollout, last_value: Float[Array, " E"]) -> Batch:
        """Advantages and value targets; time and environments become one axis."""
        config, outcome = self.config, data.outcome
        stops = outcome.terminated if config.bootstrap_truncated else data.ended
        next_value = jnp.concatenate([data.value[1:], last_value[None]])
        next_value = jnp.where(outcome.truncated, data.final_value, next_value)
        advantage = jax.vmap(losses.gae, in_axes=1, out_axes=1)(
            outcome.reward,
            jnp.where(stops, 0.0, config.discount),
            data.value,
            next_value,
            jnp.where(data.ended, 0.0, config.gae_lambda),
        )
        samples = Batch(data.observation, data.action, data.log_prob, data.value, advantage, advantage + data.value)
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), samples)

    def epoch_share(
        self, state: LearnerState, batch: Batch, rehearsal: "Rehearsal | None", key: PRNGKey
    ) -> LearnerState:
        """One device's part of `epoch`."""
        tasks, samples = batch.log_prob.shape
        keys = jax.random.split(self.share.own_key(key), tasks)
        order = jax.vmap(lambda key: losses.shuffle(samples, key=key))(keys)
        pieces = jnp.moveaxis(order.reshape(tasks, -1, self.config.minibatch // self.devices), 1, 0)

        def step(carry: Carry, piece: tuple[Int[Array, ""], Int[Array, "N B"]]) -> tuple[Carry, Array | None]:
            (params, opt_state, halted), (number, index) = carry, piece
            key_values = jax.random.fold_in(jax.random.fold_in(self.share.own_key(key), VALUES), number)
            telling = state.anchor is not None
            means = more = None
            if rehearsal is not None:
                key_more = jax.random.fold_in(self.share.own_key(key), REHEARSAL)
                more = rehearsal.gradient(self, params, number, key=key_more)
            gradient, far = self.gradient(
                params, state.structures, batch, index, more=more, telling=telling, key=key_values
            )
            if state.anchor is not None:
                (far, loss), pull = far, pull_of(state.anchor, params)
                means = jnp.append(norms_of(gradient, pull), jnp.stack([loss, penalty_of(state.anchor, params)]))
                gradient = jax.tree.map(jnp.add, gradient, pull)
            if halted is not None and self.config.stop_divergence is not None:
                halted = halted | (far > self.config.stop_divergence)
            params, opt_state = self.moved(params, opt_state, gradient, halted)
            return (params, opt_state, halted), means

        numbered = jnp.arange(len(pieces)), pieces
        learner, means = jax.lax.scan(step, (state.params, state.opt_state, state.halted), numbered)
        state = replace(state, params=learner[0], opt_state=learner[1], halted=learner[2])
        return state if means is None else eqx.tree_at(lambda s: s.anchor.means, state, means.mean(axis=0))

    def moved(
        self, params: Pytree, opt_state: Pytree, gradient: Pytree, halted: Bool[Array, ""] | None
    ) -> tuple[Pytree, Pytree]:
        """Parameters and optimiser after a gradient step; an actor that has halted stays, and its optimiser too."""
        if halted is None:
            change, after = self.optimiser.update(gradient, opt_state, params)
            return optax.apply_updates(params, change), after
        own = of_actor(params)
        parts = zip(eqx.partition(gradient, own), opt_state, eqx.partition(params, own), strict=True)
        actors, others = (self.optimiser.update(*part) for part in parts)
        still = jax.tree.map(jnp.zeros_like, actors[0]), opt_state[0]
        actors = jax.tree.map(lambda new, old: jnp.where(halted, old, new), actors, still)
        return optax.apply_updates(params, eqx.combine(actors[0], others[0])), (actors[1], others[1])

    def gradient(
        self,
        params: Pytree,
        structures: Int[Array, "N F"],
        batch: Batch,
        index: Int[Array, "N B"],
        *,
        more: Pytree = None,
        telling: bool = False,
        key: PRNGKey,
    ) -> tuple[Pytree, Float[Array, "*two"]]:
        """The gradient of the mean over tasks of the loss on their samples; task by task, to stay in the cache.

        With what there is `more` of it. Also how far the policy is from the one that acted; and the loss, if that is
        to be told.
        """

        def add(total: tuple[Pytree, Array], task: tuple[Int[Array, " F"], Batch, Int[Array, " B"], PRNGKey]):
            structure, samples, index, key = task
            minibatch = self.normalised(jax.tree.map(lambda leaf: leaf[index], samples))
            found = self.in_pieces(params, structure, minibatch, telling=telling, key=key)
            return jax.tree.map(jnp.add, total, found), None

        zero = jax.tree.map(jnp.zeros_like, params), jnp.zeros(2) if telling else jnp.float32(0)
        keys = jax.random.split(key, len(structures))
        (total, far), _ = jax.lax.scan(add, zero, (structures, batch, index, keys))
        flat, restore = ravel_pytree((total, far))
        mean = flat / len(structures)
        if more is not None:
            mean = mean + ravel_pytree((more, jnp.zeros_like(far)))[0]
        return restore(self.share.reduce(jax.lax.pmean, mean))

    def normalised(self, minibatch: Batch) -> Batch:
        """With advantages of mean 0 and deviation 1, if that is asked for."""
        if not self.config.normalise_advantages:
            return minibatch
        advantage = minibatch.advantage
        return replace(minibatch, advantage=(advantage - advantage.mean()) / (advantage.std() + 1e-8))

    def in_pieces(
        self, params: Pytree, structure: Int[Array, " F"], minibatch: Batch, *, telling: bool = False, key: PRNGKey
    ) -> tuple[Pytree, Float[Array, "*two"]]:
        """The gradient of the loss on samples of one task; of many of them, as the mean over equal pieces."""
        gradient = jax.grad(self.told_loss if telling else self.loss, has_aux=True)
        count = piece_count(len(minibatch.log_prob))
        if count == 1:
            return gradient(params, structure, minibatch, key=key)

        def add(total: Pytree, piece: tuple[Batch, PRNGKey]) -> tuple[Pytree, None]:
            found = gradient(params, structure, piece[0], key=piece[1])
            return jax.tree.map(lambda one, more: one + more / count, total, found), None

        pieces = jax.tree.map(lambda leaf: leaf.reshape(count, -1, *leaf.shape[1:]), minibatch)
        zero = jax.tree.map(jnp.zeros_like, params), jnp.zeros(2) if telling else jnp.float32(0)
        return jax.lax.scan(add, zero, (pieces, jax.random.split(key, count)))[0]

    def loss(
        self, params: Pytree, structure: Int[Array, " F"], batch: Batch, *, key: PRNGKey
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Surrogate + value loss - entropy bonus on samples of one task; and the mean of log(old / new)."""
        config = self.config
        output = self.network(self.network.pick(params, structure), self.env.parts(batch.observation))
        says = output.distribution
        log_prob = says.log_prob(batch.action)
        policy = losses.surrogate(log_prob, batch.log_prob, batch.advantage, clip=config.clip)
        clip = config.clip if config.clip_value else None
        value = losses.value_loss(output.worth(key=key), batch.value, batch.target, clip=clip)
        whole = policy + config.value_weight * value - config.entropy_weight * says.entropy()
        return whole, (batch.log_prob - log_prob).mean()

    def told_loss(
        self, params: Pytree, structure: Int[Array, " F"], batch: Batch, *, key: PRNGKey
    ) -> tuple[Float[Array, ""], Float[Array, "2"]]:
        """The same, with the loss beside what is told of it."""
        whole, far = self.loss(params, structure, batch, key=key)
        return whole, jnp.stack([far, whole])


def piece_count(samples: int) -> int:
    """Equal pieces that stay in the cache; one, if samples are few or cannot be divided so."""
    counts = (count for count in range(1, samples // FEWEST + 1) if samples % count == 0 and samples // count <= MOST)
    return next(counts, 1)


def pull_of(anchor: Anchor, params: Pytree) -> Pytree:
    """The gradient of what an anchor adds to the loss."""
    return jax.tree.map(lambda weight, now, then: weight * (now - then), anchor.weights, params, anchor.params)


def penalty_of(anchor: Anchor, params: Pytree) -> Float[Array, ""]:
    """What an anchor adds to the loss: ½ Σᵢ wᵢ (θᵢ - θ*ᵢ)²."""

    def one(weight: Array, now: Array, then: Array) -> Array:
        return 0.5 * (weight * (now - then) ** 2).sum()

    return jnp.stack(jax.tree.leaves(jax.tree.map(one, anchor.weights, params, anchor.params))).sum()


def norms_of(*trees: Pytree) -> Float[Array, " n"]:
    """The norm of each, as of one vector."""
    return jnp.stack([jnp.linalg.norm(ravel_pytree(one)[0]) for one in trees])


def experience_of(data: Rollout) -> Experience:
    """What happened in a rollout."""
    outcome = data.outcome
    transitions = Transition(data.observation, data.action, outcome.reward, outcome.terminated, outcome.truncated)
    return Experience(transitions, data.reached, data.said)


def totals_of(data: Rollout) -> dict[str, Array]:
    """Sums over the episodes that ended in one task's rollout, and over its steps; of one type, for one exchange."""
    ended = data.ended
    met = met_so_far(data.outcome.success, ended)
    return {
        "returns": jnp.where(ended, data.episode_return, 0.0).sum(),
        "successes": (ended & met).sum(dtype=jnp.float32),
        "episodes": ended.sum(dtype=jnp.float32),
        "surprise": -data.log_prob.sum(),
        "steps": jnp.float32(ended.size),
    }


def met_so_far(success: Bool[Array, "T E"], ended: Bool[Array, "T E"]) -> Bool[Array, "T E"]:
    """Whether the goal was met in this or an earlier step of the same episode, as far as a rollout tells."""

    def step(before: Bool[Array, " E"], now: tuple[Array, Array]) -> tuple[Array, Array]:
        met = before | now[0]
        return met & ~now[1], met

    return jax.lax.scan(step, jnp.zeros_like(success[0]), (success, ended))[1]


def progress_of(totals: Mapping[str, Array]) -> Progress:
    """Means; NaN where no episode ended. The mean of -log π(a|s) is an estimate of the entropy."""
    count = totals["episodes"]
    return Progress(
        episode_return=totals["returns"] / count,
        success=totals["successes"] / count,
        episodes=count.astype(jnp.int32),
        entropy=totals["surprise"] / totals["steps"],
    )
