"""Bounded rehearsal: fair shares, an unbiased gradient, cloning by hand, old tasks that are watched and repaired."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from jaxtyping import Array
from probes import compilations
from test_bcq import ENVS, HALL, LESSONS, NETWORK, STRUCTURES, TIMES, replay

from modlife.errors import InputError
from modlife.learners import bounded, offline
from modlife.learners.bounded import Bounded
from modlife.learners.config import BoundedConfig
from modlife.learners.offline import PROBE
from modlife.learners.replay_table import Layout, Lesson, Rows
from modlife.lifelong.agent import AgentState
from modlife.lifelong.consolidate import Consolidate, is_replay
from modlife.lifelong.evaluation import Judge
from modlife.lifelong.retention import GLANCE, LEAST, SUSPECTS, Mark, Retained, Retention, Suspect, glance, harm_of
from modlife.policies.acting import Rule
from modlife.policies.bank import Bank, Chain
from modlife.policies.modular import Output
from modlife.types import Facts, Structure

SIZE = TIMES * ENVS
KEY = jax.random.key(0)
*OLD, NEW = STRUCTURES


def learner(**changes: object) -> Bounded:
    layout = Layout(HALL, NETWORK, room=len(LESSONS), times=TIMES, envs=ENVS)
    return bounded.bounded(layout, BoundedConfig(**{"batch": 16, "tasks": 3, "old_rows": None, **changes}), 0.9)


SHARED = learner(epochs=2, target_period=5, drift=0.01, repair=2, anneal=1.0)
"""Its programs are compiled once."""


@pytest.fixture(scope="module")
def bank() -> Bank:
    return NETWORK.init(key=jax.random.key(5))


@pytest.fixture(scope="module")
def lessons(bank: Bank) -> list[Lesson]:
    """All rows of all tasks, with what their policies in the bank say."""
    teacher = NETWORK.init(key=jax.random.key(6))
    full = [replace(one, replay=replay(n)) for n, one in enumerate(LESSONS)]
    return [replace(one, replay=learner().explored(one.replay.read(), teacher.pick(one.structure))) for one in full]


def step_of(one: Bounded, bank: Bank, turn: Sequence[Lesson]) -> np.ndarray:
    """The gradient of a step: what plain gradient descent would take away."""
    table, extra = one.turned(*one.opened(bank, turn[0]), turn)
    state = one.init(bank.pick(NEW))
    for task in range(one.learning(len(turn))):
        extra = replace(extra, values=one.valued(extra.values, table, task, state.target))
    after = offline.train(one, state.learner, table, extra, jnp.int32(0), jnp.int32(1), key=KEY)
    return np.asarray(ravel_pytree(state.learner.own)[0] - ravel_pytree(after.own)[0])


@jax.jit
def output_of(chain: Chain, observations: Array) -> Output:
    """What a chain says of a batch."""
    found = NETWORK(chain, HALL.parts(observations))
    assert isinstance(found, Output)
    return found


# Which tasks, and how much they count


def test_the_mean_over_turns_is_the_full_gradient(bank: Bank, lessons: list[Lesson], monkeypatch: pytest.MonkeyPatch):
    """With batches of all rows, so that nothing but the choice of tasks is left to chance."""
    monkeypatch.setattr(offline, "optimiser", lambda objective: optax.sgd(1.0))  # steps that can be added
    some, every = (learner(batch=SIZE, tasks=tasks, learning_rate=0.5) for tasks in (3, None))
    turns = len(OLD) // some.others(len(lessons))
    assert turns * some.others(len(lessons)) == len(OLD)
    for share in (None, 0.3):
        one, all_ = (learner(tasks=tasks, new_share=share) for tasks in (3, None))
        steps = [step_of(some, bank, one.turn(lessons, number, key=KEY)) for number in range(turns)]
        full = step_of(every, bank, all_.turn(lessons, 0, key=KEY))
        np.testing.assert_allclose(np.mean(steps, axis=0), full, rtol=1e-4, atol=1e-6)
        assert np.abs(steps[0] - full).max() > 1e-3 * np.abs(full).max()


def test_every_old_task_gets_its_share(lessons: list[Lesson]):
    """Over a phase, the numbers of steps in which old tasks take part differ by one turn at most."""
    one, seen = learner(), Counter[Structure]()
    for number in range(11):
        new, *old = one.turn(lessons, number, key=KEY)
        assert new.structure == NEW and len({lesson.structure for lesson in old}) == 2
        for lesson in old:
            seen[lesson.structure] += 1
    assert len(seen) == len(OLD) and max(seen.values()) - min(seen.values()) <= 1


def test_weights_say_how_much_the_new_task_counts(lessons: list[Lesson]):
    """Weights of a table are relative to the mean: they add up to the number of its tasks."""
    for share, expected in ((None, 1 / len(lessons)), (0.5, 0.5), (0.01, 1 / len(lessons))):
        weights = [lesson.weight for lesson in learner(new_share=share).turn(lessons, 0, key=KEY)]
        np.testing.assert_allclose(weights, [3 * expected, *[3 * (1 - expected) / 2] * 2])
    (alone,) = learner(new_share=0.5).turn(lessons[-1:], 0, key=KEY)
    assert alone.weight == 1


@pytest.mark.usefixtures("optax_promotes")
def test_the_cost_of_a_phase_does_not_grow_with_tasks(bank: Bank, lessons: list[Lesson]):
    """The same tables, the same compiled programs, as many steps; turns are short where there are many tasks."""
    one, many = SHARED, [*lessons[:-1] * 9, lessons[-1]]
    tables = [one.opened(bank, some[-1])[0] for some in (lessons, many)]
    assert tables[0].rows.shape == tables[1].rows.shape == (3, *one.layout.extent, one.layout.packing.words)
    long = replace(one, layout=replace(one.layout, times=1000))
    assert [long.span(tasks) for tasks in (1, 3, 8, 20, 100, 10_000)] == [500, 500, 64, 32, 32, 32]
    counts = []
    with compilations() as compiled:
        for some in (many, lessons, [*many[:17], many[-1]]):
            list(one.run(bank, some, one.init(bank.pick(NEW)), done=0, key=KEY))
            counts.append(len(compiled))
    assert counts[0] == counts[1] == counts[2]


# The loss


def test_features_are_kept_of_as_many_rows_as_old_tasks_have(bank: Bank, lessons: list[Lesson]):
    """The new task, all of whose modules move, has none; its values are of all its rows."""
    one = learner(old_rows=3 * ENVS)
    table, extra = one.opened(bank, lessons[-1])
    assert table.features.shape[1:3] == (4, ENVS) and extra.values.shape[:3] == (1, TIMES + 1, ENVS)
    assert one.kept(lessons[0].replay.read(), bank.pick(NEW), key=KEY).length == 4


def test_replay_of_old_tasks_is_no_longer_than_what_is_kept(bank: Bank, lessons: list[Lesson]):
    """Features have room for so many rows: a checkpoint with more is not of this life."""
    one, whole = learner(old_rows=3 * ENVS, repair=0), lessons[0].replay.read()
    fits = partial(is_replay, layout=one.layout, learner=one)
    assert fits(whole, folded=False) and not fits(whole, folded=True)
    assert fits(one.kept(whole, bank.pick(NEW), key=KEY), folded=True)


def test_terms_by_hand(bank: Bank, lessons: list[Lesson]):
    """Old tasks are drawn to what was said, the new one to rewards."""
    one = learner()
    table, extra = one.turned(*one.opened(bank, lessons[-1]), [lessons[-1], lessons[0], lessons[1]])
    index, chain = jnp.arange(5, dtype=jnp.int32), bank.pick(OLD[0])
    rows = Rows(one.layout, table, jnp.int32(1), index, chain, lessons[0].pattern)
    output = output_of(chain, rows.transition.observation)
    taught, aim = one.targets(chain, rows, extra)
    assert aim is None
    said = lessons[0].replay.taught.reshape(SIZE, 6)[:5].astype(np.float32)
    np.testing.assert_array_equal(taught, said.T)
    logits, values = np.asarray(output.logits.T, np.float64), np.asarray(output.values.T, np.float64)
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    divergence = (np.exp(said[:, :3]) * (said[:, :3] - log_probs)).sum(axis=1).mean()
    error = ((values - said[:, 3:]) ** 2).mean()
    expected = [0, divergence, (logits**2).sum(axis=1).mean(), error]
    np.testing.assert_allclose(one.terms(output, rows, (taught, None)), expected, rtol=1e-4, atol=1e-6)
    action = np.asarray(rows.transition.action)
    drawn = learner(clone="actions").terms(output, rows, (taught, jnp.ones(5)))
    td = ((values[np.arange(5), action] - 1) ** 2).mean()
    expected = [td, -log_probs[np.arange(5), action].mean(), expected[2], 0]
    np.testing.assert_allclose(drawn, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("td", "new", "old"), [("current", True, False), ("all", True, True), ("none", False, False)])
def test_who_learns_from_rewards(bank: Bank, lessons: list[Lesson], td: str, *, new: bool, old: bool):
    one = learner(td=td)
    table, extra = one.opened(bank, lessons[-1])
    for is_new, learns in ((True, new), (False, old)):
        rows = Rows(one.layout, table, jnp.int32(0), jnp.arange(4), bank.pick(NEW), (True,) * 3, is_new)
        assert (one.targets(bank.pick(NEW), rows, extra)[1] is not None) == learns


# Going on


@pytest.mark.usefixtures("optax_promotes")
def test_a_learner_that_goes_on_from_the_middle_ends_the_same(
    bank: Bank, lessons: list[Lesson], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bounded, "SHORTEST", 2)
    one = SHARED
    steps = list(one.run(bank, lessons, one.init(bank.pick(NEW)), done=0, key=KEY))
    assert [number for number, _, losses in steps if losses] == [one.epoch_steps, one.steps]
    assert set(steps[-1][2] or ()) == {"td", "likelihood", "logits", "values"}
    middle = [step for step in steps if step[0] in (2, 6, 7)]
    assert middle
    for number, state, _ in middle[:: len(middle) - 1]:
        *_, (_, end, _) = one.run(bank, lessons, state, done=number, key=KEY)
        for a, b in zip(*map(jax.tree.leaves, (end, steps[-1][1])), strict=True):
            np.testing.assert_array_equal(a, b)


# What is kept


def test_what_is_kept_of_a_task(bank: Bank):
    """Some time steps, with what the explorer's actor said and the values of the critic after."""
    one, explorer, after = learner(old_rows=9 * ENVS + 1, td="current"), bank.pick((0, 1, 2)), bank.pick((2, 1, 0))
    full = one.explored(replay(3), explorer)
    kept = one.kept(full, after, key=KEY)
    assert kept.times == 9 and len(kept.rows) == 10 and kept.taught.shape == (9, ENVS, 6)
    assert kept.taught.dtype == np.float16
    places = [int(np.flatnonzero((full.rows[:TIMES] == row).all(axis=(1, 2)))[0]) for row in kept.rows[:9]]
    assert places == sorted(set(places))
    np.testing.assert_array_equal(kept.taught[..., :3], full.taught[places][..., :3])
    seen = one.layout.packing.unpack(jnp.asarray(kept.rows[:9].reshape(-1, kept.rows.shape[2]))).observation
    for chain, part in ((explorer, slice(0, 3)), (after, slice(3, 6))):
        output = output_of(chain, seen)
        says = np.concatenate([output.distribution.numbers, output.values])
        np.testing.assert_allclose(kept.taught.reshape(-1, 6)[:, part], says.T[:, part], atol=4e-3)
    assert one.kept(full, after, key=KEY).rows.tobytes() == kept.rows.tobytes()
    assert learner().kept(full, after, key=KEY).times == TIMES


def test_rewards_of_old_tasks_need_all_of_their_replay():
    with pytest.raises(InputError, match="old_rows = 100: what came after a transition is not known"):
        BoundedConfig(td="all", old_rows=100)


# Retention


def judge() -> Judge:
    return Judge(HALL, NETWORK, Rule("actor"), 8)


def marked(one: Bounded, bank: Bank, lessons: list[Lesson]) -> list[Lesson]:
    """Lessons of tasks whose teachers are their policies in the bank, with marks of how well they are done by it."""
    taught = [
        replace(lesson, replay=one.explored(lesson.replay.read(), bank.pick(lesson.structure))) for lesson in lessons
    ]
    look, found = Retention(judge(), one), []
    for lesson, task in zip(taught, HALL.graph.tasks, strict=False):
        mark = look.mark(bank, lesson, task, key=KEY)
        assert abs(mark.drift) < 1e-4
        found.append(replace(lesson, replay=replace(lesson.replay, measured=mark.numbers)))
    return found


@pytest.mark.usefixtures("optax_promotes")
def test_what_moved_too_far_is_found_and_repaired(bank: Bank, lessons: list[Lesson]):
    """Another module in the place of a shared one: tasks that share it are harmed, the others are as they were."""
    one, tasks = SHARED, HALL.graph.tasks[: len(lessons)]
    before, watch = marked(one, bank, lessons), Retention(judge(), one)
    calm = watch.look(bank, before, tasks, number=None, key=KEY)
    assert not calm.harmed and len(calm.drifts) == len(OLD) and harm_of(calm.drifts) < 1e-9
    strange = jax.tree.map(lambda leaf: 4 * leaf, bank.pick(NEW))
    moved = bank.place(NEW, (bank.pick(NEW)[0], bank.pick(NEW)[1], strange[2]))
    found = watch.look(moved, before, tasks, number=0, key=KEY)
    shares = {n for n, lesson in enumerate(before[:-1]) if lesson.structure[2] == NEW[2]}
    assert {suspect.lesson for suspect in found.harmed} == shares
    assert max(found.drifts) == pytest.approx(found.harmed[0].now.drift, abs=1e-3)
    state = one.init(moved.pick(NEW))
    for number in range(8):
        harmed = [suspect.lesson for suspect in found.harmed]
        state = one.repaired(bank, before, state, harmed=harmed, number=number, key=KEY)
    after = watch.look(bank.place(NEW, one.modules(state)), before, tasks, number=None, key=KEY)
    assert harm_of(after.drifts) < harm_of(found.drifts) / 2
    assert float(np.abs(np.asarray(state.learner.losses)).max()) == 0


def test_a_look_takes_as_many_rows_with_many_tasks_as_with_few():
    """All rows of up to 64 tasks; of a thousand, the same number in all, and never less than eight of a task."""
    assert [glance(tasks) for tasks in (1, 64, 65, 128, 300, 1_000, 10_000)] == [PROBE, PROBE, 128, 128, 32, 16, LEAST]
    assert all(tasks * glance(tasks) <= GLANCE for tasks in range(1, GLANCE // LEAST))


def test_a_glance_finds_the_same_harm(bank: Bank, lessons: list[Lesson], monkeypatch: pytest.MonkeyPatch):
    """Asked in few rows first, and again in all: what moved most is known as exactly as before."""
    before, watch = marked(SHARED, bank, lessons), Retention(judge(), SHARED)
    strange = jax.tree.map(lambda leaf: 4 * leaf, bank.pick(NEW))
    moved = bank.place(NEW, (bank.pick(NEW)[0], bank.pick(NEW)[1], strange[2]))
    whole = watch.excess(moved, before)
    monkeypatch.setattr("modlife.lifelong.retention.GLANCE", LEAST * len(before))
    monkeypatch.setattr("modlife.lifelong.retention.AGAIN", 2)
    few, worst = watch.excess(moved, before), np.argsort(-whole)[:2]
    assert np.array_equal(few[worst], whole[worst]) and not np.array_equal(few, whole)
    assert np.delete(few, worst).max() <= few[worst].min()  # nobody is suspected by few rows alone


def test_what_moved_little_is_evaluated_too_where_episodes_are_cheap(monkeypatch: pytest.MonkeyPatch):
    """A policy may lose much by moving little; those that came closer to their teachers are left alone."""
    watch, limit = Retention(judge(), SHARED), SHARED.limits.drift
    excess = np.array([0.01 * limit, -0.2, 0.6 * limit, 0.0, 2.0 * limit])
    assert watch.suspects(excess) == [4, 2, 0]
    assert watch.suspects(np.full(100, limit)) == list(range(SUSPECTS))
    monkeypatch.setattr(type(HALL), "at_once", 1000, raising=False)  # as with robots
    assert watch.suspects(excess) == [4, 2]


def test_a_lower_return_is_harm_too():
    """Beyond the threshold and twice the error of the difference."""
    limits = learner(drop=0.05, drift=1.0).limits
    then, task = Mark(0.0, 0.8, 0.03), HALL.graph.tasks[0]
    for value, harmed in ((0.80, False), (0.66, False), (0.64, True)):  # .05 + 2 * .05 = .15
        assert Suspect(task, 0, then, Mark(0.5, value, 0.04)).is_harmed(limits) == harmed
    assert Suspect(task, 0, then, Mark(1.1, 0.8, 0.04)).is_harmed(limits)


def test_what_is_left_harmed_is_refused_if_asked(bank: Bank, lessons: list[Lesson]):
    """Modules that a harmed task shares are as they were, bit by bit; else the harm is told."""
    tasks, strange = HALL.graph.tasks[: len(lessons)], jax.tree.map(lambda leaf: 4 * leaf, bank.pick(NEW))
    for refuse in (True, False):
        one = replace(SHARED, config=replace(SHARED.config, refuse=refuse))
        memory = tuple(lesson.replay for lesson in marked(one, bank, lessons))
        facts = Facts(met=tuple(tasks[:-1]), structures=tuple(STRUCTURES), phase="offline")
        phase = Consolidate(tasks[-1], lambda room, one=one: one.layout, lambda layout, one=one: one, judge(), KEY)
        state, (report,) = phase.end(AgentState(bank, facts, memory, one.init(strange)))
        assert isinstance(report, Retained) and report.refused == refuse and bool(report.harmed) != refuse
        same = [np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (state.params, bank)), strict=True)]
        assert all(same) == refuse
        assert len(state.memory[-1].measured) == 3
