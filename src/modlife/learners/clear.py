"""What CLEAR adds to PPO: in every gradient step, pieces of old tasks' replay, learnt from off-policy and cloned.

    L = L_PPO(new) + η E_old [ -A log π(a|s) + w_V (v - V)² - w_H H + w_π KL(μ || π) + w_C (V_then - V)² ]

A and v are V-trace's, of pieces in the order of time (`losses.vtrace`); μ and V_then are what the policy and the critic
said when the step was taken. Rolnick et al. 2019. Pieces are spread evenly over the old tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float16, Int, UInt32

from modlife.domains.env import PRNGKey
from modlife.learners import losses
from modlife.learners.config import ClearConfig
from modlife.learners.ppo import PPO, Rehearsal
from modlife.learners.replay import AnyReplay, Packing, Transition
from modlife.learners.replay_table import ONE, room_for
from modlife.learners.sharding import ALL, Devices
from modlife.types import Pytree, Structure


@dataclass(frozen=True)
class Piece:
    """Unrolls of several tasks, while a program is being compiled; axes [time, unroll, ...]."""

    steps: Transition
    """One more than there are steps: the last is only seen."""
    said: Float[Array, "T U n"]
    """What the policy said of each step when it was taken."""
    structures: Int[Array, "U F"]


class Clear(Rehearsal):
    """The replay of old tasks; axis [task] may have room for more tasks than there are."""

    rows: UInt32[Array, "task time E W"]
    said: Float16[Array, "task step E n"]
    structures: Int[Array, "task F"]
    count: Int[Array, ""]
    """How many old tasks there are; with none, nothing is added."""
    config: ClearConfig = eqx.field(static=True)
    apart: bool = eqx.field(static=True, default=False)
    """Whether each piece is read by its task's own modules; else all by one network."""

    @staticmethod
    def of(
        config: ClearConfig,
        structures: Sequence[Structure],
        memory: Sequence[AnyReplay],
        devices: Devices = ONE,
        *,
        apart: bool = False,
    ) -> "Clear":
        """The replay of these tasks, all of one size, on every device."""
        whole = [replay.read() for replay in memory]
        filled = [n % len(whole) for n in range(room_for(len(whole)))]
        parts = {
            "rows": np.stack([whole[n].rows for n in filled]),
            "said": np.stack([whole[n].taught for n in filled]),
            "structures": np.array([structures[n] for n in filled], np.int32),
            "count": np.array(len(whole), np.int32),
        }
        return Clear(**{name: devices.place(part, ALL) for name, part in parts.items()}, config=config, apart=apart)

    def gradient(self, ppo: PPO, params: Pytree, number: Int[Array, ""], *, key: PRNGKey) -> Pytree:
        """The gradient of the loss on some pieces."""
        count = max(1, round(self.config.ratio * ppo.config.minibatch / ppo.devices / self.config.unroll))
        piece = self.draw(ppo, number, count, key=key)
        return jax.grad(lambda params: self.config.ratio * self.loss(ppo, params, piece))(params)

    def draw(self, ppo: PPO, number: Int[Array, ""], count: int, *, key: PRNGKey) -> Piece:
        """Pieces from the old tasks in turn, each from a random place; so is the task that comes first."""
        key_first, key_step = jax.random.split(key)
        key_time, key_env = jax.random.split(jax.random.fold_in(key_step, number))
        first = jax.random.randint(key_first, (), 0, self.count)
        tasks = (first + number * count + jnp.arange(count)) % self.count
        start = self.starts(count, key=key_time)
        env = jax.random.randint(key_env, (count,), 0, self.said.shape[2])
        times = start[None] + jnp.arange(self.config.unroll + 1)[:, None]
        rows = self.rows[tasks[None], times, env[None]]
        flat = Packing.of(ppo.env).unpack(rows.reshape(-1, rows.shape[-1]))
        steps = jax.tree.map(lambda leaf: leaf.reshape(*times.shape, *leaf.shape[1:]), flat)
        said = self.said[tasks[None], times[:-1], env[None]].astype(jnp.float32)
        return Piece(steps, said, self.structures[tasks])

    def starts(self, count: int, *, key: PRNGKey) -> Int[Array, " U"]:
        """Where pieces begin: anywhere; or, where replay is of pieces, where one of those does."""
        times, unroll = self.said.shape[1], self.config.unroll
        if self.config.keep == "reservoir":
            return jax.random.randint(key, (count,), 0, times // (unroll + 1)) * (unroll + 1)
        return jax.random.randint(key, (count,), 0, times - unroll + 1)

    def loss(self, ppo: PPO, params: Pytree, piece: Piece) -> Float[Array, ""]:
        """V-trace's policy gradient and value loss, the entropy bonus, and cloning; means over all steps of pieces."""
        if not self.apart:
            tasks = jnp.tile(piece.structures, (piece.said.shape[0] + 1, 1))
            return self.loss_of(ppo, ppo.network.pick(params, tasks), piece)

        def one(policy: Pytree, steps: Transition, said: Float[Array, "T n"]) -> Float[Array, ""]:
            alone = jax.tree.map(lambda leaf: leaf[:, None], steps)
            return self.loss_of(ppo, policy, Piece(alone, said[:, None], piece.structures[:1]))

        # Of each piece its own chain is differentiated by, and the bank once by all of them: a gradient of the whole
        # bank for every piece took twice as long.
        chains = jax.vmap(partial(ppo.network.pick, params))(piece.structures)
        return jax.vmap(one, in_axes=(0, 1, 1))(chains, piece.steps, piece.said).mean()

    def loss_of(self, ppo: PPO, policy: Pytree, piece: Piece) -> Float[Array, ""]:
        """The loss of a policy, on pieces that it speaks of all at once."""
        network, config = ppo.network, ppo.config
        length, count = piece.said.shape[:2]
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), piece.steps)
        output = network(policy, ppo.env.parts(flat.observation))
        steps = jax.tree.map(lambda leaf: leaf[: length * count], flat)
        says = output.distribution.other(output.distribution.numbers[:, : length * count])
        then = says.other(piece.said[..., :-1].reshape(length * count, -1).T)
        log_prob = says.log_prob(steps.action)
        assert output.value is not None
        values = output.value.reshape(length + 1, count)
        discount = jnp.where(steps.ended, 0.0, config.discount).reshape(length, count)
        clips = {"clip_step": self.config.clip_step, "clip_trace": self.config.clip_trace}
        target, advantage = jax.vmap(partial(losses.vtrace, **clips), in_axes=1, out_axes=1)(
            jax.lax.stop_gradient(log_prob - then.log_prob(steps.action)).reshape(length, count),
            steps.reward.reshape(length, count),
            discount,
            jax.lax.stop_gradient(values[:-1]),
            jax.lax.stop_gradient(values[1:]),
        )
        advantage = advantage.reshape(-1)
        if self.config.surrogate == "clipped":
            acted = then.log_prob(steps.action)
            policy = losses.surrogate(log_prob, acted, advantage, clip=config.clip)
        else:
            policy = -(advantage * log_prob).mean()
        value = ((values[:-1] - target) ** 2).mean()
        cloned = says.divergence(then.numbers) if self.config.clone == "distributions" else -log_prob
        kept = ((values[:-1] - piece.said[..., -1]) ** 2).mean()
        bonus = config.value_weight * value - config.entropy_weight * says.entropy()
        return policy + bonus + self.config.policy_weight * cloned.mean() + self.config.value_weight * kept
