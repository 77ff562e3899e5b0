"""Records trajectories of robosuite 1.5.2, against which the tests hold the simulator of the robot domain.

Robosuite needs NumPy 1, so this runs in an environment of its own:

    pip install 'numpy<2' scipy numba mujoco==3.9.0 pillow opencv-python-headless termcolor tqdm lxml safetensors
    pip install --no-deps robosuite==1.5.2
    python scripts/record_robosuite.py

Most actions are random; those of `scripts/contact_actions.py` make the arm touch, grasp and push.

The scene is made of robosuite's arms, pedestal, gripper, table, objects and controller, unchanged: what differs from
release 1.2.0 (the hand's frame, the joints at the start, the gripper's rate) is written beside the trajectories.
Observations are read right after a step, when the poses of bodies lag the joints by one substep.
"""

import xml.etree.ElementTree as ET
from copy import deepcopy
from pathlib import Path

import numpy as np
import robosuite.utils.transform_utils as T
from robosuite.environments.manipulation.manipulation_env import ManipulationEnv
from robosuite.models.arenas import TableArena
from robosuite.models.objects import BreadObject, CanObject, CerealObject, MilkObject
from robosuite.models.tasks import ManipulationTask
from safetensors.numpy import load_file, save_file

FOLDER = Path(__file__).parent.parent / "tests/data"
FILE = FOLDER / "robosuite.safetensors"
FREE = "none/can/Sawyer"
"""Recorded with Sawyer's base and first link kept apart: they touch by a rounding error, which holds the joint."""
TASKS = (
    "none/can/Panda",
    "wall/milk/IIWA",
    "door/cereal/Sawyer",
    "none/bread/Gen3",
    "wall/can/Sawyer",
    "door/milk/Gen3",
    "none/cereal/IIWA",
    "wall/bread/Panda",
    "none/milk/Sawyer",
    "door/bread/IIWA",
    "wall/cereal/Gen3",
    "door/can/Panda",
)
STEPS = 60
SEED = 0
ARMS = {"Sawyer": "Sawyer", "IIWA": "IIWA", "Gen3": "Kinova3", "Panda": "Panda"}
OBJECTS = {"can": CanObject, "milk": MilkObject, "bread": BreadObject, "cereal": CerealObject}
BOTTOM = {"can": -0.06, "milk": -0.085, "bread": -0.045, "cereal": -0.1}
TABLE = {"table_full_size": (0.39, 0.49, 0.05), "table_friction": (1, 5e-3, 1e-4), "table_offset": (0.3, 0, 0.8)}
TOP = 0.8
LIFT = 0.1
OBSTACLE_X = 0.2025
TURN = 3.14 / 2
PAST_WALL = OBSTACLE_X + 0.05
WALL_AIM = 1.1
CONTROLLER = {
    "type": "JOINT_POSITION",
    "input_max": 1,
    "input_min": -1,
    "output_max": 0.05,
    "output_min": -0.05,
    "kp": 50,
    "damping_ratio": 1,
    "impedance_mode": "fixed",
    "interpolation": None,
    "gripper": {"type": "GRIP"},
}

Pose = tuple[np.ndarray, np.ndarray]
"""A position and a quaternion, the real part last."""


def about_z(angle: float) -> np.ndarray:
    """The quaternion of a turn about the vertical, the real part first."""
    return np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])


def text(values: np.ndarray | tuple[float, ...]) -> str:
    """Numbers as MuJoCo's XML has them, none of their digits lost."""
    return " ".join(repr(float(value)) for value in values)


def obstacle_body(obstacle: str, radius: float) -> ET.Element:
    """The obstacle, which does not move; without one, the place of a ball that touches nothing."""
    centre = TOP + {"none": radius, "wall": 0.1, "door": 0.3}[obstacle]
    body = ET.Element("body", name="obstacle", pos=text((OBSTACLE_X, 0, centre)), quat=text(about_z(TURN)))
    if obstacle == "wall":
        ET.SubElement(body, "geom", name="obstacle_wall", type="box", size="0.1 0.005 0.1")
    elif obstacle == "door":
        for name, x in (("obstacle_left", -0.15), ("obstacle_right", 0.15)):
            ET.SubElement(body, "geom", name=name, type="cylinder", size="0.01 0.3", pos=text((x, 0, 0)))
    return body


class Lift(ManipulationEnv):
    """The lifting task of the paper in robosuite."""

    def __init__(self, task: str, radius: float):
        self.obstacle, self.item_name, self.arm = task.split("/")
        self.radius = radius
        super().__init__(
            robots=ARMS[self.arm],
            controller_configs={"type": "BASIC", "body_parts": {"right": deepcopy(CONTROLLER)}},
            base_types="RethinkMount",
            gripper_types="RethinkGripper",
            initialization_noise=None,
            use_camera_obs=False,
            has_offscreen_renderer=False,
            control_freq=20,
            horizon=500,
            renderer="mujoco",
        )

    def _load_model(self) -> None:
        """Puts arm, table, object and obstacle together."""
        super()._load_model()
        robot = self.robots[0].robot_model
        robot.set_base_xpos(robot.base_xpos_offset["table"](TABLE["table_full_size"][0]))
        arena = TableArena(**TABLE)
        arena.set_origin([0, 0, 0])
        self.item = OBJECTS[self.item_name](name="item")
        self.model = ManipulationTask(mujoco_arena=arena, mujoco_robots=[robot], mujoco_objects=self.item)
        self.model.worldbody.append(obstacle_body(self.obstacle, self.radius))
        if f"{self.obstacle}/{self.item_name}/{self.arm}" == FREE:
            apart = ET.SubElement(self.model.root, "contact")
            ET.SubElement(apart, "exclude", body1="robot0_right_arm_base_link", body2="robot0_right_l0")

    def _setup_references(self) -> None:
        """Looks up where joints are and which shapes belong to the moving part of the robot."""
        super()._setup_references()
        model, gripper = self.sim.model, self.robots[0].gripper["right"]
        fingers = [f"{gripper.naming_prefix}{side}_finger_joint" for side in "lr"]
        joints = [*self.robots[0].robot_model.joints, *fingers]
        self.qpos_at = np.r_[
            [model.get_joint_qpos_addr(name) for name in joints], slice(*model.get_joint_qpos_addr(self.item.joints[0]))
        ]
        self.qvel_at = np.r_[
            [model.get_joint_qvel_addr(name) for name in joints], slice(*model.get_joint_qvel_addr(self.item.joints[0]))
        ]
        self.arm_geoms = {
            geom
            for geom, body in enumerate(model.geom_bodyid)
            if model.body_weldid[body] and model.body_id2name(body).startswith(("robot0_", "gripper0_"))
        }

    @property
    def turn(self) -> np.ndarray:
        """The object's rotation at the start and in the goal, the real part first."""
        return about_z(np.pi / 2 if (self.item_name, self.arm) == ("cereal", "Sawyer") else 0)

    def place(self, x: float, y: float) -> None:
        """Puts the object at its start, just above the table."""
        pose = np.concatenate([[x, y, TOP + 0.01 - BOTTOM[self.item_name]], self.turn])
        self.sim.data.set_joint_qpos(self.item.joints[0], pose)
        self.sim.forward()

    def body(self, name: str) -> Pose:
        """The pose of a body as it is observed."""
        body = self.sim.model.body_name2id(name)
        return self.sim.data.body_xpos[body].copy(), T.convert_quat(self.sim.data.body_xquat[body].copy(), to="xyzw")

    def hand(self) -> Pose:
        """The frame of the relative poses: the place of the grip site, turned as the hand is."""
        grip = self.sim.data.site_xpos[self.robots[0].eef_site_id["right"]].copy()
        return grip, self.body("robot0_right_hand")[1]

    def goal(self) -> Pose:
        """The pose that is observed as the goal."""
        return np.array([0.3, 0, TOP + LIFT - BOTTOM[self.item_name]]), T.convert_quat(self.turn, to="xyzw")

    def seen(self, pose: Pose) -> np.ndarray:
        """A pose in the world, then as seen from the hand."""
        to_hand = T.pose_inv(T.pose2mat(self.hand()))
        return np.concatenate([*pose, *T.mat2pose(T.pose_in_A_to_pose_in_B(T.pose2mat(pose), to_hand))])

    def observation(self) -> dict[str, np.ndarray]:
        """What the four parts of the observation hold now."""
        qpos, qvel = self.sim.data.qpos[self.qpos_at], self.sim.data.qvel[self.qvel_at]
        item, goal = self.body(self.item.root_body), self.goal()
        robot = [np.cos(qpos[:7]), np.sin(qpos[:7]), qvel[:7], *self.hand(), qpos[7:9], qvel[7:9]]
        return {
            "qpos": qpos,
            "qvel": qvel,
            "robot": np.concatenate(robot),
            "object": self.seen(item),
            "obstacle": self.seen(self.body("obstacle")),
            "goal": np.concatenate([self.seen(goal), goal[0] - item[0]]),
        }

    def contacts(self) -> dict[str, int]:
        """The number of contacts, and of those in which the moving part of the robot takes part."""
        pairs = [{contact.geom1, contact.geom2} for contact in self.sim.data.contact[: self.sim.data.ncon]]
        return {"contacts": len(pairs), "arm_contacts": sum(bool(pair & self.arm_geoms) for pair in pairs)}

    def grasping(self) -> bool:
        """Whether both pads of the gripper touch the object."""
        return self._check_grasp(self.robots[0].gripper["right"], self.item)

    def reach(self) -> float:
        """The reward for coming near the object; in front of a wall, for coming over it."""
        grip = self.hand()[0]
        near = 1 - np.tanh(5 * np.linalg.norm(grip - self.body(self.item.root_body)[0]))
        if self.obstacle != "wall":
            return 0.1 * near
        if grip[0] > PAST_WALL:
            return 0.05 + 0.05 * near
        return 0.05 * (1 - np.tanh(5 * np.hypot(grip[0] - PAST_WALL, grip[2] - WALL_AIM)))

    def reward(self, action: np.ndarray | None = None) -> float:
        """The reward of the authors' code."""
        missing = TOP + LIFT - self.body(self.item.root_body)[0][2]
        if missing < 0:
            return 1.0
        lift = 0.2 + 0.5 * (1 - np.tanh(25 * missing))
        return float(max(self.reach(), lift if self.grasping() else 0))


def draw_actions(random: np.random.Generator) -> np.ndarray:
    """Random actions that are alike for some steps, so that the arm goes somewhere."""
    actions, action = [], np.zeros(8)
    for _ in range(STEPS):
        action = np.clip(0.8 * action + 0.6 * random.standard_normal(8), -1, 1)
        actions.append(action)
    return np.array(actions, np.float32)


def record(env: Lift, x: float, y: float, actions: np.ndarray) -> dict[str, np.ndarray]:
    """Runs one episode and returns everything about it, by name."""
    env.reset()
    env.place(x, y)
    start = env.sim.data.qpos[env.qpos_at]
    observations, contacts, rewards, grasps = [env.observation()], [env.contacts()], [], []
    for action in actions:
        rewards.append(env.step(action.astype(np.float64))[1])
        observations.append(env.observation())
        contacts.append(env.contacts())
        grasps.append(env.grasping())
    return {
        "actions": actions,
        "start": start,
        "radius": np.array([env.radius]),
        "reward": np.array(rewards),
        "grasp": np.array(grasps, np.uint8),
        **{name: np.array([one[name] for one in observations], np.float32) for name in observations[0]},
        **{name: np.array([one[name] for one in contacts], np.int32) for name in contacts[0]},
    }


def parts(env: Lift) -> dict[str, np.ndarray]:
    """The compiled numbers of the object and of the arm in which releases of robosuite may differ."""
    model, robot = env.sim.model, env.robots[0]
    item, hand = model.body_name2id(env.item.root_body), model.body_name2id("robot0_right_hand")
    return {
        f"mass:{env.item_name}": model.body_mass[[item]],
        f"ipos:{env.item_name}": model.body_ipos[item].copy(),
        f"iquat:{env.item_name}": model.body_iquat[item].copy(),
        f"inertia:{env.item_name}": model.body_inertia[item].copy(),
        f"hand:{env.arm}": np.concatenate([model.body_pos[hand], model.body_quat[hand]]),
        f"joints:{env.arm}": np.array(robot.init_qpos, np.float64),
        f"rate:{env.arm}": np.array([robot.gripper["right"].speed]),
    }


def random_episodes() -> dict[str, np.ndarray]:
    """Random actions in the tasks of the list, and in the one where Sawyer is free."""
    tensors: dict[str, np.ndarray] = {}
    for number, task in enumerate((*TASKS, FREE)):
        random = np.random.default_rng([SEED, number])
        x, y = random.uniform(0.300, 0.345), random.uniform(-0.145, 0.145)
        env = Lift(task, random.uniform(0.03, 0.07) if task.startswith("none/") else 0.0)
        tensors |= {f"{task}:{name}": value for name, value in record(env, x, y, draw_actions(random)).items()}
        tensors |= parts(env)
        env.close()
        rewards, touches = tensors[f"{task}:reward"], tensors[f"{task}:arm_contacts"]
        print(f"{task}: rewards {rewards.min():.4f} to {rewards.max():.4f}, arm in {touches.max()} contacts at most")
    return tensors


def contact_episodes() -> dict[str, np.ndarray]:
    """Episodes with given actions, without observations."""
    episodes = load_file(FOLDER / "contact_actions.safetensors")
    x, y = episodes.pop("place")
    tensors: dict[str, np.ndarray] = {}
    for task, actions in episodes.items():
        env = Lift(task, 0.03 if task.startswith("none/") else 0.0)
        recorded = record(env, x, y, actions)
        kept = ("actions", "start", "radius", "qpos", "reward", "grasp", "arm_contacts")
        tensors |= {f"contact {task}:{name}": recorded[name] for name in kept}
        env.close()
        print(f"{task}: {recorded['grasp'].sum()} steps of grasping, {recorded['arm_contacts'].max()} contacts at most")
    return tensors


def main() -> None:
    """Records every episode and writes the file."""
    FOLDER.mkdir(exist_ok=True)
    save_file(random_episodes() | contact_episodes(), FILE)
    print(f"{FILE.name}: {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
