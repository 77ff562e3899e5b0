"""Time limits: what an episode would have gone on with is known to whoever asks, replay and batch RL included."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from scipy.special import softmax

from modlife.learners import offline
from modlife.learners.bcq import BCQ
from modlife.learners.replay_table import Lesson, ReplayTable
from modlife.lifelong.agent import learn
from modlife.policies.modular import Output
from modlife.runs.config import build, life_from_options

KEY = jax.random.key(0)
CONFIG = life_from_options(
    "comp-struct",
    "hall",
    {
        "only": ["near/west/plain", "near/east/crossed"],
        "steps": 512,
        "episodes": 2,
        "world": {"horizon": 3},
        "replay_size": 256,
        "ppo": {"envs": 4, "length": 32, "minibatch": 64},
        "offline": {"epochs": 1, "batch": 64, "bootstrap_truncated": True},
    },
)


@pytest.fixture(scope="module")
def lived():
    agent = build(CONFIG)
    state = agent.init(key=KEY)
    with jax.numpy_dtype_promotion("standard"):
        for number, stage in enumerate(CONFIG.stages.stages):
            for step in learn(agent, state, stage, key=jax.random.fold_in(KEY, number)):
                state = step.state
    return agent, state


def test_replay_tells_what_time_limits_cut_off(lived):
    """After every transition stands what the environment showed before it began anew: one step on from the last."""
    agent, state = lived
    replay, packing = state.memory[0], agent.layout(1).packing
    unpack = jax.jit(packing.unpack)
    rows = unpack(jnp.asarray(replay.rows[: replay.times]).reshape(-1, packing.words))
    truncated = np.asarray(rows.truncated).reshape(-1, 4)
    assert (
        10 < truncated.sum() < truncated.size and not (np.asarray(rows.terminated) & np.asarray(rows.truncated)).any()
    )
    assert len(replay.finals) == truncated.sum(axis=0).max()
    for env in range(4):
        count = truncated[:, env].sum()
        seen = unpack(jnp.asarray(replay.finals[:, env])).observation[:count]
        assert np.asarray(seen).any(axis=1).all()  # nothing of the padding


def test_targets_go_on_through_time_limits_and_not_through_ends(lived):
    """Against a plain version: where truncated, the target network's value of what was seen before the restart."""
    agent, state = lived
    layout = agent.layout(16)
    bcq = BCQ(layout, CONFIG.settings.offline, 0.9)
    replay, structure, packing = state.memory[0], state.structures[0], layout.packing
    pattern = (True, True, True)
    table = layout.fill(state.params, [Lesson(structure, pattern, replay)])
    chain = state.params.pick(structure)
    values = bcq.valued(jnp.zeros((16, *layout.extent, 3)), table, 0, chain)
    index = jnp.arange(replay.times * 4, dtype=jnp.int32)

    @jax.jit
    def targets(table: ReplayTable, values: Array) -> Array:
        return bcq.targets(chain, offline.Rows(layout, table, jnp.int32(0), index, chain, pattern), values)

    @jax.jit
    def output_of(row: Array) -> Output:
        found = agent.network(chain, agent.env.parts(packing.unpack(row[None]).observation))
        assert isinstance(found, Output)
        return found

    found = np.asarray(targets(table, values)).reshape(-1, 4)
    sample = jax.jit(packing.unpack)(jnp.asarray(replay.rows[: replay.times]).reshape(-1, packing.words))
    truncated, terminated = (np.asarray(x).reshape(-1, 4) for x in (sample.truncated, sample.terminated))
    for time, env in [*np.argwhere(truncated)[:6], *np.argwhere(terminated)[:6], (0, 0), (1, 2)]:
        number = truncated[:time, env].sum()
        after = replay.finals[number, env] if truncated[time, env] else replay.rows[time + 1, env]
        output = jax.tree.map(np.asarray, output_of(after))
        probs = softmax(output.logits[:, 0])
        allowed = np.where(probs > 0.3 * probs.max(), output.values[:, 0], -np.inf)
        future = 0.0 if terminated[time, env] else 0.9 * allowed.max()
        reward = float(np.asarray(sample.reward).reshape(-1, 4)[time, env])
        assert found[time, env] == pytest.approx(reward + future, rel=1e-4, abs=1e-5)


def test_without_the_wish_nothing_is_kept_of_it(lived):
    agent, _ = lived
    plain = build(
        replace(
            CONFIG,
            settings=replace(CONFIG.settings, offline=replace(CONFIG.settings.offline, bootstrap_truncated=False)),
        )
    )
    assert agent.ppo.keeps_reached and not plain.ppo.keeps_reached
    assert plain.layout(16).extent == (plain.times + 1, 4)
    assert agent.layout(16).extent == (agent.times + 1 + agent.times // 3 + 1, 4)
