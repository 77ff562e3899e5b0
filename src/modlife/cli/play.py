"""`modlife play`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from modlife.domains.grid2d.spec import World
from modlife.domains.robot.spec import ArmPolicy, PresetName, RobotWorld
from modlife.errors import InputError


@dataclass(frozen=True)
class Arm:
    """What moves a robot's arm, and how."""

    policy: ArmPolicy = "scripted"
    """A script that lifts, or random actions."""
    preset: PresetName = "fast"
    """Physics steps of 5 ms (fast) or of 2 ms (paper)."""


SCRIPTED = Arm()


def run(
    world: World,
    run: tyro.conf.Positional[Path | None] = None,
    domain: Literal["grid2d", "robot"] = "grid2d",
    arm: Arm = SCRIPTED,
    task: str | None = None,
    episodes: int = 3,
    seed: int = 0,
    out: Path = Path("play.gif"),
) -> None:
    """Watch an agent in one task, as a GIF: the one that a run directory holds, or one that acts at random.

    With `--domain robot`, watch an arm lift an object by a script, or move at random.

    Args:
        world: Which 2-D world, for the random agent; the defaults are the paper's.
        run: A run directory made by `modlife train`; without it, the agent acts at random.
        domain: Where the agent without a run directory acts.
        arm: For the robot domain.
        task: The task, one component per factor; `modlife list` shows all. By default the last one learnt,
            wall/red/dynamics-0 at random, none/can/Panda with a robot.
        episodes: How many episodes to film.
        seed: Layouts and actions follow from it.
        out: The GIF file to write.
    """
    if episodes < 1:
        raise InputError(f"episodes = {episodes}, but there must be at least 1 to film.")
    if out.suffix != ".gif":
        raise InputError(f"The film '{out}' must be a .gif file.")
    if domain == "robot":
        if run is not None:
            raise InputError("No agent has been trained on robots: leave out the run directory.")
        play_robot(arm, task, episodes=episodes, seed=seed, out=out)
        return
    chosen = world.graph.parse(task) if task and run is None else world.graph.tasks[0]

    from modlife.runtime import start_jax

    start_jax()
    from modlife.cli.drawing import film, random_act
    from modlife.domains.grid2d.world import Grid2D
    from modlife.experiments.store import RunDirectory
    from modlife.experiments.trained import load, sampled_act

    if run is None:
        env = Grid2D(world)
        who, act = "random agent", random_act(env)
    else:
        agent, state = load(run)
        env = Grid2D(RunDirectory.open(run).config().world)
        chosen = env.graph.parse(task) if task else state.met[-1]
        who, act = str(run), sampled_act(agent, state, chosen)
    returns = film(env, chosen, act, out, episodes=episodes, seed=seed)
    mean = sum(returns) / len(returns)
    print(f"{who} in {chosen}: mean return {mean:.3f} over {episodes} episodes: {out}")


def play_robot(arm: Arm, name: str | None, *, episodes: int, seed: int, out: Path) -> None:
    """Films an arm."""
    world, policy = RobotWorld(preset=arm.preset), arm.policy
    task = world.graph.parse(name or "none/can/Panda")
    from modlife.cli.robot_drawing import film_robot

    solved = film_robot(world, task, policy, out, episodes=episodes, seed=seed)
    print(f"{policy} arm in {task}: lifted in {sum(solved)} of {episodes} episodes: {out}")
