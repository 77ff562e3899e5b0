"""Records how right the time left was that lives of 16 tasks told: with the paper's rehearsal, and with a bounded one.

    python scripts/time_left.py lives      lives them, one after the other: docs/time-left.json; then draws
    python scripts/time_left.py picture    draws docs/images/time-left.svg from it

Other processes beside it would be seen as errors.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from modlife.lifelong.loop import Moment
from modlife.runs.config import LifeConfig, life_from_options, life_json
from modlife.runs.life import run_life
from modlife.runs.provenance import origin
from modlife.runtime import start_jax

DOCS = Path(__file__).parent.parent / "docs"
CONSOLIDATORS = ("bcq", "bounded")
POINTS = 400
"""Of a life, at most, that are kept."""
SMALL = {"statics": ["floor", "food"], "colour_count": 2, "dynamics_count": 2}


@dataclass(frozen=True)
class Told:
    """What a life told at a moment."""

    at: float
    """Seconds since it began."""
    stage: int
    phase: str
    left: float | None
    """Seconds, as foreseen."""


@dataclass
class Recorder:
    """Notes what a life tells of the time left."""

    start: float = field(default_factory=time.perf_counter)
    told: list[Told] = field(default_factory=list)

    def moment(self, moment: Moment) -> None:
        """Notes it."""
        now, left = time.perf_counter() - self.start, moment.left.seconds
        self.told.append(Told(round(now, 2), moment.told_of, moment.phase, left and round(left, 2)))

    def say(self, sentence: str) -> None:
        """Prints it."""
        print(sentence)


def recorded(config: LifeConfig, out: Path) -> dict[str, Any]:
    """Lives a life; what it told, and when it ended."""
    recorder = Recorder()
    run_life(config, out, watch=recorder)
    seconds = round(time.perf_counter() - recorder.start, 2)
    every = -(-len(recorder.told) // POINTS)
    told = [list(asdict(one).values()) for one in recorder.told[::every]]
    return {"config": life_json(config), **origin(devices=1), "seconds": seconds, "told": told}


def errors(life: dict[str, Any]) -> list[tuple[str, float]]:
    """From the second task on: the phase, and how much of the truth it was wrong by; the last 2 % are left out."""
    found = []
    for at, stage, phase, left in life["told"]:
        truth = life["seconds"] - at
        if stage >= 1 and truth > 0.02 * life["seconds"]:
            found.append((phase, 1.0 if left is None else (left - truth) / truth))
    return found


def tell(name: str, life: dict[str, Any]) -> None:
    """Prints how right it was."""
    found = errors(life)
    within = sum(abs(one) <= 0.2 for _, one in found) / len(found)
    print(f"{name}: {life['seconds']} s, {within:.0%} of {len(found)} points within 20 % of the truth")
    for phase in dict.fromkeys(phase for phase, _ in found):
        own = [one for here, one in found if here == phase]
        print(f"  {phase:<17} {min(own):+.0%} to {max(own):+.0%}")


def draw(lives: dict[str, Any], out: Path) -> None:
    """The time left as it was foreseen, and as it was; and the error."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, len(lives), figsize=(9, 5), sharex="col", squeeze=False, layout="constrained")
    for (above, below), (name, life) in zip(axes.T, lives.items(), strict=True):
        known = [
            (at / 60, left / 60, (life["seconds"] - at) / 60) for at, _, _, left in life["told"] if left is not None
        ]
        at, left, truth = zip(*known, strict=True)
        above.plot(at, truth, color="0.6", linewidth=3, label="as it was")
        above.plot(at, left, color="#1f6fb4", linewidth=1.2, label="as it was told")
        above.set(title=f"--offline {name}", ylabel="minutes left", ylim=(0, None))
        above.legend(frameon=False)
        error = [
            100 * (one - other) / other if other > 0.02 * life["seconds"] / 60 else None
            for one, other in zip(left, truth, strict=True)
        ]
        below.axhspan(-20, 20, color="0.92")
        below.plot(at, error, color="#1f6fb4", linewidth=1.2)
        second = next(at for at, stage, *_ in life["told"] if stage >= 1) / 60
        below.axvline(second, color="0.4", linestyle=":")
        below.annotate("second task", (second, 55), xytext=(3, 0), textcoords="offset points", color="0.3", fontsize=8)
        below.set(xlabel="minutes", ylabel="error, % of the truth", ylim=(-70, 70))
    figure.savefig(out, dpi=110, metadata={"Date": None} if out.suffix == ".svg" else None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Lives, or draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("lives", "picture"))
    parser.add_argument("--tasks", type=int, default=16)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--replay-size", type=int, default=50_000)
    parser.add_argument("--small-world", action="store_true", help="the demo's world of 8 tasks: to try it")
    parser.add_argument("--data", type=Path, default=DOCS / "time-left.json")
    parser.add_argument("--picture", type=Path, default=DOCS / "images" / "time-left.svg")
    options = parser.parse_args(arguments)
    if options.what == "lives":
        start_jax(threads=1)
        lives = {}
        world = {"world": SMALL} if options.small_world else {}
        for name in CONSOLIDATORS:
            settings = {"tasks": options.tasks, "steps": options.steps, "replay_size": options.replay_size, **world}
            with tempfile.TemporaryDirectory() as folder:
                config = life_from_options("comp-search", "grid2d", {**settings, "offline": name})
                lives[name] = recorded(config, Path(folder) / "run")
            tell(name, lives[name])
        options.data.write_text(json.dumps(lives) + "\n")
    lives = json.loads(options.data.read_text())
    draw(lives, options.picture)


if __name__ == "__main__":
    main()
