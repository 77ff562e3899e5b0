"""The table of domains: each one value, from which every command works."""

import functools
import importlib.util
from dataclasses import dataclass
from typing import Any

from modlife.errors import InputError, installing
from modlife.registry import Table, resolve


@dataclass(frozen=True)
class Rates:
    """What one core of a 2.8 GHz server processor does in a second, in a world (docs/performance.md)."""

    online: float
    """Environment steps of learning."""
    learning: float
    """The share of that which is gradient steps, ..."""
    epochs: int
    """... where each sample is learnt from so often."""
    offline: float
    """Samples that go through networks forward and backward."""
    evaluation: float
    """Environment steps of evaluations."""


def usual_rates(world: Any) -> Rates:
    """Those of the 2-D world."""
    return Rates(34_000, 0.75, 4, 300_000, 150_000)


@dataclass(frozen=True)
class Domain:
    """A family of tasks with shared components. What is a string is `package.module:name`, imported when needed."""

    name: str
    about: str
    config: str | type
    """A frozen dataclass that says which tasks there are; made without arguments, it is the usual world.

    It has `graph`, whose name is the domain's, and `horizon`, the steps after which every episode has ended. Its fields
    are the options `--world.*`.
    """
    environment: str | Any
    """Takes a world, gives an `Environment`."""
    modules: str | Any
    """Takes nothing, gives the `Modules` (`policies.modular`) that networks for it are chained from."""
    pictures: str | Any = None
    """Takes an environment, gives its `Pictures` (`domains.film`); without it, there are no films."""
    scripted: str | Any = None
    """Takes an environment and a task, gives a policy that was not learnt (`domains.film.Act`)."""
    chained: str | Any = None
    """As `modules`, for the ablation in which only the first module sees the state."""
    face: str | Any = None
    """Takes an environment, gives its `Face` (`exports.face`); without it, the named parts of the state are shown."""
    gym: str = ""
    """The id of its Gymnasium environments, which take a component for each factor, and the world's fields."""
    usual: str | Any = None
    """What differs here from agents' defaults: a table of options by group, of which each agent takes what it has."""
    returns: str = ""
    """How the return of an episode comes about, in a sentence for people."""
    bench: str | Any = None
    """Further lines for `modlife bench env`: takes `seconds`, gives records."""
    rates: str | Any = usual_rates
    """Takes a world, gives its `Rates`, by which it is estimated how long lives take."""
    needs: tuple[str, ...] = ()
    """Packages that it takes besides the base installation."""
    install: str = ""
    """How to get them."""

    @property
    def installed(self) -> bool:
        """Whether all that it takes is there."""
        return all(importlib.util.find_spec(name) is not None for name in self.needs)

    def usual_world(self) -> Any:
        """The world without any option."""
        return resolve(self.config)()

    def of(self, part: str, *arguments: Any) -> Any:
        """Makes one of its parts, or says that there is none."""
        target = getattr(self, part)
        if target is None:
            raise InputError(f"The domain '{self.name}' has no {part}.")
        return resolve(target)(*arguments)


DOMAINS = Table(
    "domain",
    Domain(
        "grid2d",
        "the discrete 2-D world: reach a target past an obstacle, whatever the actions do",
        config="modlife.domains.grid2d.world:World",
        environment="modlife.domains.grid2d.environment:Grid2D",
        modules="modlife.policies.conv_modules:ConvModules",
        chained="modlife.policies.conv_modules:ChainedConvModules",
        pictures="modlife.domains.grid2d.pictures:GridPictures",
        bench="modlife.domains.grid2d.bench:minigrid",
        face="modlife.domains.grid2d.gym:GridFace",
        gym="modlife/Grid2D-v0",
        returns="An episode that reaches its target in step t of at most T returns 1 - 0.9 t / T, any other 0; a food "
        "that is eaten on the way adds 0.05, lava takes 0.05 and ends the episode.",
    ),
    Domain(
        "robot",
        "arms that lift objects past obstacles, on MuJoCo",
        config="modlife.domains.robot.world:RobotWorld",
        environment="modlife.domains.robot.environment:RobotLift",
        modules="modlife.policies.arm_modules:arm_modules",
        pictures="modlife.domains.robot.pictures:RobotPictures",
        scripted="modlife.domains.robot.pictures:scripted",
        usual="modlife.domains.robot.world:USUAL",
        bench="modlife.domains.robot.bench:robot",
        rates="modlife.domains.robot.world:rates",
        face="modlife.domains.robot.face:RobotFace",
        gym="modlife/RobotLift-v0",
        returns="Each step of an episode pays a little for coming close to the object, more for holding and lifting "
        "it, and 1 while it is high enough, which is the goal; the return is the sum.",
        needs=("mujoco",),
        install=installing("robot"),
    ),
)


@functools.cache
def environment_of(world: Any) -> Any:
    """The environment of a world; equal worlds share it."""
    return DOMAINS.of(world).of("environment", world)
