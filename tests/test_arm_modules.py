"""Networks for robots: counts of the paper, networks that share nothing, critics that take the action."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from modlife.domains.robot.world import RobotWorld
from modlife.policies.arm_modules import Last, arm_modules
from modlife.policies.bank import parameter_count
from modlife.policies.columns import TwoColumns
from modlife.policies.layers import product
from modlife.policies.modular import VALUE_ACTIONS, GaussianOutput, Modular, Monolithic, Network, of_actor, q_critic

KEY, GRAPH, ARMS = jax.random.key(0), RobotWorld().graph, arm_modules()
BATCH = 5
PARTS = {
    part.name: jax.random.normal(jax.random.fold_in(KEY, n), (*part.shape, BATCH)) for n, part in enumerate(GRAPH.state)
}


def said(network: Network, task: tuple[int, ...] = (0, 0, 0)) -> GaussianOutput:
    output = network(network.pick(network.init(key=KEY), jnp.array(task)), PARTS)
    assert isinstance(output, GaussianOutput)
    return output


def test_agents_have_as_many_parameters_as_the_paper_says():
    path = parameter_count(Modular.with_q(GRAPH, (1, 1, 1), ARMS).init(key=KEY))
    bank = parameter_count(Modular.with_q(GRAPH, (4, 4, 4), ARMS).init(key=KEY))
    assert path == 11_176 + 2 * 11_009
    assert bank + path == 165_970  # the shared modules, and a working copy of a path
    assert parameter_count(Modular(GRAPH, (48, 48, 48), 1, ARMS).init(key=KEY)) == 1_040_304
    knowledge = Monolithic.usual(GRAPH, ARMS)
    assert knowledge == Monolithic.with_critic(GRAPH, ARMS, q_critic(GRAPH))  # also with batch RL
    assert parameter_count(knowledge.init(key=KEY)) == 34_634
    assert parameter_count(TwoColumns(knowledge).init(key=KEY)) == 104_384


def test_a_fresh_actor_says_nearly_nothing_and_spreads_as_the_paper_says():
    output = said(Modular.with_q(GRAPH, (1, 1, 1), ARMS))
    assert 0 < float(jnp.abs(output.mean).max()) < 0.05
    np.testing.assert_array_equal(output.log_std, [0, 0, 0, 0, 0, 0, 0, -0.5])
    assert max(float(jnp.abs(critic(output.mean)).max()) for critic in output.critics) > 0.05


def test_lateral_connections_are_drawn_as_the_layers_beside_them_and_those_to_actions_say_little():
    """Weights within Glorot's bound, nearly up to it; to the actor's output layer a hundredth, gates with them."""
    *early, last = TwoColumns(Monolithic.usual(GRAPH, ARMS)).fresh(key=KEY)
    actor, critic, _ = last.networks
    for beside, factor in ((early[1].networks[0].join, 1), (actor.second, 1), (actor.out, 0.01), (critic.out, 1)):
        for weight in (beside.first, beside.second):
            assert 0.8 * factor < float(jnp.abs(weight).max()) / (6 / sum(weight.shape)) ** 0.5 <= factor * 1.0001
        assert float(beside.gate.max()) <= 0.1 * factor


@pytest.mark.parametrize("columns", [False, True])
def test_many_actions_are_worth_what_each_is_worth_alone(columns: bool):
    """Also in two columns, where halves of a batch belong to different networks."""
    network = TwoColumns(Monolithic.usual(GRAPH, ARMS)) if columns else Modular.with_q(GRAPH, (1, 1, 1), ARMS)
    output = said(network)
    actions = jax.random.normal(KEY, (8, 3, BATCH))
    for critic in output.critics:
        each = jnp.stack([critic(actions[:, n]) for n in range(3)])
        np.testing.assert_allclose(critic(actions), each, rtol=1e-4, atol=1e-5)
        assert float(jnp.abs(each[0] - each[1]).min()) > 0


def test_a_state_is_worth_the_mean_of_drawn_actions_and_the_actor_learns_nothing_by_it():
    network = Modular.with_q(GRAPH, (1, 1, 1), ARMS)
    chain = network.init(key=KEY).pick((0, 0, 0))

    def worth(chain: tuple) -> jax.Array:
        output = network(chain, PARTS)
        assert isinstance(output, GaussianOutput)
        return output.worth(key=KEY)

    output = said(network)
    drawn = output.drawn(VALUE_ACTIONS, key=KEY)
    expected = jnp.stack([critic(drawn).mean(axis=0) for critic in output.critics])
    np.testing.assert_allclose(worth(chain), expected, rtol=1e-5)
    noise = (drawn - output.mean[:, None]) / jnp.exp(output.log_std)[:, None, None]
    assert abs(float(noise.mean())) < 0.2 and 0.85 < float(noise.std()) < 1.15
    gradient = jax.grad(lambda chain: worth(chain).sum())(chain)
    moved = [jnp.any(leaf != 0) for leaf in jax.tree.leaves(gradient)]
    mine = jax.tree.leaves(of_actor(chain))
    assert [bool(one) for one in moved] == [not one for one in mine] and 0 < sum(mine) < len(mine)


@pytest.mark.parametrize("critics", [1, 2])
def test_features_are_those_of_the_whole_chain(critics: int):
    network = Modular(GRAPH, (1, 1, 1), critics, ARMS)
    chain = network.init(key=KEY).pick((0, 0, 0))
    whole = said(network)
    for depth in (1, 2):
        features = network.features(chain, PARTS, depth=depth)
        assert features.shape == (network.width(depth), BATCH)
        output = network.onward(chain, PARTS, features, depth=depth)
        assert isinstance(output, GaussianOutput)
        np.testing.assert_allclose(output.mean, whole.mean, rtol=1e-5)
        np.testing.assert_allclose(output.valued(output.mean.T), whole.valued(whole.mean.T), rtol=1e-5)


def test_each_module_is_told_its_own_component():
    network = Monolithic.usual(GRAPH, ARMS)
    outputs = [said(network, task) for task in ((0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3))]
    means = [np.asarray(one.mean) for one in outputs]
    assert all((means[0] != other).any() for other in means[1:])
    told = network.each(jnp.broadcast_to(network.described(jnp.array([1, 2, 3]))[:, None], (16, 2)))
    assert {name: np.asarray(hot)[:, 0].tolist() for name, hot in told.items()} == {
        "told-obstacle": [0, 1, 0],
        "told-object": [0, 0, 1, 0],
        "told-robot": [0, 0, 0, 1],
    }


def test_scaling_down_touches_output_layers_only():
    last = Modular.with_q(GRAPH, (1, 1, 1), ARMS).init(key=KEY).pick((0, 0, 0))[-1]
    less = ARMS.scaled(last, 0.01)
    assert isinstance(less, Last)
    for one, other in zip(last.networks, less.networks, strict=True):
        np.testing.assert_allclose(other.out.weight, 0.01 * one.out.weight, rtol=1e-6)
        np.testing.assert_array_equal(other.second.weight, one.second.weight)


def test_many_batches_are_multiplied_as_one_and_so_are_their_gradients():
    """The plain product, by the axes of what is multiplied, says the same, and what is learnt from it is the same."""
    weight, several = (
        jax.random.normal(jax.random.fold_in(KEY, n), shape) for n, shape in enumerate(((7, 4), (4, 3, 5)))
    )

    def found(multiply: Callable[..., Array], weight: Array, x: Array) -> Array:
        return jnp.tanh(multiply(weight, x)).sum()

    for x in (several, several[:, 0]):
        np.testing.assert_array_equal(product(weight, x), jnp.tensordot(weight, x, axes=1))
        by_hand, ours = (
            jax.grad(partial(found, multiply), argnums=(0, 1))(weight, x)
            for multiply in (partial(jnp.tensordot, axes=1), product)
        )
        for one, other in zip(by_hand, ours, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
