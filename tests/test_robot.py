"""The robot domain: scenes, control, observations, rewards, and its place among the domains."""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import evaluate
from scipy.spatial.transform import Rotation
from scipy.stats import norm

from modlife.domains.graph import Continuous, Discrete
from modlife.domains.robot import control, control_numba, environment
from modlife.domains.robot.environment import RobotLift, State
from modlife.domains.robot.physics import BALL, FINGERS, OBJECT_AT, QVEL, Physics, Step
from modlife.domains.robot.rewards import LIFTED, Reading, observe, reward
from modlife.domains.robot.scene import DATA, parts
from modlife.domains.robot.scripted import Script
from modlife.domains.robot.world import OBJECTS, PRESETS, ROBOTS, RobotWorld
from modlife.errors import InputError
from modlife.learners.rollout import Asked, collect, start
from modlife.policies.acting import Rule
from modlife.policies.distributions import Categorical, Gaussian, noise
from modlife.policies.modular import GaussianOutput

FAST = RobotWorld(preset="fast")
GRAPH = FAST.graph
ALL = np.array([GRAPH.indices(task) for task in GRAPH.tasks])


@pytest.fixture(scope="module")
def physics() -> Physics:
    return Physics(FAST)


def task_of(name: str, count: int = 1) -> np.ndarray:
    return np.tile(GRAPH.indices(GRAPH.parse(name)), (count, 1))


def moving(physics: Physics, tasks: np.ndarray, *, steps: int, seed: int = 0) -> list[Step]:
    """Episodes with random actions that last a few steps each, so that arms go somewhere."""
    draws, actions = randomness(len(tasks), steps, seed)
    history = [physics.start(tasks, draws)]
    for action in actions:
        history.append(physics.step(tasks, history[-1].rows, action))
    return history


def randomness(count: int, steps: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """What sets starts apart, and actions that change every five steps; some go beyond their bounds."""
    random = np.random.default_rng(seed)
    chosen = random.uniform(-1.5, 1.5, (-(-steps // 5), count, 8))
    return random.random((count, 3)), np.repeat(chosen, 5, axis=0)[:steps]


def still(physics: Physics, tasks: np.ndarray, *, steps: int) -> Step:
    state = physics.start(tasks, np.full((len(tasks), 3), 0.5))
    for _ in range(steps):
        state = physics.step(tasks, state.rows, np.zeros((len(tasks), 8)))
    return state


# Scenes


def test_all_48_tasks_start_and_move_without_anything_that_is_not_a_number(physics: Physics):
    history = moving(physics, ALL, steps=30)
    rows = np.array([step.rows for step in history])
    assert rows.shape == (31, 48, 48)
    assert np.isfinite(rows).all() and all(np.isfinite(step.observation).all() for step in history)
    assert (np.ptp(rows[:, :, :7], axis=0).max(axis=1) > 0.03).all()
    assert np.abs(rows[:, :, QVEL]).max() < 20


def test_scaled_inputs_are_about_one_in_all_tasks_and_say_the_same(physics: Physics):
    history = moving(physics, ALL, steps=30)
    every = jnp.asarray(np.concatenate([step.observation for step in history]), jnp.float32)
    plain, scaled = (RobotLift(RobotWorld(preset="fast", inputs=how)).parts(every) for how in ("plain", "scaled"))
    numbers = np.concatenate([np.asarray(part) for part in scaled.values()])
    assert np.abs(numbers).max() < 6 and np.abs(numbers[[7, 8, 9]]).max() > 1 and np.abs(numbers[[73, 74]]).max() > 0.2
    for name, part in plain.items():
        again = np.asarray(scaled[name]) / environment.SCALES[name][:, None] + environment.CENTRES[name][:, None]
        np.testing.assert_allclose(again, np.asarray(part), atol=1e-6)
    assert environment.SCALES["robot"][28] == 50 and environment.SCALES["object"][7] == 10  # a finger; hand to object


def test_data_is_small_and_carries_its_licence():
    files = [Path(str(DATA / name)) for name in ("parts.json", "hulls.safetensors", "apart.json", "LICENSE-robosuite")]
    assert sum(file.stat().st_size for file in files) < 500_000
    assert "MIT License" in files[-1].read_text()


def test_grips_start_where_the_arms_of_robosuite_have_them(physics: Physics):
    """Robosuite 1.2.0's poses; Gen3's hand is 3.5 mm further out there than in later releases."""
    expected = {
        "IIWA": (0.114, 0, 1.007),
        "Gen3": (0.078, -0.025, 0.993),
        "Panda": (0.104, 0, 0.999),
        "Sawyer": (0.095, 0.160, 1.019),
    }
    for robot, place in expected.items():
        seen = physics.start(task_of(f"none/can/{robot}"), np.zeros((1, 3))).observation[0]
        assert seen[45 + 21 : 45 + 24] == pytest.approx(place, abs=6e-4)


@pytest.mark.parametrize("preset", ["paper", "fast"])
def test_objects_fall_onto_the_table_and_rest_at_their_heights(preset):
    physics = Physics(RobotWorld(preset=preset))
    tasks = np.array([GRAPH.indices(GRAPH.parse(f"none/{name}/IIWA")) for name in OBJECTS])
    start = physics.start(tasks, np.full((4, 3), 0.5)).rows[:, OBJECT_AT][:, 2]
    assert start == pytest.approx([0.870, 0.895, 0.910, 0.855])
    first = physics.step(tasks, physics.start(tasks, np.full((4, 3), 0.5)).rows, np.zeros((4, 8)))
    assert not first.success.any()  # the cereal box starts above the height that counts as lifted
    rest = still(physics, tasks, steps=30).rows[:, OBJECT_AT][:, 2]
    assert rest == pytest.approx([0.840, 0.861, 0.875, 0.823], abs=1e-3)


def test_objects_start_within_their_area_and_the_rest_is_fixed():
    random = np.random.default_rng(0)
    worlds = [(RobotWorld(), 0.345, 0.145), (RobotWorld(object_area="half"), 0.445, 0.195)]
    for world, reach, side in worlds:
        physics = Physics(world)
        rows = physics.start(task_of("none/bread/IIWA", 4000), random.random((4000, 3))).rows
        x, y, ball = rows[:, 9], rows[:, 10], rows[:, BALL]
        assert (0.3, reach) == pytest.approx((x.min(), x.max()), abs=1e-3)
        assert (-side, side) == pytest.approx((y.min(), y.max()), abs=2e-3)
        assert pytest.approx((ball.min(), ball.max()), abs=1e-3) == (0.03, 0.07)
        others = np.delete(rows, [9, 10, BALL], axis=1)
        assert (others == others[0]).all()


def test_only_sawyers_cereal_box_stands_lengthwise(physics: Physics):
    turns = physics.start(ALL, np.zeros((48, 3))).rows[:, 12:16]
    turned = {str(task) for task, turn in zip(GRAPH.tasks, turns, strict=True) if turn[0] < 0.9}
    assert turned == {f"{obstacle}/cereal/Sawyer" for obstacle in ("none", "wall", "door")}


# Control


@pytest.mark.parametrize("preset", ["paper", "fast"])
def test_native_and_plain_control_agree(preset):
    world = RobotWorld(preset=preset)
    tasks = np.array([GRAPH.indices(GRAPH.parse(f"wall/milk/{robot}")) for robot in ROBOTS])
    compiled = moving(Physics(world, advance=control_numba.advance), tasks, steps=25)
    plain = moving(Physics(world, advance=control.advance), tasks, steps=25)
    for one, other in zip(compiled, plain, strict=True):
        assert np.abs(one.rows - other.rows).max() <= 1e-12
        assert np.abs(one.observation - other.observation).max() <= 1e-12


def test_neither_company_nor_threads_change_an_episode(physics: Physics):
    together = moving(physics, ALL[::5], steps=12)
    threads = moving(Physics(FAST, workers=3), ALL[::5], steps=12)
    draws, actions = randomness(len(ALL[::5]), 12)
    alone = [Physics(FAST).start(ALL[::5][n : n + 1], draws[n : n + 1]) for n in range(3)]
    for action in actions:
        alone = [physics.step(ALL[::5][n : n + 1], alone[n].rows, action[n : n + 1]) for n in range(3)]
    assert all((one.rows == other.rows).all() for one, other in zip(together, threads, strict=True))
    assert all((together[-1].rows[n] == alone[n].rows[0]).all() for n in range(3))


def test_callers_on_several_threads_do_not_disturb_each_other(physics: Physics):
    """As devices of one life do, each with its own part of a batch, on simulators that they share."""
    tasks, (draws, actions) = task_of("wall/can/IIWA", 8), randomness(8, 6)
    start = physics.start(tasks, draws).rows

    def play(_: int) -> np.ndarray:
        rows = start
        for action in actions:
            rows = physics.step(tasks, rows, action).rows
        return rows

    expected = play(0)
    with ThreadPoolExecutor(4) as pool:
        assert all((rows == expected).all() for rows in pool.map(play, range(12)))


def test_an_episode_goes_on_from_its_row_alone(physics: Physics):
    tasks = task_of("wall/cereal/Gen3")
    history = moving(physics, tasks, steps=10)
    fresh = Physics(FAST)
    moving(fresh, task_of("wall/cereal/Gen3"), steps=7, seed=3)  # leaves its simulator in another state
    again = fresh.step(tasks, history[5].rows, np.full((1, 8), 0.3))
    assert (again.rows == physics.step(tasks, history[5].rows, np.full((1, 8), 0.3)).rows).all()


def test_a_full_action_turns_a_joint_by_9_milliradians_a_step(physics: Physics):
    """Critically damped at 7 rad/s towards 0.05 rad ahead: 0.0025 rad from rest, 0.009 rad at speed."""
    tasks = task_of("none/can/IIWA")
    state, angles = physics.start(tasks, np.zeros((1, 3))), []
    for _ in range(20):
        state = physics.step(tasks, state.rows, np.array([[1.0, 0, 0, 0, 0, 0, 0, 0]]))
        angles.append(float(state.rows[0, 0]))
    assert angles[0] == pytest.approx(0.0025, abs=4e-4)
    assert np.diff(angles)[-5:] == pytest.approx(0.009, abs=1e-3)
    assert np.abs(state.rows[0, 1:7] - parts()["robots"]["IIWA"]["start"][1:]).max() < 1e-2


def test_fingers_follow_the_sign_of_the_last_number_at_a_fixed_rate(physics: Physics):
    tasks = np.tile(task_of("none/can/IIWA"), (4, 1))
    state = physics.start(tasks, np.zeros((4, 3)))
    actions = np.zeros((4, 8))
    actions[:, 7] = [1, 0.001, -0.5, 0]
    commands = [state.rows[:, FINGERS]]
    for _ in range(6):
        state = physics.step(tasks, state.rows, actions)
        commands.append(state.rows[:, FINGERS])
    assert np.array(commands)[:, 0] == pytest.approx([0, 0.25, 0.5, 0.75, 1, 1, 1])
    assert (np.array(commands)[:, 0] == np.array(commands)[:, 1]).all()
    assert np.array(commands)[:, 2] == pytest.approx(-np.array(commands)[:, 0])
    assert (np.array(commands)[:, 3] == 0).all()
    for _ in range(30):
        state = physics.step(tasks, state.rows, actions)
    gap = 0.0371 + state.rows[:, 7] - state.rows[:, 8]  # between the pads
    assert gap[0] == pytest.approx(0.014, abs=1e-3) and gap[2] == pytest.approx(0.060, abs=1e-3)
    assert gap[3] == pytest.approx(0.028, abs=1e-3)


def test_actions_beyond_one_are_clipped_and_nonsense_is_refused(physics: Physics):
    tasks = task_of("none/milk/Panda")
    rows = physics.start(tasks, np.zeros((1, 3))).rows
    far, edge = np.array([[7.0, -9, 1e30, 0, 0, 0, 2, 5]]), np.array([[1.0, -1, 1, 0, 0, 0, 1, 1]])
    assert (physics.step(tasks, rows, far).rows == physics.step(tasks, rows, edge).rows).all()
    for nonsense in (np.full((1, 8), np.nan), np.full((1, 8), np.inf)):
        with pytest.raises(InputError, match="NaN or infinity"):
            physics.step(tasks, rows, nonsense)
    with pytest.raises(InputError, match=r"shape \(1, 7\); expected \(1, 8\)"):
        physics.step(tasks, rows, np.zeros((1, 7)))
    with pytest.raises(InputError, match="workers = 0"):
        Physics(FAST, workers=0)


# Observations and rewards


def test_observations_are_poses_in_the_world_and_in_the_hand(physics: Physics):
    step = moving(physics, ALL[::7], steps=15)[-1]
    robot = step.observation[:, 45:]
    angles = step.rows[:, :7]
    assert robot[:, :7] == pytest.approx(np.cos(angles)) and robot[:, 7:14] == pytest.approx(np.sin(angles))
    assert (robot[:, 14:21] == step.rows[:, QVEL][:, :7]).all()
    assert (robot[:, 28:30] == step.rows[:, 7:9]).all() and (robot[:, 30:] == step.rows[:, QVEL][:, 7:9]).all()
    hand = Rotation.from_quat(robot[:, 24:28])
    for first in (0, 14, 28):
        place, turn, near, relative = np.split(step.observation[:, first : first + 14], [3, 7, 10], axis=1)
        assert near == pytest.approx(hand.inv().apply(place - robot[:, 21:24]), abs=1e-9)
        expected = (hand.inv() * Rotation.from_quat(turn)).as_quat()
        assert np.abs((relative * expected).sum(axis=1)) == pytest.approx(1)
        assert (relative[:, 3] >= 0).all()
    assert step.observation[:, 42:45] == pytest.approx(step.observation[:, 28:31] - step.observation[:, 14:17])


def reference(grip, place, grasped: bool, walled: bool, rule: str) -> float:
    """The formulas of Appendix B.2 and of the released code, one case at a time."""
    far = math.dist(grip, place)
    missing = max(LIFTED - place[2], 0)
    if place[2] > LIFTED:
        return 1.0
    if rule == "paper":
        if walled and grip[0] <= 0.2025:
            to_wall = math.hypot(max(0.1975 - grip[0], 0), max(grip[2] - 1.0, 0))
            return 0.05 * (1 - math.tanh(5 * to_wall))
        if grasped:
            return 0.25 + 0.5 * (1 - math.tanh(25 * missing))
        return 0.05 + 0.05 * (1 - math.tanh(5 * far)) if walled else 0.1 * (1 - math.tanh(5 * far))
    stages = [0.2 + 0.5 * (1 - math.tanh(25 * missing))] if grasped else []
    if not walled:
        stages.append(0.1 * (1 - math.tanh(5 * far)))
    elif grip[0] > 0.2525:
        stages.append(0.05 + 0.05 * (1 - math.tanh(5 * far)))
    else:
        stages.append(0.05 * (1 - math.tanh(5 * math.hypot(grip[0] - 0.2525, grip[2] - 1.1))))
    return max(stages)


def readings(count: int) -> Reading:
    random = np.random.default_rng(0)
    places = np.zeros((count, 3, 3))
    places[:, 1] = random.uniform([0.2, -0.2, 0.8], [0.4, 0.2, 0.93], (count, 3))
    grip = random.uniform([0.0, -0.2, 0.8], [0.4, 0.2, 1.3], (count, 3))
    turns = np.tile([1.0, 0, 0, 0], (count, 3, 1))
    grasped = random.random(count) < 0.5
    upright = np.tile(np.eye(3), (count, 1, 1))
    return Reading(np.zeros((count, 9)), np.zeros((count, 9)), grip, turns[:, 0], upright, places, turns, grasped)


@pytest.mark.parametrize(("rule", "walled"), [*itertools.product(["paper", "released"], [True, False])])
def test_rewards_follow_the_formulas(rule, walled):
    reading = readings(400)
    found = reward(reading, np.full(400, walled), rule)
    cases = zip(reading.grip, reading.places[:, 1], reading.grasped, strict=True)
    assert found == pytest.approx([reference(grip, place, bool(held), walled, rule) for grip, place, held in cases])
    assert 20 < (found == 1).sum() < 200
    assert observe(reading).shape == (400, 77)


def test_both_pads_on_the_object_make_a_grasp():
    """The rewards of a scripted episode: reach, then at least 0.25 once the fingers hold, then 1."""
    history = scripted("none/can/IIWA", FAST)[0]
    rewards = np.array([step.reward[0] for step in history])
    held = int(np.argmax(rewards > 0.2))
    assert rewards[:held].max() <= 0.1 and rewards[held] >= 0.25
    assert (rewards[held:] >= 0.25).all() and rewards[-1] == 1 and history[-1].success[0]


# The scripted policy


def scripted(name: str, world: RobotWorld, *, episodes: int = 1, most: int = 400) -> list[list[Step]]:
    physics, random = Physics(world), np.random.default_rng(5)
    tasks, histories = task_of(name), []
    for _ in range(episodes):
        script = Script(physics.scene_of(tasks), lifted=name.split("/")[1])
        history = [physics.start(tasks, random.random((1, 3)))]
        while len(history) < 2 or (len(history) < most and not history[-1].success[0]):
            acted = script(history[-1].observation[0])
            assert np.abs(acted).max() <= 1
            history.append(physics.step(tasks, history[-1].rows, acted[None]))
        histories.append(history[1:])
    return histories


@pytest.mark.parametrize(("preset", "robot"), [*itertools.product(PRESETS, ROBOTS)])
def test_the_script_lifts_every_object_with_every_arm(preset, robot):
    world = RobotWorld(preset=preset)
    lifted = [scripted(f"none/{name}/{robot}", world)[0][-1].success[0] for name in OBJECTS]
    assert all(lifted)


# As learners see it


class Linear:
    """A policy whose means and values are linear in the observation."""

    def init(self, *, key) -> jax.Array:
        return 0.1 * jax.random.normal(key, (8, 77))

    def pick(self, params, structure) -> jax.Array:
        return params

    def __call__(self, policy, parts) -> GaussianOutput:
        stacked = jnp.concatenate([parts[name] for name in ("obstacle", "object", "goal", "robot")])
        return GaussianOutput(policy @ stacked, jnp.full(8, -1.0), stacked.sum(axis=0))


def test_collect_drives_robots_as_it_drives_the_2_d_world():
    env = RobotLift(RobotWorld(preset="fast", horizon=6), workers=2)
    policy = 0.1 * jax.random.normal(jax.random.key(1), (8, 77))
    task = jnp.array(GRAPH.indices(GRAPH.parse("wall/bread/Panda")))
    actors = start(env, task, count=5, key=jax.random.key(0))
    asked = {"steps": 8, "asked": Asked(final_values=True, reached=True)}
    run = jax.jit(lambda actors, key: collect(env, Linear(), policy, actors, key=key, **asked))
    after, data, last = run(actors, jax.random.key(2))
    assert data.action.shape == (8, 5, 8) and last.shape == (5,)
    assert (np.asarray(data.outcome.truncated).any(axis=1) == [False] * 5 + [True, False, False]).all()
    assert not np.asarray(data.outcome.terminated).any()
    assert (np.asarray(after.states.time) == 2).all()

    # The same on the host, without JAX.
    physics = Physics(env.world)
    rows = np.asarray(actors.states.row).view(np.float64)
    tasks = np.tile(np.asarray(task), (5, 1))
    step = physics.show(tasks, rows)
    for moment in range(6):
        step = physics.step(tasks, rows, np.asarray(data.action[moment], float))
        rows = step.rows
        assert np.asarray(data.outcome.reward[moment]) == pytest.approx(step.reward, abs=1e-7)
        if moment < 5:
            assert np.asarray(data.observation[moment + 1]) == pytest.approx(step.observation, abs=1e-5)
    assert np.asarray(data.final_value[5]) == pytest.approx(step.observation.sum(axis=1), abs=1e-4)
    np.testing.assert_allclose(data.reached[5], step.observation, atol=1e-5)  # before the restart
    assert not np.allclose(data.observation[6], data.reached[5], atol=1e-2)
    assert np.asarray(data.episode_return[5]) == pytest.approx(
        np.asarray(data.outcome.reward[:6]).sum(axis=0), rel=1e-5
    )


def test_evaluation_tells_returns_and_lengths_and_depends_on_the_key_alone():
    env = RobotLift(RobotWorld(preset="fast", horizon=5))
    policy = 0.1 * jax.random.normal(jax.random.key(1), (8, 77))
    task = jnp.array([2, 1, 0])
    run = jax.jit(lambda key: evaluate(env, Linear(), policy, task, episodes=3, rule=Rule("actor"), key=key))
    one, same, other = run(jax.random.key(0)), run(jax.random.key(0)), run(jax.random.key(1))
    assert (one.returns == same.returns).all() and (one.returns != other.returns).all()
    assert (one.length == 5).all() and not one.success.any()
    with pytest.raises(InputError, match="real-valued actions"):
        Rule("boltzmann")(Linear()(policy, env.parts(jnp.zeros((2, 77)))))


def test_large_batches_of_different_tasks_go_through_one_call():
    """As a structure search makes them: structures times episodes, here six tasks times 110."""
    env, some = RobotLift(FAST), jnp.array(ALL[::8])
    keys = jax.random.split(jax.random.key(0), (6, 110))
    states = jax.jit(jax.vmap(jax.vmap(lambda task, key: env.reset(task, key=key), (None, 0))))(some, keys)
    assert isinstance(states, State) and states.row.shape == (6, 110, 96)
    places = np.asarray(states.row).view(np.float64)[..., OBJECT_AT][..., :2]
    assert len(np.unique(places.reshape(-1, 2), axis=0)) == 6 * 110
    stepped, outcome = jax.jit(jax.vmap(jax.vmap(env.step)))(states, jnp.zeros((6, 110, 8)))
    alone, _ = env.step(jax.tree.map(lambda leaf: leaf[4, 77], states), jnp.zeros(8))
    assert (stepped.row[4, 77] == alone.row).all() and outcome.reward.shape == (6, 110)


def test_distributions_over_both_kinds_of_actions():
    random = np.random.default_rng(0)
    mean, spread = random.normal(size=(8, 6)), random.normal(size=8)
    gaussian = Gaussian(jnp.array(mean, jnp.float32), jnp.array(spread, jnp.float32))
    drawn = noise(Continuous(8), (6,), key=jax.random.key(0))
    action = gaussian.sample(drawn)
    expected = norm.logpdf(np.asarray(action), mean.T, np.exp(spread)).sum(axis=1)
    assert np.asarray(gaussian.log_prob(action)) == pytest.approx(expected, rel=1e-4)
    many = Gaussian(jnp.zeros((8, 20_000)), jnp.array(spread, jnp.float32))
    sampled = np.asarray(many.sample(noise(Continuous(8), (20_000,), key=jax.random.key(1))))
    assert sampled.std(axis=0) == pytest.approx(np.exp(spread), rel=0.05)
    uniform = noise(Discrete(("a", "b")), (20_000,), key=jax.random.key(2))
    chosen = Categorical(jnp.log(jnp.full((2, 20_000), 0.5))).sample(uniform)
    assert float(chosen.mean()) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"preset": "slow"}, "No value for preset 'slow'"),
        ({"robots": ("Pandas",)}, "No robot 'Pandas'. Did you mean 'Panda'?"),
        ({"objects": ()}, "objects = nothing: name at least one"),
        ({"obstacles": ("wall", "wall")}, "none twice"),
        ({"horizon": 0}, "horizon = 0, but it must be 1 to 1048576."),
    ],
)
def test_worlds_that_make_no_sense_are_refused(fields, sentence):
    with pytest.raises(InputError, match=sentence):
        RobotWorld(**fields)
