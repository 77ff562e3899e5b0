"""The controller of `control`, compiled by Numba together with the calls into MuJoCo: no Python inside an action.

The interpreter lock is released for the whole action, so threads run side by side.
"""

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from jaxtyping import Float

from modlife.domains.robot.control import DAMPING, STIFFNESS, Drive, Joints
from modlife.domains.robot.engine import mujoco
from modlife.domains.robot.world import JOINTS


def library() -> ctypes.CDLL:
    """MuJoCo's own shared library, which its Python package has already loaded."""
    folder = Path(mujoco.__file__).parent
    names = [path for pattern in ("libmujoco*.so*", "libmujoco*.dylib", "mujoco.dll") for path in folder.glob(pattern)]
    if not names:
        raise ImportError(f"no MuJoCo library beside {mujoco.__file__}")
    return ctypes.CDLL(str(names[0]))


LIBRARY = library()


def function(name: str) -> Any:
    """A function of MuJoCo that takes a model and its data, both by address."""
    return ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_size_t)((name, LIBRARY))


@functools.cache
def compiled() -> Callable[..., float]:
    """The loop over the physics steps of an action."""
    step1, step2 = function("mj_step1"), function("mj_step2")

    @numba.njit(nogil=True)
    def loop(simulator: Any, drive: Any, goal: np.ndarray, fingers: float, closing: float) -> float:
        model, data, qpos, qvel, mass, bias, ctrl = simulator
        torques, inertia, middle, reach, rates = drive
        wanted = np.empty(JOINTS)
        for rate in rates:
            step1(model, data)
            fingers = min(max(fingers + rate * closing, -1.0), 1.0)
            for joint in range(JOINTS):
                wanted[joint] = STIFFNESS * (goal[joint] - qpos[joint]) - DAMPING * qvel[joint]
            for joint in range(JOINTS):
                torque = 0.0
                for other in range(JOINTS):
                    torque += mass[inertia[joint, other]] * wanted[other]
                torque += bias[joint]
                ctrl[joint] = min(max(torque, -torques[joint]), torques[joint])
            for finger in range(2):
                ctrl[JOINTS + finger] = middle[finger] + reach[finger] * fingers
            step2(model, data)
        return fingers

    return loop


def advance(
    model: mujoco.MjModel, data: mujoco.MjData, drive: Drive, goal: Joints, fingers: float, closing: float
) -> float:
    """The physics of one action, as `control.advance` runs it."""
    simulator = (model._address, data._address, data.qpos, data.qvel, data.M, data.qfrc_bias, data.ctrl)
    driven = (drive.torques, drive.inertia, drive.finger_middle, drive.finger_reach, drive.finger_rates)
    return compiled()(simulator, driven, goal, fingers, closing)


@functools.cache
def compiled_replay() -> Callable[..., None]:
    """Physics steps and nothing else."""
    step = function("mj_step")

    @numba.njit(nogil=True)
    def loop(model: int, data: int, ctrl: np.ndarray, recorded: np.ndarray) -> None:
        for moment in recorded:
            ctrl[:] = moment
            step(model, data)

    return loop


def replay(model: mujoco.MjModel, data: mujoco.MjData, recorded: Float[np.ndarray, "steps 9"]) -> None:
    """Physics under recorded controls: as fast as MuJoCo can be."""
    compiled_replay()(model._address, data._address, data.ctrl, recorded)
