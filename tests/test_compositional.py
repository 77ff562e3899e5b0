"""The lifelong agent: what each phase may change, and what it must not."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modlife.domains.grid2d.spec import World
from modlife.errors import InputError
from modlife.experiments.agents import build
from modlife.experiments.config import LifeConfig
from modlife.experiments.life import structures_found
from modlife.learners.acting import Rule
from modlife.learners.config import BCQConfig, PPOConfig
from modlife.learners.replay import Packing
from modlife.learners.rollout import evaluate
from modlife.lifelong.compositional import Compositional, module_components
from modlife.lifelong.evaluation import evaluate_tasks
from modlife.lifelong.loop import AgentState, Chosen, Consolidated, Curve, Evaluated, Step, Work
from modlife.lifelong.search import all_structures, search
from modlife.policies.bank import pick

KEY, ACTOR = jax.random.key(0), Rule("actor")
CONFIG = LifeConfig(
    agent="comp-search",
    modules=2,
    tasks=5,
    steps=2048,
    episodes=3,
    search_episodes=2,
    ppo=PPOConfig(envs=4, length=32, minibatch=64),
    bcq=BCQConfig(replay_size=400, offline_epochs=2, offline_batch=32, target_period=10),
)


def agent_of(config: LifeConfig) -> Compositional:
    agent = build(config)
    assert isinstance(agent, Compositional)
    return agent


def life(config: LifeConfig) -> tuple[Compositional, list[list[Step]]]:
    """All steps of a life, by task."""
    agent, stages = agent_of(config), []
    state = agent.init(key=KEY)
    with jax.numpy_dtype_promotion("standard"):
        for number, stage in enumerate(config.curriculum.stages):
            steps = list(agent.learn(state, stage, key=jax.random.fold_in(KEY, number)))
            stages.append(steps)
            state = steps[-1][0]
    return agent, stages


@pytest.fixture(scope="module")
def searched() -> tuple[Compositional, list[list[Step]]]:
    return life(CONFIG)


def test_nothing_is_compiled_anew_as_tasks_accumulate(searched: tuple):
    """Offline stages over four tasks, the current one with each structure in turn; then over five."""
    agent, stages = searched
    state, compiled, counts = stages[-1][-1][0], [], []

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        jax.jit(lambda x: x + 1.5)(jnp.ones(3))  # the listener hears
        assert compiled
        for known, structure in itertools.product((3, 4), all_structures((2, 2, 2))):
            with jax.numpy_dtype_promotion("standard"):
                begun = agent.consolidator.init(state.params, jnp.array(structure))
                work = Work("offline", 0, structure, 0, begun)
                early = AgentState(
                    state.params, state.met[:known], state.structures[:known], state.memory[: known + 1], work
                )
                for _ in agent.offline(early, state.met[known], key=KEY):
                    pass
            counts.append(len(compiled))
    finally:
        jax.monitoring.clear_event_listeners()
    assert counts[-1] == counts[7], counts


def phases(steps: list[Step]) -> list[str]:
    return [state.work.phase if state.work else "" for state, _ in steps]


def same(a: object, b: object) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(*map(jax.tree.leaves, (a, b)), strict=True))


def test_a_task_is_structure_then_online_then_offline(searched: tuple):
    for steps in searched[1]:
        order = phases(steps)
        assert [name for name, _ in itertools.groupby(order)] == ["online", "offline", ""]
        reports = [report for _, reports in steps for report in reports]
        kinds = [type(report) for report in reports]
        assert kinds[:2] == [Chosen, Evaluated]
        assert kinds.count(Curve) == -(-(2048 - reports[0].steps) // 128)
        assert kinds.count(Consolidated) == 2


def test_the_online_phase_leaves_the_bank_alone_but_for_fresh_modules(searched: tuple):
    agent, stages = searched
    before = agent.init(key=KEY)
    for number, steps in enumerate(stages):
        online = [state for state, _ in steps if state.work and state.work.phase == "online"]
        assert all(same(state.params, before.params) for state in online)
        ended = next(state for state, _ in steps if state.work and state.work.phase == "offline")
        if number < 2:  # fresh: the trained copy enters the bank, at its place only
            for depth, factor in enumerate(ended.params):
                for leaf, old in zip(*map(jax.tree.leaves, (factor, before.params[depth])), strict=True):
                    assert not np.array_equal(leaf[number], old[number])
                    assert np.array_equal(leaf[1 - number], old[1 - number])
        else:
            assert same(ended.params, before.params)
        before = steps[-1][0]


def test_the_offline_phase_moves_this_tasks_modules_and_no_others(searched: tuple):
    for steps in searched[1]:
        start = next(state for state, _ in steps if state.work and state.work.phase == "offline")
        end = steps[-1][0]
        structure = end.structures[-1]
        for depth, factor in enumerate(end.params):
            moved = {
                module
                for module in range(2)
                for new, old in zip(*map(jax.tree.leaves, (factor, start.params[depth])), strict=True)
                if not np.array_equal(new[module], old[module])
            }
            assert moved == {structure[depth]}


def test_structures_of_old_tasks_never_change_and_fresh_modules_come_first(searched: tuple):
    _, stages = searched
    longest = stages[-1][-1][0].structures
    assert longest[:2] == ((0, 0, 0), (1, 1, 1)) and len(longest) == 5
    for number, steps in enumerate(stages):
        for state, _ in steps:
            assert state.structures == longest[: len(state.structures)]
            assert len(state.structures) in (number, number + 1)
    how = [steps[0][1][0].how for steps in stages]
    assert how == ["fresh", "fresh", "searched", "searched", "searched"]


def test_replay_holds_exactly_the_last_transitions(searched: tuple):
    """The same updates made again by PPO alone, everything kept."""
    agent, stages = searched
    first = stages[2][0][0]
    work, packing = first.work, Packing.of(agent.env)
    key_online = jax.random.split(jax.random.fold_in(jax.random.fold_in(KEY, 2), 0), 3)[1]
    key_learn, _ = jax.random.split(key_online)
    learner, rows = work.data.learner, []
    with jax.numpy_dtype_promotion("standard"):
        for number in range(-(-(2048 - work.spent) // 128)):
            learner, happened, _ = agent.learner.update(learner, key=jax.random.fold_in(key_learn, number))
            rows.append(np.asarray(packing.pack(happened)[0]))
    everything = np.concatenate(rows)
    kept = stages[2][-1][0].memory[2]
    assert kept.shape == (101, 4, 14)  # 400 transitions are 100 times 4, and what was seen after them
    np.testing.assert_array_equal(kept[:-1], everything[-100:])
    last = packing.unpack(jnp.asarray(kept[-1])).observation
    seen = jax.vmap(agent.env.observe)(jax.tree.map(lambda leaf: leaf[0], learner.actors.states))
    assert same(last, seen)


def test_consolidation_with_zero_steps_changes_nothing():
    _, stages = life(replace(CONFIG, tasks=3, bcq=replace(CONFIG.bcq, offline_epochs=0)))
    for steps in stages:
        start = next(state for state, _ in steps if state.work and state.work.phase == "offline")
        assert same(start.params, steps[-1][0].params)
        assert phases(steps)[-2:] == ["offline", ""]


def test_learning_goes_on_from_any_state_in_exactly_the_same_way(searched: tuple):
    agent, stages = searched
    steps, stage = stages[3], CONFIG.curriculum.stages[3]
    for number in (0, 1, len(steps) // 2, len(steps) - 3):
        with jax.numpy_dtype_promotion("standard"):
            again = list(agent.learn(steps[number][0], stage, key=jax.random.fold_in(KEY, 3)))
        end: AgentState = again[-1][0]
        assert same((end.params, end.memory), (steps[-1][0].params, steps[-1][0].memory))
        lines = [str(report) for _, reports in again for report in reports if not isinstance(report, Evaluated)]
        expected = [str(r) for _, reports in steps[number + 1 :] for r in reports if not isinstance(r, Evaluated)]
        assert lines == expected


def test_search_tries_every_structure_alike_and_takes_the_best(searched: tuple):
    agent, stages = searched
    bank, task = stages[-1][-1][0].params, agent.env.graph.parse("floor/green/dynamics-1")
    found = search(agent.env, agent.network, bank, agent.env.graph.indices(task), episodes=20, key=KEY)
    candidates = all_structures((2, 2, 2))
    assert len(candidates) == len(found.returns) == 8
    returns, lengths = [], []
    indices = jnp.array(agent.env.graph.indices(task))
    alone = jax.jit(
        lambda policy: evaluate(agent.env, agent.network, policy, indices, episodes=20, rule=ACTOR, key=KEY)
    )
    for structure in candidates:  # the same by another road: one at a time
        episodes = alone(pick(bank, jnp.array(structure)))
        returns.append(float(episodes.returns.mean()))
        lengths.append(int(episodes.length.sum()))
    np.testing.assert_allclose(found.returns, returns, atol=1e-4)
    assert found.structure == candidates[int(np.argmax(returns))]
    assert found.steps == sum(lengths)
    assert len(set(found.returns)) > 1


def test_search_takes_the_first_of_equals(searched: tuple):
    agent, _ = searched
    bank = agent.init(key=KEY).params
    alike = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[:1], leaf.shape), bank)
    assert search(agent.env, agent.network, alike, (0, 0, 0), episodes=2, key=KEY).structure == (0, 0, 0)


def test_searching_counts_against_the_budget(searched: tuple):
    for steps in searched[1][2:]:
        chosen = steps[0][1][0]
        curve = [report for _, reports in steps for report in reports if isinstance(report, Curve)]
        assert 0 < chosen.steps <= 8 * 2 * 64
        assert curve[0].steps == chosen.steps + 128
        assert 2048 <= curve[-1].steps < 2048 + 128


def test_a_given_structure_is_that_of_the_components():
    config = replace(CONFIG, agent="comp-struct", modules=None, tasks=6, steps=128)
    agent, stages = life(replace(config, bcq=replace(config.bcq, offline_epochs=0)))
    state = stages[-1][-1][0]
    assert state.structures == tuple(agent.env.graph.indices(task) for task in state.met)
    assert agent.network.sizes == (4, 4, 4)
    unseen = next(task for task in agent.env.graph.tasks if task not in state.met)
    assert agent.structure(state, unseen) == agent.env.graph.indices(unseen)


def test_modules_that_come_into_use_late_are_trained_online_too():
    """Told its structures and in any order, an agent meets components after its first tasks."""
    tasks = ("wall/red/dynamics-0", "wall/green/dynamics-0")
    config = replace(CONFIG, agent="comp-struct", modules=None, tasks=None, only=tasks, steps=256)
    _, stages = life(replace(config, bcq=replace(config.bcq, offline_epochs=0)))
    before, after = stages[0][-1][0].params, stages[1][-1][0].params
    changed = [
        any(not np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, pair), strict=True))
        for pair in zip(before, after, strict=True)
    ]
    assert changed == [False, True, False]


def test_modules_stand_for_the_components_of_their_first_tasks(searched: tuple):
    agent, stages = searched
    state: AgentState = stages[-1][-1][0]
    first, second = state.met[:2]
    owners = module_components(state)
    assert [owners[depth, 0] for depth in range(3)] == list(first.components)
    assert [owners[depth, 1] for depth in range(3)] == list(second.components)
    mixed = agent.env.graph.parse("/".join((first.components[0], second.components[1], first.components[2])))
    assert agent.expected_structure(state, mixed) == (0, 1, 0)
    odd = next(name for name in World().statics if name not in (first.components[0], second.components[0]))
    unknown = agent.env.graph.parse("/".join((odd, *first.components[1:])))
    with pytest.raises(InputError, match="No module was made for some component"):
        agent.expected_structure(state, unknown)
    found = structures_found(agent, state)
    assert found["searched"] == 3 and 0 <= found["as_expected"] <= 3


def test_tasks_in_random_order_still_begin_with_fresh_modules():
    config = replace(CONFIG, agent="comp-search-nc", tasks=3)
    assert config.chosen_tasks() != replace(config, agent="comp-search").chosen_tasks()
    agent = agent_of(config)
    state = agent.init(key=KEY)
    chosen = agent.choice(state, config.chosen_tasks()[0], key=KEY)
    assert (chosen.structure, chosen.how, chosen.steps) == ((0, 0, 0), "fresh", 0)


def test_a_budget_that_the_search_could_eat_up_is_refused():
    with pytest.raises(InputError, match="steps = 40960, but the search alone may take 40960"):
        LifeConfig(agent="comp-search", steps=40_960)
    LifeConfig(agent="comp-search", steps=40_961)
    LifeConfig(agent="comp-search", steps=100, tasks=4)  # fresh modules only: nothing to search


def test_evaluation_acts_as_the_agent_does(searched: tuple):
    agent, stages = searched
    state, task = stages[-1][-1][0], CONFIG.chosen_tasks()[0]
    results = [
        evaluate_tasks(agent.env, agent.network, state.params, [task], [(0, 0, 0)], episodes=20, rule=rule, key=KEY)
        for rule in (agent.acting, ACTOR)
    ]
    assert agent.acting == Rule("filtered-boltzmann", 0.3)
    assert not np.array_equal(results[0].length, results[1].length)
