"""The lifelong agent: what each phase may change, and what it must not."""

import itertools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lives import NARROW, small
from probes import compilations, evaluate

from modlife.domains.grid2d.world import World
from modlife.errors import InputError
from modlife.learners.replay import Packing
from modlife.lifelong.agent import AgentState, Step, learn
from modlife.lifelong.compositional import Compositional
from modlife.lifelong.evaluation import Judge
from modlife.lifelong.reports import Chosen, Consolidated, Curve, Evaluated
from modlife.lifelong.retention import Retained
from modlife.lifelong.search import ChooseStructure, Exhaustive, Scores, Trial, all_structures
from modlife.lifelong.settings import ExhaustiveConfig
from modlife.metrics.records import first_components
from modlife.policies.acting import Rule
from modlife.policies.bank import Bank
from modlife.runs.config import LifeConfig, build, life_from_options

KEY, ACTOR = jax.random.key(0), Rule("actor")
OPTIONS: dict[str, Any] = {
    "tasks": 5,
    "steps": 2048,
    "episodes": 4,
    "world": NARROW,
    "replay_size": 256,
    "ppo": {"envs": 4, "length": 32, "minibatch": 64},
    "offline": {"epochs": 2, "batch": 64, "target_period": 10},
}
"""Shapes as in `lives`: programs that are compiled already."""


def config_of(agent: str, **changes: Any) -> LifeConfig:
    search = {} if agent == "comp-struct" else {"modules": 2, "search": {"episodes": 1}}
    return life_from_options(agent, "grid2d", {**OPTIONS, **search, **changes})


CONFIG = config_of("comp-search")
LATE = {"offline": {**OPTIONS["offline"], "epochs": 0}}

Told = tuple[Compositional, list[list[Step]]]


def life(config: LifeConfig) -> Told:
    """All steps of a life, by task."""
    agent, stages = build(config), []
    state = agent.init(key=KEY)
    with jax.numpy_dtype_promotion("standard"):
        for number, stage in enumerate(config.stages.stages):
            steps = list(learn(agent, state, stage, key=jax.random.fold_in(KEY, number)))
            stages.append(steps)
            state = steps[-1].state
    return agent, stages


@pytest.fixture(scope="module")
def lived() -> Told:
    return life(CONFIG)


def phase_of(step: Step) -> str:
    return step.state.facts.phase


def first_in(steps: list[Step], phase: str) -> AgentState:
    return next(step.state for step in steps if phase_of(step) == phase)


def reports_of(steps: list[Step]) -> list[Any]:
    return [report for step in steps for report in step.reports]


def same(a: object, b: object) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(*map(jax.tree.leaves, (a, b)), strict=True))


def test_nothing_is_compiled_anew_as_tasks_accumulate(lived: Told):
    """Offline phases over four tasks, the current one with each structure in turn; then over five."""
    agent, stages = lived
    state, counts = stages[-1][-1].state, []
    with compilations() as compiled:
        for known, structure in itertools.product((3, 4), all_structures((2, 2, 2))):
            facts = replace(state.facts, met=state.met[:known], structures=(*state.structures[:known], structure))
            early = AgentState(state.params, facts, state.memory[: known + 1])
            phase = agent.phases([state.met[known]], key=KEY)[2]
            with jax.numpy_dtype_promotion("standard"):
                list(phase.run(replace(early, work=phase.begin(early))))
            counts.append(len(compiled))
    assert counts[-1] == counts[7], counts


def test_a_task_is_structure_then_online_then_offline(lived: Told):
    for steps in lived[1]:
        assert [name for name, _ in itertools.groupby(map(phase_of, steps))] == ["online", "offline", ""]
        assert [name for name, _ in itertools.groupby(step.phase for step in steps)] == [
            "structure",
            "online",
            "offline",
        ]
        assert all(0 <= step.done <= step.length for step in steps)
        kinds = [type(report) for report in reports_of(steps)]
        assert kinds[:2] == [Chosen, Evaluated]
        assert kinds.count(Curve) == -(-(2048 - reports_of(steps)[0].steps) // 128)
        assert kinds.count(Consolidated) == 2


def test_the_online_phase_leaves_the_bank_alone_but_for_fresh_modules(lived: Told):
    agent, stages = lived
    before = agent.init(key=KEY)
    for number, steps in enumerate(stages):
        assert all(same(step.state.params, before.params) for step in steps if phase_of(step) == "online")
        ended = first_in(steps, "offline")
        if number < 2:  # fresh: the trained copy enters the bank, at its place only
            for factor, old_factor in zip(ended.params.factors, before.params.factors, strict=True):
                for leaf, old in zip(*map(jax.tree.leaves, (factor, old_factor)), strict=True):
                    assert not np.array_equal(leaf[number], old[number])
                    assert np.array_equal(leaf[1 - number], old[1 - number])
        else:
            assert same(ended.params, before.params)
        before = steps[-1].state


def moved(start: AgentState, end: AgentState) -> list[set[int]]:
    """For each factor, the modules that are not the same to the bit."""
    return [
        {
            module
            for module in range(2)
            for new, old in zip(*map(jax.tree.leaves, (factor, before)), strict=True)
            if not np.array_equal(new[module], old[module])
        }
        for factor, before in zip(end.params.factors, start.params.factors, strict=True)
    ]


def test_the_offline_phase_moves_this_tasks_modules_and_no_others(lived: Told):
    for steps in lived[1]:
        end = steps[-1].state
        assert moved(first_in(steps, "offline"), end) == [{module} for module in end.structures[-1]]


def test_bounded_rehearsal_and_repair_move_no_others_either():
    _, stages = life(small("bounded"))
    assert any(isinstance(report, Retained) and report.round == 0 for steps in stages for report in reports_of(steps))
    for steps in stages:
        end = steps[-1].state
        assert moved(first_in(steps, "offline"), end) == [{module} for module in end.structures[-1]]


def test_structures_of_old_tasks_never_change_and_fresh_modules_come_first(lived: Told):
    _, stages = lived
    longest = stages[-1][-1].state.structures
    assert longest[:2] == ((0, 0, 0), (1, 1, 1)) and len(longest) == 5
    for number, steps in enumerate(stages):
        for step in steps:
            assert step.state.structures == longest[: number + 1]
    how = [reports_of(steps)[0].how for steps in stages]
    assert how == ["fresh", "fresh", "searched", "searched", "searched"]


def test_replay_holds_exactly_the_last_transitions(lived: Told):
    """The same updates made again by PPO alone, everything kept."""
    agent, stages = lived
    first, packing = first_in(stages[2], "online"), Packing.of(agent.env)
    key_online = jax.random.split(jax.random.fold_in(jax.random.fold_in(KEY, 2), 0), 3)[1]
    key_learn, _ = jax.random.split(key_online)
    learner, rows = first.work.learner, []
    with jax.numpy_dtype_promotion("standard"):
        for number in range(-(-(2048 - first.facts.spent) // 128)):
            learner, happened, _ = agent.ppo.update(learner, key=jax.random.fold_in(key_learn, number))
            rows.append(np.asarray(packing.pack(happened.transitions)[0]))
    everything = np.concatenate(rows)
    kept = stages[2][-1].state.memory[2].read()
    assert kept.rows.shape == (65, 4, 14)  # 256 transitions are 64 times 4, and what was seen after them
    assert kept.times == 64
    np.testing.assert_array_equal(kept.rows[:-1], everything[-64:])
    last = packing.unpack(jnp.asarray(kept.last)).observation
    seen = jax.vmap(agent.env.observe)(jax.tree.map(lambda leaf: leaf[0], learner.actors.states))
    assert same(last, seen)


def test_consolidation_with_zero_steps_changes_nothing():
    _, stages = life(config_of("comp-search", tasks=3, **LATE))
    for steps in stages:
        assert same(first_in(steps, "offline").params, steps[-1].state.params)
        assert [phase_of(step) for step in steps[-2:]] == ["offline", ""]


def test_learning_goes_on_from_any_state_in_exactly_the_same_way(lived: Told):
    agent, stages = lived
    steps, stage = stages[3], CONFIG.stages.stages[3]
    for number in (0, 1, len(steps) // 2, len(steps) - 3):
        with jax.numpy_dtype_promotion("standard"):
            again = list(learn(agent, steps[number].state, stage, key=jax.random.fold_in(KEY, 3)))
        end = again[-1].state
        assert same((end.params, end.memory), (steps[-1].state.params, steps[-1].state.memory))
        expected = reports_of(steps[number + 1 :])
        assert [report.record() for report in reports_of(again)] == [report.record() for report in expected]


def searching(agent: Compositional, bank: Bank, task: str, episodes: int) -> Chosen:
    search = Exhaustive(ExhaustiveConfig(episodes))
    trial = Trial(Judge(agent.env, agent.network, ACTOR, episodes), bank, agent.env.graph.parse(task))
    *_, (done, found) = search.run(trial, search.init(trial.sizes), done=0, key=KEY)
    assert done == search.length(trial.sizes)
    return search.choice(trial, found)


def test_search_tries_every_structure_alike_and_takes_the_best(lived: Told):
    agent, stages = lived
    bank, task = stages[-1][-1].state.params, "floor/green/dynamics-1"
    found = searching(agent, bank, task, 20)
    candidates = all_structures((2, 2, 2))
    assert len(candidates) == len(found.returns) == 8
    returns, lengths = [], []
    indices = jnp.array(agent.env.graph.indices(agent.env.graph.parse(task)))
    alone = jax.jit(
        lambda policy: evaluate(agent.env, agent.network, policy, indices, episodes=20, rule=ACTOR, key=KEY)
    )
    for structure in candidates:  # the same by another road: one at a time
        episodes = alone(bank.pick(structure))
        returns.append(float(episodes.returns.mean()))
        lengths.append(int(episodes.length.sum()))
    np.testing.assert_allclose(found.returns, returns, atol=1e-4)
    assert found.structure == candidates[int(np.argmax(returns))]
    assert found.steps == sum(lengths)
    assert len(set(found.returns)) > 1


def test_a_search_knows_the_structures_of_other_tasks_if_the_task_will_be_learnt(lived: Told):
    agent, stages = lived
    state, task = stages[-1][-1].state, agent.env.graph.parse("floor/green/dynamics-1")
    judge, search = Judge(agent.env, agent.network, ACTOR, 2), Exhaustive(ExhaustiveConfig(2, margin=1e6))
    phase = ChooseStructure(task, judge, lambda *_: None, search, KEY, KEY)
    work = Scores(jnp.array([float(one in state.structures) for one in all_structures((2, 2, 2))]), jnp.ones(8, int))
    searching = replace(state, work=work)
    assert phase.chosen(searching).structure not in state.structures
    assert replace(phase, will_learn=False).chosen(searching).structure in state.structures


def test_a_search_in_pieces_finds_what_one_in_a_single_piece_finds(lived: Told, monkeypatch):
    """Pieces that do not divide the structures; begun again from the middle."""
    agent, stages = lived
    bank = stages[-1][-1].state.params
    whole = searching(agent, bank, "floor/green/dynamics-1", 2)
    monkeypatch.setattr("modlife.lifelong.search.AT_ONCE", 3)
    search = Exhaustive(ExhaustiveConfig(2))
    task = agent.env.graph.parse("floor/green/dynamics-1")
    trial = Trial(Judge(agent.env, agent.network, ACTOR, 2), bank, task)
    steps = list(search.run(trial, search.init((2, 2, 2)), done=0, key=KEY))
    assert [done for done, _ in steps] == [1, 2, 3]
    *_, (_, resumed) = search.run(trial, steps[0][1], done=1, key=KEY)
    assert search.choice(trial, resumed) == search.choice(trial, steps[-1][1]) == whole
    assert len(set(whole.returns)) > 1


def test_search_takes_the_first_of_equals(lived: Told):
    agent, _ = lived
    bank = agent.init(key=KEY).params
    alike = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[:1], leaf.shape), bank)
    assert searching(agent, alike, "wall/red/dynamics-0", 2).structure == (0, 0, 0)


def test_searching_counts_against_the_budget(lived: Told):
    for steps in lived[1][2:]:
        chosen = reports_of(steps)[0]
        curve = [report for report in reports_of(steps) if isinstance(report, Curve)]
        assert 0 < chosen.steps <= 8 * 16
        assert curve[0].steps == chosen.steps + 128
        assert 2048 <= curve[-1].steps < 2048 + 128


def test_a_given_structure_is_that_of_the_components():
    agent, stages = life(config_of("comp-struct", tasks=6, steps=128, **LATE))
    state = stages[-1][-1].state
    assert state.structures == tuple(agent.env.graph.indices(task) for task in state.met)
    assert agent.network.sizes == (4, 4, 4)
    unseen = next(task for task in agent.env.graph.tasks if task not in state.met)
    assert agent.structure(state, unseen) == agent.env.graph.indices(unseen)


def test_modules_that_come_into_use_late_are_trained_online_too():
    """Told its structures and in any order, an agent meets components after its first tasks."""
    tasks = ["wall/red/dynamics-0", "wall/green/dynamics-0"]
    _, stages = life(config_of("comp-struct", tasks=None, only=tasks, steps=256, **LATE))
    before, after = stages[0][-1].state.params, stages[1][-1].state.params
    changed = [
        any(not np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, pair), strict=True))
        for pair in zip(before.factors, after.factors, strict=True)
    ]
    assert changed == [False, True, False]


def test_modules_stand_for_the_components_of_their_first_tasks(lived: Told):
    agent, stages = lived
    state = stages[-1][-1].state
    first, second = state.met[:2]
    owners = first_components((task.components, state.structures[n]) for n, task in enumerate(state.met))
    assert [owners[depth, 0] for depth in range(3)] == list(first.components)
    assert [owners[depth, 1] for depth in range(3)] == list(second.components)
    mixed = agent.env.graph.parse("/".join((first.components[0], second.components[1], first.components[2])))
    assert agent.expected(state, mixed) == (0, 1, 0)
    odd = next(name for name in World().statics if name not in (first.components[0], second.components[0]))
    unknown = agent.env.graph.parse("/".join((odd, *first.components[1:])))
    assert agent.expected(state, unknown) is None and agent.policy(state, unknown) is None


def test_tasks_in_random_order_still_begin_with_fresh_modules():
    config = config_of("comp-search-nc", tasks=3)
    assert config.chosen != config_of("comp-search", tasks=3).chosen
    assert config.chosen == config_of("comp-search", tasks=3, curriculum="random").chosen
    agent = build(config)
    assert agent.known(agent.init(key=KEY), config.chosen[0]) == Chosen((0, 0, 0), "fresh")


def test_a_budget_that_the_search_could_eat_up_is_refused():
    with pytest.raises(InputError, match="steps = 40960, but the search alone may take 40960"):
        LifeConfig(agent="comp-search", steps=40_960)
    LifeConfig(agent="comp-search", steps=40_961)
    LifeConfig(agent="comp-search", steps=100, tasks=4)  # fresh modules only: nothing to search


def test_practice_begins_with_fresh_modules_where_known_ones_meet_the_goal_in_no_episode():
    agent, stages = life(config_of("comp-struct", unsolved="fresh"))
    for state, known in ((first_in(stages[0], "online"), False), (first_in(stages[-1], "online"), True)):
        own = state.params.pick(state.structures[-1])
        assert same(agent.beginning(replace(state, solved=True), key=KEY), own)
        begun = agent.beginning(replace(state, solved=False), key=KEY)
        assert same(begun, agent.fresh(key=KEY) if known else own)
        shapes = jax.eval_shape(lambda state=state: agent.beginning(replace(state, solved=False), key=KEY))
        assert jax.tree.map(lambda x: x.shape, shapes) == jax.tree.map(lambda x: x.shape, begun)


def test_options_of_a_search_that_never_comes_are_refused_and_what_is_usual_is_not():
    """Robots have another search than other domains, without being told so."""
    for domain, option in (("grid2d", {"search": "halving", "keep": 3}), ("robot", {"search": "halving", "keep": 3})):
        assert life_from_options("comp-search", domain, {"tasks": 2}).settings.search is not None
        with pytest.raises(InputError, match="options of the search have no effect"):
            life_from_options("comp-search", domain, {"tasks": 2, "search": option})


def test_critics_of_states_learn_where_nothing_asks_what_actions_are_worth():
    told = {**OPTIONS["offline"], "consolidator": "bounded"}
    for offline, sentence in (
        (OPTIONS["offline"], "a critic of states has none: leave `--critic states` out"),
        (told, "td = current, acting = .*, but .* Give `--offline.td none --offline.acting actor`"),
        ({**told, "td": "none"}, "acting = .*, but a critic of states .* Give `--offline.acting actor`"),
    ):
        with pytest.raises(InputError, match=sentence):
            build(config_of("comp-struct", critic="states", offline=offline))
    offline = {**told, "td": "none", "acting": "actor"}
    agent, stages = life(config_of("comp-struct", tasks=2, critic="states", offline=offline))
    state = stages[-1][-1].state
    assert agent.network.critic == 1 and agent.acting.name == "actor"
    assert not same(state.params, first_in(stages[-1], "online").params)
    (told_losses,) = [one.losses for one in reports_of(stages[-1]) if isinstance(one, Consolidated)][-1:]
    assert told_losses["values"] > 0 and told_losses["td"] == 0


def test_evaluation_acts_as_the_agent_does(lived: Told):
    agent, stages = lived
    state, task = stages[-1][-1].state, CONFIG.chosen[0]
    results = [
        Judge(agent.env, agent.network, rule, 20).evaluate([task], [state.params.pick((0, 0, 0))], key=KEY)
        for rule in (agent.acting, ACTOR)
    ]
    assert agent.acting == Rule("filtered-boltzmann", 0.3)
    assert not np.array_equal(results[0].length, results[1].length)
