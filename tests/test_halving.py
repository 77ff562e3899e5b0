"""Sequential halving: its rounds, what it counts, how it chooses; on invented tasks whose returns are known."""

from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modlife.learners.rollout import Episodes
from modlife.lifelong.halving import AT_ONCE, Halving, expected_returns, likeness
from modlife.lifelong.search import Exhaustive, Scores, Trial, all_structures, least_used
from modlife.lifelong.settings import ExhaustiveConfig, HalvingConfig
from modlife.types import Structure

KEY = jax.random.key(3)


class Urns(Trial):
    """Each structure succeeds with a probability; luck follows from the key alone."""

    sizes: tuple[int, ...] = ()  # pyright: ignore[reportIncompatibleMethodOverride]  # there it is a property
    fills_up: bool = True  # pyright: ignore[reportIncompatibleMethodOverride]  # likewise
    probabilities: np.ndarray
    asked: Counter[int]
    programs: set[int]

    def __init__(self, sizes: tuple[int, ...], probabilities: np.ndarray, taken: tuple[Structure, ...] = ()):
        own = {"sizes": sizes, "probabilities": probabilities, "asked": Counter(), "programs": set(), "taken": taken}
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def parts(self, structures: Any, keys: Any, *, eighths: int) -> Episodes:
        numbers = [number_of(tuple(one), self.sizes) for one in structures]
        luck = np.stack([np.asarray(jax.random.uniform(key, (4,))) for key in keys])
        returns = (luck < self.probabilities[numbers][:, None]).astype(np.float32)
        self.asked.update(numbers)
        self.programs.add(len(numbers))
        return Episodes(jnp.asarray(returns), jnp.asarray(returns > 0), jnp.full(returns.shape, 8 * eighths, jnp.int32))


def number_of(structure: Structure, sizes: tuple[int, ...]) -> int:
    return int(np.ravel_multi_index(structure, sizes))


def searched(urns: Urns, halving: Halving, key: jax.Array = KEY) -> tuple[Any, list]:
    steps = list(halving.run(urns, halving.init(urns.sizes), done=0, key=key))
    return halving.choice(urns, steps[-1][1]), steps


def test_rounds_by_hand():
    """Of 64 structures 16, 4 and 2 go on; with more than 512, a model chooses whom to try."""
    rounds = [(one.structures, one.groups, one.eighths) for one in HalvingConfig().rounds(64)]
    assert rounds == [(64, 1, 3), (16, 1, 4), (4, 3, 6), (2, 4, 8)]
    assert [one.structures for one in HalvingConfig().rounds(512)] == [512, 128, 32, 8, 2]
    many = HalvingConfig().rounds(4096)
    assert [one.structures for one in many] == [256, 128, 64, 16, 4, 2]
    assert [one.by_model for one in many] == [False, True, True, True, False, False]
    assert [one.structures for one in HalvingConfig().rounds(2)] == [2]
    assert HalvingConfig().rounds(2)[0].eighths == 8


def test_the_most_steps_by_hand():
    """Groups of 4 episodes, eighths of 8 steps: 64 x 4 x 24 + 16 x 4 x 32 + 4 x 12 x 48 + 2 x 16 x 64."""
    assert HalvingConfig().most_steps(64, 64) == 6144 + 2048 + 2304 + 2048
    assert HalvingConfig().most_steps(64, 64) < 0.31 * 640 * 64
    assert HalvingConfig().most_steps(8**4, 64) <= 60_000


def test_the_best_is_found_and_all_is_counted():
    probabilities = np.full(64, 0.1)
    probabilities[37], probabilities[38] = 0.9, 0.5
    urns = Urns((4, 4, 4), probabilities)
    chosen, steps = searched(urns, Halving(HalvingConfig()))
    assert chosen.structure == all_structures((4, 4, 4))[37]
    assert chosen.steps == 6144 + 2048 + 2304 + 2048
    assert int(np.asarray(steps[-1][1].episodes).sum()) == 4 * (64 + 16 + 12 + 8)
    assert urns.programs == {AT_ONCE}
    assert [number for number, _ in steps] == list(range(1, Halving(HalvingConfig()).length((4, 4, 4)) + 1))
    assert len(chosen.returns) == 64


@pytest.mark.parametrize(("margin", "expected"), [(0.0, 37), (0.2, 37), (0.5, 38)])
def test_a_structure_that_another_task_has_counts_less(margin: float, expected: int):
    """It returns .4 more than the best of those that none has; what is told of it is what it returned."""
    probabilities = np.full(64, 0.1)
    probabilities[37], probabilities[38] = 0.9, 0.5
    structures = all_structures((4, 4, 4))
    urns = Urns((4, 4, 4), probabilities, taken=(structures[37],))
    chosen, _ = searched(urns, Halving(HalvingConfig(margin=margin)))
    assert chosen.structure == structures[expected] and max(chosen.returns) > 0.7
    scores = Scores(jnp.asarray(probabilities, jnp.float32), jnp.ones(64, jnp.int32))
    assert Exhaustive(ExhaustiveConfig(margin=margin)).choice(urns, scores).structure == structures[expected]


def test_a_search_that_goes_on_from_any_step_ends_the_same():
    taken = all_structures((4, 4, 4))[::3]
    urns = Urns((4, 4, 4), np.random.default_rng(0).uniform(size=64), taken)
    halving = Halving(HalvingConfig())
    chosen, steps = searched(urns, halving)
    for number, found in steps[:-1]:
        *_, (_, end) = halving.run(urns, found, done=number, key=KEY)
        assert halving.choice(urns, end) == chosen


def test_it_loses_less_than_exhaustive_search_with_a_third_of_the_steps():
    """Over 60 invented tasks whose structures' returns have effects of modules; regret against the best structure."""
    rng, halving, lost, exhaustive = np.random.default_rng(1), Halving(HalvingConfig()), [], []
    for number in range(60):
        effects = [rng.uniform(0.3, 1, size=4) for _ in range(3)]
        probabilities = np.array(
            [effects[0][a] * effects[1][b] * effects[2][c] for a, b, c in all_structures((4, 4, 4))]
        )
        chosen, _ = searched(Urns((4, 4, 4), probabilities), halving, jax.random.key(number))
        best = probabilities.max()
        lost.append(best - probabilities[number_of(chosen.structure, (4, 4, 4))])
        means = (rng.uniform(size=(1, 10)) < probabilities[:, None]).mean(axis=1)
        exhaustive.append(best - probabilities[means.argmax()])
    assert np.mean(lost) <= np.mean(exhaustive)


def test_a_model_finds_good_structures_among_thousands():
    """Of 4,096 structures, 448 are tried; what it chooses is among the best hundredth in most tasks."""
    rng, halving, ranks = np.random.default_rng(2), Halving(HalvingConfig()), []
    structures = np.array(all_structures((8, 8, 8, 8)))
    for number in range(5):
        effects = [rng.uniform(0.3, 1, size=8) for _ in range(4)]
        probabilities = np.prod([effects[d][structures[:, d]] for d in range(4)], axis=0)
        urns = Urns((8, 8, 8, 8), probabilities)
        chosen, _ = searched(urns, halving, jax.random.key(number))
        assert len(urns.asked) <= 256 + 128 + 64 + 16 + 4 + 2
        ranks.append((probabilities > probabilities[number_of(chosen.structure, (8, 8, 8, 8))]).mean())
    assert np.median(ranks) < 0.01


def test_likeness_by_hand():
    """Three factors: shares of modules and pairs in common, and whether all are."""
    one = np.array([[0, 0, 0]])
    others = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]])
    expected = [1.0, 0.4 * 2 / 3 + 0.4 / 3, 0.4 / 3, 0.0]
    np.testing.assert_allclose(likeness(one, others)[0], expected)


def test_what_was_seen_often_is_believed():
    """With no noise to speak of, the model says what was seen."""
    urns, halving = Urns((2, 2), np.array([0.0, 1.0, 1.0, 0.0])), Halving(HalvingConfig())
    _, steps = searched(urns, halving)
    np.testing.assert_allclose(expected_returns((2, 2), steps[-1][1]), urns.probabilities, atol=1e-3)


@pytest.mark.parametrize(("options", "expected"), [([(0, 0), (1, 1)], (1, 1)), ([(2, 2), (1, 1)], (2, 2))])
def test_ties_go_to_modules_that_serve_few_tasks(options: list, expected: tuple):
    assert least_used(options, [(0, 0), (0, 1), (2, 0)]) == expected
