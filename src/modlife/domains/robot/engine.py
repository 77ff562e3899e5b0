"""MuJoCo, or a sentence on how to get it; all else in the robot domain imports it from here."""

from modlife.errors import InputError, installing

try:
    import mujoco
except ModuleNotFoundError as error:
    raise InputError(f"The robot domain needs MuJoCo: {installing('robot')}") from error

__all__ = ["mujoco"]
