"""Agents that the lifelong agent is compared with: what they learn, what they keep, and what they forget."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float, Int
from probes import Probe, SeenReward, TwoHeads
from scipy import stats

from modlife.domains import env
from modlife.domains.curricula import lifelong
from modlife.domains.env import Outcome, PRNGKey
from modlife.domains.graph import Discrete, Factor, Part, ProblemGraph
from modlife.domains.grid2d.environment import Grid2D
from modlife.domains.grid2d.world import World
from modlife.learners import fisher as information
from modlife.learners import losses
from modlife.learners.asking import numbers, said
from modlife.learners.clear import Clear
from modlife.learners.config import ClearConfig, CompressConfig, DistillConfig, EWCConfig, PPOConfig
from modlife.learners.distill import Distiller, divergences, of_replay
from modlife.learners.fisher import fisher
from modlife.learners.ppo import PPO, Anchor, pull_of
from modlife.learners.replay import Packing, Replay, Transition
from modlife.lifelong.agent import AgentState
from modlife.lifelong.clear import CLEAR
from modlife.lifelong.ewc import EWC, Elastic
from modlife.lifelong.finetune import OneNetwork
from modlife.lifelong.loop import Moment, evaluate_agent, live
from modlife.lifelong.progress_compress import ProgressCompress
from modlife.lifelong.reset_distill import ResetDistill
from modlife.policies.bank import parameter_count
from modlife.policies.columns import Beside, Columns, TwoColumns, is_layer
from modlife.policies.conv_modules import ConvModules
from modlife.policies.dense_modules import DenseModules
from modlife.policies.modular import GaussianOutput, Monolithic, Output, dense
from modlife.types import Task

pytestmark = pytest.mark.usefixtures("optax_promotes")

KEY = jax.random.key(0)


# Information


@dataclass(frozen=True)
class Whole:
    """A network whose parameters are its policy."""

    def init(self, *, key: PRNGKey) -> Any:
        raise NotImplementedError

    def pick(self, params: Any, structure: Int[Array, " F"]) -> Any:
        return params


@dataclass(frozen=True)
class TwoStates(Whole):
    """A table of logits for a negative and a positive number, and a critic that is a number."""

    def __call__(self, policy: Any, parts: Mapping[str, env.Part]) -> Output:
        logits, value = policy
        positive = (dense(parts["number"])[0] > 0).astype(jnp.int32)
        return Output(logits[positive].T, jnp.broadcast_to(value, (1, positive.shape[0])))


@dataclass(frozen=True)
class Line(Whole):
    """Two real-valued actions around multiples of the number that is seen."""

    log_std: tuple[float, float] = (-0.5, 0.25)

    def __call__(self, policy: Float[Array, "2 1"], parts: Mapping[str, env.Part]) -> GaussianOutput:
        number = dense(parts["number"])
        return GaussianOutput(policy @ number, jnp.array(self.log_std), number[0])


def replay_of(probe: Probe, numbers: list[float]) -> Replay:
    """Replay of one environment that has seen these numbers."""
    seen, no = jnp.array([[*numbers, 0.0]]).T, jnp.zeros((len(numbers) + 1, 1), bool)
    rows = Packing.of(probe).pack(Transition(seen, no.astype(jnp.uint8), no.astype(jnp.float32), no, no))
    return Replay(np.asarray(rows), len(numbers))


LOGITS = jnp.array([[0.3, -1.0, 0.5], [2.0, 0.0, -0.2]])
ZERO = jnp.zeros(1, jnp.int32)


def test_information_of_a_softmax_is_the_closed_form():
    """Of logit k in state s: p(s) π(k|s) (1 - π(k|s)); not the square of a mean gradient, which would vanish."""
    probe, numbers = SeenReward(), [-1.0, 1.0, 1.0, 1.0]
    found, critic = fisher(probe, TwoStates(), (LOGITS, jnp.float32(3)), ZERO, replay_of(probe, numbers))
    chances = np.asarray(jax.nn.softmax(LOGITS))
    np.testing.assert_allclose(found, np.array([[0.25], [0.75]]) * chances * (1 - chances), rtol=1e-5)
    assert float(critic) == 0


def test_information_of_a_line_is_the_closed_form():
    """Of the slope of action j: E x² / σⱼ²."""
    probe, numbers = SeenReward(), [-1.0, 0.5, 2.0]
    found = fisher(probe, Line(), jnp.array([[0.2], [-3.0]]), ZERO, replay_of(probe, numbers))
    np.testing.assert_allclose(found[:, 0], 1.75 / np.exp(2 * np.array([-0.5, 0.25])), rtol=1e-5)


def test_information_does_not_depend_on_how_samples_are_grouped(monkeypatch: pytest.MonkeyPatch):
    probe, params = SeenReward(), (LOGITS, jnp.float32(3))
    numbers = np.random.default_rng(0).choice([-1.0, 1.0], 21).tolist()
    once = fisher(probe, TwoStates(), params, ZERO, replay_of(probe, numbers))
    often = fisher(probe, TwoStates(), params, ZERO, replay_of(probe, numbers * 30))
    monkeypatch.setattr(information, "CALL", 32)
    pieces = fisher(probe, TwoStates(), params, ZERO, replay_of(probe, numbers * 3))
    for other in (often, pieces):
        np.testing.assert_allclose(other[0], once[0], rtol=1e-4)


def test_what_only_the_critic_uses_has_no_information():
    grid = Grid2D(World())
    network = Monolithic(grid.graph, 1, ConvModules(), 16)
    params, task = network.init(key=KEY), jnp.array([1, 2, 3])
    ppo = PPO(grid, network, PPOConfig(envs=4, length=8, minibatch=32))
    _, happened, _ = ppo.update(ppo.init(params, task[None], task[None], key=KEY), key=KEY)
    rows = np.asarray(Packing.of(grid).pack(jax.tree.map(lambda leaf: leaf[0], happened.transitions)))
    *early, last = fisher(grid, network, params, task, Replay(np.concatenate([rows, rows[:1]]), len(rows)))
    assert all(not leaf.any() for leaf in jax.tree.leaves(last.critic))
    assert all((leaf >= 0).all() and leaf.any() for leaf in jax.tree.leaves([*early, last.actor]))


# The pull


def test_the_pull_is_the_gradient_of_the_penalty():
    rng = np.random.default_rng(0)
    params, then, weights = (tuple(map(jnp.asarray, rng.random((2, 3, 4), np.float32))) for _ in range(3))
    anchor = Anchor(then, weights, jnp.zeros(2))

    def penalty(params: Any) -> Array:
        return jnp.float32(0) + sum(
            0.5 * (w * (a - b) ** 2).sum() for w, a, b in zip(weights, params, then, strict=True)
        )

    for found, expected in zip(pull_of(anchor, params), jax.grad(penalty)(params), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_pull_without_weight_changes_nothing_and_its_norms_are_told():
    ppo = PPO(SeenReward(), TwoHeads(), PPOConfig(envs=4, length=8, minibatch=16))
    params, zero = ppo.network.init(key=KEY), jnp.zeros((1, 1), jnp.int32)
    none = jax.tree.map(jnp.zeros_like, params)
    some = jax.tree.map(jnp.ones_like, params)
    free, held, pulled = (
        ppo.update(ppo.init(params, zero, zero, anchor, key=KEY), key=KEY)[0]
        for anchor in (None, Anchor(none, none, jnp.zeros(2)), Anchor(none, some, jnp.zeros(2)))
    )
    assert all(map(np.array_equal, jax.tree.leaves(free.params), jax.tree.leaves(held.params)))
    assert held.anchor is not None and held.anchor.norms[0] > 0 and held.anchor.norms[1] == 0
    assert pulled.anchor is not None
    size = float(jnp.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(params))))
    assert float(pulled.anchor.norms[1]) == pytest.approx(size, rel=0.05)  # weights of 1 towards 0


# A curriculum of probes: what agents keep and forget


class SignState(eqx.Module):
    sign: Float[Array, ""]
    task: Int[Array, "2"]
    time: Int[Array, ""]


@dataclass(frozen=True)
class Signs:
    """Pays for going right where the number is positive, or for the opposite, as the two components together say."""

    @property
    def graph(self) -> ProblemGraph:
        factors = (Factor("rule", ("plain", "turned"), ("number",)), Factor("side", ("same", "other"), ("number",)))
        return ProblemGraph("signs", factors, (Part("number", (1,)),), Discrete(("left", "right")))

    @property
    def horizon(self) -> int:
        return 4

    def reset(self, task: Int[Array, "2"], *, key: PRNGKey) -> SignState:
        return SignState(jax.random.rademacher(key, (), jnp.float32), jnp.asarray(task, jnp.int32), jnp.int32(0))

    def restart(self, state: SignState, *, key: PRNGKey) -> SignState:
        return self.reset(state.task, key=key)

    def step(self, state: SignState, action: Int[Array, ""]) -> tuple[SignState, Outcome]:
        right = (state.sign > 0) ^ (state.task.sum() == 1)
        reward = 0.25 * ((action == 1) == right).astype(jnp.float32)
        after = SignState(-state.sign, state.task, state.time + 1)
        end = after.time >= self.horizon
        return after, Outcome(reward, end, jnp.zeros_like(end), end & (reward > 0))

    def observe(self, state: SignState) -> Float[Array, ""]:
        return state.sign

    def parts(self, observations: Float[Array, " B"]) -> dict[str, env.Part]:
        return {"number": observations[None]}


SIGNS = Signs()
PLAIN, TURNED = Task(("plain", "same")), Task(("turned", "same"))
SMALL = PPOConfig(envs=8, length=16, minibatch=64, learning_rate=3e-3, discount=0.5)
NETWORK = Monolithic(SIGNS.graph, 1, DenseModules(16), 16)
ONLINE: dict[str, Any] = {
    "env": SIGNS,
    "network": NETWORK,
    "ppo": PPO(SIGNS, NETWORK, SMALL),
    "steps": 4096,
    "episodes": 64,
}


def lived(agent: Any, *tasks: Task) -> list[Moment]:
    """The end of each stage of a life with these tasks."""
    moments = live(agent, lifelong("probes", tasks), episodes=64, key=KEY)
    return [moment for moment in moments if moment.ended]


def score(agent: Any, state: AgentState, task: Task) -> float:
    return float(evaluate_agent(agent, state, [task], episodes=512, key=KEY).returns.mean())


def test_fine_tuning_learns_the_new_task_and_forgets_the_old_one():
    agent = OneNetwork(**ONLINE)
    first, second = (moment.state for moment in lived(agent, PLAIN, TURNED))
    assert score(agent, first, PLAIN) > 0.9 > 0.6 > score(agent, first, TURNED)
    assert score(agent, second, TURNED) > 0.9 > 0.5 > score(agent, second, PLAIN)


def test_elastic_weights_keep_the_old_task_if_they_are_strong_and_learn_the_new_one_if_not():
    weak, strong = (EWC(**ONLINE, config=EWCConfig(strength=strength, samples=256)) for strength in (0.0, 1e6))
    states = {agent: [moment.state for moment in lived(agent, PLAIN, TURNED)] for agent in (weak, strong)}
    assert score(weak, states[weak][1], TURNED) > 0.9 > 0.5 > score(weak, states[weak][1], PLAIN)
    assert score(strong, states[strong][1], PLAIN) > 0.9
    moved = {agent: distance(*(one.params for one in both)) for agent, both in states.items()}
    assert moved[strong] < 0.05 * moved[weak]


def distance(one: Elastic, other: Elastic) -> float:
    """How far a network moved in what mattered before."""
    leaves = (jax.tree.leaves(part) for part in (one.importance, one.now, other.now))
    return float(sum((weight * (a - b) ** 2).sum() for weight, a, b in zip(*leaves, strict=True))) ** 0.5


def test_information_of_earlier_tasks_decays_and_the_anchor_moves_on():
    agent = EWC(**{**ONLINE, "steps": 256}, config=EWCConfig(strength=0.0, decay=0.5, samples=256))
    one, two = (moment.state.params for moment in lived(agent, PLAIN, TURNED))
    forgetful = replace(agent, config=replace(agent.config, decay=0.0))
    *_, alone = (moment.state.params for moment in lived(forgetful, PLAIN, TURNED))
    for both, old, new in zip(*(jax.tree.leaves(x.importance) for x in (two, one, alone)), strict=True):
        np.testing.assert_allclose(both, 0.5 * old + new, rtol=1e-5, atol=1e-9)
    assert all(map(np.array_equal, jax.tree.leaves(two.now), jax.tree.leaves(two.anchor)))


# Distilling


ROWS = 96
DISTILLER = Distiller(SIGNS, NETWORK, DistillConfig(epochs=2, batch=16, old_rows=48), ROWS)


def samples_of(task: int, *, times: int = ROWS // 4) -> Replay:
    """Replay of four environments, and what a random policy says of it."""
    rng, shape = np.random.default_rng(task), (times + 1, 4)
    seen, no = jnp.asarray(rng.choice([-1.0, 1.0], shape).astype(np.float32)), jnp.zeros(shape, bool)
    rows = Packing.of(SIGNS).pack(Transition(seen, no.astype(jnp.uint8), no.astype(jnp.float32), no, no))
    replay = Replay(np.asarray(rows), times)
    teacher = NETWORK.pick(NETWORK.init(key=jax.random.key(100 + task)), (task % 2, task // 2 % 2))
    return replace(replay, taught=said(SIGNS, NETWORK, teacher, replay, what=numbers))


def test_what_a_policy_said_is_its_log_probabilities():
    replay, policy = samples_of(0), NETWORK.pick(NETWORK.init(key=jax.random.key(100)), (0, 0))
    rows = jnp.asarray(replay.rows[:-1].reshape(ROWS, -1))
    output = NETWORK(policy, SIGNS.parts(Packing.of(SIGNS).unpack(rows).observation))
    assert isinstance(output, Output)
    np.testing.assert_allclose(replay.taught.reshape(ROWS, 2).T, jax.nn.log_softmax(output.logits, axis=0), atol=2e-3)


def test_divergences_are_those_of_each_samples_own_task():
    params, tasks = NETWORK.init(key=KEY), [(0, 1), (1, 1)]
    one, other = (of_replay(task, samples_of(n, times=2)) for n, task in enumerate(tasks))
    both = jax.tree.map(lambda *parts: jnp.concatenate(parts), one, other)
    found = divergences(DISTILLER, params, both.at(jnp.arange(16)))
    for place, (task, sample) in enumerate(zip(tasks, (one, other), strict=True)):
        parts = SIGNS.parts(Packing.of(SIGNS).unpack(sample.rows).observation)
        output = NETWORK(NETWORK.pick(params, task), parts)
        assert isinstance(output, Output)
        log_p, log_q = np.asarray(sample.said, np.float32), np.asarray(jax.nn.log_softmax(output.logits, axis=0)).T
        expected = (np.exp(log_p) * (log_p - log_q)).sum(axis=1)
        np.testing.assert_allclose(found[8 * place : 8 * place + 8], expected, rtol=1e-4, atol=1e-6)


def test_old_tasks_are_drawn_evenly_and_room_that_is_not_filled_is_never_read():
    """The gradient of old tasks, over many steps, is that of the mean over all of their samples."""
    replays, structures = [samples_of(n, times=12) for n in range(3)], [(0, 0), (1, 0), (0, 1), (1, 1)]
    replays.append(samples_of(3))
    still = replace(DISTILLER, config=replace(DISTILLER.config, learning_rate=1e-12, epochs=400))
    student = still.init(NETWORK.init(key=KEY))
    told = [means for _, _, means in still.run(structures, replays, student, done=0, key=KEY) if means]
    new, old = (np.mean([means[name] for means in told]) for name in ("new", "old"))
    far = [
        float(divergences(still, student.params, some.at(jnp.arange(count))).mean())
        for structure, replay, count in zip(structures, replays, [48, 48, 48, ROWS], strict=True)
        for some in [of_replay(structure, replay)]
    ]
    assert new == pytest.approx(far[-1], rel=1e-3)
    assert old == pytest.approx(np.mean(far[:-1]), rel=0.02)  # 38,400 draws: 0.02 is more than four standard errors


def test_distilling_goes_on_from_any_step_to_the_same_end():
    replays, structures = [samples_of(n) for n in range(3)], [(0, 0), (1, 0), (0, 1)]
    begun = DISTILLER.init(NETWORK.init(key=KEY))
    states = {number: state for number, state, _ in DISTILLER.run(structures, replays, begun, done=0, key=KEY)}
    half = DISTILLER.epoch_steps
    *_, (number, again, _) = DISTILLER.run(structures, replays, states[half], done=half, key=KEY)
    assert number == DISTILLER.steps
    assert all(map(np.array_equal, jax.tree.leaves(again), jax.tree.leaves(states[number])))


def test_reset_and_distill_learns_new_tasks_and_keeps_old_ones():
    agent = ResetDistill(**ONLINE, replay_size=1024, config=DistillConfig(epochs=20, batch=64, old_rows=512))
    *_, end = lived(agent, PLAIN, TURNED, Task(("plain", "other")))
    assert all(score(agent, end.state, task) > 0.9 for task in end.state.met)
    assert [one.times for one in end.state.memory] == [64] * 3  # 512 of 1,024 transitions of 8 environments


# Rehearsing


def plain_vtrace(log_ratio: np.ndarray, reward: np.ndarray, discount: np.ndarray, value: np.ndarray, after: np.ndarray):
    """The sums of Espeholt et al. 2018, eq. 1, term by term."""
    ratio, length = np.minimum(1, np.exp(log_ratio)), len(reward)
    delta = ratio * (reward + discount * after - value)
    target = np.array(
        [
            value[s] + sum(np.prod(discount[s:t]) * np.prod(ratio[s:t]) * delta[t] for t in range(s, length))
            for s in range(length)
        ]
    )
    later = np.append(target[1:], after[-1])
    return target, ratio * (reward + discount * later - value)


def some_steps(seed: int, length: int = 12) -> tuple[np.ndarray, ...]:
    """Random steps in which an episode ends."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=length + 1)
    discount = np.where(np.arange(length) == 4, 0.0, 0.9)
    return rng.normal(size=length), rng.normal(size=length), discount, values[:-1], values[1:]


@pytest.mark.parametrize("seed", range(3))
def test_vtrace_is_that_of_plain_sums(seed: int):
    steps = some_steps(seed)
    found = losses.vtrace(*(jnp.asarray(part, jnp.float32) for part in steps))
    for one, other in zip(found, plain_vtrace(*steps), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_vtrace_on_policy_is_the_return_of_the_steps_to_come():
    _, reward, discount, value, after = some_steps(0)
    numbers = (jnp.asarray(part, jnp.float32) for part in (np.zeros(12), reward, discount, value, after))
    target, advantage = losses.vtrace(*numbers)
    later, expected = after[-1], []
    for r, d in zip(reward[::-1], discount[::-1], strict=True):
        later = r + d * later
        expected.insert(0, later)
    np.testing.assert_allclose(target, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(advantage, np.array(expected) - value, rtol=1e-4, atol=1e-5)


TIMES, ENVS = 20, 4


def clear_of(tasks: int, **options: Any) -> Clear:
    """Replay of tasks with random numbers, rewards and ends, and what was said of them."""
    memory, structures = [], [(n % 2, n // 2 % 2) for n in range(tasks)]
    for task in range(tasks):
        rng, shape = np.random.default_rng(task), (TIMES + 1, ENVS)
        ends, no = jnp.asarray(rng.random(shape) < 0.2), jnp.zeros(shape, bool)
        seen = jnp.asarray(rng.choice([-1.0, 1.0], shape), jnp.float32)
        reward = jnp.asarray(task + rng.random(shape), jnp.float32)
        action = jnp.asarray(rng.integers(0, 2, shape), jnp.uint8)
        rows = Packing.of(SIGNS).pack(Transition(seen, action, reward, ends, no))
        logits, value = rng.normal(size=(TIMES, ENVS, 2)), rng.normal(size=(TIMES, ENVS, 1))
        said = np.concatenate([logits - np.log(np.exp(logits).sum(-1, keepdims=True)), value], axis=-1)
        memory.append(Replay(np.asarray(rows), TIMES, said.astype(np.float16)))
    return Clear.of(ClearConfig(unroll=5, **options), structures, memory)


def test_pieces_are_even_over_old_tasks_and_over_their_replay():
    """Tasks come in turn; places by chance: chi-square tests that raise a false alarm once in a million."""
    clear, ppo = clear_of(3), PPO(SIGNS, NETWORK, SMALL)
    drawn = jax.vmap(lambda number: clear.draw(ppo, number, 7, key=KEY).steps.reward[0])(jnp.arange(300))
    tasks = np.floor(np.asarray(drawn)).astype(int).reshape(-1)
    assert (np.bincount(tasks) == 700).all()
    known = np.asarray(Packing.of(SIGNS).unpack(clear.rows.reshape(-1, clear.rows.shape[-1])).reward)
    known = known.reshape(-1, TIMES + 1, ENVS)[:3]
    counts = np.array([[(np.asarray(drawn) == x).sum() for x in task[:16].reshape(-1)] for task in known])
    assert counts.sum() == 2100  # every piece begins where it has five steps, and one more, before it
    assert stats.chisquare(counts.sum(axis=0)).pvalue > 1e-6


@pytest.mark.parametrize("clone", ["distributions", "actions"])
def test_the_loss_of_rehearsal_is_that_of_a_plain_version(clone: str):
    clear, ppo, params = clear_of(2, clone=clone), PPO(SIGNS, NETWORK, SMALL), NETWORK.init(key=KEY)
    piece = clear.draw(ppo, jnp.int32(1), 4, key=KEY)
    total = np.zeros(5)
    for unroll in range(4):
        steps = jax.tree.map(lambda leaf, n=unroll: leaf[:, n], piece.steps)
        output = NETWORK(NETWORK.pick(params, piece.structures[unroll]), SIGNS.parts(steps.observation))
        assert isinstance(output, Output)
        log_probs, values = np.asarray(jax.nn.log_softmax(output.logits, axis=0)).T, np.asarray(output.value)
        said, action = np.asarray(piece.said[:, unroll]), np.asarray(steps.action[:-1])[:, None]
        log_prob, then = (np.take_along_axis(table, action, 1)[:, 0] for table in (log_probs[:-1], said[:, :2]))
        discount = np.where(steps.ended[:-1], 0, SMALL.discount)
        reward = np.asarray(steps.reward[:-1])
        target, advantage = plain_vtrace(log_prob - then, reward, discount, values[:-1], values[1:])
        chances = np.exp(log_probs[:-1])
        far = (np.exp(said[:, :2]) * (said[:, :2] - log_probs[:-1])).sum(axis=1)
        total += [
            -(advantage * log_prob).mean() / 4,
            ((values[:-1] - target) ** 2).mean() / 4,
            -(chances * log_probs[:-1]).sum(axis=1).mean() / 4,
            (far if clone == "distributions" else -log_prob).mean() / 4,
            ((values[:-1] - said[:, 2]) ** 2).mean() / 4,
        ]
    expected = total @ [1, SMALL.value_weight, -SMALL.entropy_weight, 0.01, 0.005]
    assert float(clear.loss(ppo, params, piece)) == pytest.approx(expected, rel=1e-3)


def rehearsing(**options: Any) -> CLEAR:
    ppo, config = replace(ONLINE["ppo"], keeps_said=True), ClearConfig(unroll=4, ratio=0.5, **options)
    return CLEAR(**{**ONLINE, "ppo": ppo, "steps": 16384}, replay_size=512, config=config)


def test_clear_learns_the_new_task_and_keeps_most_of_the_old_one():
    """Two tasks that ask for the opposite in the same states; fine-tuning keeps nothing of the first."""
    agent = rehearsing()
    first, second = (moment.state for moment in lived(agent, PLAIN, TURNED))
    assert score(agent, first, PLAIN) > 0.95
    assert score(agent, second, TURNED) > 0.9 and score(agent, second, PLAIN) > 0.7
    assert [one.times for one in second.memory] == [64, 64]
    assert np.array_equal(second.memory[0].rows, first.memory[0].rows)


def test_clear_keeps_all_of_the_old_task_if_cloning_is_strong():
    agent = rehearsing(policy_weight=1.0)
    *_, end = lived(agent, PLAIN, TURNED)
    assert score(agent, end.state, PLAIN) > 0.98


# Columns


@pytest.mark.parametrize(("actions", "one", "both"), [(7, 18_928, 70_282), (6, 18_863, 70_074)])
def test_agents_have_as_many_parameters_as_the_paper_says(actions: Any, one: int, both: int):
    network = Monolithic(Grid2D(World(actions=actions)).graph, 1, ConvModules(), 16)
    assert parameter_count(network.init(key=KEY)) == one
    assert parameter_count(TwoColumns(network).init(key=KEY)) == both


def without_laterals(column: Any) -> Any:
    def plain(layer: Any) -> Any:
        return layer.layer if isinstance(layer, Beside) else layer

    return jax.tree.map(plain, column, is_leaf=is_layer)


def test_without_laterals_the_active_column_is_a_network_of_its_own():
    grid, key = Grid2D(World()), jax.random.key(3)
    network = Monolithic(grid.graph, 1, ConvModules(), 16)
    columns, task = TwoColumns(network).init(key=KEY), jnp.array([2, 0, 1])
    states = jax.vmap(lambda key: grid.reset(task, key=key))(jax.random.split(key, 8))
    parts = grid.parts(jax.vmap(grid.observe)(states))
    closed = jax.tree.map(lambda leaf: 0 * leaf if leaf.ndim == 1 else leaf, columns.active)  # gates, and biases
    other = Columns(closed, network.init(key=jax.random.key(7)))
    for both in (Columns(closed, columns.frozen), other):
        found = TwoColumns(network)(TwoColumns(network).pick(both, task), parts)
        expected = network(network.pick(without_laterals(closed), task), parts)
        np.testing.assert_allclose(found.distribution.numbers, expected.distribution.numbers, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found.worth(key=KEY), expected.worth(key=KEY), rtol=1e-4, atol=1e-5)


def test_lateral_connections_by_hand():
    """The actor's output layer takes from the frozen column's hidden layer; its own hidden layer is a first one."""
    columns, task, x = TwoColumns(NETWORK).init(key=KEY), jnp.array([1, 0]), jnp.array([[0.7, -1.0]])
    output = TwoColumns(NETWORK)(TwoColumns(NETWORK).pick(columns, task), {"number": x})
    assert isinstance(output, Output)
    hot, hidden = jnp.broadcast_to(NETWORK.described(task)[:, None], (16, 2)), []
    for early, last in (without_laterals(columns.active), columns.frozen):
        joined = jnp.concatenate([x, jnp.tanh(early.layer(x)), hot])
        hidden.append(jnp.tanh(last.actor.hidden(joined)))
    out = columns.active[-1].actor.out
    lateral = out.gate[:, None] * (out.second @ jnp.tanh(out.first @ hidden[1]))
    np.testing.assert_allclose(output.logits, out.layer(hidden[0]) + lateral, rtol=1e-4, atol=1e-5)


def test_progress_does_not_move_the_knowledge_base_and_moves_all_of_the_active_column():
    ppo = PPO(SIGNS, TwoColumns(NETWORK), SMALL)
    columns, task = ppo.network.init(key=KEY), jnp.array([[1, 0]])
    state = ppo.init(columns, task, task, key=KEY)
    for number in range(3):
        state, _, _ = ppo.update(state, key=jax.random.fold_in(KEY, number))
    assert all(map(np.array_equal, jax.tree.leaves(state.params.frozen), jax.tree.leaves(columns.frozen)))
    pairs = zip(jax.tree.leaves(state.params.active), jax.tree.leaves(columns.active), strict=True)
    assert not any(np.array_equal(one, other) for one, other in pairs)


def test_progress_and_compress_learns_and_keeps_the_old_task_if_it_is_held_back():
    ppo = PPO(SIGNS, TwoColumns(NETWORK), SMALL)
    weak, strong = (
        ProgressCompress(
            **{**ONLINE, "ppo": ppo},
            replay_size=1024,
            config=CompressConfig(strength=strength, samples=256, batch=64, learning_rate=1e-3),
        )
        for strength in (0.0, 1e7)
    )
    ends = {agent: [moment.state for moment in lived(agent, PLAIN, TURNED)] for agent in (weak, strong)}
    for agent, (first, second) in ends.items():
        assert score(agent, first, PLAIN) > 0.9
        assert not second.memory
    assert score(weak, ends[weak][1], TURNED) > 0.9 > 0.6 > score(weak, ends[weak][1], PLAIN)
    assert score(strong, ends[strong][1], PLAIN) > 0.9
