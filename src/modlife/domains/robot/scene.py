"""The scenes of the robot domain: MJCF written from the data beside this file, and compiled by MuJoCo.

A scene is a table, an arm with gripper on a pedestal behind it, an object, and an obstacle between the two. The
data (`data/parts.json`, `data/hulls.safetensors`) was made by `scripts/robot_parts.py` from robosuite 1.2.0, and
`data/apart.json`, bodies of an arm that can never meet, by `scripts/robot_pairs.py`.
"""

import functools
import json
import math
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from importlib import resources
from typing import Any

import numpy as np
from jaxtyping import Float
from safetensors.numpy import load

from modlife.domains.robot.engine import mujoco
from modlife.domains.robot.world import JOINTS, Preset

Parts = Mapping[str, Any]
"""What `data/parts.json` holds."""

TABLE_TOP = np.array([0.3, 0.0, 0.8])
TABLE_SIZE = np.array([0.39, 0.49, 0.05])
BASE = (-0.16 - TABLE_SIZE[0] / 2, 0.0, 0.912)
MOUNT_ABOVE_BASE = 0.01
OBSTACLE_X = TABLE_TOP[0] - TABLE_SIZE[0] / 4
WALL = (0.1, 0.005, 0.1)
"""Half sizes of the wall before it is turned."""
POSTS = (0.01, 0.3)
"""Radius and half height of the door frame's two posts."""
POST_APART = 0.15
GOAL_HEIGHT = 0.1
GRIP_SITE = (0, 0, 0.109)
"""Where the gripper grips, in its own frame."""

UNSEEN = ("head_collision", "screen_collision")
"""Small balls that stand for Sawyer's screen in collisions; they look odd."""

COLOURS = {
    "Sawyer": (0.55, 0.13, 0.13),
    "IIWA": (0.95, 0.45, 0.1),
    "Gen3": (0.35, 0.38, 0.42),
    "Panda": (0.9, 0.9, 0.92),
    "can": (0.8, 0.1, 0.1),
    "milk": (0.72, 0.83, 0.98),
    "cereal": (0.95, 0.75, 0.15),
    "bread": (0.7, 0.45, 0.2),
    "gripper": (0.25, 0.25, 0.27),
    "mount": (0.3, 0.3, 0.3),
    "obstacle": (0.25, 0.45, 0.75),
    "table": (0.82, 0.77, 0.7),
}


DATA = resources.files("modlife.domains.robot") / "data"


@functools.cache
def parts() -> Parts:
    """The data of all arms and objects, as robosuite 1.2.0 has them."""
    return json.loads((DATA / "parts.json").read_text())


@functools.cache
def hulls() -> dict[str, Float[np.ndarray, "_ 3"]]:
    """Corners of the convex hulls, by the name of the mesh."""
    return load((DATA / "hulls.safetensors").read_bytes())


@functools.cache
def never_meet() -> Mapping[str, list[tuple[str, str, float]]]:
    """Pairs of bodies of each arm that no position of its joints brings together, and their least distance."""
    return json.loads((DATA / "apart.json").read_text())


def build(obstacle: str, lifted: str, robot: str, *, timing: Preset, data: Parts | None = None) -> mujoco.MjModel:
    """The compiled scene of a task."""
    data = data or parts()
    root = ET.Element("mujoco", model=f"{obstacle}-{lifted}-{robot}")
    add(root, "compiler", angle="radian", inertiagrouprange="0 0")
    option = add(root, "option", timestep=timing.timestep, impratio=20, cone="elliptic", density=1.2, viscosity=2e-5)
    add(option, "flag", autoreset="disable")
    visual = add(root, "visual")
    add(visual, "map", znear=0.001)
    add(visual, "headlight", ambient=".45 .45 .45", diffuse=".35 .35 .35", specular="0 0 0")
    add(visual, "global", offwidth=1280, offheight=960)
    assets, world = add(root, "asset"), add(root, "worldbody")
    add(assets, "texture", type="skybox", builtin="gradient", rgb1="1 1 1", rgb2=".75 .82 .9", width=256, height=256)
    add_surroundings(world)
    add_obstacle(world, obstacle)
    add_robot(world, robot, data)
    add_object(world, lifted, robot, data)
    for name in sorted({geom.get("mesh", "") for geom in root.iter("geom")} - {""}):
        add(assets, "mesh", name=name, vertex=hulls()[name].ravel())
    arm = data["robots"][robot]
    add_actuators(root, arm)
    contact = add(root, "contact")
    proved = never_meet()[robot] if data is parts() else []  # of these parts, not of others
    for first, second, *_ in [*([arm["apart"]] if arm["apart"] else []), *proved]:
        add(contact, "exclude", body1=first, body2=second)
    return mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))


def add(parent: ET.Element, tag: str, **attributes: Any) -> ET.Element:
    """A child element; numbers and lists of numbers are written out in full."""
    return ET.SubElement(parent, tag, {name: text(value) for name, value in attributes.items()})


def text(value: Any) -> str:
    """A value as MJCF writes it."""
    if isinstance(value, str):
        return value
    numbers = np.atleast_1d(np.asarray(value, float)).tolist()
    return " ".join(str(int(number)) if number.is_integer() else repr(number) for number in numbers)


def add_surroundings(world: ET.Element) -> None:
    """Floor, table, light and camera."""
    add(world, "light", pos="1 1 4", dir="0 -.15 -1", diffuse=".5 .5 .5", castshadow="false")
    add(world, "light", pos="-3 -3 4", dir="0 -.15 -1", diffuse=".4 .4 .4", castshadow="false")
    add(world, "camera", name="view", pos="1.05 -1.05 1.55", xyaxes="0.753 0.658 0 -0.221 0.253 0.942", fovy=52)
    add(world, "geom", name="floor", type="plane", size="3 3 .125", condim=3, rgba=".85 .85 .85 1")
    table = add(world, "body", name="table", pos=TABLE_TOP - [0, 0, TABLE_SIZE[2] / 2])
    add(table, "geom", name="table", type="box", size=TABLE_SIZE / 2, friction="1 .005 .0001", rgba=rgba("table"))


def add_obstacle(world: ET.Element, obstacle: str) -> None:
    """A wall, or the posts of a door frame, across the way from the arm to the object."""
    if obstacle == "none":
        return
    body = add(world, "body", name="obstacle", pos=obstacle_place(obstacle), quat=OBSTACLE_TURN)
    if obstacle == "wall":
        add(body, "geom", type="box", size=WALL, rgba=rgba("obstacle", 0.8))
    else:
        for side in (-POST_APART, POST_APART):
            add(body, "geom", type="cylinder", size=POSTS, pos=(side, 0, 0), rgba=rgba("obstacle"))


def obstacle_place(obstacle: str) -> Float[np.ndarray, " 3"]:
    """The centre of a wall or a door frame, which stand on the table; without either, the place itself."""
    half_height = {"none": 0.0, "wall": WALL[2], "door": POSTS[1]}[obstacle]
    return np.array([OBSTACLE_X, 0, TABLE_TOP[2] + half_height])


def about_z(angle: float) -> Float[np.ndarray, " 4"]:
    """The quaternion (w first) of a turn about the vertical."""
    return np.array([math.cos(angle / 2), 0, 0, math.sin(angle / 2)])


OBSTACLE_TURN = about_z(3.14 / 2)


def add_robot(world: ET.Element, robot: str, data: Parts) -> None:
    """The arm on its pedestal, with the gripper in its hand."""
    base = add_tree(world, data["robots"][robot]["base"] | {"pos": BASE}, robot)
    add_tree(base, data["mount"] | {"name": "mount", "pos": (0, 0, MOUNT_ABOVE_BASE)}, "mount")
    hand = next(body for body in base.iter("body") if body.get("name") == "right_hand")
    gripper = add_tree(hand, data["gripper"], "gripper")
    add(gripper, "site", name="grip", pos=GRIP_SITE, size=0.01, rgba="0 0 0 0")


def goal_pose(lifted: str, robot: str, data: Parts) -> tuple[Float[np.ndarray, " 3"], Float[np.ndarray, " 4"]]:
    """Where the object is shown to be lifted to: above the middle of the table, turned as it is at the start.

    Sawyer's fingers close along the table, all others' across it: for Sawyer the cereal box, too wide to be gripped
    lengthwise, stands the other way.
    """
    turn = about_z(math.pi / 2 if (lifted, robot) == ("cereal", "Sawyer") else 0)
    return TABLE_TOP + np.array([0, 0, GOAL_HEIGHT - data["objects"][lifted]["bottom"]]), turn


def add_object(world: ET.Element, lifted: str, robot: str, data: Parts) -> None:
    """The object, free to move, and a shadow of it where it is to be lifted to."""
    part = data["objects"][lifted]
    body = add(world, "body", name="object")
    add(body, "joint", name="object", type="free", damping=0.0005)
    add(body, "inertial", **part["inertial"])
    for number, geom in enumerate(part["geoms"]):
        add(body, "geom", name=f"object{number}", rgba=rgba(lifted), **geom)
    ghost = {"type": "mesh", "mesh": part["geoms"][0]["mesh"], "contype": 0, "conaffinity": 0, "group": 1}
    place, turn = goal_pose(lifted, robot, data)
    add(world, "geom", name="goal", pos=place, quat=turn, rgba=rgba(lifted, 0.25), **ghost)


def add_tree(parent: ET.Element, part: Parts, colour: str) -> ET.Element:
    """A body of the data with all that hangs on it."""
    body = add(parent, "body", **{key: part[key] for key in ("name", "pos", "quat") if key in part})
    if "inertial" in part:
        add(body, "inertial", **part["inertial"])
    if "joint" in part:
        limited = "true" if "range" in part["joint"] else "false"
        add(body, "joint", limited=limited, **part["joint"])
    for geom in part["geoms"]:
        add(body, "geom", rgba=rgba(colour, 0 if geom.get("name") in UNSEEN else 1), **geom)
    for child in part["bodies"]:
        add_tree(body, child, colour)
    return body


def add_actuators(root: ET.Element, robot: Parts) -> None:
    """A motor for each joint of the arm, then the fingers: right, left."""
    actuator = add(root, "actuator")
    joints = [joint.get("name", "") for joint in root.iter("joint")][:JOINTS]
    for joint, limit in zip(joints, robot["torques"], strict=True):
        add(actuator, "motor", joint=joint, ctrllimited="true", ctrlrange=(-limit, limit))
    for joint, span in (("r_finger_joint", (-0.0115, 0.020833)), ("l_finger_joint", (-0.020833, 0.0115))):
        held = {"ctrllimited": "true", "ctrlrange": span, "forcelimited": "true", "forcerange": (-20, 20)}
        add(actuator, "position", joint=joint, kp=1000, **held)


def rgba(name: str, alpha: float = 1) -> tuple[float, ...]:
    """A colour of the scene."""
    return (*COLOURS[name], alpha)
