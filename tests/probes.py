"""Probe tasks: tiny environments in which the right values and actions are known."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from modlife.domains import env
from modlife.domains.env import Outcome, PRNGKey
from modlife.domains.graph import Discrete, Factor, Part, ProblemGraph
from modlife.learners.rollout import Episodes, begin_episodes, play
from modlife.policies.acting import Rule
from modlife.policies.layers import Head, host_generator
from modlife.policies.modular import Output, dense
from modlife.types import Pytree


class ProbeState(eqx.Module):
    sign: Float[Array, ""]
    time: Int[Array, ""]


@dataclass(frozen=True)
class Probe:
    """An episode of `length` steps; what is seen and what is paid differs."""

    length: int = 1
    limited: bool = False
    """The end is a time limit, not the task's own."""

    @property
    def graph(self) -> ProblemGraph:
        factor = Factor("only", ("one",), sees=("number",))
        return ProblemGraph("probe", (factor,), (Part("number", (1,)),), Discrete(("left", "right")))

    @property
    def horizon(self) -> int:
        return self.length

    def reset(self, task: Int[Array, " F"], *, key: PRNGKey) -> ProbeState:
        return ProbeState(jax.random.rademacher(key, (), jnp.float32), jnp.int32(0))

    def restart(self, state: ProbeState, *, key: PRNGKey) -> ProbeState:
        return self.reset(jnp.zeros(1, int), key=key)

    def step(self, state: ProbeState, action: Int[Array, ""]) -> tuple[ProbeState, Outcome]:
        after = ProbeState(state.sign, state.time + 1)
        end = after.time >= self.length
        none = jnp.zeros_like(end)
        reward = self.reward(state, action, end)
        return after, Outcome(reward, none if self.limited else end, end if self.limited else none, end & (reward > 0))

    def reward(self, state: ProbeState, action: Int[Array, ""], end: Array) -> Float[Array, ""]:
        return jnp.float32(1)

    def observe(self, state: ProbeState) -> Float[Array, ""]:
        return jnp.float32(0)

    def parts(self, observations: Float[Array, " B"]) -> dict[str, env.Part]:
        return {"number": observations[None]}


@dataclass(frozen=True)
class ConstantReward(Probe):
    """Pays 1: the value is 1."""


@dataclass(frozen=True)
class SeenReward(Probe):
    """Pays the number that is seen: the value is that number."""

    def observe(self, state: ProbeState) -> Float[Array, ""]:
        return state.sign

    def reward(self, state: ProbeState, action: Int[Array, ""], end: Array) -> Float[Array, ""]:
        return state.sign


@dataclass(frozen=True)
class DelayedReward(Probe):
    """Pays 1 at the end only; sees the time: the value is discounted once per step to come."""

    length: int = 3

    def observe(self, state: ProbeState) -> Float[Array, ""]:
        return state.time.astype(jnp.float32)

    def reward(self, state: ProbeState, action: Int[Array, ""], end: Array) -> Float[Array, ""]:
        return end.astype(jnp.float32)


@dataclass(frozen=True)
class ActionReward(Probe):
    """Pays 1 for going right."""

    def reward(self, state: ProbeState, action: Int[Array, ""], end: Array) -> Float[Array, ""]:
        return action.astype(jnp.float32)


@dataclass(frozen=True)
class SeenActionReward(SeenReward):
    """Pays 1 for going right where a positive number is seen, left where a negative one is."""

    def reward(self, state: ProbeState, action: Int[Array, ""], end: Array) -> Float[Array, ""]:
        return ((action == 1) == (state.sign > 0)).astype(jnp.float32)


@dataclass(frozen=True)
class EndlessReward(DelayedReward):
    """Pays 1 in every step, cut off by a time limit."""

    length: int = 4
    limited: bool = True

    def reward(self, state: ProbeState, action: Int[Array, ""], end: Array) -> Float[Array, ""]:
        return jnp.float32(1)


@dataclass(frozen=True)
class TwoHeads:
    """A network for probes: an actor and a critic on the number that is seen."""

    def init(self, *, key: PRNGKey) -> tuple[Head, Head]:
        rng = host_generator(key)
        return Head.init(1, 2, rng=rng), Head.init(1, 1, rng=rng)

    def pick(self, params: tuple[Head, Head], structure: Int[Array, " F"]) -> tuple[Head, Head]:
        return params

    def __call__(self, policy: tuple[Head, Head], parts: Mapping[str, env.Part]) -> Output:
        actor, critic = policy
        number = dense(parts["number"])
        return Output(actor(number), critic(number))


def evaluate(
    env: Any, network: Any, policy: Pytree, task: Int[Array, " F"], *, episodes: int, rule: Rule, key: PRNGKey
) -> Episodes:
    """Whole episodes of one task, all at once."""
    begin, keys = begin_episodes(env, task, episodes=episodes, key=key)
    return play(env, network, policy, begin, rule=rule, keys=keys).sofar


@contextlib.contextmanager
def compilations() -> Iterator[list[float]]:
    """A list that grows with every program that is compiled, however small."""
    compiled: list[float] = []

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        jax.jit(lambda x: x + 1.5)(np.ones(3, np.float32))
        assert compiled  # the listener hears
        yield compiled
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
