"""The programs that `modlife bench search` and `modlife bench offline` time."""

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np

from modlife.domains import curricula
from modlife.domains.grid2d.spec import World
from modlife.domains.grid2d.world import Grid2D
from modlife.learners.bcq import BCQ, BCQState
from modlife.learners.config import BCQConfig, PPOConfig
from modlife.learners.devices import Devices
from modlife.learners.lessons import Lessons, Reader
from modlife.learners.replay import Packing, Transition
from modlife.lifelong.loop import Chosen
from modlife.lifelong.search import search
from modlife.policies.networks import Modular

TASKS = (1, 4, 16, 37)
"""Tasks of an offline stage: at the start of a life, and 37 when all 64 are known."""


def searching(world: World, task: str, *, episodes: int = 10) -> tuple[int, Callable[[], object]]:
    """How many environment steps a search over all structures makes, and the search."""
    env = Grid2D(world)
    network = Modular(env.graph, env.graph.shape, critic=env.graph.actions.size)
    bank, indices = network.init(key=jax.random.key(0)), env.graph.indices(env.graph.parse(task))

    def run() -> Chosen:
        return search(env, network, bank, indices, episodes=episodes, key=jax.random.key(1))

    return run().steps, run


def offline(world: World, *, devices: int) -> Iterator[tuple[int, int, Callable[[], object]]]:
    """For each number of tasks: samples that a call learns from, and the call, with the mean load of a whole stage.

    The replay is of random layouts; the structures are the true ones of the paper's order, up to the task in question.
    """
    env, config, bcq_config = Grid2D(world), PPOConfig(), BCQConfig()
    network = Modular(env.graph, env.graph.shape, critic=env.graph.actions.size)
    bank = network.init(key=jax.random.key(0))
    times = bcq_config.replay_size // config.envs
    reader = Reader(env, network, env.graph.task_count, times, envs=config.envs, devices=Devices(devices))
    bcq = BCQ(reader, bcq_config, config.discount)
    rows = some_rows(env, times, config.envs)
    order = [env.graph.indices(task) for task in curricula.paper_order(env.graph, seed=0).tasks]
    for count in TASKS:
        sharing = [s for s in order[:-1] if any(a == b for a, b in zip(s, order[-1], strict=True))]
        structures = [*sharing[: count - 1], order[-1]]
        lessons, _, todo = reader.open(bank, structures, [rows] * count)
        for task, depth in todo:
            lessons = reader.keep(lessons, task, depth=depth)
        yield count, *training(bcq, bank, lessons, structures[-1], count)


def training(
    bcq: BCQ, bank: tuple, lessons: Lessons, structure: tuple[int, ...], tasks: int
) -> tuple[int, Callable[[], object]]:
    """Samples per call, and a call of the compiled steps."""
    state: BCQState = bcq.init(bank, jnp.array(structure))
    count = bcq.steps_at_once(0, tasks=tasks)

    def run() -> object:
        return jax.block_until_ready(bcq.train(state, lessons, jnp.int32(0), jnp.int32(count), key=jax.random.key(0)))

    return count * bcq.config.offline_batch * tasks, run


def some_rows(env: Grid2D, times: int, envs: int) -> np.ndarray:
    """Replay rows of first states, with made-up actions: what they hold does not matter to the clock."""
    task = jnp.zeros(len(env.graph.factors), jnp.int32)
    keys = jax.random.split(jax.random.key(0), 256 * envs)
    seen = jax.jit(jax.vmap(lambda key: env.observe(env.reset(task, key=key))))(keys)
    nothing = jnp.zeros(256 * envs)
    rows = np.asarray(Packing.of(env).pack(Transition(seen, nothing.astype(jnp.uint8), nothing, nothing.astype(bool))))
    return np.resize(rows.reshape(256, envs, -1), (times + 1, envs, rows.shape[-1]))
