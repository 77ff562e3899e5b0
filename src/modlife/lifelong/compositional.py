"""The paper's agent: Lifelong Compositional RL. Its Algorithm 1 as it is printed; at the right, what each line is here.

    T <- 0                                                                     no task is `met`
    loop                                                                       `live`
        t <- getTask();  T <- T + 1                                            the next stage of the `Curriculum`
        if T <= k                                // Initialize modules         `known`
            steps <- 0;  s_d <- T for all d
        else                                     // Find module combination    `ChooseStructure`
            s, steps <- discreteSearch()                                       `Exhaustive`, or another of `SEARCHES`
            bckModules <- clone(M)                                             the bank, which is a value
        π⁽ᵗ⁾, Q⁽ᵗ⁾ <- modularNets(M, s)                                        `beginning`: a copy
        // Online exploration                                                  `Explore`
        while steps < onlineSteps
            s, a, r, s' <- rollouts(π⁽ᵗ⁾, iterSteps)                           `PPO.collect`
            buffer[t].push(s, a, r, s')                                        `Explore.replay`
            π⁽ᵗ⁾, Q⁽ᵗ⁾ <- RLStep(s, a, r, s', π⁽ᵗ⁾, Q⁽ᵗ⁾)                      `PPO.epoch`
            steps <- steps + iterSteps
        // Off-line comp. improvement                                          `Consolidate`
        if T < numModules                                                      `adopt`
            M <- bckModules
        for i = 1, ..., offlineSteps                                           `Consolidator.run`
            for t = 1, ..., seenTasks                                          `lessons_of`: what shares a module
                s, a, r, s' <- buffer[t].sample()                              `Rows`
                π⁽ᵗ⁾ <- argmin[π~] NLL(π~(s), a)                               `BCQ.terms`
                a' <- argmax[a~: π⁽ᵗ⁾(s', a~) > τ] Q⁽ᵗ⁾(s', a~)                `BCQ.targets`
                targetQ <- r + Q⁽ᵗ⁾'(s', a')                                   `losses.bcq_target`
                Q⁽ᵗ⁾ <- argmin[Q~] (Q~(s, a) - targetQ)                        `BCQ.terms`

Printed the wrong way round is `T < numModules`: tasks with T > k get the bank back (docs/details.md, 34).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import equinox as eqx
import jax

from modlife.domains.env import Environment, PRNGKey
from modlife.errors import InputError
from modlife.learners.offline import Consolidator
from modlife.learners.ppo import PPO
from modlife.learners.replay import AnyReplay, in_order
from modlife.learners.replay_table import Layout, room_for
from modlife.learners.rollout import ACTOR
from modlife.lifelong.agent import AgentState, Facts, Phase, Reports
from modlife.lifelong.agents import Plan
from modlife.lifelong.consolidate import Consolidate, acting_of, consolidator_of, is_replay, keeps_finals
from modlife.lifelong.evaluation import Judge, wrong_chains
from modlife.lifelong.explore import Explore, Exploring, begin_chain, times_of
from modlife.lifelong.foresight import Work, sharing_counts
from modlife.lifelong.reports import Chosen, Evaluated
from modlife.lifelong.search import ChooseStructure
from modlife.lifelong.settings import SEARCHES
from modlife.metrics.records import expected, first_components
from modlife.policies.acting import Rule
from modlife.policies.bank import Bank, Chain
from modlife.policies.modular import Modular, OnePolicy, critic_of, of_actor
from modlife.registry import resolve
from modlife.types import Pytree, Structure, Task, Unsolved

FRESH = 0xF2E5
"""Sets the key of fresh modules for exploring apart from those of episodes."""
FULL = 0.85
"""How much of the longest time its episodes take in a search, about: most structures do not reach their goal."""


@dataclass(frozen=True)
class Compositional:
    """The lifelong agent with a bank of modules."""

    env: Environment
    network: Modular
    ppo: PPO
    """On one chain of modules."""
    offline: Any
    """The config of its consolidator."""
    search: Any
    """The config of its search for structures; None where it is told them."""
    replay_size: int
    steps: int
    episodes: int
    """Episodes of its evaluations of a task before and after the online phase."""
    unsolved: Unsolved = "known"
    """What the online phase begins with where known modules do not meet the goal at all."""
    fresh_critics: bool = False
    """Whether it begins with fresh critics."""
    together: bool = False

    def phases(self, tasks: Sequence[Task], *, key: PRNGKey) -> tuple[Phase, ...]:
        """Find a structure, explore on a copy of its modules, fold what was learnt into the bank."""
        (task,) = tasks
        key_structure, key_online, key_offline = jax.random.split(key, 3)
        key_search, key_zero_shot, key_start = jax.random.split(key_structure, 3)
        key_learn, key_evaluate = jax.random.split(key_online)
        search = resolve(SEARCHES.of(self.search).build)(self.search) if self.search else None

        def start(state: AgentState) -> Any:
            return begin_chain(self.ppo, self.beginning(state, key=key_start), task, key=key_start)

        def finish(state: AgentState, work: Exploring) -> tuple[AgentState, Reports]:
            trained, replay = work.learner.params, explore.replay(work, explore.length(state))
            replay = self.consolidator(self.layout(1)).explored(replay, trained)
            alone = self.judge.evaluate([task], [trained], key=key_evaluate)
            kept = replace(state, memory=(*state.memory, replay), params=self.adopt(state, trained))
            return kept, (Evaluated("online", alone),)

        explore = Explore(self.ppo, self.steps, start, finish, key_learn, self.times)
        choose = ChooseStructure(task, self.judge, self.known, search, key_search, key_zero_shot)
        judge = replace(self.judge, rule=self.acting)
        return choose, explore, Consolidate(task, self.layout, self.consolidator, judge, key_offline)

    def known(self, state: AgentState, task: Task) -> Chosen | None:
        """The structure of a new task where it needs no search: given, or fresh modules while there are any."""
        if self.search is None:
            return Chosen(self.env.graph.indices(task), "given")
        number = len(state.met)
        return Chosen((number,) * len(self.network.sizes), "fresh") if number < min(self.network.sizes) else None

    def fresh(self, *, key: PRNGKey) -> Chain:
        """A chain of modules that no task has."""
        structure = (0,) * len(self.network.sizes)
        with jax.ensure_compile_time_eval():  # drawn on the host, also where only shapes are asked for
            return self.network.init(key=jax.random.fold_in(key, FRESH)).pick(structure)

    def beginning(self, state: AgentState, *, key: PRNGKey) -> Chain:
        """A copy of the task's modules; where they do not meet the goal at all, they say less, or are fresh."""
        *before, structure = state.structures
        *early, last = chain = state.params.pick(structure)
        known = [any(one[depth] == n for one in before) for depth, n in enumerate(structure)]
        if not any(known):
            return chain
        if not state.solved and self.unsolved == "fresh":
            return self.fresh(key=key)
        if not state.solved and known[-1] and self.ppo.config.timid_start != 1:
            chain = (*early, self.network.modules.scaled(last, self.ppo.config.timid_start))
        return self.judged_anew(chain, key=key) if self.fresh_critics else chain

    def judged_anew(self, chain: Chain, *, key: PRNGKey) -> Chain:
        """A chain's actor with fresh critics."""
        own = of_actor(chain)
        return eqx.combine(eqx.filter(chain, own), eqx.filter(self.fresh(key=key), own, inverse=True))

    def adopt(self, state: AgentState, trained: Chain) -> Bank:
        """The bank with the trained modules in the place of those that no earlier task has used."""
        *before, structure = state.structures
        pairs = zip(state.params.pick(structure), trained, structure, strict=True)
        used = [{other[depth] for other in before} for depth in range(len(structure))]
        kept = tuple(old if n in known else new for (old, new, n), known in zip(pairs, used, strict=True))
        return state.params.place(structure, kept)

    # What is ahead

    def ahead(self, facts: Facts, groups: Sequence[Sequence[Task]]) -> list[Work]:
        """A search takes some of the steps of the online phase; the offline one is about tasks that share modules."""
        tasks, sizes, first = [task for group in groups for task in group], self.network.sizes, len(facts.met)
        told = [self.env.graph.indices(task) for task in tasks] if self.search is None else []
        fresh, known = min(sizes), (*facts.structures, *told[len(facts.structures) - first :])
        counts = sharing_counts(known, first, first + len(tasks), sizes, fresh=fresh)
        found, horizon, loads = [], self.env.horizon, cache(self.load)
        for number, count in enumerate(counts, start=first):
            search = self.search.most_steps(math.prod(sizes), horizon) if self.search and number >= fresh else 0
            spent = facts.spent if number == first and facts.spent else FULL * search
            tried = float(self.judge.played(1) * horizon + search)
            found.append({"structure": tried, "online": float(self.steps - spent), "offline": loads(count)})
        return found

    def load(self, tasks: int) -> float:
        """The work of an offline phase over so many tasks."""
        learner = self.consolidator(self.layout(room_for(tasks)))
        return float(learner.steps * learner.load(tasks))

    # What the phases are made of

    @property
    def judge(self) -> Judge:
        """Evaluates as PPO acts."""
        return Judge(self.env, self.network, ACTOR, self.episodes)

    @property
    def acting(self) -> Rule:
        """As its consolidator says."""
        return acting_of(self.offline)

    @property
    def times(self) -> int:
        """Time steps that replay keeps of a task."""
        return times_of(self.ppo, self.steps, self.replay_size)

    def layout(self, room: int) -> Layout:
        """Tables of replay with room for so many tasks."""
        envs, finals = self.ppo.config.envs, self.ppo.keeps_reached
        return Layout(self.env, self.network, room, self.times, envs, finals, self.ppo.share)

    def consolidator(self, layout: Layout) -> Consolidator:
        """How to learn offline."""
        return consolidator_of(self.offline, layout, discount=self.ppo.config.discount)

    # What it knows

    def init(self, *, key: PRNGKey) -> AgentState:
        """A bank of fresh modules."""
        return AgentState(self.network.init(key=key))

    def grow(self, state: AgentState, *, key: PRNGKey) -> AgentState:
        """Nothing in it depends on how many tasks there will be."""
        return state

    def in_order(self, replay: AnyReplay) -> bool:
        """As its consolidator keeps it."""
        return in_order(self.consolidator(self.layout(1)), replay)

    def problem(self, state: AgentState) -> str | None:
        """Structures are of this bank, and replay is of as many tasks, and as large, as it can be."""
        facts, explored = state.facts, len(state.met) + (state.facts.phase == "offline")
        settled = len(state.met) + (facts.phase in ("online", "offline"))
        if len(facts.structures) != settled or not all(self.in_bank(one) for one in facts.structures):
            return "structures"
        if not 0 <= facts.spent < self.steps or (facts.spent and facts.phase not in ("online", "offline")):
            return "spent"
        layout, learner = self.layout(1), self.consolidator(self.layout(1))
        fits = [is_replay(one, layout, learner, folded=n < len(state.met)) for n, one in enumerate(state.memory)]
        return None if len(state.memory) == explored and all(fits) else "memory"

    def in_bank(self, structure: Structure) -> bool:
        """Whether a structure names a module of each factor."""
        sizes = self.network.sizes
        return len(structure) == len(sizes) and all(0 <= n < size for n, size in zip(structure, sizes, strict=True))

    def structure(self, state: AgentState, task: Task) -> Structure | None:
        """The structure a task was learnt with; for an unseen one, by the components its modules were made for."""
        if task in state.met:
            return state.structures[state.met.index(task)]
        return self.expected(state, task)

    def expected(self, state: AgentState, task: Task) -> Structure | None:
        """For each factor, the first module that was first used for the task's component; None if there is none."""
        if self.search is None:
            return self.env.graph.indices(task)
        met = zip((one.components for one in state.met), state.structures[: len(state.met)], strict=True)
        return expected(first_components(met), task.components)

    def policy(self, state: AgentState, task: Task) -> Pytree | None:
        """The chain of the task's structure."""
        structure = self.structure(state, task)
        return None if structure is None else state.params.pick(structure)

    def wrong_policies(self, state: AgentState, task: Task, factor: int) -> Sequence[Pytree]:
        """With each other module of the factor."""
        structure = self.structure(state, task)
        assert structure is not None
        return wrong_chains(state.params, structure, factor)

    def about(self, state: AgentState, tasks: Sequence[Task]) -> dict[str, Any]:
        """Structures: those it uses, and those that the modules' first components suggest."""
        return {
            "structure": [self.structure(state, task) for task in tasks],
            "expected": [self.expected(state, task) for task in tasks],
        }


def told(plan: Plan) -> Compositional:
    """The agent that is told structures: a module for each component."""
    return compositional(plan, plan.env.graph.shape, search=None)


def searching(plan: Plan) -> Compositional:
    """The agent that searches for structures."""
    graph, settings = plan.env.graph, plan.settings
    return compositional(plan, (settings.module_count(graph),) * len(graph.factors), search=settings.search)


def compositional(plan: Plan, sizes: tuple[int, ...], *, search: Any) -> Compositional:
    """Either."""
    env, settings = plan.env, plan.settings
    critic, finals = critic_of(env.graph, settings.critic), keeps_finals(settings.offline)
    network = Modular(env.graph, sizes, critic, plan.modules)
    ppo = PPO(env, OnePolicy(network), settings.ppo, plan.devices, keeps_reached=finals)
    rest = (settings.offline, search, settings.replay_size, plan.steps, plan.episodes)
    agent = Compositional(env, network, ppo, *rest, settings.unsolved, settings.fresh_critics)
    if settings.fresh_critics and not any(jax.tree.leaves(of_actor(agent.fresh(key=jax.random.key(0))))):
        raise InputError(
            "fresh_critics is True, but actor and critic share parameters here, and neither can be fresh alone. "
            "Leave --fresh-critics out."
        )
    agent.consolidator(agent.layout(1))  # says at once what cannot be learnt so
    return agent
