"""A search: a few structures drawn at random, one to a step, each tried on the same layouts."""

from collections.abc import Iterator
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from modlife.domains.env import PRNGKey
from modlife.lifelong.reports import Chosen
from modlife.lifelong.search import Trial, all_structures


@dataclass(frozen=True)
class SomeConfig:
    """Its options: `--search.count` and so on."""

    count: int = 3
    """How many structures to try."""
    episodes: int = 4
    """Episodes with which each is tried."""

    def most_steps(self, structures: int, horizon: int) -> int:
        return self.count * self.episodes * horizon


class Tried(eqx.Module):
    """What it has seen: which structures, by their number, their returns, and the steps that took."""

    number: Int[Array, " count"]
    returns: Float[Array, " count"]
    steps: Int[Array, " count"]


@dataclass(frozen=True)
class Some:
    """The best of a few."""

    config: SomeConfig

    @property
    def episodes(self) -> int:
        return self.config.episodes

    def init(self, sizes: tuple[int, ...]) -> Tried:
        none = jnp.zeros(self.config.count, jnp.int32)
        return Tried(none, jnp.zeros(self.config.count), none)

    def length(self, sizes: tuple[int, ...]) -> int:
        return self.config.count

    def run(self, trial: Trial, found: Tried, *, done: int, key: PRNGKey) -> Iterator[tuple[int, Tried]]:
        structures = all_structures(trial.sizes)
        key_draw, key_try = jax.random.split(key)
        drawn = jax.random.randint(key_draw, (self.config.count,), 0, len(structures))
        for place in range(done, self.config.count):
            result = trial.episodes([structures[int(drawn[place])]], key=key_try)
            found = Tried(
                found.number.at[place].set(drawn[place]),
                found.returns.at[place].set(result.returns.mean()),
                found.steps.at[place].set(result.length.sum()),
            )
            yield place + 1, found

    def choice(self, trial: Trial, found: Tried) -> Chosen:
        best = all_structures(trial.sizes)[int(found.number[int(np.argmax(found.returns))])]
        return Chosen(best, "searched", int(found.steps.sum()), tuple(map(float, found.returns)))
