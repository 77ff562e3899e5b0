"""Agents that the lifelong agent is compared with: what they learn, what they keep, and what they forget.

Known mistakes of other implementations are tried here by number, `test_pitfall_NN`:

     1  the square of a mean gradient in place of the mean of squares
     2  information of the actions taken in place of its expectation over actions
     3  lambda copied from elsewhere, where information is counted otherwise: loss and penalty are told (and
        test_tuning.py)
     4  decay of old information that also averages away the new
     5  information of the wrong task, or of another moment
     6  information normalised by something other than one mean over all parameters (where it is: `--ewc.normalise`)
     7  a pull that is swallowed by Adam and by scaling gradients down: its norms are told
     8  a critic that is held back
     9  one network that cannot tell tasks apart
    10  P&C: an active column that is not fresh, wrong laterals, a divergence that is a sum
    11  P&C evaluated by its active column
    12  CLEAR: V-trace of wrong pieces, or against what is said now instead of then
    13  replay that holds something else than it should
    14  the same states in different tasks: as 9, for CLEAR
    15  seeds that do not reach environments                            (of robots: test_robot_gym.py)
    16  zeros that are left out of means                                                (test_tuning.py)
    17  checkpoints that hold only part of an agent
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float, Int
from lives import NAMES, small
from probes import Probe, SeenReward, TwoHeads
from scipy import stats
from scipy.special import log_softmax
from transitions import random_transitions

from modlife.domains import env
from modlife.domains.env import Outcome, PRNGKey
from modlife.domains.graph import Discrete, Factor, Part, ProblemGraph
from modlife.domains.grid2d.environment import Grid2D, Observation
from modlife.domains.grid2d.world import World
from modlife.learners import fisher as information
from modlife.learners import losses
from modlife.learners.asking import numbers, said
from modlife.learners.clear import Clear, Piece
from modlife.learners.config import (
    BCQConfig,
    BoundedConfig,
    ClearConfig,
    CompressConfig,
    DistillConfig,
    EWCConfig,
    PPOConfig,
)
from modlife.learners.distill import Distiller, divergences, of_replay
from modlife.learners.fisher import fisher, normalised, released_compress_fisher, released_fisher
from modlife.learners.ppo import PPO, Anchor, pull_of
from modlife.learners.replay import NOTHING, AnyReplay, Packing, Replay, Transition
from modlife.lifelong import distilling, ewc, progress_compress
from modlife.lifelong.agent import AgentState
from modlife.lifelong.agents import AGENTS
from modlife.lifelong.clear import CLEAR, ModularCLEAR
from modlife.lifelong.compositional import Compositional
from modlife.lifelong.consolidate import acting_of, lessons_of
from modlife.lifelong.ewc import EWC, Elastic
from modlife.lifelong.explore import Explore
from modlife.lifelong.finetune import OneNetwork
from modlife.lifelong.loop import Moment, evaluate_agent, live
from modlife.lifelong.progress_batch import ProgressBatch
from modlife.lifelong.progress_compress import ProgressCompress
from modlife.lifelong.reports import Evaluated, held_record
from modlife.lifelong.reset_distill import ResetDistill
from modlife.policies.bank import parameter_count
from modlife.policies.columns import Beside, Columns, TwoColumns, is_layer
from modlife.policies.conv_modules import ConvModules
from modlife.policies.dense_modules import DenseModules
from modlife.policies.modular import Described, GaussianOutput, Modular, Monolithic, OnePolicy, Output, dense, q_critic
from modlife.runs.config import build
from modlife.runs.restore import tree_of
from modlife.types import Curriculum, Task

pytestmark = pytest.mark.usefixtures("optax_promotes")

KEY = jax.random.key(0)


@partial(jax.jit, static_argnums=0)
def output_of(network: Any, params: Any, structure: Any, parts: Any) -> Any:
    """What a policy says of a batch, as one program."""
    return network(network.pick(params, structure), parts)


@partial(jax.jit, static_argnums=0)
def seen_of(world: Any, rows: Any) -> Any:
    """The parts of packed observations, as one program."""
    return world.parts(Packing.of(world).unpack(rows).observation)


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


def test_pitfall_01_information_is_a_mean_of_squares_and_not_the_square_of_a_mean():
    """Of logit k in state s: p(s) π(k|s) (1 - π(k|s)); not the square of a mean gradient, which would vanish."""
    probe, numbers = SeenReward(), [-1.0, 1.0, 1.0, 1.0]
    found, critic = fisher(probe, TwoStates(), (LOGITS, jnp.float32(3)), ZERO, replay_of(probe, numbers))
    chances = np.asarray(jax.nn.softmax(LOGITS))
    np.testing.assert_allclose(found, np.array([[0.25], [0.75]]) * chances * (1 - chances), rtol=1e-5)
    assert float(critic) == 0


def test_pitfall_02_information_is_an_expectation_over_actions_whatever_was_done():
    probe, found = SeenReward(), []
    for action in (0, 1):
        seen, no = jnp.array([[-1.0, 1.0, 0.0]]).T, jnp.zeros((3, 1), bool)
        done = Transition(seen, jnp.full((3, 1), action, jnp.uint8), no.astype(jnp.float32), no, no)
        replay = Replay(np.asarray(Packing.of(probe).pack(done)), 2)
        found.append(fisher(probe, TwoStates(), (LOGITS, jnp.float32(3)), ZERO, replay)[0])
    assert np.array_equal(*found)


def test_information_of_a_line_is_the_closed_form():
    """Of the slope of action j: E x² / σⱼ²."""
    probe, numbers = SeenReward(), [-1.0, 0.5, 2.0]
    found = fisher(probe, Line(), jnp.array([[0.2], [-3.0]]), ZERO, replay_of(probe, numbers))
    np.testing.assert_allclose(found[:, 0], 1.75 / np.exp(2 * np.array([-0.5, 0.25])), rtol=1e-5)


def test_pitfall_01_information_does_not_depend_on_how_samples_are_grouped(monkeypatch: pytest.MonkeyPatch):
    probe, params = SeenReward(), (LOGITS, jnp.float32(3))
    numbers = np.random.default_rng(0).choice([-1.0, 1.0], 21).tolist()
    once = fisher(probe, TwoStates(), params, ZERO, replay_of(probe, numbers))
    often = fisher(probe, TwoStates(), params, ZERO, replay_of(probe, numbers * 30))
    monkeypatch.setattr(information, "CALL", 32)
    pieces = fisher(probe, TwoStates(), params, ZERO, replay_of(probe, numbers * 3))
    for other in (often, pieces):
        np.testing.assert_allclose(other[0], once[0], rtol=1e-4)


def test_information_of_the_released_code_is_the_closed_form():
    """The gradient of E KL(before || now) by a logit is E (now - before); its square is of the mean, not of each."""
    probe, before = SeenReward(), LOGITS + jnp.array([[0.3, 0.0, 0.0], [0.0, -0.2, 0.0]])
    params, old = (LOGITS, jnp.float32(3)), (before, jnp.float32(3))
    found, critic = released_fisher(probe, TwoStates(), params, old, ZERO, replay_of(probe, [-1.0, 1.0, 1.0, 1.0]))
    now, then = (np.asarray(jax.nn.softmax(one)) for one in (LOGITS, before))
    np.testing.assert_allclose(found, (np.array([[0.25], [0.75]]) * (now - then)) ** 2, rtol=1e-3, atol=1e-9)
    assert float(critic) == 0
    none, _ = released_fisher(probe, TwoStates(), params, params, ZERO, replay_of(probe, [-1.0, 1.0]))
    assert np.abs(none).max() < 1e-12  # a divergence from itself has no gradient, whatever matters


def test_information_of_the_released_compressing_is_the_closed_form():
    """As above, with what was said when a policy was compressed in the place of what was said before an update."""
    probe, teacher = SeenReward(), LOGITS + jnp.array([[0.3, 0.0, 0.0], [0.0, -0.2, 0.0]])
    states = [-1.0, 1.0, 1.0, 1.0]
    said = np.asarray(jax.nn.log_softmax(teacher))[[int(one > 0) for one in states]].astype(np.float16)
    replay = replace(replay_of(probe, states), taught=said[:, None])
    found, critic = released_compress_fisher(probe, TwoStates(), (LOGITS, jnp.float32(3)), ZERO, replay)
    now, then = np.asarray(jax.nn.softmax(LOGITS)), np.exp(said[[0, 1]].astype(np.float32))
    np.testing.assert_allclose(found, (np.array([[0.25], [0.75]]) * (now - then)) ** 2, rtol=1e-2, atol=1e-7)
    assert float(critic) == 0


def test_pitfall_06_normalised_information_has_a_mean_of_one_over_what_has_any():
    """By one mean over all arrays: not by one of each, nor by that of the array that happens to be the last."""
    found = normalised({"actor": [jnp.array([1.0, 2.0, 6.0, 0.0]), jnp.array([[11.0]])], "critic": jnp.zeros(5)})
    for one, expected in zip(found["actor"], ([0.2, 0.4, 1.2, 0.0], [[2.2]]), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-6)
    assert not np.asarray(found["critic"]).any()
    assert not np.asarray(normalised(jnp.zeros(3))).any()


def test_pitfall_08_what_only_the_critic_uses_has_no_information():
    grid = Grid2D(World())
    network = Monolithic(grid.graph, 1, ConvModules(), 16)
    params, task = network.init(key=KEY), jnp.array([1, 2, 3])
    steps = random_transitions((9, 4), seed=0)
    seen = Observation(steps.observation.cells % 10, steps.observation.direction % 4)
    rows = np.asarray(Packing.of(grid).pack(replace(steps, observation=seen)))
    *early, last = fisher(grid, network, params, task, Replay(rows, len(rows) - 1))
    early, last = jax.tree.map(np.asarray, (early, last))
    assert all(not leaf.any() for leaf in jax.tree.leaves(last.critic))
    assert all((leaf >= 0).all() and leaf.any() for leaf in jax.tree.leaves([*early, last.actor]))


# The pull


def test_the_pull_is_the_gradient_of_the_penalty():
    rng = np.random.default_rng(0)
    params, then, weights = (tuple(map(jnp.asarray, rng.random((2, 3, 4), np.float32))) for _ in range(3))
    anchor = Anchor.at(then, weights)

    def penalty(params: Any) -> Array:
        return jnp.float32(0) + sum(
            0.5 * (w * (a - b) ** 2).sum() for w, a, b in zip(weights, params, then, strict=True)
        )

    for found, expected in zip(pull_of(anchor, params), jax.grad(penalty)(params), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


SMALL_PPO = PPOConfig(envs=4, length=8, minibatch=16)


def test_pitfall_07_norms_of_the_pull_are_told_before_anything_is_scaled_down():
    ppo = PPO(SeenReward(), TwoHeads(), SMALL_PPO)
    params, zero = ppo.network.init(key=KEY), jnp.zeros((1, 1), jnp.int32)
    none = jax.tree.map(jnp.zeros_like, params)
    some = jax.tree.map(jnp.ones_like, params)
    free, held, pulled = (
        ppo.update(ppo.init(params, zero, zero, anchor, key=KEY), key=KEY)[0]
        for anchor in (None, Anchor.at(none, none), Anchor.at(none, some))
    )
    assert all(map(np.array_equal, jax.tree.leaves(free.params), jax.tree.leaves(held.params)))
    assert held.anchor is not None and held.anchor.means[0] > 0 and held.anchor.means[1] == 0
    assert pulled.anchor is not None
    size = float(jnp.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(params))))
    assert float(pulled.anchor.means[1]) == pytest.approx(size, rel=0.05)  # weights of 1 towards 0


def test_pitfall_03_the_penalty_is_told_beside_the_loss():
    """Where nothing moves, by the formula; the loss is that of all samples, since minibatches are of equal size."""
    ppo = PPO(SeenReward(), TwoHeads(), replace(SMALL_PPO, learning_rate=1e-12, epochs=1))
    params, zero = ppo.network.init(key=KEY), jnp.zeros((1, 1), jnp.int32)
    then = jax.tree.map(lambda leaf: leaf + 0.5, params)
    state = ppo.init(
        params, zero, zero, Anchor.at(then, jax.tree.map(lambda leaf: jnp.full_like(leaf, 3.0), params)), key=KEY
    )
    key_collect, _ = jax.random.split(KEY, 2)
    _, batch, _, _ = ppo.collect(state, key=key_collect)
    expected, _ = jax.jit(ppo.loss)(params, zero[0], jax.tree.map(lambda leaf: leaf[0], batch), key=KEY)
    after, _, _ = ppo.update(state, key=KEY)
    assert after.anchor is not None
    assert after.anchor.told[2] == pytest.approx(float(expected), rel=1e-4)
    assert after.anchor.told[3] == pytest.approx(0.5 * 3 * 0.25 * parameter_count(params), rel=1e-4)
    record = held_record(after.anchor.told)
    assert record["terms"] == [pytest.approx(told, rel=1e-3) for told in after.anchor.told[2:]]


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
EPISODES = 64
SMALL = PPOConfig(envs=8, length=16, minibatch=64, learning_rate=3e-3, discount=0.5)
NETWORK = Monolithic(SIGNS.graph, 1, DenseModules(16), 16)
ONLINE: dict[str, Any] = {
    "env": SIGNS,
    "network": NETWORK,
    "ppo": PPO(SIGNS, NETWORK, SMALL),
    "steps": 4096,
    "episodes": EPISODES,
}


COMPRESSING: dict[str, Any] = {
    **ONLINE,
    "ppo": PPO(SIGNS, TwoColumns(NETWORK), SMALL),
    "steps": 256,
    "replay_size": 256,
}
"""Of Progress & Compress, in short."""


def lived(agent: Any, *tasks: Task) -> list[Moment]:
    """The end of each stage of a life with these tasks."""
    moments = live(agent, Curriculum(tuple((task,) for task in tasks)), episodes=EPISODES, key=KEY)
    return [moment for moment in moments if moment.ended]


def score(agent: Any, state: AgentState, task: Task) -> float:
    """With as many episodes as lives have here, so that their program is used again."""
    return float(evaluate_agent(agent, state, [task], episodes=EPISODES, key=KEY).returns.mean())


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


def test_with_the_released_information_little_holds_the_network():
    exact, released = (
        EWC(**{**ONLINE, "steps": 1024}, config=EWCConfig(samples=256, fisher=which)) for which in ("exact", "released")
    )
    sizes = []
    for agent in (exact, released):
        (end,) = lived(agent, PLAIN)
        sizes.append(sum(float(leaf.sum()) for leaf in jax.tree.leaves(end.state.params.importance)))
    assert 0 < sizes[1] < 0.1 * sizes[0]


def test_the_compositional_agent_learns_the_new_task_and_keeps_the_old_one():
    """Told the structures: both tasks share the module of their side, and have one each of their rule."""
    network = Modular.with_q(SIGNS.graph, SIGNS.graph.shape, DenseModules(16))
    offline = BCQConfig(epochs=10, batch=64, target_period=50, td_weight=1.0, learning_rate=1e-2)
    ppo = PPO(SIGNS, OnePolicy(network), SMALL)
    agent = Compositional(SIGNS, network, ppo, offline, None, 1024, 4096, EPISODES)
    first, second = (moment.state for moment in lived(agent, PLAIN, TURNED))
    assert score(agent, first, PLAIN) > 0.9
    assert score(agent, second, TURNED) > 0.9 and score(agent, second, PLAIN) > 0.9


def distance(one: Elastic, other: Elastic) -> float:
    """How far a network moved in what mattered before."""
    leaves = (jax.tree.leaves(part) for part in (one.importance, one.now, other.now))
    return float(sum((weight * (a - b) ** 2).sum() for weight, a, b in zip(*leaves, strict=True))) ** 0.5


def test_pitfall_04_information_of_earlier_tasks_decays_and_new_one_is_added_whole():
    agent = EWC(**{**ONLINE, "steps": 256}, config=EWCConfig(strength=0.0, decay=0.5, samples=256))
    one, two = (moment.state.params for moment in lived(agent, PLAIN, TURNED))
    forgetful = replace(agent, config=replace(agent.config, decay=0.0))
    *_, alone = (moment.state.params for moment in lived(forgetful, PLAIN, TURNED))
    for both, old, new in zip(*(jax.tree.leaves(x.importance) for x in (two, one, alone)), strict=True):
        np.testing.assert_allclose(both, 0.5 * old + new, rtol=1e-5, atol=1e-9)
    assert all(map(np.array_equal, jax.tree.leaves(two.now), jax.tree.leaves(two.anchor)))


def mean_of_any(information: Any) -> float:
    """Over all parameters that have any."""
    every = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(information)])
    return float(every[every > 0].mean())


@pytest.mark.parametrize(
    "agent",
    [
        EWC(**{**ONLINE, "steps": 256}, config=EWCConfig(decay=0.0, samples=128)),
        ProgressCompress(**COMPRESSING, config=CompressConfig(decay=0.0, samples=128, epochs=1, batch=64)),
    ],
    ids=["ewc", "compress"],
)
def test_pitfall_06_information_of_every_task_is_normalised_if_that_is_asked_for(agent: EWC | ProgressCompress):
    """With a decay of 0 there is that of the last task alone."""
    asked = replace(agent, config=replace(agent.config, normalise=True))
    plain, even = (
        [mean_of_any(end.state.params.importance) for end in lived(one, PLAIN, TURNED)] for one in (agent, asked)
    )
    assert 0 < min(plain) < max(plain) < 0.1 and even == pytest.approx([1, 1], rel=1e-5)


def is_of(replay: AnyReplay, task: Task) -> bool:
    """Whether rewards are those that a task pays for what was seen and done."""
    whole = replay.read()
    steps = Packing.of(SIGNS).unpack(jnp.asarray(whole.rows[: whole.times].reshape(-1, whole.rows.shape[-1])))
    right = (np.asarray(steps.observation) > 0) ^ (sum(SIGNS.graph.indices(task)) == 1)
    return np.array_equal(steps.reward, 0.25 * ((np.asarray(steps.action) == 1) == right).astype(np.float32))


def test_pitfall_05_information_is_of_the_task_that_was_learnt_at_its_end(monkeypatch: pytest.MonkeyPatch):
    seen: list[Any] = []

    def spy(*arguments: Any) -> Any:
        seen.append(arguments)
        return fisher(*arguments)

    monkeypatch.setattr(ewc, "fisher", spy)
    agent = EWC(**{**ONLINE, "steps": 256}, config=EWCConfig(samples=128))
    ends = [moment.state.params for moment in lived(agent, PLAIN, TURNED)]
    for task, end, (_, _, params, structure, replay) in zip((PLAIN, TURNED), ends, seen, strict=True):
        assert tuple(structure.tolist()) == SIGNS.graph.indices(task) and is_of(replay, task)
        assert all(map(np.array_equal, jax.tree.leaves(params), jax.tree.leaves(end.now)))


def test_pitfall_05_information_of_compressing_is_of_the_base_and_the_task_at_its_end(monkeypatch: pytest.MonkeyPatch):
    seen: list[Any] = []

    def spy(*arguments: Any) -> Any:
        seen.append(arguments)
        return fisher(*arguments)

    monkeypatch.setattr(progress_compress, "fisher", spy)
    agent = ProgressCompress(**COMPRESSING, config=CompressConfig(epochs=1, batch=64, samples=128))
    ends = [moment.state.params for moment in lived(agent, PLAIN, TURNED)]
    for task, end, (_, network, params, structure, replay) in zip((PLAIN, TURNED), ends, seen, strict=True):
        assert tuple(structure.tolist()) == SIGNS.graph.indices(task) and is_of(replay, task)
        assert network == NETWORK and replay.times * 8 == 128
        assert all(map(np.array_equal, jax.tree.leaves(params), jax.tree.leaves(end.now)))


@pytest.mark.parametrize("name", ["finetune", "ewc", "pc", "pc-bcq", "clear", "reset-distill", "clear-modular"])
def test_pitfall_09_and_14_agents_can_tell_tasks_with_the_same_states_apart(name: str):
    """By a descriptor with a 1 for each component; or by modules."""
    agent = build(small(name, domain="grid2d"))
    params, tasks = agent.network.init(key=KEY), ([0, 1, 2], [3, 1, 2])
    one, other = (jax.tree.leaves(agent.network.pick(params, jnp.array(task))) for task in tasks)
    assert not all(map(np.array_equal, one, other))
    if name != "clear-modular":
        assert [np.flatnonzero(leaves[-1]).tolist() for leaves in (one, other)] == [[0, 5, 10], [3, 5, 10]]


def test_pitfall_13_replay_holds_the_transitions_of_its_own_task():
    third = Task(("turned", "other"))
    more = {"steps": 256, "ppo": replace(ONLINE["ppo"], keeps_said=True)}
    agent = CLEAR(**{**ONLINE, **more}, replay_size=128, config=ClearConfig(unroll=4, ratio=0.5))
    *_, end = lived(agent, PLAIN, TURNED, third)
    tasks = (PLAIN, TURNED, third)
    assert [[is_of(one, task) for task in tasks] for one in end.state.memory] == [
        [True, False, True],  # the third pays for the same as the first, ...
        [False, True, False],
        [True, False, True],
    ]
    first, _, last = end.state.memory
    assert not np.array_equal(first.rows, last.rows)  # ... but other steps were taken


def test_pitfall_15_seeds_reach_environments():
    grid, task = Grid2D(World()), jnp.array([0, 1, 2])
    first = jax.jit(lambda key: grid.observe(grid.reset(task, key=key)))
    seen = [np.asarray(first(jax.random.key(seed))) for seed in (0, 0, 1, 2, 3)]
    assert np.array_equal(seen[0], seen[1])
    assert len({one.tobytes() for one in seen}) >= 3


def test_pitfall_17_every_agent_is_killed_and_resumed_and_one_checkpoint_holds_all_of_it():
    """`test_kill.py` goes through these names; EWC's anchor and information are parameters like others."""
    assert set(AGENTS.names) <= set(NAMES)
    state = build(small("ewc")).init(key=KEY)
    saved = tree_of(state)
    assert parameter_count(saved) == 3 * parameter_count(state.params.now)


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


@partial(jax.jit, static_argnums=0)
def far_of(distiller: Distiller, params: Any, samples: Any) -> Any:
    """Divergences of all samples, as one program."""
    return divergences(distiller, params, samples.at(jnp.arange(samples.rows.shape[0])), news=8)


def test_what_a_policy_said_is_its_log_probabilities():
    replay, policy = samples_of(0), NETWORK.pick(NETWORK.init(key=jax.random.key(100)), (0, 0))
    rows = jnp.asarray(replay.rows[:-1].reshape(ROWS, -1))
    output = jax.jit(NETWORK.__call__)(policy, seen_of(SIGNS, rows))
    np.testing.assert_allclose(replay.taught.reshape(ROWS, 2).T, jax.nn.log_softmax(output.logits, axis=0), atol=2e-3)


@pytest.mark.parametrize("way", ["forward", "reversed"])
def test_pitfall_10_divergences_are_means_of_what_numpy_says_of_each_samples_own_task(way: Any):
    """Of the new task, whose samples come first, from what was said; of old ones in either direction."""
    params, tasks = NETWORK.init(key=KEY), [(0, 1), (1, 1)]
    one, other = (of_replay(task, samples_of(n, times=2)) for n, task in enumerate(tasks))
    both = jax.tree.map(lambda *parts: jnp.concatenate(parts), one, other)
    found = far_of(replace(DISTILLER, config=replace(DISTILLER.config, clone_old=way)), params, both)
    for place, (task, sample) in enumerate(zip(tasks, (one, other), strict=True)):
        output = output_of(NETWORK, params, jnp.array(task), seen_of(SIGNS, sample.rows))
        log_p, log_q = np.asarray(sample.said, np.float32), np.asarray(jax.nn.log_softmax(output.logits, axis=0)).T
        if place and way == "reversed":
            log_p, log_q = log_q, log_p
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
        float(far_of(still, student.params, of_replay(structure, replay)).mean())
        for structure, replay in zip(structures, replays, strict=True)
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


def test_pitfall_07_norms_of_the_pull_are_told_of_each_epoch_of_compressing():
    params = NETWORK.init(key=KEY)
    none, some = (jax.tree.map(like, params) for like in (jnp.zeros_like, jnp.ones_like))
    still = replace(DISTILLER, config=replace(DISTILLER.config, learning_rate=1e-12))
    student = still.init(params, Anchor.at(none, some))
    size = float(jnp.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(params))))
    steps = still.run([(0, 0)], [samples_of(0)], student, done=0, key=KEY)
    ends, told = zip(*((state, means["new"]) for _, state, means in steps if means), strict=True)
    assert len(ends) == 2
    for state in ends:
        assert state.anchor is not None
        assert state.anchor.told[1] == pytest.approx(size, rel=1e-4) and 0 < state.anchor.told[0] < size
        assert state.anchor.told[3] == pytest.approx(size**2 / 2, rel=1e-4)
    assert [state.anchor and state.anchor.told[2] for state in ends] == pytest.approx(told, rel=1e-5)


def test_reset_and_distill_learns_new_tasks_and_keeps_old_ones():
    agent = ResetDistill(**ONLINE, replay_size=1024, config=DistillConfig(epochs=20, batch=64, old_rows=512))
    *_, end = lived(agent, PLAIN, TURNED, Task(("plain", "other")))
    assert all(score(agent, end.state, task) > 0.9 for task in end.state.met)
    assert [one.times for one in end.state.memory] == [64] * 3  # 512 of 1,024 transitions of 8 environments


# Rehearsing


def plain_vtrace(
    log_ratio: np.ndarray,
    reward: np.ndarray,
    discount: np.ndarray,
    value: np.ndarray,
    after: np.ndarray,
    bars: tuple[float, float] = (1.0, 1.0),
):
    """The sums of Espeholt et al. 2018, eq. 1, term by term."""
    ratio, trace = (np.minimum(bar, np.exp(log_ratio)) for bar in bars)
    length = len(reward)
    delta = ratio * (reward + discount * after - value)
    target = np.array(
        [
            value[s] + sum(np.prod(discount[s:t]) * np.prod(trace[s:t]) * delta[t] for t in range(s, length))
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


@pytest.mark.parametrize("bars", [(1.0, 1.0), (1.0, 0.7), (2.0, 1.0)])
@pytest.mark.parametrize("seed", range(3))
def test_pitfall_12_vtrace_is_that_of_plain_sums(seed: int, bars: tuple[float, float]):
    steps = some_steps(seed)
    numbers = (jnp.asarray(part, jnp.float32) for part in steps)
    found = losses.vtrace(*numbers, clip_step=bars[0], clip_trace=bars[1])
    for one, other in zip(found, plain_vtrace(*steps, bars=bars), strict=True):
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


def clear_of(tasks: int, *, apart: bool = False, **options: Any) -> Clear:
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
    return Clear.of(ClearConfig(unroll=5, **options), structures, memory, apart=apart)


def drawn_by(clear: Clear, ppo: PPO, number: int, *, count: int) -> Piece:
    """What is rehearsed in a gradient step, by one program."""

    @jax.jit
    def parts(number: Array) -> tuple[Any, ...]:
        piece = clear.draw(ppo, number, count, key=KEY)
        return piece.steps, piece.said, piece.structures

    return Piece(*parts(jnp.int32(number)))


def rewards_of(clear: Clear) -> np.ndarray:
    """The rewards of three tasks' replay."""
    steps = jax.jit(Packing.of(SIGNS).unpack)(clear.rows.reshape(-1, clear.rows.shape[-1]))
    return np.asarray(steps.reward).reshape(-1, TIMES + 1, ENVS)[:3]


def test_pieces_are_even_over_old_tasks_and_over_their_replay():
    """Tasks come in turn; places by chance: chi-square tests that raise a false alarm once in a million."""
    clear, ppo = clear_of(3), PPO(SIGNS, NETWORK, SMALL)
    draw = jax.jit(jax.vmap(lambda number: clear.draw(ppo, number, 7, key=KEY).steps.reward[0]))
    drawn = draw(jnp.arange(300))
    tasks = np.floor(np.asarray(drawn)).astype(int).reshape(-1)
    assert (np.bincount(tasks) == 700).all()
    known = rewards_of(clear)
    counts = np.array([[(np.asarray(drawn) == x).sum() for x in task[:16].reshape(-1)] for task in known])
    assert counts.sum() == 2100  # every piece begins where it has five steps, and one more, before it
    assert stats.chisquare(counts.sum(axis=0)).pvalue > 1e-6


def test_pieces_of_a_reservoir_begin_where_one_was_kept():
    clear, ppo = clear_of(3, keep="reservoir"), PPO(SIGNS, NETWORK, SMALL)
    drawn = np.asarray(drawn_by(clear, ppo, 0, count=300).steps.reward[0])
    known = rewards_of(clear)
    assert set(drawn.tolist()) == set(known[:, [0, 6, 12]].reshape(-1).tolist())  # three whole pieces of five and one


MODULAR = Modular.with_q(SIGNS.graph, SIGNS.graph.shape, DenseModules(16))


@pytest.mark.parametrize(
    ("network", "clone", "surrogate"),
    [
        (NETWORK, "distributions", "plain"),
        (NETWORK, "actions", "clipped"),
        (MODULAR, "distributions", "plain"),
    ],
)
def test_pitfall_12_the_loss_of_rehearsal_is_that_of_a_plain_version(network: Any, clone: str, surrogate: str):
    clear, ppo, params = (
        clear_of(2, clone=clone, surrogate=surrogate, apart=network is MODULAR),
        PPO(SIGNS, network, SMALL),
        network.init(key=KEY),
    )
    piece = drawn_by(clear, ppo, 1, count=4)
    taken = jax.tree.map(np.asarray, piece.steps)
    total = np.zeros(5)
    for unroll in range(4):
        steps = jax.tree.map(lambda leaf, n=unroll: leaf[:, n], taken)
        seen = {"number": steps.observation[None]}
        output = jax.tree.map(np.asarray, output_of(network, params, np.asarray(piece.structures)[unroll], seen))
        log_probs, values = log_softmax(output.logits, axis=0).T, output.values.max(axis=0)
        said, action = np.asarray(piece.said[:, unroll]), np.asarray(steps.action[:-1])[:, None]
        log_prob, then = (np.take_along_axis(table, action, 1)[:, 0] for table in (log_probs[:-1], said[:, :2]))
        ended = (steps.terminated | steps.truncated)[:-1]
        discount = np.where(ended, 0, SMALL.discount)
        reward = np.asarray(steps.reward[:-1])
        target, advantage = plain_vtrace(log_prob - then, reward, discount, values[:-1], values[1:])
        chances = np.exp(log_probs[:-1])
        far = (np.exp(said[:, :2]) * (said[:, :2] - log_probs[:-1])).sum(axis=1)
        ratio = np.exp(log_prob - then)
        cut = np.minimum(ratio * advantage, np.clip(ratio, 1 - SMALL.clip, 1 + SMALL.clip) * advantage)
        total += [
            -(cut if surrogate == "clipped" else advantage * log_prob).mean() / 4,
            ((values[:-1] - target) ** 2).mean() / 4,
            -(chances * log_probs[:-1]).sum(axis=1).mean() / 4,
            (far if clone == "distributions" else -log_prob).mean() / 4,
            ((values[:-1] - said[:, 2]) ** 2).mean() / 4,
        ]
    expected = total @ [1, SMALL.value_weight, -SMALL.entropy_weight, 0.01, 0.005]
    loss = jax.jit(lambda params: clear.loss(ppo, params, piece))
    assert float(loss(params)) == pytest.approx(expected, rel=1e-3)


def test_the_gradient_of_rehearsal_with_modules_is_that_of_one_chain_after_the_other():
    clear, ppo, bank = clear_of(3, apart=True), PPO(SIGNS, MODULAR, SMALL), MODULAR.init(key=KEY)
    piece = drawn_by(clear, ppo, 1, count=6)
    found = jax.jit(jax.grad(lambda bank: clear.loss(ppo, bank, piece)))(bank)

    @jax.jit
    def alone(chain: Any, steps: Any, said: Any) -> Any:
        return jax.grad(lambda chain: clear.loss_of(ppo, chain, Piece(steps, said, piece.structures[:1])))(chain)

    expected = jax.tree.map(lambda leaf: np.zeros(leaf.shape), bank.factors)
    for number, structure in enumerate(np.asarray(piece.structures)):
        steps, said = jax.tree.map(lambda leaf, n=number: leaf[:, n : n + 1], (piece.steps, piece.said))
        for total, part, module in zip(expected, alone(bank.pick(structure), steps, said), structure, strict=True):
            for whole, one in zip(jax.tree.leaves(total), jax.tree.leaves(part), strict=True):
                whole[module] += np.asarray(one) / 6
    for one, other in zip(jax.tree.leaves(found.factors), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


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


def test_clear_with_modules_learns_the_new_task_and_keeps_most_of_the_old_one():
    ppo = PPO(SIGNS, MODULAR, SMALL, keeps_said=True)
    more = {"network": MODULAR, "ppo": ppo, "steps": 16384}
    agent = ModularCLEAR(**{**ONLINE, **more}, replay_size=512, config=ClearConfig(unroll=4, ratio=0.5))
    *_, end = lived(agent, PLAIN, TURNED)
    assert score(agent, end.state, TURNED) > 0.9 and score(agent, end.state, PLAIN) > 0.7
    assert len(agent.wrong_policies(end.state, PLAIN, 0)) == 1


def test_pitfall_12_what_is_cloned_is_what_the_acting_policy_said():
    """In a task of one update all steps are taken by the network as it was before; which says other things after it."""
    agent = replace(rehearsing(), steps=128, replay_size=128)
    moments = list(live(agent, Curriculum(((PLAIN,),)), episodes=EPISODES, key=KEY))
    begun, replay = moments[0].state.params, moments[-1].state.memory[0].read()
    parts = seen_of(SIGNS, jnp.asarray(replay.rows[: replay.times].reshape(128, -1)))
    structure = jnp.array(SIGNS.graph.indices(PLAIN))
    before, after = (output_of(NETWORK, one, structure, parts) for one in (begun, moments[-1].state.params))
    taught = np.asarray(replay.taught, np.float32).reshape(128, 3)
    np.testing.assert_allclose(taught[:, :2].T, jax.nn.log_softmax(before.logits, axis=0), atol=2e-3)
    np.testing.assert_allclose(taught[:, 2], before.value, atol=2e-3)
    assert np.abs(taught[:, :2].T - jax.nn.log_softmax(after.logits, axis=0)).max() > 0.02


def test_a_reservoir_is_of_pieces_in_the_order_of_time_from_all_of_the_phase():
    """In an episode the number's sign changes with every step; where one ends, what comes next is by chance."""
    agent = rehearsing(keep="reservoir")
    short = replace(agent, steps=2048, replay_size=40 * 8)
    (end,) = lived(short, PLAIN)
    (replay,) = end.state.memory
    assert replay.times == short.times == 40 and replay.taught.shape == (40, 8, 3)
    flat = Packing.of(SIGNS).unpack(jnp.asarray(replay.rows[:40].reshape(40 * 8, -1)))
    sign, ended = (np.asarray(part).reshape(8, 5, 8) for part in (flat.observation, flat.ended))
    assert (sign[:, 1:] == -sign[:, :-1])[~ended[:, :-1]].all()


def test_every_piece_of_a_phase_is_as_likely_to_be_kept():
    """A chi-square test that raises a false alarm once in a million; no piece is kept twice."""
    explore = Explore(PPO(SIGNS, NETWORK, SMALL), 2048, lambda state: None, lambda *_: None, KEY, 40, 5)  # pyright: ignore
    counts = np.zeros((16, 3), int)
    for number in range(300):
        drawn = replace(explore, key=jax.random.key(number))
        kept = [(update, first // 5) for update in range(16) for _, first in drawn.places(update, 16)]
        assert len(set(kept)) == len(kept) == 8
        for one in kept:
            counts[one] += 1
    assert stats.chisquare(counts.reshape(-1)).pvalue > 1e-6


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


@jax.jit
def log_and_value(output: Output) -> tuple[Array, Array]:
    return output.distribution.numbers, output.value


def test_without_laterals_the_active_column_is_a_network_of_its_own():
    grid, key = Grid2D(World()), jax.random.key(3)
    network = Monolithic(grid.graph, 1, ConvModules(), 16)
    columns, task = TwoColumns(network).init(key=KEY), jnp.array([2, 0, 1])
    seen = jax.jit(lambda key: grid.parts(jax.vmap(lambda one: grid.observe(grid.reset(task, key=one)))(key)))
    parts = seen(jax.random.split(key, 8))
    closed = jax.tree.map(lambda leaf: np.zeros_like(leaf) if leaf.ndim == 1 else leaf, columns.active)  # and biases
    other = Columns(closed, network.init(key=jax.random.key(7)))
    for both in (Columns(closed, columns.frozen), other):
        found = output_of(TwoColumns(network), both, task, parts)
        expected = output_of(network, without_laterals(closed), task, parts)
        for one, two in zip(log_and_value(found), log_and_value(expected), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


def test_pitfall_10_lateral_connections_by_hand():
    """The actor's output layer takes from the frozen column's hidden layer; its own hidden layer is a first one."""
    columns, task, x = TwoColumns(NETWORK).init(key=KEY), jnp.array([1, 0]), jnp.array([[0.7, -1.0]])
    output = output_of(TwoColumns(NETWORK), columns, task, {"number": x})
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


def test_pitfall_10_the_active_column_is_fresh_for_each_task_and_the_base_is_not():
    agent = ProgressCompress(**{**ONLINE, "ppo": PPO(SIGNS, TwoColumns(NETWORK), SMALL)})
    state = agent.init(key=KEY)
    one, other = (agent.begin(state, PLAIN, key=jax.random.key(seed)).params for seed in (1, 2))
    assert not np.array_equal(*(jax.tree.leaves(both.active)[0] for both in (one, other)))
    for both in (one, other):
        assert all(map(np.array_equal, jax.tree.leaves(both.frozen), jax.tree.leaves(state.params.now)))


def test_compressing_does_not_move_the_active_column_nor_what_it_said(monkeypatch: pytest.MonkeyPatch):
    """To the bit: what moves has the base's parameters only, and its teacher says what it said after progress."""
    asked: list[Any] = []

    def spy(*arguments: Any, **more: Any) -> Any:
        asked.append(arguments[2])
        return said(*arguments, **more)

    monkeypatch.setattr(distilling, "said", spy)
    agent = ProgressCompress(**COMPRESSING, config=CompressConfig(epochs=3, batch=64, samples=128))
    moments = live(agent, Curriculum(((PLAIN,),)), episodes=EPISODES, key=KEY)
    amid = [one.state for one in moments if one.phase == "offline" and one.done < one.length]
    ((columns, hot),) = asked
    assert len(amid) >= 2 and isinstance(columns, Columns)
    for state in amid:
        replay = state.memory[-1].read()
        again = said(SIGNS, agent.ppo.network, (columns, hot), replay, what=numbers)
        assert np.array_equal(replay.taught, again)
        assert jax.tree.structure(state.work.params) == jax.tree.structure(columns.frozen)
    one, other = (jax.tree.leaves(state.work.params) for state in (amid[0], amid[-1]))
    assert not all(map(np.array_equal, one, other))  # while the base does move


def test_pitfall_10_the_critic_of_the_base_is_taught_nothing_and_stays_as_it_was():
    """The authors' choice: compressing is of the actor alone, so laterals of the critic take from a fresh one."""
    agent = ProgressCompress(**COMPRESSING, config=CompressConfig(epochs=2, batch=64, samples=128))
    begun = next(iter(live(agent, Curriculum(((PLAIN,),)), episodes=EPISODES, key=KEY))).state.params.now
    *_, end = lived(agent, PLAIN, TURNED)
    pairs = [(before, after) for before, after in zip(begun, end.state.params.now, strict=True)]
    assert all(map(np.array_equal, *(jax.tree.leaves(part.critic) for part in pairs[-1])))
    assert not any(map(np.array_equal, *(jax.tree.leaves(part.actor) for part in pairs[-1])))


def test_pitfall_11_tasks_seen_are_evaluated_by_the_base_and_the_active_column_is_told_apart():
    """A base that never learns, since there are no epochs: the active column is good, the agent is not."""
    ppo = PPO(SIGNS, TwoColumns(NETWORK), SMALL)
    agent = ProgressCompress(**{**ONLINE, "ppo": ppo}, replay_size=1024, config=CompressConfig(epochs=0, samples=256))
    moments = live(agent, Curriculum(((PLAIN,),)), episodes=EPISODES, key=KEY)
    found = {one.when: one for moment in moments for one in moment.reports if isinstance(one, Evaluated)}
    returns = {when: float(one.evaluation.returns.mean()) for when, one in found.items()}
    assert returns["online"] > 0.9 > 0.7 > returns["seen"]


# Compressing by batch RL


WITH_Q = Monolithic.with_critic(SIGNS.graph, DenseModules(16), q_critic(SIGNS.graph))
BATCHED: dict[str, Any] = {
    **ONLINE,
    "network": WITH_Q,
    "ppo": PPO(SIGNS, TwoColumns(WITH_Q), SMALL),
    "acting": acting_of(BCQConfig()),
    "replay_size": 1024,
}


def test_a_network_with_descriptors_is_a_chain_to_learners_from_replay():
    params, tasks = WITH_Q.init(key=KEY), [(0, 0), (1, 0), (0, 1)]
    described, parts = Described(WITH_Q), {"number": jnp.array([[0.7, -1.0]])}
    bank = described.bank(params, tasks, room=16)
    assert bank.sizes == (1, 16)
    for number, task in enumerate(tasks):
        found, expected = described(bank.pick((0, number)), parts), WITH_Q(WITH_Q.pick(params, task), parts)
        assert all(map(np.array_equal, jax.tree.leaves(found), jax.tree.leaves(expected)))


@pytest.mark.parametrize(
    "offline",
    [
        BCQConfig(epochs=10, batch=64, target_period=50, td_weight=1.0, learning_rate=1e-2),
        BoundedConfig(epochs=10, batch=64, tasks=2, old_rows=512, td_weight=1.0, learning_rate=1e-2),
    ],
    ids=["bcq", "bounded"],
)
def test_compressing_by_batch_rl_keeps_old_tasks(offline: BCQConfig):
    """Nothing holds the base back but replay of all tasks; the active column is never compressed from itself."""
    agent = ProgressBatch(**BATCHED, offline=offline)
    ends = [moment.state for moment in lived(agent, PLAIN, TURNED)]
    assert all(score(agent, ends[-1], task) > 0.9 for task in (PLAIN, TURNED))
    assert not ends[-1].structures and len(ends[-1].memory) == 2
    shapes = [jax.tree.map(jnp.shape, one.params) for one in ends]
    assert shapes[0] == shapes[1] == jax.tree.map(jnp.shape, WITH_Q.init(key=KEY))


def test_batch_rl_moves_the_network_and_not_the_descriptors():
    agent = ProgressBatch(**BATCHED, offline=BCQConfig(epochs=1, batch=64))
    layout = replace(agent.layout(16), times=ROWS // 4, envs=4)
    bank = Described(WITH_Q).bank(WITH_Q.init(key=KEY), [(0, 0), (1, 0)], room=16)
    lessons = lessons_of([(0, 0), (0, 1)], [replace(samples_of(n), taught=NOTHING) for n in range(2)])
    assert [one.pattern for one in lessons] == [(True, False), (True, True)]
    learner = agent.consolidator(layout)
    *_, (_, work, _) = learner.run(bank, lessons, learner.init(bank.pick((0, 1))), done=0, key=KEY)
    (before, hot), (after, still) = bank.pick((0, 1)), learner.modules(work)
    assert np.array_equal(hot, still)
    assert not any(map(np.array_equal, jax.tree.leaves(before[-1]), jax.tree.leaves(after[-1])))
