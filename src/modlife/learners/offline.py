"""What learners from replay share: gradient steps over all tasks of a table, of which one task's modules move.

The gradient is taken by the current task's modules only, and the optimiser knows no others: all the rest of the bank
cannot change, not even through an optimiser's momentum.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from modlife.domains.env import PRNGKey
from modlife.errors import InputError
from modlife.learners.losses import shuffle
from modlife.learners.replay import Replay
from modlife.learners.replay_table import PLACED, Layout, Lesson, ReplayTable, Rows
from modlife.learners.sharding import ALL, THIRD
from modlife.policies.bank import Bank, Chain
from modlife.policies.modular import AnyOutput, Pattern
from modlife.types import Pytree

PIECE = 300_000
"""Samples, about, in one call of `train`: one to two seconds on one core."""
OLD = 0.65
"""Work on an old task, which shares some modules only, against that on the new one, of which all learn; about."""
PROBE = 256
"""Transitions, at most, by which a policy is judged."""
NOISE = 0x0153
"""Sets the keys of what a consolidator draws apart from those of the order of samples."""


class Data(NamedTuple):
    """What is learnt from: a table, and what a consolidator adds to its rows."""

    table: ReplayTable
    extra: Pytree
    target: Chain | None = None
    """The current task's modules as they follow, where a consolidator asks for such."""
    key: PRNGKey | None = None
    """For what it draws, likewise."""


class Learnt(eqx.Module):
    """A learner between two gradient steps."""

    own: Chain
    """The current task's modules."""
    opt_state: Pytree
    losses: Float[Array, " terms"]
    """Sums over the steps of this epoch of the terms of the loss, without their weights."""
    target: Chain | None = None
    """The modules that follow slowly, where a consolidator asks for such."""


@dataclass(frozen=True)
class Limits:
    """How much of old tasks may be lost, and what is done about it."""

    rounds: int = 0
    """Rounds of repair, at most; 0 if nobody looks."""
    drift: float = math.inf
    """Nats."""
    drop: float = math.inf
    """Return."""
    refuse: bool = False
    """Whether modules stay as they were where it could not be repaired."""


class Consolidator(ABC):
    """A way to fold what replay holds into the modules of one task: a weighted sum of named terms is minimised.

    A frozen, hashable value. What stands here takes all tasks in every step, keeps replay as it is, asks nothing of
    policies and never looks back; a subclass says what to minimise, and may do any of these otherwise.
    """

    layout: Layout
    """How the table lies."""
    config: Any
    """Has `epochs`, `batch` and `learning_rate`."""
    new_is_first = False
    """Whether the first task of a table is the one in hand, and has terms of its own (`Rows.is_new`)."""
    taught = 0
    """Numbers that it wants to know of a policy for each transition."""
    limits = Limits()
    """How much of old tasks may be lost, and what is done about it."""

    @property
    @abstractmethod
    def weights(self) -> Mapping[str, float]:
        """The terms of the loss, with their weights."""

    @abstractmethod
    def targets(self, own: Chain, rows: Rows, extra: Pytree) -> Pytree:
        """What the terms take as given, from rows of a task: nothing is differentiated through it."""

    @abstractmethod
    def terms(self, output: AnyOutput, rows: Rows, targets: Pytree) -> Float[Array, " terms"]:
        """The terms of the loss, each the mean over a batch, in the order of their weights."""

    @property
    def epoch_steps(self) -> int:
        """Gradient steps in an epoch: all rows once."""
        return -(-self.layout.times * self.layout.envs // self.config.batch)

    @property
    def steps(self) -> int:
        """Gradient steps in all."""
        return self.config.epochs * self.epoch_steps

    @property
    def follows(self) -> float | None:
        """How much of the way target modules follow in each step (`Rows.target`, `Rows.key`); None without such."""
        return None

    def learning_rate(self) -> optax.ScalarOrSchedule:
        """Adam's step size."""
        return self.config.learning_rate

    def init(self, own: Chain) -> Pytree:
        """A learner of these modules."""
        return begin(self, own)

    def modules(self, state: Pytree) -> Chain:
        """The modules as they are now."""
        return state.own

    def run(
        self, bank: Bank, lessons: Sequence[Lesson], state: Pytree, *, done: int, key: PRNGKey
    ) -> Iterator[tuple[int, Pytree, Mapping[str, float] | None]]:
        """All gradient steps from number `done` on, in pieces of one to two seconds at most.

        The last of the lessons is of the task in hand, the others are of tasks that share a module with it. Yields the
        steps done, the learner, and at the end of an epoch the means of the terms of its loss by name. How the steps
        are cut into pieces has no influence on what comes out.
        """
        table = self.layout.fill(bank, lessons)
        for opened in self.layout.with_features(table, lessons):
            table = opened
            yield done, state, None
        while done < self.steps:
            done, state, means = some_steps(self, state, table, None, number=done, most=self.steps, key=key)
            yield done, state, means

    @property
    def kept_times(self) -> int | None:
        """Time steps, at most, that it keeps of a task once that has been folded in; None for all."""
        return None

    def drifts(self, bank: Bank, lessons: Sequence[Lesson], *, rows: int) -> Float[np.ndarray, " n"]:
        """How far the policy of each task is from what it was taught, in so many rows; here not asked."""
        return np.zeros(len(lessons))

    def repaired(
        self, bank: Bank, lessons: Sequence[Lesson], state: Pytree, *, harmed: Sequence[int], number: int, key: PRNGKey
    ) -> Pytree:
        """The learner after some further steps for the sake of tasks that were harmed; here there are none."""
        return state

    def load(self, tasks: int) -> float:
        """How much work a gradient step is with so many tasks at hand, against one with the new task alone."""
        return 1 + OLD * (tasks - 1)

    def explored(self, replay: Replay, policy: Chain) -> Replay:
        """The replay of a task with what it wants to know of the policy that explored it; here nothing."""
        return replay

    def kept(self, replay: Replay, policy: Chain, *, key: PRNGKey) -> Replay:
        """What to keep of a task for later, when it has been folded in and this is its policy; here all."""
        return replay


def check_batch(consolidator: Consolidator) -> None:
    """Devices can share a batch."""
    count, batch = consolidator.layout.devices.count, consolidator.config.batch
    if batch % count:
        raise InputError(f"{count} devices cannot share a batch of {batch} evenly.")


def optimiser(consolidator: Consolidator) -> optax.GradientTransformation:
    """Adam on all parameters as one vector (which saves a kernel per array)."""
    return optax.flatten(optax.adam(consolidator.learning_rate()))


@partial(jax.jit, static_argnums=0)
def begin(consolidator: Consolidator, own: Chain) -> Learnt:
    """A learner of these modules."""
    target = None if consolidator.follows is None else own
    return Learnt(own, optimiser(consolidator).init(own), jnp.zeros(len(consolidator.weights)), target)


def some_steps(
    consolidator: Consolidator,
    learner: Learnt,
    table: ReplayTable,
    extra: Pytree,
    *,
    number: int,
    most: int,
    key: PRNGKey,
) -> tuple[int, Learnt, dict[str, float] | None]:
    """As many steps from `number` on as take up to two seconds: at most `most`, and not beyond the end of an epoch.

    Gives the number reached, the learner, and at the end of an epoch the means of the terms of its loss.
    """
    per_epoch = consolidator.epoch_steps
    epoch, first = divmod(number, per_epoch)
    samples = consolidator.config.batch * int(table.count)
    count = min(max(1, PIECE // samples), per_epoch - first, most)
    key_epoch = jax.random.fold_in(key, epoch)
    learner = train(consolidator, learner, table, extra, np.int32(first), np.int32(count), key=key_epoch)
    if first + count < per_epoch:
        return number + count, jax.block_until_ready(learner), None
    sums = np.asarray(learner.losses)
    means = {name: float(term) / per_epoch for name, term in zip(consolidator.weights, sums, strict=True)}
    return number + count, replace(learner, losses=jnp.zeros_like(learner.losses)), means


@partial(jax.jit, static_argnums=0)
def train(
    consolidator: Consolidator,
    learner: Learnt,
    table: ReplayTable,
    extra: Pytree,
    first: Int[Array, ""],
    count: Int[Array, ""],
    *,
    key: PRNGKey,
) -> Learnt:
    """Some gradient steps of an epoch, from number `first` on; the key is the epoch's."""
    share = partial(train_share, consolidator)
    placed = (ALL, (PLACED, THIRD), ALL, ALL, ALL)  # what a consolidator brings lies as rows do
    return consolidator.layout.devices.run(share, placed, ALL)(learner, (table, extra), first, count, key)


def train_share(
    consolidator: Consolidator,
    learner: Learnt,
    data: tuple[ReplayTable, Pytree],
    first: Array,
    count: Array,
    key: PRNGKey,
) -> Learnt:
    """One device's part of `train`."""
    (table, _), devices, times = data, consolidator.layout.devices, consolidator.layout.times
    batch, key = consolidator.config.batch // devices.count, devices.own_key(key)
    key_order, key_offset = jax.random.split(key)
    size = times * table.rows.shape[2]
    order = shuffle(size, key=key_order)
    order = jnp.concatenate([order, jnp.resize(order, (batch,))])
    offset = jax.random.randint(key_offset, table.times.shape, 0, size)
    tasks = table.count.astype(jnp.float32)
    branches = [partial(gradient, consolidator, pattern=pattern) for pattern in consolidator.layout.patterns]
    new = partial(gradient, consolidator, pattern=consolidator.layout.patterns[0], is_new=True)

    def index(step: Array, task: Array) -> Int[Array, " B"]:
        """Every task goes through its rows in the same random order, each from another place on."""
        drawn = jax.lax.dynamic_slice(order, ((step * batch + offset[task]) % size,), (batch,))
        share = table.times[task].astype(jnp.float32) / times
        return jnp.floor(drawn.astype(jnp.float32) * share).astype(jnp.int32)

    def body(step: Array, learner: Learnt) -> Learnt:
        def add(task: Array, total: tuple) -> tuple:
            # What a switch takes is in memory: inside other operations, each use would look the modules up again.
            frozen = table.bank.pick(table.structures[task])
            at = index(step, task)
            given = data_for(learner, *data, step, task, key=key)
            found = jax.lax.switch(table.patterns[task], branches, learner.own, frozen, given, task, at)
            return jax.tree.map(lambda one, more: one + table.weights[task] * more, total, found)

        total = (jax.tree.map(jnp.zeros_like, learner.own), jnp.zeros_like(learner.losses))
        if consolidator.new_is_first:
            place = jnp.int32(0)
            given = data_for(learner, *data, step, place, key=key)
            found = new(learner.own, learner.own, given, place, index(step, place))
            total = jax.tree.map(lambda part: table.weights[0] * part, found)
        total = jax.lax.fori_loop(int(consolidator.new_is_first), table.count, add, total)
        flat, restore = ravel_pytree(total)  # one exchange between devices instead of one per array
        gradients, terms = restore(devices.reduce(jax.lax.pmean, flat / tasks))
        change, opt_state = optimiser(consolidator).update(gradients, learner.opt_state, learner.own)
        own: Chain = optax.apply_updates(learner.own, change)  # pyright: ignore[reportAssignmentType]  # Optax says less
        return Learnt(own, opt_state, learner.losses + terms, followed(consolidator, learner.target, own))

    return jax.lax.fori_loop(first, first + count, body, learner)


def data_for(learner: Learnt, table: ReplayTable, extra: Pytree, step: Array, task: Array, *, key: PRNGKey) -> Data:
    """What a task is learnt from in a step; with a key of its own where there are target modules."""
    if learner.target is None:
        return Data(table, extra)
    drawn = jax.random.fold_in(jax.random.fold_in(key, NOISE), step)
    return Data(table, extra, learner.target, jax.random.fold_in(drawn, task))


def followed(consolidator: Consolidator, target: Chain | None, own: Chain) -> Chain | None:
    """Target modules after a step: θ' <- θ' + τ (θ - θ')."""
    rate = consolidator.follows
    return target if rate is None else jax.tree.map(lambda old, new: old + rate * (new - old), target, own)


def gradient(
    consolidator: Consolidator,
    own: Chain,
    frozen: Chain,
    data: Data,
    task: Array,
    index: Int[Array, " B"],
    *,
    pattern: Pattern,
    is_new: bool = False,
) -> tuple[Chain, Float[Array, " terms"]]:
    """The gradient of a task's loss by the current task's modules, and the terms of the loss."""
    table, extra, target, key = data
    rows = Rows(consolidator.layout, table, task, index, frozen, pattern, is_new, target, key)
    output, weights = rows.reader(), jnp.array(list(consolidator.weights.values()))
    targets = consolidator.targets(own, rows, extra)

    def loss(own: Chain) -> tuple[Array, Array]:
        terms = consolidator.terms(output(own), rows, targets)
        return terms @ weights, terms

    return jax.grad(loss, has_aux=True)(own)
