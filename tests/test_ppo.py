"""PPO: it finds known values and actions, and its parts do what they say."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hall.domain import Hall, HallEnv, small_modules
from probes import (
    ActionReward,
    ConstantReward,
    DelayedReward,
    EndlessReward,
    Probe,
    SeenActionReward,
    SeenReward,
    TwoHeads,
    evaluate,
)
from scipy import stats

from modlife.domains.grid2d.environment import Grid2D
from modlife.domains.grid2d.world import World
from modlife.errors import InputError
from modlife.learners.config import PPOConfig
from modlife.learners.losses import shuffle
from modlife.learners.ppo import PPO, LearnerState
from modlife.policies.acting import Rule
from modlife.policies.conv_modules import ConvModules
from modlife.policies.modular import Modular, Output

pytestmark = pytest.mark.usefixtures("optax_promotes")

KEY = jax.random.key(0)
GAMMA = 0.5
SMALL = {"envs": 8, "length": 16, "minibatch": 32, "learning_rate": 3e-3, "discount": GAMMA, "gae_lambda": 0.9}


def trained(probe: Probe, updates: int = 150, **options) -> Output:
    """What the network says of -1, 0, 1, 2, 3 after learning."""
    ppo = PPO(probe, TwoHeads(), PPOConfig(**(SMALL | options)))
    zero = jnp.zeros((1, 1), int)
    state = ppo.init(ppo.network.init(key=KEY), zero, zero, key=KEY)
    for number in range(updates):
        state, _, _ = ppo.update(state, key=jax.random.fold_in(KEY, number))
    output = ppo.network(state.params, {"number": jnp.array([[-1.0, 0.0, 1.0, 2.0, 3.0]])})
    assert isinstance(output, Output)
    return output


def test_it_values_a_constant_reward():
    assert float(trained(ConstantReward()).value[1]) == pytest.approx(1, abs=0.02)


def test_it_values_what_it_sees():
    np.testing.assert_allclose(trained(SeenReward()).value[jnp.array([0, 2])], [-1, 1], atol=0.05)


def test_it_discounts_a_delayed_reward():
    np.testing.assert_allclose(trained(DelayedReward()).value[1:4], [GAMMA**2, GAMMA, 1], atol=0.05)


def test_it_finds_the_better_action():
    probabilities = jax.nn.softmax(trained(ActionReward()).logits, axis=0)
    assert float(probabilities[1, 1]) > 0.95


def test_it_finds_the_better_action_for_what_it_sees():
    probabilities = jax.nn.softmax(trained(SeenActionReward()).logits, axis=0)
    assert float(probabilities[0, 0]) > 0.95
    assert float(probabilities[1, 2]) > 0.95


def test_a_time_limit_is_an_end_or_not_as_configured():
    """Four steps that pay 1 each: without bootstrap the future ends there, with it goes on for ever."""
    ends = trained(EndlessReward(), bootstrap_truncated=False).value[1:]
    np.testing.assert_allclose(ends, [1.875, 1.75, 1.5, 1], atol=0.08)
    goes_on = trained(EndlessReward(), bootstrap_truncated=True).value[1:]
    np.testing.assert_allclose(goes_on, 1 / (1 - GAMMA), atol=0.08)


GRID, CONV, HALL = Grid2D(World()), ConvModules(), HallEnv(Hall())


def learner(tasks: list[str], config: PPOConfig, sizes: tuple[int, ...] = (4, 4, 4)) -> tuple[PPO, LearnerState]:
    indices = jnp.array([HALL.graph.indices(HALL.graph.parse(task)) for task in tasks])
    ppo = PPO(HALL, Modular(HALL.graph, sizes, 3, small_modules()), config)
    return ppo, ppo.init(ppo.network.init(key=KEY), indices, indices, key=KEY)


TINY = PPOConfig(envs=4, length=32, minibatch=64)


def test_only_modules_of_the_tasks_learn_bit_for_bit():
    ppo, before = learner(["near/west/plain", "far/west/crossed"], TINY)
    after, _, _ = ppo.update(before, key=KEY)
    for factor, used in enumerate(({0, 1}, {0}, {0, 1})):
        for old, new in zip(*(jax.tree.leaves(s.params.factors[factor]) for s in (before, after)), strict=True):
            changed = {n for n in range(4) if (np.asarray(old[n]) != np.asarray(new[n])).any()}
            assert changed == used


def test_an_update_is_the_same_for_the_same_key_and_counts_itself():
    ppo, state = learner(["far/west/crossed"], TINY)
    (once, _, progress), (again, _, _), (other, _, _) = (ppo.update(state, key=jax.random.key(n)) for n in (1, 1, 2))
    jax.tree.map(np.testing.assert_array_equal, once.params, again.params)
    assert any((a != b).any() for a, b in zip(*map(jax.tree.leaves, (once.params, other.params)), strict=True))
    assert int(once.updates) == 1
    assert progress.episode_return.shape == (1,)


def test_the_gradient_of_tasks_is_the_mean_of_their_gradients():
    tasks = ["near/west/plain", "near/east/crossed", "far/east/plain"]
    ppo, state = learner(tasks, TINY)
    state, batch, _, _ = ppo.collect(state, key=KEY)
    index = jnp.tile(jnp.arange(64), (3, 1))
    whole, _ = jax.jit(ppo.gradient)(state.params, state.structures, batch, index, key=KEY)
    gradient = jax.jit(jax.grad(lambda *samples: ppo.loss(*samples, key=KEY)[0]))
    each = [
        gradient(state.params, state.structures[n], jax.tree.map(lambda leaf, n=n: leaf[n, :64], batch))
        for n in range(3)
    ]
    mean = jax.tree.map(lambda *leaves: sum(leaves) / 3, *each)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7), whole, mean)


def test_collected_data_are_consistent():
    """Log-probabilities and values are the network's own for the observations, and returns add up."""
    ppo, state = learner(["far/east/plain"], TINY)
    _, batch, _, _ = ppo.collect(state, key=KEY)
    policy = ppo.network.pick(state.params, state.structures[0])
    output = jax.jit(lambda seen: ppo.network(policy, HALL.parts(seen)))(batch.observation[0])
    assert isinstance(output, Output)
    log_probs = jax.nn.log_softmax(output.logits, axis=0)
    taken = np.asarray(log_probs)[np.asarray(batch.action[0]), np.arange(TINY.batch)]
    np.testing.assert_allclose(batch.log_prob[0], taken, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(batch.value[0], output.value, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(batch.target, batch.advantage + batch.value, rtol=1e-5, atol=1e-6)


def test_a_shuffle_is_a_permutation_and_fair():
    orders = jax.jit(jax.vmap(lambda key: shuffle(6, key=key)))(jax.random.split(KEY, 12_000))
    assert (np.sort(orders, axis=1) == np.arange(6)).all()
    codes, counts = np.unique(np.asarray(orders) @ 6 ** np.arange(6), return_counts=True)
    assert len(codes) == 720
    assert stats.chisquare(counts).pvalue > 1e-4  # the false-alarm rate


def compiled_programs() -> list[int]:
    """How often `collect` and `epoch` were compiled."""
    return [function._cache_size() for function in (PPO.collect, PPO.epoch)]  # pyright: ignore[reportAttributeAccessIssue]  # jit's own


def test_compilations_do_not_depend_on_the_number_of_tasks_met():
    """Other tasks, structures and parameters run the programs that the first task compiled."""
    config = PPOConfig(envs=2, length=16, minibatch=32)
    before = compiled_programs()
    for task in ("near/west/plain", "far/east/crossed", "near/east/crossed"):
        ppo, state = learner([task], config)
        ppo.update(state, key=KEY)
    after = compiled_programs()
    assert [b - a for a, b in zip(before, after, strict=True)] == [1, 1]


def test_evaluation_layouts_come_from_the_key():
    network = Modular(GRID.graph, (1, 1, 1), 1, CONV)
    policy = network.pick(network.init(key=KEY), jnp.zeros(3, int))
    run = jax.jit(
        lambda key: evaluate(GRID, network, policy, jnp.array([1, 0, 0]), episodes=200, rule=Rule("actor"), key=key)
    )
    once, again, other = run(jax.random.key(1)), run(jax.random.key(1)), run(jax.random.key(2))
    jax.tree.map(np.testing.assert_array_equal, once, again)
    assert (np.asarray(once.returns) != np.asarray(other.returns)).any()
    assert len(np.unique(once.length)) > 10, "episodes of one evaluation must start from different layouts"
    succeeded = np.asarray(once.success)
    assert (np.asarray(once.returns)[succeeded] > 0).all()
    assert (np.asarray(once.length)[~succeeded] == 64).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"minibatch": 300}, "minibatch = 300 does not divide envs * length = 16 * 256 = 4096."),
        ({"envs": 0}, "envs = 0, but it must be at least 1."),
        ({"learning_rate": 0.0}, "learning_rate = 0.0, but it must be more than 0."),
        ({"discount": 1.5}, "discount = 1.5, but it must be 0 to 1."),
    ],
)
def test_impossible_hyper_parameters_are_refused(options: dict, message: str):
    with pytest.raises(InputError) as caught:
        PPOConfig(**options)
    assert str(caught.value) == message


def test_devices_must_divide_the_work():
    with pytest.raises(InputError, match="3 devices cannot share envs = 16 and minibatch = 256 evenly"):
        PPO(GRID, Modular(GRID.graph, (1, 1, 1), 1, CONV), PPOConfig(), devices=3)
