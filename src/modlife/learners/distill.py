"""Distilling: one network learns to say what the policies of many tasks said.

    L = s E_new KL(π_then || π) + (1 - s) E_old KL(π_then || π)        s: `new_share`; 1 if there are no old tasks

Each gradient step takes a batch of the new task and, if there are any, as large a one of all old tasks together,
evenly; samples carry the numbers that the policy had said of them which learnt the task. The critic is not taught.
Parameters may be drawn back to an anchor.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Float16, Int, UInt32

from modlife.arrays import ints, zeros
from modlife.domains.env import Environment, PRNGKey
from modlife.learners.config import DistillConfig
from modlife.learners.losses import shuffle
from modlife.learners.offline import PIECE
from modlife.learners.ppo import Anchor, norms_of, penalty_of, pull_of
from modlife.learners.replay import AnyReplay, Packing
from modlife.learners.replay_table import room_for
from modlife.policies.bank import Chain
from modlife.policies.modular import Monolithic
from modlife.types import Pytree, Structure


class Samples(eqx.Module):
    """Transitions of some tasks, as many of each; axis [sample] goes through one task after the other."""

    rows: UInt32[Array, "sample W"]
    said: Float16[Array, "sample A"]
    structures: Int[Array, "task F"]

    @property
    def each(self) -> int:
        """Samples of a task."""
        return self.rows.shape[0] // self.structures.shape[0]

    def at(self, index: Int[Array, " B"]) -> "Samples":
        """Some samples, each as if of a task of its own."""
        return Samples(self.rows[index], self.said[index], self.structures[index // self.each])


class Student(eqx.Module):
    """A network between two gradient steps."""

    params: Chain
    opt_state: Pytree
    loss: Float[Array, "2"]
    """Sums over the steps of this epoch of the divergences of the new task and of old ones."""
    anchor: Anchor | None = None


@dataclass(frozen=True)
class Distiller:
    """How to distil, from replay of so many transitions of the new task."""

    env: Environment
    network: Monolithic
    config: DistillConfig
    rows: int

    @property
    def epoch_steps(self) -> int:
        """Gradient steps in an epoch."""
        return -(-self.rows // self.config.batch)

    @property
    def steps(self) -> int:
        """Gradient steps in all."""
        return self.config.epochs * self.epoch_steps

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """Adam, after clipping where that is asked for, on all parameters as one vector."""
        adam, norm = optax.adam(self.config.learning_rate), self.config.max_grad_norm
        return optax.flatten(adam if norm is None else optax.chain(optax.clip_by_global_norm(norm), adam))

    def init(self, params: Chain, anchor: Anchor | None = None) -> Student:
        """A student with these parameters."""
        return Student(params, self.optimiser.init(params), zeros(2), anchor)

    def run(
        self, structures: Sequence[Structure], replays: Sequence[AnyReplay], state: Student, *, done: int, key: PRNGKey
    ) -> Iterator[tuple[int, Student, Mapping[str, float] | None]]:
        """The gradient steps from number `done` on, in pieces of a second or two; the last task is the new one."""
        *old, new = (of_replay(*one) for one in zip(structures, replays, strict=True))
        pool = pooled(old) if old else None
        number, piece = done, max(1, PIECE // (2 * self.config.batch))
        while number < self.steps:
            epoch, first = divmod(number, self.epoch_steps)
            count = min(piece, self.epoch_steps - first)
            key_epoch = jax.random.fold_in(key, epoch)
            span = np.int32(first), np.int32(count)
            state = jax.block_until_ready(train(self, state, (new, pool), np.int32(len(old)), *span, key=key_epoch))
            number += count
            if first + count < self.epoch_steps:
                yield number, state, None
            else:
                names, sums = ("new", "old") if old else ("new",), np.asarray(state.loss)
                means = {name: float(one) / self.epoch_steps for name, one in zip(names, sums, strict=False)}
                state = replace(state, loss=zeros(2), anchor=state.anchor and state.anchor.over(self.epoch_steps))
                yield number, state, means


def of_replay(structure: Structure, replay: AnyReplay) -> Samples:
    """All transitions of a task's replay."""
    whole = replay.read()
    flat = [part.reshape(-1, part.shape[-1]) for part in (whole.rows[: whole.times], whole.taught)]
    return Samples(jax.device_put(flat[0]), jax.device_put(flat[1]), ints([structure]))


def pooled(tasks: Sequence[Samples]) -> Samples:
    """Samples of some tasks in one table, whose size changes rarely: it has room for more, which nobody reads."""
    filled = [tasks[n % len(tasks)] for n in range(room_for(len(tasks)))]
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), *filled)


@partial(jax.jit, static_argnums=0)
def train(
    distiller: Distiller,
    state: Student,
    data: tuple[Samples, Samples | None],
    old_count: Int[Array, ""],
    first: Int[Array, ""],
    count: Int[Array, ""],
    *,
    key: PRNGKey,
) -> Student:
    """Some gradient steps of an epoch, from number `first` on, with a new task and old ones; the key is the epoch's."""
    (new, old), batch = data, distiller.config.batch
    key_order, key_old = jax.random.split(key)
    order = shuffle(new.rows.shape[0], key=key_order)
    order = jnp.concatenate([order, jnp.resize(order, (batch,))])
    share = 1.0 if old is None else distiller.config.new_share

    def body(step: Array, state: Student) -> Student:
        here = jax.lax.dynamic_slice(order, (step * batch,), (batch,))
        sample = new.at(here)
        if old is not None:
            there = jax.random.randint(jax.random.fold_in(key_old, step), (batch,), 0, old_count * old.each)
            sample = jax.tree.map(lambda *both: jnp.concatenate(both), sample, old.at(there))

        def loss(params: Chain) -> tuple[Array, Array]:
            far = divergences(distiller, params, sample, news=batch)
            parts = jnp.stack([far[:batch].mean(), far[batch:].mean() if old is not None else jnp.float32(0)])
            return share * parts[0] + (1 - share) * parts[1], parts

        gradient, parts = jax.grad(loss, has_aux=True)(state.params)
        anchor = state.anchor
        if anchor is not None:
            pull = pull_of(anchor, state.params)
            terms = jnp.stack([share * parts[0] + (1 - share) * parts[1], penalty_of(anchor, state.params)])
            more = jnp.append(norms_of(gradient, pull), terms)
            anchor = replace(anchor, means=jnp.where(step == 0, 0.0, anchor.means) + more)
            gradient = jax.tree.map(jnp.add, gradient, pull)
        change, opt_state = distiller.optimiser.update(gradient, state.opt_state, state.params)
        params: Chain = optax.apply_updates(state.params, change)  # pyright: ignore[reportAssignmentType]  # Optax says less
        return Student(params, opt_state, state.loss + parts, anchor)

    return jax.lax.fori_loop(first, first + count, body, state)


def divergences(distiller: Distiller, params: Chain, samples: Samples, *, news: int) -> Float[Array, " B"]:
    """How far the network is from what was said, sample by sample, each of a task of its own; new ones come first."""
    parts = distiller.env.parts(Packing.of(distiller.env).unpack(samples.rows).observation)
    output = distiller.network((params, distiller.network.described(samples.structures)), parts)
    now, then = output.distribution, samples.said.T.astype(jnp.float32)
    forward = now.divergence(then)
    if distiller.config.clone_old == "forward":
        return forward
    return jnp.where(jnp.arange(len(forward)) < news, forward, now.other(then).divergence(now.numbers))
