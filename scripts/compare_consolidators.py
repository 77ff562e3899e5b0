"""What is lost offline: the same explored replay of robot tasks, folded into fresh modules by each consolidator.

    python scripts/compare_consolidators.py --steps 400000 --tasks none/can/IIWA none/milk/Panda

Prints one JSON object a line: the return of the policy that explored, then of what each consolidator made of its last
100,000 transitions, with the error of the mean over episodes and the seconds of processor time.
"""

import argparse
import json
import time
from dataclasses import replace
from typing import Any

import jax

from modlife.learners.awac import AWAC
from modlife.learners.bounded import bounded
from modlife.learners.config import AWACConfig, BoundedConfig, RealBCQConfig
from modlife.learners.real_bcq import RealBCQ
from modlife.learners.replay import Replay
from modlife.learners.replay_table import Layout, Lesson
from modlife.lifelong.compositional import Compositional
from modlife.lifelong.explore import Explore
from modlife.policies.acting import Rule
from modlife.policies.bank import Chain
from modlife.runs.config import build, life_from_options
from modlife.runtime import start_jax
from modlife.types import Task

CLONING = BoundedConfig(epochs=10, td="none", acting="actor", repair=0)


def agent_for(task: str, options: argparse.Namespace) -> tuple[Compositional, Task]:
    """An agent whose replay tells all that any of them wants to know."""
    world, offline = {"preset": options.preset, "inputs": options.inputs}, {"consolidator": "real-bcq"}
    life = {"world": world, "only": [task], "steps": options.steps, "offline": offline}
    config = life_from_options("comp-struct", "robot", life)
    return build(config), config.chosen[0]


def explored(agent: Compositional, task: Task, *, seed: int) -> tuple[Chain, Replay]:
    """A policy that PPO learnt from scratch, and its last transitions."""
    key_init, key_learn = jax.random.split(jax.random.key(seed))
    explore = agent.phases([task], key=key_learn)[1]
    assert isinstance(explore, Explore)
    state = agent.init(key=key_init).noting(structures=(agent.env.graph.indices(task),))
    state = replace(state, work=explore.begin(state))
    *_, (_, work, _) = explore.run(state)
    return work.learner.params, explore.replay(work, explore.length(state))


def consolidators(layout: Layout, epochs: int, discount: float) -> dict[str, Any]:
    """Each by name."""
    plain = replace(layout, finals=False)
    return {
        "distillation": bounded(plain, CLONING, discount),
        "cloned actions": bounded(plain, replace(CLONING, clone="actions"), discount),
        "real-bcq": RealBCQ(layout, RealBCQConfig(epochs=epochs), discount),
        "awac": AWAC(layout, AWACConfig(epochs=epochs), discount),
    }


def tell(agent: Compositional, task: Task, chain: Chain, **what: Any) -> None:
    """How a policy does, drawing actions and by its mean; and what it was learnt from."""
    what |= {"inputs": agent.env.world.inputs, "preset": agent.env.world.preset, "steps": agent.steps}
    for rule in (Rule("actor"), Rule("actor-greedy")):
        done = replace(agent.judge, rule=rule, episodes=40).evaluate([task], [chain], key=jax.random.key(7))
        mean, error = float(done.returns.mean()), float(done.returns.std() / done.returns.size**0.5)
        scores = {"return": round(mean, 2), "error": round(error, 2), "success": float(done.success.mean())}
        print(json.dumps({"task": str(task), **what, "acting": rule.name, **scores}), flush=True)


def compare(task_name: str, options: argparse.Namespace) -> None:
    """All of them on one task."""
    agent, task = agent_for(task_name, options)
    trained, replay = explored(agent, task, seed=options.seed)
    tell(agent, task, trained, learner="online", seconds=0, seed=options.seed)
    structure, fresh = agent.env.graph.indices(task), agent.init(key=jax.random.key(options.seed + 1)).params
    for name, learner in consolidators(agent.layout(16), options.epochs, agent.ppo.config.discount).items():
        kept = replay if learner.layout.finals else replace(replay, rows=replay.rows[: replay.times + 1])
        lesson = Lesson(structure, (True,) * len(structure), learner.explored(kept, trained))
        begun, first = time.process_time(), learner.init(fresh.pick(structure))
        *_, (_, state, _) = learner.run(fresh, [lesson], first, done=0, key=jax.random.key(0))
        seconds = round(time.process_time() - begun, 1)
        tell(agent, task, learner.modules(state), learner=name, seconds=seconds, seed=options.seed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", default=["none/can/IIWA"])
    parser.add_argument("--steps", type=int, default=400_000)
    parser.add_argument("--epochs", type=int, default=100, help="of real-bcq and awac")
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--inputs", default="plain", choices=("plain", "scaled"))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    start_jax()
    for one in given.tasks:
        compare(one, given)
