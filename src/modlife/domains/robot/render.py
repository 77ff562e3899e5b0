"""Pictures of robot scenes, drawn by MuJoCo without a screen."""

import ctypes.util
import functools
import importlib
import os
import sys

import numpy as np
from jaxtyping import Float

from modlife.domains.pictures import Picture
from modlife.domains.robot.engine import mujoco
from modlife.domains.robot.physics import QPOS, ROW, Scene
from modlife.errors import InputError

WIDTH, HEIGHT = 480, 360
MOST_SHAPES = 200
HOW = (
    "Drawing robot scenes takes EGL or OSMesa: on Debian or Ubuntu `apt install libegl1` or `apt install libosmesa6`. "
    "MUJOCO_GL=egl or MUJOCO_GL=osmesa says which to use."
)


@functools.cache
def gl_context(width: int, height: int) -> mujoco.GLContext:
    """A place to draw in, off screen; the process keeps it."""
    wanted = os.environ.get("MUJOCO_GL", "").lower() or first_available()
    try:
        module = importlib.import_module(f"mujoco.{wanted}") if wanted in ("egl", "osmesa") else mujoco
        return module.GLContext(width, height)
    except (ImportError, AttributeError, RuntimeError, OSError) as error:
        raise InputError(f"Cannot draw with {wanted or 'OpenGL'} ({error}). {HOW}") from error


def first_available() -> str:
    """`egl` or `osmesa`, whichever library is there; elsewhere than on Linux, what MuJoCo takes by itself."""
    if not sys.platform.startswith("linux"):
        return ""
    for name, library in (("egl", "EGL"), ("osmesa", "OSMesa")):
        if ctypes.util.find_library(library):
            return name
    raise InputError(HOW)


class Camera:
    """Draws states of one scene."""

    def __init__(self, scene: Scene, *, width: int = WIDTH, height: int = HEIGHT):
        self.gl = gl_context(width, height)
        self.gl.make_current()
        self.model = scene.model
        self.data = mujoco.MjData(scene.model)
        self.rect = mujoco.MjrRect(0, 0, width, height)
        self.picture = np.empty((height, width, 3), np.uint8)
        self.view = mujoco.MjvCamera()
        self.view.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self.view.fixedcamid = scene.model.camera("view").id
        self.option = mujoco.MjvOption()
        self.shapes = mujoco.MjvScene(scene.model, MOST_SHAPES)
        self.context = mujoco.MjrContext(scene.model, mujoco.mjtFontScale.mjFONTSCALE_100)

    def draw(self, row: Float[np.ndarray, f" {ROW}"]) -> Picture:
        """A picture of a state."""
        self.data.qpos[:] = row[QPOS]
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_camlight(self.model, self.data)
        self.gl.make_current()
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self.context)
        everything = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(self.model, self.data, self.option, None, self.view, everything, self.shapes)
        mujoco.mjr_render(self.rect, self.shapes, self.context)
        mujoco.mjr_readPixels(self.picture, None, self.rect, self.context)
        return np.ascontiguousarray(self.picture[::-1])
