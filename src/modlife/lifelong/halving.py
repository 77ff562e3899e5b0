"""Sequential halving: many structures are tried for a short time, the better ones longer, two for whole episodes.

All structures of a round meet the same layouts with the same luck in drawing actions, so they differ by what they are
only. In early rounds episodes are cut short: what will not reach its goal soon need not be watched to the end. Where
there are too many structures to try each, a model of their returns says which are worth it (docs/details.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int

from modlife.arrays import floats, ints, zeros
from modlife.domains.env import PRNGKey
from modlife.lifelong.reports import Chosen
from modlife.lifelong.search import Trial, all_structures, with_values
from modlife.lifelong.settings import HalvingConfig, Round

AT_ONCE = 16
"""Pairs of a structure and a group of episodes that one compiled call tries: the same program in every round."""
TIE = 0.5
"""Structures tie if they differ by less than this share of the standard error of the best one's mean."""


class Tally(eqx.Module):
    """What the search has seen of each structure, and whom the present round tries."""

    returns: Float[Array, " structure"]
    """Sums over episodes, ..."""
    squares: Float[Array, " structure"]
    episodes: Int[Array, " structure"]
    members: Int[Array, " structure"]
    """Structures of the round by their numbers, best first; the rest is not looked at."""
    steps: Int[Array, ""]
    """All steps, ..."""
    total: Float[Array, ""]
    """... the sum of all returns, ..."""
    played: Int[Array, ""]
    """... and the number of all episodes."""

    def afresh(self) -> "Tally":
        """Nothing seen of any structure."""
        none = zeros(*self.returns.shape)
        return replace(self, returns=none, squares=none, episodes=zeros(*none.shape, dtype=np.int32))

    @property
    def means(self) -> Float[np.ndarray, " structure"]:
        """Mean returns; zero where nothing was tried."""
        return np.asarray(self.returns, np.float64) / np.maximum(np.asarray(self.episodes), 1)

    @property
    def variance(self) -> float:
        """Of an episode's return, within structures."""
        left = np.asarray(self.squares, np.float64) - np.asarray(self.episodes) * self.means**2
        return max(0.0, float(left.sum())) / max(1, int(np.maximum(np.asarray(self.episodes) - 1, 0).sum()))


@dataclass(frozen=True)
class Halving:
    """Rounds of fewer and fewer structures."""

    config: HalvingConfig

    @property
    def episodes(self) -> int:
        """Of a structure at a time."""
        return self.config.episodes

    def init(self, sizes: tuple[int, ...]) -> Tally:
        """Nothing seen."""
        count = len(all_structures(sizes))
        none = zeros(count, dtype=np.int32)
        return Tally(zeros(count), zeros(count), none, none, ints(0), floats(0), ints(0))

    def rounds(self, sizes: tuple[int, ...]) -> tuple[Round, ...]:
        """How many structures are tried with how many episodes, round by round."""
        return self.config.rounds(len(all_structures(sizes)))

    def length(self, sizes: tuple[int, ...]) -> int:
        """Calls of all rounds."""
        return sum(calls(one) for one in self.rounds(sizes))

    def run(self, trial: Trial, found: Tally, *, done: int, key: PRNGKey) -> Iterator[tuple[int, Tally]]:
        """Tries structures, some at a time."""
        key_draw, key_try = jax.random.split(key)
        number = group = 0
        for place, one in enumerate(self.rounds(trial.sizes)):
            for call in range(calls(one)):
                number += 1
                if number <= done:
                    continue
                if call == 0:
                    members = self.members(one, trial, found, key=jax.random.fold_in(key_draw, place))
                    found = replace(found, members=ints(with_values(found.members, slice(len(members)), members)))
                    found = found.afresh() if one.afresh else found
                found = tried(trial, found, one, call, first=group, key=key_try)
                yield number, found
            group += one.groups

    def members(self, one: Round, trial: Trial, found: Tally, *, key: PRNGKey) -> Int[np.ndarray, " m"]:
        """Who is in a round: at first all, or some at random; then those of which most is expected; ties by chance."""
        order, was_tried = np.asarray(jax.random.permutation(key, len(found.episodes))), np.asarray(found.episodes) > 0
        if not was_tried.any():
            return order[: one.structures]
        hope = expected_returns(trial.sizes, found) if one.by_model else np.where(was_tried, found.means, -np.inf)
        if not one.by_model:  # only those of the round before go on, who have seen most
            hope = np.where(np.asarray(found.episodes) == np.asarray(found.episodes).max(), hope, -np.inf)
        hope = trial.worth(hope, margin=self.config.margin)
        return order[np.argsort(-hope[order], kind="stable")][: one.structures]

    def choice(self, trial: Trial, found: Tally) -> Chosen:
        """The best of the last round, and those that tie with it."""
        structures, was_tried = all_structures(trial.sizes), np.asarray(found.episodes) > 0
        means = trial.worth(found.means, margin=self.config.margin)
        last = np.asarray(found.members)[: self.rounds(trial.sizes)[-1].structures]
        best = int(last[means[last].argmax()])
        near = means[best] - TIE * np.sqrt(found.variance / int(np.asarray(found.episodes)[best]))
        tied = tuple(structures[n] for n in last if n != best and means[n] >= near)
        returns, mean = tuple(map(float, found.means[was_tried])), float(found.total) / int(found.played)
        return Chosen(structures[best], "searched", int(found.steps), returns, tied, mean)


def calls(one: Round) -> int:
    """Compiled calls that a round takes."""
    return -(-one.structures * one.groups // AT_ONCE)


def tried(trial: Trial, found: Tally, one: Round, call: int, *, first: int, key: PRNGKey) -> Tally:
    """The tally after one call of a round: the same groups, from number `first` on, for all of its structures."""
    structures = all_structures(trial.sizes)
    pairs = np.arange(call * AT_ONCE, min((call + 1) * AT_ONCE, one.structures * one.groups))
    padded = np.resize(pairs, AT_ONCE) if trial.fills_up else pairs
    numbers = np.asarray(found.members)[padded % one.structures]
    keys = jax.vmap(lambda group: jax.random.fold_in(key, group))(ints(first + padded // one.structures))
    result = trial.parts([structures[n] for n in numbers], keys, eighths=one.eighths)
    returns, lengths, here = np.asarray(result.returns), np.asarray(result.length), numbers[: len(pairs)]
    return Tally(
        floats(added(found.returns, here, returns[: len(pairs)].sum(axis=1))),
        floats(added(found.squares, here, (returns[: len(pairs)] ** 2).sum(axis=1))),
        ints(added(found.episodes, here, returns.shape[1])),
        found.members,
        ints(np.asarray(found.steps) + lengths[: len(pairs)].sum()),
        floats(np.asarray(found.total) + returns[: len(pairs)].sum()),
        ints(np.asarray(found.played) + returns[: len(pairs)].size),
    )


def added(array: Array, here: Int[np.ndarray, " n"], values: np.ndarray | int) -> np.ndarray:
    """A copy with values added in some places, some of which may be the same."""
    copy = np.array(array)
    np.add.at(copy, here, values)
    return copy


def expected_returns(sizes: tuple[int, ...], found: Tally) -> Float[np.ndarray, " structure"]:
    """What is expected of each structure if modules, pairs of modules, and chance add up to its return.

    A Gaussian process whose covariance counts the modules and pairs that two structures have in common; how much of
    what was seen is noise follows from the episodes.
    """
    seen = np.flatnonzero(np.asarray(found.episodes))
    episodes, means = np.asarray(found.episodes)[seen], found.means[seen]
    noise = max(found.variance, 1e-12) / episodes
    signal = max(float(means.var() - noise.mean()), 0.1 * float(noise.mean()))
    structures, mean = np.array(all_structures(sizes)), float(np.average(means, weights=episodes))
    covariance = signal * likeness(structures, structures[seen])
    return mean + covariance @ np.linalg.solve(covariance[seen] + np.diag(noise), means - mean)


def likeness(some: Int[np.ndarray, "n F"], others: Int[np.ndarray, "m F"]) -> Float[np.ndarray, "n m"]:
    """Of structures: the share of modules, of pairs of modules, and of all of them that two have in common, mixed."""
    common, factors = (some[:, None] == others[None]).sum(axis=-1), some.shape[1]
    pairs = common * (common - 1) / max(1, factors * (factors - 1))
    return 0.4 * common / factors + 0.4 * pairs + 0.2 * (common == factors)
