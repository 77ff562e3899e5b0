"""Lives a small life, watches it, and prints what each module is used for: `python examples/watch_a_life.py out`."""

import sys
from collections import defaultdict

import modlife
from modlife.lifelong.loop import Moment


class Printing:
    """Tells of every phase that ends."""

    def moment(self, moment: Moment) -> None:
        """Something was done."""
        if moment.done == moment.length:
            print(f"stage {moment.told_of}: {moment.phase}, {len(moment.state.met)} tasks met")

    def say(self, sentence: str) -> None:
        """Something out of the ordinary happened."""
        print(sentence)


def main(out: str, steps: int) -> None:
    """Lives, loads, tells."""
    small = {"statics": ["floor", "food"], "colour_count": 2, "dynamics_count": 2}
    config = modlife.config("comp-search", world=small, steps=steps, replay_size=10_000)
    modlife.live(config, out, watch=Printing())
    run, uses = modlife.load(out), defaultdict(list)
    for task, structure in run.structures.items():
        for factor, module in zip(run.agent.env.graph.factors, structure, strict=True):
            uses[factor.name, module].append(task)
    for (factor, module), tasks in sorted(uses.items()):
        print(f"{factor} module {module}: {', '.join(tasks)}")
    print(f"mean return: {run.evaluate(episodes=200)['mean_return']:.3f}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 30_000)
