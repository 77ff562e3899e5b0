"""The Gymnasium face: the checker passes, seeds work as Gymnasium's do, many equal one."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from modlife.domains.domain import DOMAINS
from modlife.domains.grid2d.gym import Grid2DVectorEnv
from modlife.domains.grid2d.world import World
from modlife.errors import InputError
from modlife.exports.face import spec_of

ID = "modlife/Grid2D-v0"
TASK = {"static": "food", "target": "green", "dynamics": 3}


@pytest.mark.parametrize("static", ["wall", "floor", "food", "lava"])
def test_the_checker_passes(static: str):
    env = gymnasium.make(ID, static=static, target="red", dynamics=2, render_mode="rgb_array")
    check_env(env.unwrapped)  # warnings are errors here


def rollout(env: gymnasium.Env, seed: int, steps: int = 150) -> list:
    observation, _ = env.reset(seed=seed)
    actions = np.random.default_rng(seed)
    record: list = [observation]
    for _ in range(steps):
        observation, *rest, info = env.step(int(actions.integers(env.action_space.n)))  # pyright: ignore[reportAttributeAccessIssue]  # Discrete
        record += [observation, rest, info]
        if rest[1] or rest[2]:
            record.append(env.reset()[0])
    return record


def assert_same(left: list, right: list) -> None:
    for a, b in zip(left, right, strict=True):
        np.testing.assert_equal(a, b)


def test_a_seed_settles_this_and_all_later_episodes():
    env, other = gymnasium.make(ID, **TASK), gymnasium.make(ID, **TASK)
    assert_same(rollout(env, 5), rollout(other, 5))
    assert_same(rollout(env, 5), rollout(env, 5))
    assert not np.array_equal(env.reset(seed=1)[0], env.reset(seed=2)[0])


def test_episodes_without_a_seed_differ():
    env = gymnasium.make(ID, **TASK)
    env.reset(seed=0)
    assert len({env.reset()[0].tobytes() for _ in range(20)}) > 15


def test_many_environments_equal_gymnasiums_own_vector():
    ours = gymnasium.make_vec(ID, num_envs=5, vectorization_mode="vector_entry_point", **TASK)
    theirs = SyncVectorEnv([lambda: gymnasium.make(ID, **TASK)] * 5, autoreset_mode=AutoresetMode.SAME_STEP)
    assert isinstance(ours.unwrapped, Grid2DVectorEnv)
    np.testing.assert_array_equal(ours.reset(seed=3)[0], theirs.reset(seed=3)[0])
    actions, ends = np.random.default_rng(0), 0
    for _ in range(200):
        chosen = actions.integers(6, size=5)
        a, b = ours.step(chosen), theirs.step(chosen)
        for left, right in zip(a[:4], b[:4], strict=True):
            np.testing.assert_array_equal(left, right)
        ended = a[2] | a[3]
        ends += ended.sum()
        assert ("final_obs" in a[4]) == ended.any() == ("final_obs" in b[4])
        for place in np.flatnonzero(ended):
            np.testing.assert_array_equal(a[4]["final_obs"][place], b[4]["final_obs"][place])
    assert ends > 10


def test_vector_seeds_one_or_many_or_none():
    env = Grid2DVectorEnv(num_envs=3, **TASK)
    first = env.reset(seed=[7, 8, 9])[0]
    np.testing.assert_array_equal(first, env.reset(seed=7)[0])
    np.testing.assert_array_equal(env.reset()[0].shape, (3, 7, 7, 7))
    with pytest.raises(InputError, match="2 seeds for 3 environments"):
        env.reset(seed=[1, 2])


def test_gymnasiums_modes_of_vectorisation_work():
    for mode in ("sync", "vector_entry_point"):
        env = gymnasium.make_vec(ID, num_envs=2, vectorization_mode=mode, static="lava")
        observation, _ = env.reset(seed=0)
        assert observation.shape == (2, 7, 7, 7)
        assert env.observation_space.contains(observation)
        env.close()


def test_options_of_the_world_pass_through():
    env = gymnasium.make(ID, target="orange", dynamics=17, size=12, colour_count=8, dynamics_count=24, actions=7)
    assert env.action_space == gymnasium.spaces.Discrete(7)
    assert env.observation_space.contains(env.reset(seed=0)[0])


def test_rendering_shows_the_agent_its_view_and_the_task():
    env = gymnasium.make(ID, render_mode="rgb_array", static="floor", target="blue", dynamics=0)
    env.reset(seed=0)
    before = np.asarray(env.render())
    assert before.shape == (8 * 32 + 24, 8 * 32, 3)
    assert before.dtype == np.uint8
    env.step(0)
    assert (before != np.asarray(env.render())).any(), "turning left must be visible"
    pixels = {tuple(pixel) for pixel in before.reshape(-1, 3).tolist()}
    for colour in ((0xE0, 0x31, 0x2D), (0x2A, 0xA4, 0x3A), (0x2C, 0x63, 0xE0), (0x9B, 0x35, 0xC9), (0xFF, 0xF6, 0xCF)):
        assert colour in pixels
    frames = gymnasium.make_vec(ID, num_envs=2, vectorization_mode="vector_entry_point", render_mode="rgb_array")
    frames.reset(seed=0)
    assert len(frames.render() or ()) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"static": "wal"}, "No static 'wal'. Did you mean 'wall'?"),
        ({"target": "yellow"}, "No target 'yellow'. Known: red, green, blue, purple."),
        ({"dynamics": 4}, "No dynamics 4: it has 4 components, numbered from 0"),
        ({"sise": 9}, "No option 'sise'. Did you mean 'size'?"),
        ({"size": 3}, "size = 3, but it must be 5 to 18 with 4 colours."),
        ({"gap_rows": "some"}, "No value for gap_rows 'some'. Known: all, released."),
    ],
)
def test_bad_options_get_one_clear_sentence(options: dict, message: str):
    with pytest.raises(InputError) as caught:
        gymnasium.make(ID, **options)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("action", [6, -1, 1.5, "forward", [0, 1]])
def test_a_wrong_action_gets_one_clear_sentence(action: object):
    env = gymnasium.make(ID, disable_env_checker=True)
    env.reset(seed=0)
    with pytest.raises(InputError, match=r"Action .* is not one of the whole numbers 0 to 5\."):
        env.step(action)
    vector = Grid2DVectorEnv(num_envs=2)
    vector.reset(seed=0)
    with pytest.raises(InputError, match="Actions must be 2 whole numbers from 0 to 5"):
        vector.step(np.array([0, 6]))


def test_an_unknown_render_mode_is_refused():
    with pytest.raises(InputError, match=r"No render_mode 'human'\. Known: rgb_array\."):
        Grid2DVectorEnv(num_envs=1, render_mode="human")


def test_what_is_said_of_one_world_leaves_others_as_they_are_registered():
    world = World(size=5)
    spec = spec_of(DOMAINS["grid2d"], world, world.graph.tasks[-1])
    assert spec is not None and spec.kwargs["size"] == 5
    assert gymnasium.spec(ID).kwargs == {}
