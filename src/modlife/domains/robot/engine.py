"""MuJoCo, or a sentence on how to get it; all else in the robot domain imports it from here."""

from modlife.domains.robot.world import INSTALL
from modlife.errors import InputError

try:
    import mujoco
except ModuleNotFoundError as error:
    raise InputError(f"The robot domain needs MuJoCo: {INSTALL}") from error

__all__ = ["mujoco"]
