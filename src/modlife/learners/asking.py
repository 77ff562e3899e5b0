"""What a policy says of replay: the numbers that others are taught by."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float16, UInt32

from modlife.domains.env import Environment, Part
from modlife.learners.replay import Packing, Replay, Transition
from modlife.policies.modular import AnyOutput
from modlife.types import Pytree

AT_ONCE = 512
"""Transitions of which a policy is asked at once."""

What = Callable[[AnyOutput, Transition], Float[Array, "n B"]]
Says = Callable[[Any, Mapping[str, Part]], AnyOutput]
"""What policies say of a batch: all of a network that is needed here."""


def numbers(output: AnyOutput, taken: Transition) -> Float[Array, "n B"]:
    """The numbers of the actor's distribution."""
    return output.distribution.numbers


def numbers_and_values(output: AnyOutput, taken: Transition) -> Float[Array, "n B"]:
    """The same, and what critics say: of all actions, of the one taken, or of the state."""
    return jnp.concatenate([output.distribution.numbers, output.valued(taken.action)])


def said(
    env: Environment, network: Says, policy: Pytree, replay: Replay, *, what: What
) -> Float16[np.ndarray, "time E n"]:
    """What a policy of a network says of every transition."""
    rows = replay.rows[: replay.times].reshape(-1, replay.rows.shape[-1])
    padded = np.resize(rows, (-(-len(rows) // AT_ONCE) * AT_ONCE, rows.shape[1]))
    found = np.asarray(ask(env, network, what, policy, padded))[: len(rows)]
    return found.reshape(replay.times, -1, found.shape[1])


@partial(jax.jit, static_argnums=(0, 1, 2))
def ask(
    env: Environment, network: Says, what: What, policy: Pytree, rows: UInt32[Array, "B W"]
) -> Float16[Array, "B n"]:
    """What a policy says of packed transitions, whose number is a multiple of `AT_ONCE`."""

    def some(rows: UInt32[Array, "b W"]) -> Float16[Array, "b n"]:
        taken = Packing.of(env).unpack(rows)
        return what(network(policy, env.parts(taken.observation)), taken).T.astype(jnp.float16)

    return jax.lax.map(some, rows.reshape(-1, AT_ONCE, rows.shape[1])).reshape(len(rows), -1)
