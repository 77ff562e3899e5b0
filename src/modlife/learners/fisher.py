"""How much a policy depends on each of its parameters: the diagonal of the Fisher information.

    Fᵢ = E_s E_{a ~ π(·|s)} (∂ log π(a|s) / ∂θᵢ)²

The mean over states of squares of each sample's own gradient (the square of a mean gradient would be near zero), and
the exact expectation over actions: with few actions a sum over them; with a Gaussian of fixed spread
Σⱼ (∂μⱼ/∂θᵢ)² / σⱼ². What only the critic uses gets zero.

The paper's released code has another number in its place, which is kept to be compared with:

    Fᵢ = (∂/∂θᵢ E_s KL(π_before(·|s) || π(·|s)))²        before: the policy before the last update; where one was
                                                         compressed, the one that it was compressed from
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float16, Int, UInt32

from modlife.domains.env import Environment
from modlife.learners.replay import Packing, Replay
from modlife.pauses import pause
from modlife.policies.distributions import Categorical, Distribution
from modlife.policies.modular import Network
from modlife.types import Pytree

AT_ONCE = 16
"""Samples whose gradients are in memory at once."""
CALL = 512
"""Samples in one compiled call."""


def fisher(env: Environment, network: Network, params: Pytree, structure: Int[Array, " F"], replay: Replay) -> Pytree:
    """The information of a task's policy, over all states of a replay."""
    return over(lambda rows, counts: some(env, network, params, structure, rows, counts), rows_of(replay))


def released_fisher(
    env: Environment, network: Network, params: Pytree, before: Pytree, structure: Int[Array, " F"], replay: Replay
) -> Pytree:
    """The square of the gradient of the mean divergence from the policy before the last update."""
    both = params, before
    mean = over(lambda rows, counts: divergence_gradient(env, network, both, structure, rows, counts), rows_of(replay))
    return jax.tree.map(jnp.square, mean)


def released_compress_fisher(
    env: Environment, network: Network, params: Pytree, structure: Int[Array, " F"], replay: Replay
) -> Pytree:
    """The square of the gradient of the mean divergence from what the replay says that was said."""
    mean = over(
        lambda rows, said, counts: taught_gradient(env, network, params, structure, (rows, said), counts),
        rows_of(replay),
        replay.taught[: replay.times].reshape(-1, replay.taught.shape[-1]),
    )
    return jax.tree.map(jnp.square, mean)


def normalised(information: Pytree) -> Pytree:
    """Divided by its mean over all parameters that have any."""
    leaves = jax.tree.leaves(information)
    count = sum((leaf > 0).sum() for leaf in leaves)
    mean = sum(leaf.sum() for leaf in leaves) / jnp.maximum(count, 1)
    return jax.tree.map(lambda leaf: leaf / jnp.where(mean > 0, mean, 1.0), information)


def rows_of(replay: Replay) -> UInt32[np.ndarray, "n W"]:
    """All states of a replay."""
    return replay.rows[: replay.times].reshape(-1, replay.rows.shape[-1])


def over(found: Callable[..., Pytree], *columns: np.ndarray) -> Pytree:
    """The sum over all states of what is found in some, each with its weight; in calls that are short."""
    count = len(columns[0])
    whole = -(-count // CALL) * CALL
    padded = [np.resize(column, (whole, column.shape[1])) for column in columns]
    padded.append((np.arange(whole) < count).astype(np.float32) / count)
    total = None
    for start in range(0, whole, CALL):
        more = found(*(jnp.asarray(column[start : start + CALL]) for column in padded))
        total = jax.block_until_ready(more if total is None else jax.tree.map(jnp.add, total, more))
        pause()
    return total


@partial(jax.jit, static_argnums=(0, 1))
def divergence_gradient(
    env: Environment,
    network: Network,
    both: tuple[Pytree, Pytree],
    structure: Int[Array, " F"],
    rows: UInt32[Array, "B W"],
    counts: Float[Array, " B"],
) -> Pytree:
    """The gradient, by the parameters now, of the weighted sum of divergences from those before."""
    now, before = both
    parts = env.parts(Packing.of(env).unpack(rows).observation)
    then = network(network.pick(before, structure), parts).distribution.numbers

    def far(params: Pytree) -> Float[Array, ""]:
        return (counts * network(network.pick(params, structure), parts).distribution.divergence(then)).sum()

    return jax.grad(far)(now)


@partial(jax.jit, static_argnums=(0, 1))
def taught_gradient(
    env: Environment,
    network: Network,
    params: Pytree,
    structure: Int[Array, " F"],
    samples: tuple[UInt32[Array, "B W"], Float16[Array, "B A"]],
    counts: Float[Array, " B"],
) -> Pytree:
    """The gradient of the weighted sum of divergences from what was said."""
    rows, said = samples
    parts, then = env.parts(Packing.of(env).unpack(rows).observation), said.T.astype(jnp.float32)

    def far(params: Pytree) -> Float[Array, ""]:
        return (counts * network(network.pick(params, structure), parts).distribution.divergence(then)).sum()

    return jax.grad(far)(params)


@partial(jax.jit, static_argnums=(0, 1))
def some(
    env: Environment,
    network: Network,
    params: Pytree,
    structure: Int[Array, " F"],
    rows: UInt32[Array, "B W"],
    counts: Float[Array, " B"],
) -> Pytree:
    """The weighted sum over some samples."""
    packing = Packing.of(env)

    def says(params: Pytree, row: UInt32[Array, " W"]) -> Distribution:
        return network(network.pick(params, structure), env.parts(packing.unpack(row[None]).observation)).distribution

    def one(row: UInt32[Array, " W"], count: Float[Array, ""]) -> Pytree:
        roots = jnp.sqrt(count * weights_of(says(params, row)))
        jacobian = jax.jacrev(lambda params: roots * says(params, row).numbers[:, 0])(params)
        return jax.tree.map(lambda part: (part**2).sum(axis=0), jacobian)

    def add(total: Pytree, piece: tuple[Array, Array]) -> tuple[Pytree, None]:
        found = jax.vmap(one)(*piece)
        return jax.tree.map(lambda sums, more: sums + more.sum(axis=0), total, found), None

    pieces = rows.reshape(-1, AT_ONCE, rows.shape[1]), counts.reshape(-1, AT_ONCE)
    return jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params), pieces)[0]


def weights_of(says: Distribution) -> Float[Array, " A"]:
    """How much the square of the derivative of each of a distribution's numbers counts, of a single sample."""
    return jnp.exp(says.log_probs[:, 0]) if isinstance(says, Categorical) else jnp.exp(-2 * says.log_std)
