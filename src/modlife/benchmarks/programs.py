"""The programs that `modlife bench` times. JAX must have been started."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Key

from modlife.domains.curricula import paper_order
from modlife.domains.domain import Domain, environment_of
from modlife.domains.env import Environment, Outcome, PRNGKey, is_slow, step_batch
from modlife.domains.film import random_action
from modlife.domains.graph import Continuous, Discrete
from modlife.learners.bcq import BCQ
from modlife.learners.bounded import Bounded, bounded
from modlife.learners.config import BCQConfig, BoundedConfig, PPOConfig, RealBCQConfig
from modlife.learners.offline import PIECE, begin, train
from modlife.learners.ppo import PPO, LearnerState
from modlife.learners.real_bcq import RealBCQ
from modlife.learners.replay import Packing, Replay
from modlife.learners.replay_table import Layout, Lesson, room_for
from modlife.learners.rollout import ACTOR
from modlife.learners.sharding import THIRD, Devices
from modlife.lifelong.agents import AGENTS
from modlife.lifelong.consolidate import lessons_of
from modlife.lifelong.evaluation import Judge
from modlife.lifelong.loop import live
from modlife.lifelong.reports import Chosen
from modlife.lifelong.search import Exhaustive, Trial, all_structures
from modlife.lifelong.settings import ExhaustiveConfig
from modlife.policies.bank import Bank
from modlife.policies.modular import Modular, OnePolicy
from modlife.runs.config import build, life_from_options, usual_settings
from modlife.types import Pytree

STEPS = 1_048_576
"""Environment steps, at most about, in one compiled call that is timed for a second or longer."""
LONGEST = 2048
"""Time steps in one."""
SLOW, SLOW_CALL = 2e-5, 2e-3
"""Seconds that the reset of an environment, and a call, may take in a domain that is compiled; others step singly."""
UPDATES = 12
"""Updates of a task in a life that is timed."""
TASKS = (1, 4, 16, 37)
"""Tasks of an offline phase: at the start of a life, and 37 when all 64 are known."""


def bench_task(domain: Domain) -> tuple[int, ...]:
    """The task that benchmarks step: the last component of the first factor, the first of all others."""
    shape = domain.usual_world().graph.shape
    return (shape[0] - 1, *[0] * (len(shape) - 1))


def random_steps(domain: Domain, *, batch: int, devices: int, seconds: float = 1.0) -> tuple[int, Callable[[], object]]:
    """How many steps one call makes, and the call: random actions, observations, restarts."""
    env = environment_of(domain.usual_world())
    indices, each = jnp.array(bench_task(domain)), batch // devices
    start = jax.jit(jax.vmap(lambda key: env.reset(indices, key=key)))
    states = jax.block_until_ready(start(jax.random.split(jax.random.key(0), batch)))
    begun = time.perf_counter()
    jax.block_until_ready(start(jax.random.split(jax.random.key(1), batch)))
    slow = time.perf_counter() - begun > SLOW * batch + SLOW_CALL
    length = 1 if slow else max(16, min(int(STEPS * min(1, seconds)) // batch, LONGEST))

    def body(states: Pytree, key: PRNGKey) -> tuple[Pytree, tuple[Pytree, Outcome]]:
        key_act, key_restart = jax.random.split(key)
        stepped = step_batch(env, states, random_action(env, (each,), key=key_act), key=key_restart)
        # Whole observations leave the loop, as they would for a learner: nothing can be optimised away.
        return stepped.states, (jax.vmap(env.observe)(stepped.states), stepped.outcomes)

    def steps(states: Pytree, keys: Key[Array, "1"]) -> tuple[Pytree, tuple[Pytree, Outcome]]:
        return jax.lax.scan(body, states, jax.random.split(keys[0], length))

    mesh = Mesh(np.array(jax.devices()[:devices]), ("device",))
    one = PartitionSpec("device")
    shard = partial(jax.shard_map, mesh=mesh, check_vma=False)
    step_all = jax.jit(shard(steps, in_specs=(one, one), out_specs=(one, PartitionSpec(None, "device"))))
    keys = jax.random.split(jax.random.key(1), devices)
    return batch * length, lambda: jax.block_until_ready(step_all(states, keys))


def updates(domain: Domain, *, devices: int) -> tuple[int, dict[str, Callable[[], object]]]:
    """How many environment steps an update makes; and updates of one life's training, whole and in parts."""
    env, config = environment_of(domain.usual_world()), ppo_config(domain)
    ones, key = (1,) * len(env.graph.factors), jax.random.key(0)
    ppo, state = learner_of(domain, Modular(env.graph, ones, 1, domain.of("modules")), config, devices)
    state, batch, _, _ = ppo.collect(state, key=key)

    def update() -> object:
        nonlocal state
        state, _, progress = ppo.update(state, key=jax.random.fold_in(key, int(state.updates)))
        return jax.block_until_ready(progress)

    def collect() -> object:
        return jax.block_until_ready(ppo.collect(state, key=key))

    def learn(ppo: PPO = ppo, begin: LearnerState = state) -> object:
        learnt = begin
        for _ in range(ppo.config.epochs):
            learnt = jax.block_until_ready(ppo.epoch(learnt, batch, key=key))  # as an update does
        return learnt

    parts = {"stl": update, "stl collect": collect, "stl learn": learn}
    if isinstance(env.graph.actions, Continuous):  # critics that take the action cost more than a state value
        parts["comp learn"] = partial(learn, *learner_of(domain, network_of(domain)[1], config, devices))
        whole = replace(config, minibatch=config.batch, epochs=80)
        parts["comp learn, all samples 80 times"] = partial(
            learn, *learner_of(domain, network_of(domain)[1], whole, devices)
        )
    return ppo.config.batch, parts


def ppo_config(domain: Domain) -> PPOConfig:
    """PPO's usual settings in a domain."""
    return usual_settings(AGENTS["stl"], domain).ppo


def learner_of(domain: Domain, network: Modular, config: PPOConfig, devices: int) -> tuple[PPO, LearnerState]:
    """PPO on one chain of a network, before its first update."""
    env, indices, key = environment_of(domain.usual_world()), jnp.array([bench_task(domain)]), jax.random.key(0)
    ppo = PPO(env, OnePolicy(network), config, devices)
    policy = network.init(key=key).pick((0,) * len(network.sizes))
    return ppo, ppo.init(policy, indices, jnp.zeros_like(indices), key=key)


def online_rate(domain: Domain, agent: str, *, devices: int) -> float:
    """Environment steps per second of the last task's online phase in a short life, without its first update."""
    settings = usual_settings(AGENTS[agent], domain)
    small = {"replay_size": settings.ppo.batch} if hasattr(settings, "replay_size") else {}
    life = {"tasks": max(domain.usual_world().graph.shape), "episodes": 2, "steps": UPDATES * settings.ppo.batch}
    config = life_from_options(agent, domain.name, {**life, **small})
    stages, before, times = config.stages, time.perf_counter(), []
    for moment in live(build(config, devices=devices), stages, episodes=2, key=jax.random.key(0)):
        now = time.perf_counter()
        if (moment.phase, moment.told_of) == ("online", len(stages.stages) - 1) and moment.done < moment.length:
            times.append(now - before)
        before = now
    return len(stages.stages[-1]) * settings.ppo.batch / float(np.median(times[1:]))


def network_of(domain: Domain) -> tuple[Environment, Modular]:
    """A domain's environment, and the network of the lifelong agent in it."""
    env = environment_of(domain.usual_world())
    return env, Modular.with_q(env.graph, env.graph.shape, domain.of("modules"))


def searching(domain: Domain) -> tuple[int, int, Callable[[], object]]:
    """How many structures a search tries, how many environment steps that takes, and the search."""
    env, network = network_of(domain)
    search, bank = Exhaustive(ExhaustiveConfig()), network.init(key=jax.random.key(0))
    judge = Judge(env, network, ACTOR, search.episodes)
    trial = Trial(judge, bank, env.graph.named(bench_task(domain)))

    def run() -> Chosen:
        *_, (_, found) = search.run(trial, search.init(trial.sizes), done=0, key=jax.random.key(1))
        return search.choice(trial, found)

    return len(all_structures(trial.sizes)), run().steps, run


@dataclass(frozen=True)
class Load:
    """An offline phase, of which a part is timed."""

    case: str
    tasks: int
    whole: int
    """Samples that the phase learns from, ..."""
    samples: int
    """... and of these a call."""
    run: Callable[[], object]


def offline(domain: Domain, *, devices: int) -> Iterator[Load]:
    """For each number of tasks: the paper's phase, a call with its mean load; and a part of one of bounded rehearsal.

    The replay is of random layouts; the structures are the true ones of the paper's order, up to the task in question.
    """
    env, network = network_of(domain)
    config, settings = ppo_config(domain), usual_settings(AGENTS["comp-struct"], domain)
    bank = network.init(key=jax.random.key(0))
    times = settings.replay_size // config.envs
    counted = isinstance(env.graph.actions, Discrete)
    replay = some_replay(env, times, config.envs)
    graph = env.graph
    order = [graph.indices(task) for task in paper_order(graph, count=graph.task_count, seed=0)]
    *before, last = lessons_of(order, [replay] * len(order))
    for count in [count for count in TASKS[: 3 if is_slow(env) else 4] if count <= len(before) + 1]:
        layout = Layout(env, network, room_for(count), times, config.envs, devices=Devices(devices))
        lessons = [*before[: count - 1], last]
        if counted:
            yield gradient_steps("bcq", BCQ(layout, BCQConfig(), config.discount), bank, lessons)
        else:
            real = RealBCQ(replace(layout, finals=True), RealBCQConfig(), config.discount)
            yield gradient_steps("real-bcq", real, bank, lessons)
        clones = BoundedConfig() if counted else BoundedConfig(epochs=10, td="none", acting="actor")
        yield last_quarter(bounded(layout, clones, config.discount), bank, lessons)


def last_quarter(learner: Bounded, bank: Bank, lessons: Sequence[Lesson]) -> Load:
    """The last quarter of a phase, with the time to open it and to change the old tasks."""
    chain, key = bank.pick(lessons[-1].structure), jax.random.key(0)
    *old, new = [replace(one, replay=learner.explored(one.replay.read(), chain)) for one in lessons]
    thin = [replace(one, replay=learner.kept(one.replay.read(), chain, key=key)) for one in old]
    done, each = 3 * learner.steps // 4, learner.config.batch * (1 + learner.others(len(lessons)))

    def run() -> object:
        *_, end = learner.run(bank, [*thin, new], learner.init(chain), done=done, key=key)
        return end

    return Load("bounded", len(lessons), learner.steps * each, (learner.steps - done) * each, run)


def gradient_steps(case: str, bcq: BCQ | RealBCQ, bank: Bank, lessons: Sequence[Lesson]) -> Load:
    """Some compiled steps of the paper's phase."""
    *_, table = bcq.layout.with_features(bcq.layout.fill(bank, lessons), lessons)
    learner, batch = begin(bcq, bank.pick(lessons[-1].structure)), bcq.config.batch * len(lessons)
    count = min(max(1, PIECE // batch), bcq.epoch_steps)
    shape = (bcq.layout.room, *bcq.layout.extent, bcq.layout.env.graph.actions.size)
    values = bcq.layout.devices.zeros(shape, THIRD) if isinstance(bcq, BCQ) else None

    def run() -> object:
        key = jax.random.key(0)
        return jax.block_until_ready(train(bcq, learner, table, values, jnp.int32(0), jnp.int32(count), key=key))

    return Load(case, len(lessons), bcq.steps * batch, count * batch, run)


def some_replay(env: Environment, times: int, envs: int) -> Replay:
    """Replay of first states, without actions: what it holds does not matter to the clock."""
    task = jnp.zeros(len(env.graph.factors), jnp.int32)
    keys = jax.random.split(jax.random.key(0), 256 * envs)
    seen = jax.jit(jax.vmap(lambda key: env.observe(env.reset(task, key=key))))(keys)
    rows = np.asarray(Packing.of(env).seen(env, seen))
    return Replay(np.resize(rows.reshape(256, envs, -1), (times + 1, envs, rows.shape[-1])), times)
