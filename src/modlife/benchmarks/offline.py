"""The programs that `modlife bench search` and `modlife bench offline` time."""

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np

from modlife.benchmarks.env import bench_task
from modlife.domains import curricula
from modlife.domains.domain import Domain, environment_of
from modlife.domains.env import Environment
from modlife.learners.bcq import BCQ
from modlife.learners.config import BCQConfig, PPOConfig
from modlife.learners.offline import PIECE, train
from modlife.learners.replay import Packing, Replay
from modlife.learners.replay_table import Layout, Lesson, ReplayTable, room_for
from modlife.learners.sharding import THIRD, Devices
from modlife.lifelong.evaluation import Judge
from modlife.lifelong.reports import Chosen
from modlife.lifelong.search import Exhaustive, Trial, all_structures
from modlife.lifelong.settings import ExhaustiveConfig, Told
from modlife.policies.acting import Rule
from modlife.policies.bank import Chain
from modlife.policies.modular import Modular

TASKS = (1, 4, 16, 37)
"""Tasks of an offline phase: at the start of a life, and 37 when all 64 are known."""


def network_of(domain: Domain) -> tuple[Environment, Modular]:
    """A domain's environment, and the network of the lifelong agent in it."""
    env = environment_of(domain.usual_world())
    return env, Modular.with_q(env.graph, env.graph.shape, domain.of("modules"))


def searching(domain: Domain) -> tuple[int, int, Callable[[], object]]:
    """How many structures a search tries, how many environment steps that takes, and the search."""
    env, network = network_of(domain)
    search, bank = Exhaustive(ExhaustiveConfig()), network.init(key=jax.random.key(0))
    judge = Judge(env, network, Rule("actor"), search.episodes)
    trial = Trial(judge, bank, env.graph.named(bench_task(domain)))

    def run() -> Chosen:
        *_, (_, found) = search.run(trial, search.init(trial.sizes), done=0, key=jax.random.key(1))
        return search.choice(trial.sizes, found)

    return len(all_structures(trial.sizes)), run().steps, run


def offline(domain: Domain, *, devices: int) -> Iterator[tuple[int, int, Callable[[], object]]]:
    """For each number of tasks: samples that a call learns from, and the call, with the mean load of a whole phase.

    The replay is of random layouts; the structures are the true ones of the paper's order, up to the task in question.
    """
    env, network = network_of(domain)
    config, offline_config = PPOConfig(), BCQConfig()
    bank = network.init(key=jax.random.key(0))
    times = Told().replay_size // config.envs
    replay = some_replay(env, times, config.envs)
    order = [env.graph.indices(task) for task in curricula.paper_order(env.graph, seed=0).tasks]
    sharing = [s for s in order[:-1] if any(a == b for a, b in zip(s, order[-1], strict=True))]
    for count in TASKS:
        if count > len(sharing) + 1:
            return
        structures = [*sharing[: count - 1], order[-1]]
        layout = Layout(env, network, room_for(count), times, config.envs, devices=Devices(devices))
        shared = [tuple(a == b for a, b in zip(s, order[-1], strict=True)) for s in structures]
        lessons = [Lesson(s, pattern, replay) for s, pattern in zip(structures, shared, strict=True)]
        table = layout.fill(bank, lessons)
        for task, pattern in enumerate(shared):
            if int(table.slots[task]) >= 0:
                table = layout.keep_features(table, task, depth=pattern.index(True))
        bcq = BCQ(layout, offline_config, config.discount)
        yield count, *training(bcq, bank.pick(order[-1]), table, count)


def training(bcq: BCQ, own: Chain, table: ReplayTable, tasks: int) -> tuple[int, Callable[[], object]]:
    """Samples per call, and a call of the compiled steps."""
    learner, batch = bcq.init(own).learner, bcq.config.batch * tasks
    count = min(max(1, PIECE // batch), bcq.epoch_steps)
    values = bcq.layout.devices.zeros((bcq.layout.room, *bcq.layout.extent, bcq.actions), THIRD)

    def run() -> object:
        key = jax.random.key(0)
        return jax.block_until_ready(train(bcq, learner, table, values, jnp.int32(0), jnp.int32(count), key=key))

    return count * batch, run


def some_replay(env: Environment, times: int, envs: int) -> Replay:
    """Replay of first states, without actions: what it holds does not matter to the clock."""
    task = jnp.zeros(len(env.graph.factors), jnp.int32)
    keys = jax.random.split(jax.random.key(0), 256 * envs)
    seen = jax.jit(jax.vmap(lambda key: env.observe(env.reset(task, key=key))))(keys)
    rows = np.asarray(Packing.of(env).seen(env, seen))
    return Replay(np.resize(rows.reshape(256, envs, -1), (times + 1, envs, rows.shape[-1])), times)
