"""One life on two devices: the same algorithm, the same result every time."""

import subprocess
import sys

PROGRAM = """
from modlife.runtime import start_jax
start_jax(threads=2)
import jax, jax.numpy as jnp, numpy as np
from hall.domain import Hall, HallEnv, small_modules
from modlife.learners.config import PPOConfig
from modlife.learners.ppo import PPO
from modlife.policies.modular import Modular

env, key = HallEnv(Hall()), jax.random.key(0)
network = Modular.with_q(env.graph, (4, 4, 4), small_modules())
ppo = PPO(env, network, PPOConfig(envs=4, length=32, minibatch=64), devices=2)
tasks = jnp.array([[0, 1, 1], [1, 0, 1]])
state = ppo.init(network.init(key=key), tasks, tasks, key=key)

# The averaged gradient of two shares is the gradient of the whole.
_, batch, _, progress = ppo.collect(state, key=key)
one = PPO(env, network, ppo.config)
index = jnp.tile(jnp.arange(128), (2, 1))
whole = jax.jit(one.gradient)(state.params, tasks, batch, index, key=key)
share = jnp.tile(jnp.arange(64), (2, 1))
from modlife.learners.sharding import ALL, SECOND
def halves(batch, more):
    here = jax.tree.map(lambda part: part * jax.lax.axis_index("device"), more)
    return ppo.gradient(state.params, tasks, batch, share, more=here, key=key)
split = jax.jit(ppo.share.run(halves, (SECOND, ALL), ALL))(batch, state.params)
with_more = jax.tree.map(lambda part, more: part + more / 2, whole[0], state.params), whole[1]
jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), with_more, split)
assert progress.episodes.shape == (2,)

results = []
for _ in range(2):
    again = state
    for number in range(2):
        again, _, _ = ppo.update(again, key=jax.random.fold_in(key, number))
    results.append(again.params)
jax.tree.map(np.testing.assert_array_equal, *results)
assert any((a != b).any() for a, b in zip(*map(jax.tree.leaves, (results[0], state.params))))
print("equal")
"""

# Agents with terms of their own in the loss, and learners whose actors halt, exchange no more than that.
EXCHANGES = """
from modlife.runtime import start_jax
start_jax(threads=2)
import jax
from hall.domain import Hall, HallEnv, small_modules
from modlife.domains.robot.environment import RobotLift
from modlife.domains.robot.world import RobotWorld
from modlife.learners.config import PPOConfig
from modlife.learners.ppo import PPO, Anchor, Rehearsal
from modlife.policies.arm_modules import arm_modules
from modlife.policies.modular import Modular

def count(env, modules, anchored, **config):
    key, (sizes, task) = jax.random.key(0), ((1, 1, 1), jax.numpy.zeros((1, 3), int))
    network = Modular.with_q(env.graph, sizes, modules)
    ppo = PPO(env, network, PPOConfig(envs=2, length=4, minibatch=4, **config), devices=2)
    params = network.init(key=key)
    anchor = Anchor.at(params, params) if anchored else None
    state = jax.eval_shape(lambda: ppo.init(params, task, task, anchor, key=key))
    batch = jax.eval_shape(lambda state: ppo.collect(state, key=key)[1], state)
    epochs = [ppo.epoch.lower(ppo, state, batch, one, key=key) for one in (None, Pulled())]
    return [one.compile().as_text().count(" all-reduce(") for one in (ppo.collect.lower(ppo, state, key=key), *epochs)]

class Pulled(Rehearsal):
    def gradient(self, ppo, params, number, *, key):
        return params

print(count(HallEnv(Hall()), small_modules(), True))
print(count(RobotLift(RobotWorld()), arm_modules(), False, stop_divergence=0.1))
"""


def test_devices_never_have_two_exchanges_at_once():
    """Each device might begin with another one, and then both would wait for ever."""
    out = subprocess.run([sys.executable, "-c", EXCHANGES], capture_output=True, text=True, timeout=280)
    assert out.stdout == "[1, 1, 1]\n[1, 1, 1]\n", out.stderr


def test_two_devices_average_to_the_whole_gradient_and_repeat_exactly():
    out = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=280)
    assert out.stdout == "equal\n", out.stderr
