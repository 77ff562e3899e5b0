"""Learns a task with modules of a life, each time beginning in another way: what of them is worth keeping?

    python scripts/compare_beginnings.py runs/comp-struct-known-robot-8x400k-0 --met 2 --task none/milk/Gen3

Modules are those of the checkpoint at the end of the stage after which so many tasks had been met; the structure is
given. Ways to begin: `known` modules as they are; `timid`, as the paper has it where no episode meets the goal; both
with fresh critics; and `fresh` modules. Tells for each a line of JSON with its curve: steps, return, success.
"""

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path

import jax

from modlife.domains.env import PRNGKey
from modlife.lifelong.agent import AgentState, learn
from modlife.lifelong.compositional import Compositional
from modlife.lifelong.reports import Curve
from modlife.policies.bank import Chain
from modlife.runs.config import build
from modlife.runs.restore import moment_of
from modlife.runs.store import RunDirectory
from modlife.runtime import start_jax

WAYS = ("known", "timid", "known, fresh critics", "timid, fresh critics", "fresh")


@dataclass(frozen=True)
class Beginner(Compositional):
    """The agent that takes known modules to meet the goal, or not to."""

    timid: bool = False

    def beginning(self, state: AgentState, *, key: PRNGKey) -> Chain:
        """As if an episode had met the goal, or none."""
        return super().beginning(replace(state, solved=not self.timid), key=key)


def beginner(agent: Compositional, way: str, steps: int) -> Beginner:
    """The agent that begins in a way."""
    own = {name: getattr(agent, name) for name in Compositional.__dataclass_fields__}
    own |= {"steps": steps, "unsolved": "fresh" if way == "fresh" else "known", "fresh_critics": "critics" in way}
    return Beginner(**own, timid=not way.startswith("known"))


def state_after(run: RunDirectory, met: int) -> tuple[Compositional, AgentState]:
    """The agent, and what it knew when it had met so many tasks."""
    config, checkpoints = run.config(), run.checkpoints
    every = (checkpoints.read(checkpoints.path(number)) for number in checkpoints.numbers())
    told = ((saved, saved.index.description) for saved in every)
    saved = next(saved for saved, about in told if about.ended and len(about.facts.met) == met)
    agent = build(config)
    assert isinstance(agent, Compositional)
    return agent, moment_of(config, saved, checkpoints.memory(saved.index)).state


def curve_of(agent: Beginner, state: AgentState, task: str, *, key: PRNGKey) -> list[tuple[int, float, float]]:
    """How practice goes."""
    curve = []
    for step in learn(agent, state, [agent.env.graph.parse(task)], key=key):
        points = [report.record() for report in step.reports if isinstance(report, Curve)]
        curve += [(point["steps"], point["return"][0], point["success"][0]) for point in points]
        if curve and step.phase == "online" and step.done == step.length:
            break
    return curve


def main() -> None:
    """Tells the curve of each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--met", type=int, required=True)
    parser.add_argument("--task", required=True)
    parser.add_argument("--steps", type=int, default=280_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    options = parser.parse_args()
    start_jax()
    agent, state = state_after(RunDirectory.open(options.run), options.met)
    for way in options.ways:
        key = jax.random.key(options.seed)
        curve = curve_of(beginner(agent, way, options.steps), state, options.task, key=key)
        about = {"run": options.run.name, "met": options.met, "task": options.task, "seed": options.seed}
        print(json.dumps({**about, "way": way, "curve": curve}), flush=True)


if __name__ == "__main__":
    main()
