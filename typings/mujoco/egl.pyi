"""Drawing without a screen, by EGL."""

from mujoco import GLContext as GLContext
