"""Writes the data of the robot domain from the robosuite 1.2.0 wheel: what its physics needs, and nothing else.

    pip download --no-deps robosuite==1.2.0
    python scripts/robot_parts.py robosuite-1.2.0-py3-none-any.whl

Kept are the frames, inertias, joints and collision shapes of the four arms, the pedestal, the gripper and the four
objects. MuJoCo collides the convex hulls of meshes only, so a mesh is kept as the corners of its hull; the objects'
inertias, which follow from the whole mesh, are computed here by MuJoCo. Needs SciPy (in the `dev` extra).
"""

import json
import sys
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import mujoco
import numpy as np
from safetensors.numpy import save_file
from scipy.spatial import ConvexHull

ASSETS = "robosuite/models/assets"
FOLDER = Path(__file__).parent.parent / "src/modlife/domains/robot/data"
ROBOTS = {"sawyer": "Sawyer", "iiwa": "IIWA", "kinova3": "Gen3", "panda": "Panda"}
START = {
    "Sawyer": [0, -1.18, 0, 2.18, 0, 0.57, 3.3161],
    "IIWA": [0, 0.65, 0, -1.89, 0, 0.6, 0],
    "Gen3": [0, 0.65, 0, 1.89, 0, 0.6, -np.pi / 2],
    "Panda": [0, np.pi / 16, 0, -np.pi / 2 - np.pi / 3, 0, np.pi - 0.2, np.pi / 4],
}
"""Joint positions at the start, as the classes of `robosuite.models.robots` have them."""
KEPT = {
    "body": ("name", "pos", "quat"),
    "inertial": ("pos", "quat", "mass", "diaginertia"),
    "joint": ("name", "type", "axis", "range", "damping", "armature", "frictionloss"),
    "geom": ("name", "type", "size", "pos", "quat", "mesh", "contype", "conaffinity", "friction", "condim", "solref"),
}
TEXT = ("name", "type", "mesh")
APART = {"Sawyer": ["right_arm_base_link", "right_l0"]}
"""Bodies that shall not collide: these two touch to within 1e-16 m in the files, so that rounding decides whether the
arm's first joint is stuck."""
MILK_SPHERE = {"type": "sphere", "size": [0.01], "friction": [0.95, 0.3, 0.1], "condim": 4}
"""The authors' fork adds it at the centre of the milk carton, with the carton's own contact parameters."""


def numbers(element: ET.Element) -> dict:
    """The attributes that physics needs, as numbers."""
    kept = {}
    for name in KEPT[element.tag]:
        text = element.get(name)
        if text is not None:
            values = [] if name in TEXT else [float(word) for word in text.split()]
            scalar = name in ("mass", "damping", "armature", "frictionloss", "contype", "conaffinity", "condim")
            kept[name] = text if name in TEXT else values[0] if scalar else values
    return kept


def tree(body: ET.Element, prefix: str) -> dict:
    """A body with everything below it, without what is only to be seen."""
    node = numbers(body)
    for tag in ("inertial", "joint"):
        found = body.find(tag)
        if found is not None:
            node[tag] = numbers(found)
    geoms = [numbers(geom) for geom in body.findall("geom") if geom.get("group", "0") == "0"]
    for geom in geoms:
        if "mesh" in geom:
            geom["mesh"] = f"{prefix}/{geom['mesh']}"
    node["geoms"] = geoms
    node["bodies"] = [tree(child, prefix) for child in body.findall("body")]
    return node


def meshes_of(node: dict) -> set[str]:
    """Names of the meshes in a tree of bodies."""
    own = {geom["mesh"] for geom in node["geoms"] if "mesh" in geom}
    return own.union(*(meshes_of(child) for child in node["bodies"]))


def joints_of(node: dict) -> list[dict]:
    """The joints in a tree of bodies, from the base on."""
    own = [node["joint"]] if "joint" in node else []
    return own + [joint for child in node["bodies"] for joint in joints_of(child)]


def vertices(stl: bytes) -> np.ndarray:
    """The corners of a binary STL's triangles."""
    count = int.from_bytes(stl[80:84], "little")
    record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    assert len(stl) == 84 + count * record.itemsize, "not a binary STL"
    return np.frombuffer(stl, record, count, 84)["corners"].reshape(-1, 3)


def hull(points: np.ndarray) -> np.ndarray:
    """The corners of the convex hull, each once."""
    points = np.unique(points, axis=0)
    return np.ascontiguousarray(points[np.sort(ConvexHull(points).vertices)])


def scaled_mesh(wheel: zipfile.ZipFile, folder: str, root: ET.Element, name: str) -> tuple[bytes, np.ndarray]:
    """A mesh file of an MJCF file, and the scale it is used at."""
    mesh = next(mesh for mesh in root.iter("mesh") if mesh.get("name") == name)
    scale = np.array([float(word) for word in mesh.get("scale", "1 1 1").split()])
    return wheel.read(f"{folder}/{mesh.get('file')}"), scale


def robot(wheel: zipfile.ZipFile, name: str, hulls: dict) -> dict:
    """An arm: its bodies from the base on, torque limits, and where its joints start.

    Where a joint's file does not say, `RobotModel` of robosuite sets friction, damping and armature.
    """
    folder = f"{ASSETS}/robots/{name}"
    root = ET.fromstring(wheel.read(f"{folder}/robot.xml"))
    base = tree(root.find("worldbody/body"), name)
    for mesh in meshes_of(base):
        stl, scale = scaled_mesh(wheel, folder, root, mesh.removeprefix(f"{name}/"))
        hulls[mesh] = (hull(vertices(stl)) * scale).astype(np.float32)
    for number, joint in enumerate(joints_of(base)):
        defaults = {"frictionloss": 0.1, "damping": 0.1, "armature": 5 / (number + 1)}
        joint.update({key: value for key, value in defaults.items() if key not in joint})
    torques = [float(motor.get("ctrlrange").split()[1]) for motor in root.iter("motor")]
    start = [float(angle) for angle in START[ROBOTS[name]]]
    return {"start": start, "torques": torques, "apart": APART.get(ROBOTS[name]), "base": base}


def lifted(wheel: zipfile.ZipFile, name: str, hulls: dict) -> dict:
    """An object: collision shapes, inertia of the whole mesh, and how far its bottom is below its centre."""
    folder = f"{ASSETS}/objects"
    root = ET.fromstring(wheel.read(f"{folder}/{name}.xml"))
    body = root.find("worldbody/body/body")
    stl, scale = scaled_mesh(wheel, folder, root, f"{name}_mesh")
    hulls[f"objects/{name}"] = (hull(vertices(stl)) * scale).astype(np.float32)
    geom = body.find("geom")
    shape = numbers(geom) | {"mesh": f"objects/{name}", "solimp": [float(x) for x in geom.get("solimp").split()]}
    shape.pop("pos")
    shapes = [shape]
    if name == "milk":
        shapes.append(MILK_SPHERE | {key: shape[key] for key in ("solref", "solimp")})
    bottom = next(site for site in root.iter("site") if site.get("name") == "bottom_site")
    return {
        "inertial": inertia(stl, scale, float(geom.get("density")), sphere=name == "milk"),
        "geoms": shapes,
        "bottom": float(bottom.get("pos").split()[2]),
    }


def inertia(stl: bytes, scale: np.ndarray, density: float, *, sphere: bool) -> dict:
    """Mass and moments as MuJoCo finds them for the whole mesh, and for the sphere inside it if there is one."""
    extra = f'<geom size="0.01" density="{density}"/>' if sphere else ""
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><asset><mesh name="m" file="m.stl" scale="{" ".join(map(str, scale))}"/></asset>
        <worldbody><body><freejoint/><geom type="mesh" mesh="m" density="{density}"/>{extra}</body></worldbody>
        </mujoco>""",
        {"m.stl": stl},
    )
    return {
        "pos": model.body_ipos[1].tolist(),
        "quat": model.body_iquat[1].tolist(),
        "mass": float(model.body_mass[1]),
        "diaginertia": model.body_inertia[1].tolist(),
    }


def main(path: str) -> None:
    """Writes parts.json, hulls.safetensors and the licence of what they were made from."""
    hulls: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(path) as wheel:
        gripper = ET.fromstring(wheel.read(f"{ASSETS}/grippers/rethink_gripper.xml"))
        mount = ET.fromstring(wheel.read(f"{ASSETS}/mounts/rethink_mount.xml"))
        parts = {
            "source": "robosuite 1.2.0 (MIT), by scripts/robot_parts.py",
            "robots": {ROBOTS[name]: robot(wheel, name, hulls) for name in ROBOTS},
            "gripper": tree(gripper.find("worldbody/body"), "gripper"),
            "mount": tree(mount.find("worldbody/body"), "mount"),
            "objects": {name: lifted(wheel, name, hulls) for name in ("can", "milk", "cereal", "bread")},
        }
        licence = next(name for name in wheel.namelist() if name.endswith("LICENSE"))
        (FOLDER / "LICENSE-robosuite").write_bytes(wheel.read(licence))
    (FOLDER / "parts.json").write_text(json.dumps(parts, indent=1) + "\n")
    save_file(hulls, FOLDER / "hulls.safetensors")
    print(len(hulls), "hulls,", sum(map(len, hulls.values())), "corners")


if __name__ == "__main__":
    main(sys.argv[1])
