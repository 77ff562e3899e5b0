"""`modlife play`."""

from pathlib import Path

from modlife.domains.grid2d.spec import World
from modlife.errors import InputError


def run(
    world: World, task: str = "wall/red/dynamics-0", episodes: int = 3, seed: int = 0, out: Path = Path("play.gif")
) -> None:
    """Watch an agent that acts at random in one task, as a GIF.

    Args:
        world: Which 2-D world; the defaults are the paper's.
        task: The task, one component per factor; `modlife list` shows all.
        episodes: How many episodes to film.
        seed: Layouts and actions follow from it.
        out: The GIF file to write.
    """
    if episodes < 1:
        raise InputError(f"episodes = {episodes}, but there must be at least 1 to film.")
    if out.suffix != ".gif":
        raise InputError(f"The film '{out}' must be a .gif file.")
    chosen = world.graph.parse(task)

    from modlife.cli.drawing import film_random_agent

    mean = film_random_agent(world, chosen, out, episodes=episodes, seed=seed)
    print(f"random agent in {chosen}: mean return {mean:.3f} over {episodes} episodes: {out}")
