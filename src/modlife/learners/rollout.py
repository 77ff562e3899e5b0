"""Policies at work in environments: collecting experience to learn from, and evaluating."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from modlife.domains.env import Environment, Outcome, PRNGKey, step_batch
from modlife.policies import distributions
from modlife.policies.acting import Rule
from modlife.policies.modular import AnyOutput, Network
from modlife.types import Pytree

FINAL_VALUES = 0x7A1E
"""Sets the keys of actions by which a state is valued apart from those that are taken."""

ACTOR = Rule("actor")
"""How experience is collected."""


class Rollout(eqx.Module):
    """What a batch of environments showed: in one step, [environment, ...], or over time, [time, environment, ...]."""

    observation: Pytree
    action: Int[Array, "*T E"] | Float[Array, "*T E A"]
    log_prob: Float[Array, "*T E"]
    value: Float[Array, "*T E"]
    final_value: Float[Array, "*T E"]
    """Value of the state in which a time limit cut the episode off, before the restart; 0 elsewhere."""
    reached: Pytree
    """What is seen where the action led to, before any restart; None where nobody asked for it."""
    outcome: Outcome
    episode_return: Float[Array, "*T E"]
    """Sum of rewards of the episode up to and including this step."""
    said: Float[Array, "*T E n"] | None = None
    """The numbers of the policy's distribution, and the value; None where nobody asked for it."""

    @property
    def ended(self) -> Bool[Array, "*T E"]:
        """Steps that were the last of their episode."""
        return self.outcome.terminated | self.outcome.truncated


class Actors(eqx.Module):
    """Environments in the middle of their episodes; axis [environment]."""

    states: Pytree
    returns: Float[Array, " E"]
    """Rewards so far in each environment's episode."""


def start(env: Environment, task: Int[Array, " F"], *, count: int, key: PRNGKey) -> Actors:
    """Environments of one task, at their first states."""
    states = jax.vmap(lambda key: env.reset(task, key=key))(jax.random.split(key, count))
    return Actors(states, jnp.zeros(count))


@dataclass(frozen=True)
class Asked:
    """What a rollout should tell besides what every learner needs."""

    final_values: bool = False
    """The values of states that a time limit cut off."""
    reached: bool = False
    """What is seen before restarts."""
    said: bool = False
    """All that the policy says."""


def collect(
    env: Environment, network: Network, policy: Pytree, actors: Actors, *, steps: int, asked: Asked, key: PRNGKey
) -> tuple[Actors, Rollout, Float[Array, " E"]]:
    """Acts for some steps, by sampling; also returns the value of the states reached at the end."""
    key_act, key_step = jax.random.split(key)
    noise = distributions.noise(env.graph.actions, (steps, actors.returns.shape[0]), key=key_act)
    observe = jax.vmap(env.observe)

    def value(states: Pytree, key: PRNGKey) -> Float[Array, " E"]:
        return worth(network(policy, env.parts(observe(states))), key)

    def act(actors: Actors, random: tuple[Float[Array, "E ..."], PRNGKey]) -> tuple[Actors, Rollout]:
        observation = observe(actors.states)
        output = network(policy, env.parts(observation))
        policy_says = ACTOR(output)
        action = policy_says.sample(random[0])
        stepped = step_batch(env, actors.states, action, key=random[1])
        outcome = stepped.outcomes
        returns = actors.returns + outcome.reward
        here, final = worth(output, random[1]), jnp.zeros_like(returns)
        if asked.final_values:  # computed only if an episode was cut off
            cut = outcome.truncated
            final = jax.lax.cond(
                cut.any(), lambda: jnp.where(cut, value(stepped.reached, random[1]), 0.0), lambda: final
            )
        seen = observe(stepped.reached) if asked.reached else None
        log_prob = policy_says.log_prob(action)
        says = jnp.concatenate([policy_says.numbers, here[None]]).T if asked.said else None
        step = Rollout(observation, action, log_prob, here, final, seen, outcome, returns, says)
        return Actors(stepped.states, jnp.where(step.ended, 0.0, returns)), step

    actors, rollout = jax.lax.scan(act, actors, (noise, jax.random.split(key_step, steps)))
    return actors, rollout, value(actors.states, key)


def worth(output: AnyOutput, key: PRNGKey) -> Float[Array, " E"]:
    """What states are worth, by all critics."""
    values = output.worth(key=jax.random.fold_in(key, FINAL_VALUES))
    return values[0] if len(values) == 1 else values.mean(axis=0)


class Episodes(eqx.Module):
    """How episodes went; axis [episode]."""

    returns: Float[Array, "*batch"]
    success: Bool[Array, "*batch"]
    length: Int[Array, "*batch"]


class Playing(eqx.Module):
    """Episodes on their way; axis [episode]."""

    states: Pytree
    alive: Bool[Array, "*batch"]
    sofar: Episodes


def begin_episodes(env: Environment, task: Int[Array, " F"], *, episodes: int, key: PRNGKey) -> tuple[Playing, Array]:
    """Episodes of one task at their first states, each with a layout of its own; and keys for all time steps."""
    key_start, key_act = jax.random.split(key)
    states, none = start(env, task, count=episodes, key=key_start).states, jnp.zeros(episodes, bool)
    begin = Playing(states, ~none, Episodes(jnp.zeros(episodes), none, jnp.zeros(episodes, jnp.int32)))
    return begin, jax.random.split(key_act, env.horizon)


def play(env: Environment, network: Network, policy: Pytree, playing: Playing, *, rule: Rule, keys: Array) -> Playing:
    """Some steps of all episodes, one for each key; an episode that has ended stays as it was."""
    episodes = playing.alive.shape[0]

    def act(now: Playing, key: PRNGKey) -> tuple[Playing, None]:
        policy_says = rule(network(policy, env.parts(jax.vmap(env.observe)(now.states))))
        action = policy_says.sample(distributions.noise(env.graph.actions, (episodes,), key=key))
        states, outcome = jax.vmap(env.step)(now.states, action)
        sofar = Episodes(
            now.sofar.returns + jnp.where(now.alive, outcome.reward, 0.0),
            now.sofar.success | (now.alive & outcome.success),
            now.sofar.length + now.alive.astype(jnp.int32),
        )
        return Playing(states, now.alive & ~(outcome.terminated | outcome.truncated), sofar), None

    return jax.lax.scan(act, playing, keys)[0]
