"""Finds the pairs of bodies of each arm that can never meet, and writes them beside the other data of the robot domain.

    python scripts/robot_pairs.py

MuJoCo looks at them in every step, in vain: bodies that are close to each other by construction, two joints apart. How
one lies to the other depends on the joints between them alone, so a proof is a sweep over the ranges of these (a little
beyond them, as limits are soft): ranges are halved until, in every box, the distance in its middle is more than
all that its joints can move the second body by. A pair is left alone where a box is met in which the two touch, or
where the boxes become too many. The distances are MuJoCo's own (`mj_geomDistance`).
"""

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import mujoco
import numpy as np

from modlife.domains.robot import scene
from modlife.domains.robot.world import RobotWorld

OUT = Path(scene.__file__).parent / "data" / "apart.json"
CLEAR = 5e-4
"""Metres that two bodies keep between them, at least, to count as never meeting."""
BEYOND = 0.1
"""Radians (for fingers: a tenth of it in metres) that joints may go beyond their ranges."""
BOXES = 200_000
"""Boxes in which a pair is looked at, at most."""
JOINTS = 3
"""Joints between two bodies, at most: those with more between them mostly meet, and are seldom near each other."""
FAR = 10.0

Joints = list[int]


def path_between(model: mujoco.MjModel, first: int, second: int) -> tuple[Joints, Joints]:
    """The joints from the last body that both hang on to each of the two; outermost last."""
    ways = []
    for body in (first, second):
        way = [body]
        while way[-1]:
            way.append(int(model.body_parentid[way[-1]]))
        ways.append(way[::-1])
    common = sum(1 for one, other in zip(*ways, strict=False) if one == other)
    return tuple([j for body in way[common:] for j in joints_of(model, body)] for way in ways)  # pyright: ignore[reportReturnType]


def joints_of(model: mujoco.MjModel, body: int) -> Joints:
    """A body's own joints."""
    start = int(model.body_jntadr[body])
    return list(range(start, start + int(model.body_jntnum[body]))) if start >= 0 else []


def range_of(model: mujoco.MjModel, joint: int) -> tuple[float, float]:
    """Where a joint can be: a little more than its range, or a whole turn."""
    if not model.jnt_limited[joint]:
        return -math.pi, math.pi
    beyond = BEYOND / 10 if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE else BEYOND
    low, high = model.jnt_range[joint]
    return float(low - beyond), float(high + beyond)


def farthest(model: mujoco.MjModel, data: mujoco.MjData, body: int, place: np.ndarray) -> float:
    """How far any point of a body's shapes is from a place, at most."""
    shapes = geoms_of(model, body)
    return max(float(np.linalg.norm(data.geom_xpos[g] - place) + model.geom_rbound[g]) for g in shapes)


def geoms_of(model: mujoco.MjModel, body: int) -> list[int]:
    """A body's own shapes that can touch anything."""
    start, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
    touching = model.geom_contype | model.geom_conaffinity
    return [g for g in range(start, start + count) if touching[g]] if start >= 0 else []


def reaches(model: mujoco.MjModel, data: mujoco.MjData, joints: Joints, body: int) -> list[float]:
    """For each joint on the way to a body, how far its points move per radian, at most, whatever those after it do.

    A point at a distance from the axis moves by it; the distance is at most that of the next joint's anchor, which is
    fixed as seen from this joint, and the way on from there.
    """
    found = []
    for number, joint in enumerate(joints):
        if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE:
            found.append(1.0)
            continue
        anchor, axis, on = data.xanchor[joint], data.xaxis[joint], joints[number + 1 :]
        if not on:
            found.append(farthest(model, data, body, anchor))
            continue
        offset = data.xanchor[on[0]] - anchor
        away = float(np.linalg.norm(offset - offset @ axis * axis))
        hops = [float(np.linalg.norm(data.xanchor[b] - data.xanchor[a])) for a, b in itertools.pairwise(on)]
        slides = sum(np.ptp(range_of(model, j)) for j in on if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_SLIDE)
        found.append(away + sum(hops) + float(slides) + farthest(model, data, body, data.xanchor[on[-1]]))
    return found


def distance(model: mujoco.MjModel, data: mujoco.MjData, first: int, second: int) -> float:
    """Between two bodies; zero or less where they touch."""
    mujoco.mj_kinematics(model, data)
    pairs = itertools.product(geoms_of(model, first), geoms_of(model, second))
    return min(mujoco.mj_geomDistance(model, data, g, h, FAR, None) for g, h in pairs)


def never_meet(model: mujoco.MjModel, first: int, second: int, *, boxes: int = BOXES) -> float | None:
    """The least distance that a sweep saw of two bodies that it proves never to meet; None if they may."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    ways = path_between(model, first, second)
    joints = [joint for way in ways for joint in way]
    ends = zip(ways, (first, second), strict=True)
    reach = np.array([metres for way, body in ends for metres in reaches(model, data, way, body)])
    ranges = np.array([range_of(model, joint) for joint in joints]).reshape(-1, 2)
    places = [int(model.jnt_qposadr[joint]) for joint in joints]
    waiting, least = [(ranges.mean(axis=1), np.ptp(ranges, axis=1) / 2)], FAR
    while waiting:
        boxes -= 1
        middle, half = waiting.pop()
        data.qpos[places] = middle
        here = distance(model, data, first, second)
        if here <= CLEAR or boxes < 0:
            return None
        least = min(least, here)
        if here - half @ reach <= CLEAR:
            waiting += halves(middle, half, int(np.argmax(half * reach)))
    return least


def halves(middle: np.ndarray, half: np.ndarray, joint: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The two boxes that one is cut into, across a joint's range."""
    smaller = half.copy()
    smaller[joint] /= 2
    step = np.zeros_like(middle)
    step[joint] = smaller[joint]
    return [(middle - step, smaller), (middle + step, smaller)]


def candidates(model: mujoco.MjModel, base: str) -> Iterator[tuple[int, int]]:
    """Pairs of bodies below a base that MuJoCo looks at: not fixed to each other, and not parent and child.

    Of these, the ones with few joints between them.
    """
    root = model.body(base).id
    bodies = [b for b in range(model.nbody) if root in ancestors(model, b) and geoms_of(model, b)]
    excluded = {(int(one) >> 16, int(one) & 0xFFFF) for one in model.exclude_signature}
    weld = model.body_weldid
    for first, second in itertools.combinations(bodies, 2):
        parents = [int(weld[model.body_parentid[weld[body]]]) for body in (first, second)]
        related = weld[first] == weld[second] or (parents[1] == weld[first] and weld[first])
        related = related or (parents[0] == weld[second] and weld[second])
        between = sum(map(len, path_between(model, first, second)))
        if not related and (first, second) not in excluded and between <= JOINTS:
            yield first, second


def ancestors(model: mujoco.MjModel, body: int) -> set[int]:
    """A body, and all that it hangs on."""
    found = {body}
    while body:
        body = int(model.body_parentid[body])
        found.add(body)
    return found


def pairs_of(robot: str, *, boxes: int = BOXES) -> list[Sequence[str | float]]:
    """Names of all pairs of an arm that never meet, each with the least distance seen."""
    model = scene.build("none", "can", robot, timing=RobotWorld().timing, data=dict(scene.parts()))
    found = []
    for first, second in candidates(model, scene.parts()["robots"][robot]["base"]["name"]):
        names = [model.body(body).name for body in (first, second)]
        least = never_meet(model, first, second, boxes=boxes)
        print(robot, *names, "may meet" if least is None else f"{least:.4f}", flush=True)
        if least is not None:
            found.append([*names, round(least, 4)])
    return found


def main() -> None:
    """Writes the pairs of all arms."""
    robots = {robot: pairs_of(robot) for robot in scene.parts()["robots"]}
    lines = [f'"{robot}": [\n  ' + ",\n  ".join(map(json.dumps, pairs)) + "\n ]" for robot, pairs in robots.items()]
    OUT.write_text("{\n " + ",\n ".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
