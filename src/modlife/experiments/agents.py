"""Agents by name."""

from collections.abc import Callable

from modlife.domains.grid2d.world import Grid2D
from modlife.experiments.config import LifeConfig
from modlife.lifelong.compositional import Compositional
from modlife.lifelong.loop import Agent
from modlife.lifelong.multi_task import MultiTask
from modlife.lifelong.single_task import SingleTask
from modlife.policies.networks import Chained, Modular, Monolithic


def single_task(config: LifeConfig, devices: int) -> Agent:
    """STL."""
    return SingleTask(Grid2D(config.world), config.ppo, config.steps, len(config.chosen_tasks()), devices)


def modular(config: LifeConfig, devices: int) -> Agent:
    """MTL, modular."""
    env = Grid2D(config.world)
    network = Modular(env.graph, env.graph.shape, critic=env.graph.actions.size)
    return MultiTask(env, network, config.ppo, config.steps, devices)


def chained(config: LifeConfig, devices: int) -> Agent:
    """MTL with chained input."""
    env = Grid2D(config.world)
    network = Chained(env.graph, env.graph.shape, critic=env.graph.actions.size)
    return MultiTask(env, network, config.ppo, config.steps, devices)


def monolithic(config: LifeConfig, devices: int) -> Agent:
    """MTL with one network and a task descriptor."""
    env = Grid2D(config.world)
    network = Monolithic(env.graph, critic=1, descriptor=max(16, sum(env.graph.shape)))
    return MultiTask(env, network, config.ppo, config.steps, devices)


def compositional(config: LifeConfig, devices: int) -> Agent:
    """The paper's agent; told its structures, it has a module for each component."""
    env = Grid2D(config.world)
    sizes = (config.module_count,) * len(env.graph.factors) if config.searches else env.graph.shape
    return Compositional(
        env,
        Modular(env.graph, sizes, critic=env.graph.actions.size),
        config.ppo,
        config.bcq,
        config.steps,
        capacity=len(config.chosen_tasks()),
        searches=config.searches,
        search_episodes=config.search_episodes,
        episodes=config.episodes,
        devices=devices,
    )


BUILDERS: dict[str, Callable[[LifeConfig, int], Agent]] = {
    "comp-struct": compositional,
    "comp-search": compositional,
    "comp-search-nc": compositional,
    "stl": single_task,
    "mtl": modular,
    "mtl-chain": chained,
    "mtl-monolithic": monolithic,
}


def build(config: LifeConfig, *, devices: int = 1) -> Agent:
    """The agent that a config names, its learning divided over devices."""
    return BUILDERS[config.agent](config, devices)
