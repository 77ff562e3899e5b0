"""The paper's agent (Algorithm 1): find a structure, learn online on a copy, fold the new knowledge into the bank.

structure    fresh modules while there are any, then the given one or the best of all (`search`)
online       PPO on a copy of the picked modules; the bank stays as it is, the data is kept
offline      BCQ over every seen task that shares a module with this one; only this task's modules move
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp

from modlife.domains.env import Environment, PRNGKey, Pytree
from modlife.errors import InputError
from modlife.learners.acting import Rule
from modlife.learners.bcq import BCQ, BCQState
from modlife.learners.config import BCQConfig, PPOConfig
from modlife.learners.devices import Devices
from modlife.learners.lessons import Reader
from modlife.learners.ppo import PPO, LearnerState
from modlife.learners.replay import Packing, Transition, last_rows
from modlife.lifelong.evaluation import Evaluation, evaluate_tasks
from modlife.lifelong.loop import AgentState, Chosen, Evaluated, Step, Structure, Work
from modlife.lifelong.offline import consolidate
from modlife.lifelong.online import begin_chain, chain_learner, one_by_one, update_count, updates
from modlife.lifelong.search import search
from modlife.policies.bank import bank_of_one, only_chain, pick, place
from modlife.policies.networks import Modular
from modlife.types import Task


class Exploring(eqx.Module):
    """The online phase between two updates."""

    learner: LearnerState
    pieces: tuple[jax.Array, ...]
    """Rows of the last updates that replay will keep: [time, environment, word] each."""


@dataclass(frozen=True)
class Compositional:
    """The lifelong agent with a bank of modules."""

    env: Environment
    network: Modular
    ppo: PPOConfig
    bcq: BCQConfig
    steps: int
    capacity: int
    """How many tasks there will be."""
    searches: bool
    """Whether it looks for structures, or is given them."""
    search_episodes: int
    episodes: int
    """Episodes of its evaluations of a task before and after the online phase."""
    devices: int = 1

    @property
    def acting(self) -> Rule:
        """By the critic, within what the actor finds likely."""
        return Rule(self.bcq.acting, self.bcq.threshold)

    def init(self, *, key: PRNGKey) -> AgentState:
        """A bank of fresh modules."""
        return AgentState(self.network.init(key=key), met=())

    def learn(self, state: AgentState, stage: tuple[Task, ...], *, key: PRNGKey) -> Iterator[Step]:
        """Learns each task of the stage in turn."""
        return one_by_one(self.learn_one, state, stage, key=key)

    def learn_one(self, state: AgentState, task: Task, *, key: PRNGKey) -> Iterator[Step]:
        """Structure, online, offline; from wherever the state stands."""
        key_structure, key_online, key_offline = jax.random.split(key, 3)
        if state.work is None:
            state, reports = self.choose(state, task, key=key_structure)
            yield state, reports
        for phase, learn, phase_key in (
            ("online", self.online, key_online),
            ("offline", self.offline, key_offline),
        ):
            if state.work is not None and state.work.phase == phase:
                for step in learn(state, task, key=phase_key):
                    state = step[0]
                    yield step

    # Structure

    def choose(self, state: AgentState, task: Task, *, key: PRNGKey) -> Step:
        """Settles the structure, evaluates the task with it before any learning, and begins the online phase."""
        key_search, key_evaluate, key_start = jax.random.split(key, 3)
        chosen = self.choice(state, task, key=key_search)
        zero_shot = self.evaluate(state.params, task, chosen.structure, key=key_evaluate)
        learner = begin_chain(self.learner, state.params, chosen.structure, task, key=key_start)
        work = Work("online", 0, chosen.structure, chosen.steps, Exploring(learner, ()))
        return replace(state, work=work), (chosen, Evaluated("zero-shot", zero_shot))

    def choice(self, state: AgentState, task: Task, *, key: PRNGKey) -> Chosen:
        """The structure of a new task."""
        if not self.searches:
            return Chosen(self.env.graph.indices(task), "given")
        number = len(state.met)
        if number < min(self.network.sizes):
            return Chosen((number,) * len(self.network.sizes), "fresh")
        indices = self.env.graph.indices(task)
        return search(self.env, self.network, state.params, indices, episodes=self.search_episodes, key=key)

    def structure(self, state: AgentState, task: Task) -> Structure:
        """The structure a task was learnt with; for an unseen one, by the components its modules were made for."""
        if task in state.met:
            return state.structures[state.met.index(task)]
        if not self.searches:
            return self.env.graph.indices(task)
        return self.expected_structure(state, task)

    def expected_structure(self, state: AgentState, task: Task) -> Structure:
        """For each factor, the first module that was first used for the task's component."""
        found = expected_or_none(self, state, task)
        if found is None:
            raise InputError(f"No module was made for some component of '{task}', so it has no structure yet.")
        return found

    # Online

    @property
    def learner(self) -> PPO:
        """PPO on one chain of modules."""
        return chain_learner(self.env, self.network, self.ppo, self.devices)

    @property
    def times(self) -> int:
        """Time steps that replay keeps of a task."""
        most = update_count(self.learner, self.steps) * self.ppo.batch
        return max(1, min(self.bcq.replay_size, most) // self.ppo.envs)

    def first_kept(self, spent: int) -> int:
        """The number of the first update whose transitions replay keeps."""
        return max(0, update_count(self.learner, self.steps - spent) - -(-self.times // self.ppo.length))

    def online(self, state: AgentState, task: Task, *, key: PRNGKey) -> Iterator[Step]:
        """PPO updates; the bank in the state does not change until the phase ends."""
        key_learn, key_evaluate = jax.random.split(key)
        work = state.work
        assert work is not None
        packing, pieces = Packing.of(self.env), work.data.pieces
        first, last = self.first_kept(work.spent), update_count(self.learner, self.steps - work.spent)
        learning = updates(
            self.learner, work.data.learner, done=work.number, steps=self.steps, key=key_learn, spent=work.spent
        )
        for number, (learner, happened, curve) in enumerate(learning, start=work.number + 1):
            if number > first:
                pieces = (*pieces, packing.pack(happened)[0])
            if number < last:
                state = replace(state, work=replace(work, number=number, data=Exploring(learner, pieces)))
                yield state, (curve,)
            else:
                trained = only_chain(learner.params)
                alone = self.evaluate(bank_of_one(trained), task, (0,) * len(work.structure), key=key_evaluate)
                yield self.end_online(state, Exploring(learner, pieces)), (curve, Evaluated("online", alone))

    def end_online(self, state: AgentState, exploring: Exploring) -> AgentState:
        """Keeps the data, lets fresh modules into the bank, and begins the offline phase."""
        work, learner = state.work, exploring.learner
        assert work is not None
        after = self.observed(learner)
        rows = last_rows(exploring.pieces, Packing.of(self.env).pack(after), keep=self.times)
        bank = self.adopt(state, only_chain(learner.params))
        begun = self.consolidator.init(bank, jnp.array(work.structure))
        work = Work("offline", 0, work.structure, work.spent, begun)
        return replace(state, params=bank, memory=(*state.memory, rows), work=work)

    def observed(self, learner: LearnerState) -> Transition:
        """What the environments show now, in the form of transitions that were not made; axis [environment]."""
        observation = observe_all(self.env, jax.tree.map(lambda leaf: leaf[0], learner.actors.states))
        nothing = jnp.zeros(self.ppo.envs)
        return Transition(observation, nothing.astype(jnp.uint8), nothing, nothing.astype(bool))

    def adopt(self, state: AgentState, trained: tuple) -> tuple:
        """The bank with the trained modules in the place of those that no earlier task has used."""
        assert state.work is not None
        structure = state.work.structure
        old = pick(state.params, jnp.array(structure))
        used = [{other[depth] for other in state.structures} for depth in range(len(structure))]
        kept = tuple(
            before if module in known else after
            for before, after, module, known in zip(old, trained, structure, used, strict=True)
        )
        return place(state.params, jnp.array(structure), kept)

    # Offline

    @property
    def consolidator(self) -> BCQ:
        """BCQ on the modules of one task."""
        reader = Reader(
            self.env, self.network, self.capacity, self.times, envs=self.ppo.envs, devices=Devices(self.devices)
        )
        return BCQ(reader, self.bcq, self.ppo.discount)

    def offline(self, state: AgentState, task: Task, *, key: PRNGKey) -> Iterator[Step]:
        """Gradient steps on the data of all tasks concerned; the bank changes when the phase ends."""
        work, bcq = state.work, self.consolidator
        assert work is not None
        if bcq.steps == 0:
            yield self.end_offline(state, task, work.data), ()
            return
        structures = [*state.structures, work.structure]
        pieces = consolidate(bcq, state.params, structures, state.memory, work.data, done=work.number, key=key)
        for number, learner, reports in pieces:
            if number < bcq.steps:
                yield replace(state, work=replace(work, number=number, data=learner)), reports
            else:
                yield self.end_offline(state, task, learner), reports

    def end_offline(self, state: AgentState, task: Task, learner: BCQState) -> AgentState:
        """The bank with the task's modules as they are now."""
        assert state.work is not None
        structure = state.work.structure
        bank = place(state.params, jnp.array(structure), learner.own)
        return AgentState(bank, (*state.met, task), (*state.structures, structure), state.memory)

    # Either

    def evaluate(self, bank: Pytree, task: Task, structure: Structure, *, key: PRNGKey) -> Evaluation:
        """One task with modules of a bank, acting as PPO does."""
        sizes = tuple(jax.tree.leaves(factor)[0].shape[0] for factor in bank)
        network = Modular(self.network.graph, sizes, self.network.critic)
        return evaluate_tasks(
            self.env, network, bank, [task], [structure], episodes=self.episodes, rule=Rule("actor"), key=key
        )

    def blank(self, state: AgentState, work: Work, stage: tuple[Task, ...]) -> Pytree:
        """Shapes of the learner of either phase."""
        if work.phase == "offline":
            return jax.eval_shape(lambda bank: self.consolidator.init(bank, jnp.array(work.structure)), state.params)
        kept = max(0, work.number - self.first_kept(work.spent))
        extent = (self.ppo.length, self.ppo.envs, Packing.of(self.env).words)

        def exploring(key: PRNGKey) -> Exploring:
            learner = begin_chain(self.learner, state.params, work.structure, stage[0], key=key)
            return Exploring(learner, (jnp.zeros(extent, jnp.uint32),) * kept)

        return jax.eval_shape(exploring, jax.random.key(0))


observe_all = jax.jit(lambda env, states: jax.vmap(env.observe)(states), static_argnums=0)


def module_components(state: AgentState) -> dict[tuple[int, int], str]:
    """For (depth, module), the component of the first task that used the module."""
    owners: dict[tuple[int, int], str] = {}
    for task, structure in zip(state.met, state.structures, strict=True):
        for depth, module in enumerate(structure):
            owners.setdefault((depth, module), task.components[depth])
    return owners


def expected_or_none(agent: Compositional, state: AgentState, task: Task) -> Structure | None:
    """The structure that the modules' first components suggest; None if there is no module for a component."""
    if not agent.searches:
        return agent.env.graph.indices(task)
    owners, found = module_components(state), []
    for depth, component in enumerate(task.components):
        modules = [module for (at, module), owner in owners.items() if at == depth and owner == component]
        if not modules:
            return None
        found.append(min(modules))
    return tuple(found)
