"""Drawing without a screen, by OSMesa."""

from mujoco import GLContext as GLContext
