"""Networks: the paper's parameter counts, picking, and that fast forms equal plain ones."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modlife.domains.env import Choice
from modlife.domains.graph import Discrete, Factor, Part, ProblemGraph
from modlife.domains.grid2d.environment import Grid2D, Observation
from modlife.domains.grid2d.world import World
from modlife.errors import InputError
from modlife.policies.bank import parameter_count
from modlife.policies.conv_modules import ChainedConvModules, ConvModules, First, Last
from modlife.policies.layers import Conv2x2, Linear
from modlife.policies.modular import Modular, Monolithic, Output, dense

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
SEVEN, SIX = World.released().graph, World().graph
CONV = ConvModules()


def count(network: Modular | Monolithic) -> int:
    return parameter_count(network.init(key=KEY))


def test_parameter_counts_are_the_papers():
    """With the released code's seven actions, for which the paper gives its numbers."""
    assert 64 * count(Modular(SEVEN, (1, 1, 1), 1, CONV)) == 1_080_320  # STL
    assert count(Modular(SEVEN, (64, 64, 64), 1, CONV)) == 1_080_320  # the same as one bank
    working_copy = count(Modular(SEVEN, (1, 1, 1), 7, CONV))
    assert count(Modular(SEVEN, (4, 4, 4), 7, CONV)) + working_copy == 86_350  # compositional
    assert count(Monolithic(SEVEN, 1, CONV)) == 18_928  # EWC, CLEAR, monolithic MTL


def test_parameter_counts_with_six_actions():
    assert count(Modular(SIX, (1, 1, 1), 1, CONV)) == 16_815
    assert count(Monolithic(SIX, 1, CONV)) == 18_863
    assert count(Modular(SIX, (4, 4, 4), 6, CONV)) == 68_560


def test_parameter_counts_per_factor():
    static, target, dynamics = Modular(SEVEN, (1, 1, 1), 7, CONV).init(key=KEY).factors
    assert isinstance(dynamics, Last)
    assert [parameter_count(module) for module in (static, target)] == [696, 568 + 4_128]
    assert parameter_count(dynamics.encoder) == 2_648
    assert parameter_count(dynamics.actor) == parameter_count(dynamics.critic) == 4_615


def observations(world: World, batch: int) -> Observation:
    """Real views of random layouts of random tasks."""
    env = Grid2D(world)
    tasks = jnp.array([world.graph.indices(task) for task in world.graph.tasks])[jnp.arange(batch) % 64]
    keys = jax.random.split(KEY, batch)
    return jax.jit(jax.vmap(lambda task, key: env.observe(env.reset(task, key=key))))(tasks, keys)


@partial(jax.jit, static_argnums=0)
def apply(network: Modular | Monolithic, params, structure, parts) -> Output:
    """The output of the policy that a structure stands for."""
    output = network(network.pick(params, structure), parts)
    assert isinstance(output, Output)
    return output


def test_encoding_four_directions_equals_encoding_every_sample():
    env = Grid2D(World())
    network = Modular(env.graph, (1, 1, 1), 6, CONV)
    bank, first = network.init(key=KEY), jnp.zeros(3, int)
    parts = env.parts(observations(World(), 64))
    assert isinstance(parts["agent"], Choice)
    written_out = parts | {"agent": dense(parts["agent"])}
    fast, plain = apply(network, bank, first, parts), apply(network, bank, first, written_out)
    np.testing.assert_allclose(fast.logits, plain.logits, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(fast.values, plain.values, rtol=1e-5, atol=1e-6)


def test_parts_are_the_channels():
    for world in (World(), World.released()):
        env = Grid2D(world)
        seen = observations(world, 8)
        last = Observation(jnp.moveaxis(seen.cells, 0, -1), seen.direction)
        parts = env.parts(seen)
        whole = jnp.concatenate([dense(parts[name]) for name in ("static", "target", "agent")])
        np.testing.assert_array_equal(whole, env.channels(last))


def test_convolution_equals_the_librarys():
    conv = Conv2x2.init(3, 5, rng=RNG)
    x = jax.random.normal(KEY, (3, 6, 7, 4))
    kernel = conv.weight.reshape(5, 2, 2, 3).transpose(0, 3, 1, 2)
    plain = jax.lax.conv(x.transpose(3, 0, 1, 2), kernel, (1, 1), "VALID") + conv.bias[None, :, None, None]
    np.testing.assert_allclose(conv(x), plain.transpose(1, 2, 3, 0), rtol=1e-5, atol=1e-5)


def plainly_pooled(conv: Conv2x2, x):
    """Convolution, then the largest of each block, step by step."""
    y = conv(x)
    channels, height, width, batch = y.shape
    return y.reshape(channels, height // 2, 2, width // 2, 2, batch).max(axis=(2, 4))


def test_pooled_convolution_and_its_gradients_equal_the_plain_steps():
    conv = Conv2x2.init(3, 5, rng=RNG)
    x, weights = jax.random.normal(KEY, (3, 7, 9, 4)), jax.random.normal(jax.random.key(1), (5, 3, 4, 4))

    def total(function):
        return jax.jit(jax.value_and_grad(lambda conv, x: (weights * function(conv, x)).sum(), argnums=(0, 1)))

    fast, plain = total(Conv2x2.pooled)(conv, x), total(plainly_pooled)(conv, x)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), fast, plain)


def test_ties_among_equal_patches_do_not_change_the_gradient():
    """An empty view is all ties; the gradient must be as if one of them had won, and the bias's counted once."""
    conv = Conv2x2.init(2, 3, rng=RNG)
    x = jnp.ones((2, 7, 7, 2))
    gradient = jax.jit(jax.grad(lambda conv: conv.pooled(x).sum()))(conv)
    np.testing.assert_allclose(gradient.bias, 9 * 2)
    np.testing.assert_allclose(gradient.weight, 9 * 2)


def test_initialisation_is_the_papers():
    linear, conv = Linear.init(64, 32, rng=RNG), Conv2x2.init(8, 16, rng=RNG)
    np.testing.assert_allclose(jnp.linalg.norm(linear.weight, axis=1), 1, rtol=1e-5)
    assert not linear.bias.any()
    bound = 1 / np.sqrt(4 * 8)
    assert 0.9 * bound < float(jnp.abs(conv.weight).max()) <= bound
    assert float(conv.weight.std()) == pytest.approx(bound / np.sqrt(3), rel=0.1)


def test_gradients_are_exactly_zero_outside_the_picked_modules():
    env = Grid2D(World())
    network = Modular(env.graph, (4, 4, 4), 6, CONV)
    parts, structure = env.parts(observations(World(), 32)), jnp.array([2, 0, 3])

    def loss(bank):
        output = network(network.pick(bank, structure), parts)
        assert isinstance(output, Output)
        return (output.logits**2).sum() + (output.value**2).sum()

    for factor, module in enumerate(jax.jit(jax.grad(loss))(network.init(key=KEY)).factors):
        for leaf in jax.tree.leaves(module):
            picked = int(structure[factor])
            assert leaf[picked].any()
            assert not np.delete(np.asarray(leaf), picked, axis=0).any()


def test_placing_what_was_picked_changes_nothing_and_placing_other_modules_changes_only_them():
    network = Modular(SIX, (4, 4, 4), 6, CONV)
    bank, structure = network.init(key=KEY), jnp.array([1, 3, 0])
    same = bank.place(structure, bank.pick(structure))
    jax.tree.map(np.testing.assert_array_equal, same, bank)
    other = jax.tree.map(lambda leaf: leaf + 1, bank.pick(structure))
    changed = bank.place(structure, other)
    for factor in range(3):
        for before, after in zip(
            jax.tree.leaves(bank.factors[factor]), jax.tree.leaves(changed.factors[factor]), strict=True
        ):
            differs = (np.asarray(before) != np.asarray(after)).reshape(4, -1)
            assert differs[int(structure[factor])].all()
            assert not np.delete(differs, int(structure[factor]), axis=0).any()


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_any_number_of_factors_and_modules(depth: int):
    names = tuple(f"f{n}" for n in range(depth))
    factors = tuple(Factor(name, ("a", "b"), sees=(name,)) for name in names)
    graph = ProblemGraph("any", factors, tuple(Part(name, (2, 7, 7)) for name in names), Discrete(("x", "y", "z")))
    network = Modular(graph, tuple(range(1, depth + 1)), 3, CONV)
    bank = network.init(key=KEY)
    assert bank.sizes == tuple(range(1, depth + 1))
    parts = {name: jax.random.normal(jax.random.key(n), (2, 7, 7, 6)) for n, name in enumerate(names)}
    output = apply(network, bank, jnp.arange(depth), parts)
    assert output.logits.shape == output.values.shape == (3, 6)
    for name in names:  # every factor's view reaches the output
        changed = apply(network, bank, jnp.arange(depth), parts | {name: parts[name] + 1})
        assert not np.allclose(changed.logits, output.logits)


def test_chained_modules_see_only_what_comes_before_them():
    env = Grid2D(World())
    network = Modular(env.graph, (4, 4, 4), 6, ChainedConvModules())
    bank = network.init(key=KEY)
    first = bank.factors[0]
    assert isinstance(first, First)
    assert first.encoder.first.weight.shape == (4, 8, 4 * 7)
    output = apply(network, bank, jnp.array([0, 1, 2]), env.parts(observations(World(), 5)))
    assert output.logits.shape == (6, 5)


def test_the_monolithic_network_hears_its_descriptor():
    env = Grid2D(World())
    network = Monolithic(env.graph, 1, CONV)
    params, parts = network.init(key=KEY), env.parts(observations(World(), 5))
    _, hot = network.pick(params, jnp.array([3, 0, 2]))
    assert np.flatnonzero(np.asarray(hot)).tolist() == [3, 4, 10]
    outputs = [apply(network, params, jnp.array(s), parts).logits for s in ([0, 0, 0], [0, 1, 0])]
    assert not np.allclose(outputs[0], outputs[1])
    with pytest.raises(InputError, match="cannot hold 12 components"):
        Monolithic(env.graph, 1, CONV, descriptor=8)


def test_the_value_is_the_largest_q_and_only_it_gets_the_gradient():
    q = jnp.array([[1.0, -3.0], [2.0, -1.0], [0.5, -2.0]])
    value, gradient = jax.value_and_grad(lambda q: Output(jnp.zeros_like(q), q).value.sum())(q)
    assert float(value) == 1.0
    np.testing.assert_array_equal(gradient, [[0, 0], [1, 1], [0, 0]])
