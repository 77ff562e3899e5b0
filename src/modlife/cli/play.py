"""`modlife play`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro

from modlife.checks import check_count, check_seed
from modlife.cli.choices import usual_world
from modlife.cli.counter import counting
from modlife.cli.tables import path_of
from modlife.cli.words import check_file, tell, whole_file
from modlife.domains.domain import DOMAINS, environment_of
from modlife.errors import InputError
from modlife.runs.shipped import SHIPPED, introduction


@dataclass(frozen=True)
class Options:
    """Watch an agent in one task, as a GIF: the one that a run directory holds, or the one that comes with the package.

    With `--domain`, `--policy` or `--world`, one that has not learnt: a script, or chance.
    """

    run: tyro.conf.Positional[Path | None] = None
    """A run directory made by `modlife train`; without it, the agent that comes with the package."""
    domain: str = "grid2d"
    """Where an agent acts that has not learnt."""
    policy: Literal["scripted", "random"] | None = None
    """How an agent acts that has not learnt: by the domain's script, or at random; by default the script, if any."""
    task: str | None = None
    """The task, one component per factor; `modlife list` shows all. By default the last one learnt, or the first."""
    episodes: int = 3
    """How many episodes to film."""
    seed: int = 0
    """Layouts and actions follow from it."""
    out: Path = Path("play.gif")
    """The GIF file to write."""
    world: Any = None
    """Which tasks there are, for an agent that has not learnt."""
    beside: tyro.conf.Suppress[tyro.conf.Fixed[tuple[str, ...]]] = ()
    """Options that were given, and are about an agent that has not learnt."""


def usual(arguments: Sequence[str]) -> Options:
    """The options of the domain that the arguments name."""
    words = (word.partition("=")[0] for word in arguments)
    beside = [word for word in words if word in ("--domain", "--policy") or word.startswith("--world.")]
    return Options(world=usual_world(arguments), beside=tuple(beside))


def run(options: Options) -> None:
    """Films."""
    check_count("episodes", options.episodes, 1000)
    check_seed(options.seed)
    check_file("film", options.out, ".gif")
    if options.run is not None and options.beside:
        raise InputError(
            f"{', '.join(options.beside)} beside '{options.run}': a run directory says itself where its agent acts and "
            "how; leave the option out."
        )
    if options.task is not None and options.run is None:
        options.world.graph.parse(options.task)
    from modlife.runtime import start_jax

    start_jax()
    from modlife.domains.film import film

    who, domain, env, task, act, modules = unlearnt(options) if options.beside else learnt(options)
    pictures = domain.of("pictures", env)
    with whole_file(options.out) as aside, counting():
        asked = {"episodes": options.episodes, "seed": options.seed, "modules": modules}
        returns, solved = film(env, pictures, task, act, aside, **asked)
    mean = sum(returns) / len(returns)
    print(
        f"{who} in {task}: mean return {mean:.3f}, goal met in {sum(solved)} of {options.episodes} episodes: "
        f"{options.out}"
    )


def learnt(options: Options) -> tuple[Any, ...]:
    """Who acts, where, in which task, how, and with which modules: the agent of a run directory."""
    from modlife.runs.load import Run

    found = Run.load(options.run or SHIPPED)
    for sentence in (*([] if options.run else [introduction(found)]), *found.complaints):
        tell(sentence)
    task = found.task(options.task)
    act, (structure, *_) = found.actor(task), found.agent.about(found.knowing([task]), [task]).get("structure", [()])
    return options.run or "the agent", found.domain, found.agent.env, task, act, path_of(structure or ())


def unlearnt(options: Options) -> tuple[Any, ...]:
    """Who acts, where, in which task and how, without modules: a script, or chance."""
    from modlife.domains.film import random_act

    domain, world = DOMAINS[options.domain], options.world
    task = world.graph.tasks[0] if options.task is None else world.graph.parse(options.task)
    env = environment_of(world)
    if options.policy == "random" or (options.policy is None and domain.scripted is None):
        return "random agent", domain, env, task, random_act(env), ""
    return "scripted agent", domain, env, task, domain.of("scripted", env, task), ""
