"""Agents that a run directory holds, at work again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jax

from modlife.checks import check_evaluation
from modlife.domains.domain import Domain
from modlife.errors import InputError
from modlife.lifelong.agent import Agent, AgentState
from modlife.lifelong.loop import evaluate_agent
from modlife.lifelong.reports import evaluation_record
from modlife.lifelong.search import found_structure
from modlife.pauses import counted
from modlife.policies.distributions import noise
from modlife.policies.modular import Output
from modlife.runs.config import LifeConfig
from modlife.runs.restore import acting_state, newest_readable
from modlife.runs.store import RunDirectory
from modlife.types import Acting, Pytree, Structure, Task

EVALUATION = 0x0E7A1
"""Sets the keys of evaluations apart from those of lives with the same seed."""
SEARCH = 0x5EA6C
"""Sets the keys of searches for tasks that were never met apart from those."""
FRESH = 0xF4E58
"""Sets the key of fresh parameters apart from those."""


@dataclass(frozen=True)
class Run:
    """A run directory with the agent that it holds: of a life that has ended, or as it was last saved."""

    path: Path
    config: LifeConfig
    agent: Agent
    state: AgentState
    complaints: tuple[str, ...] = ()
    """What is wrong with newer checkpoints than the one that was read, and with what tells of the life."""
    found: dict[Task, Structure | None] = field(default_factory=dict, repr=False, compare=False)
    """What its search has found for tasks that it never met."""

    @staticmethod
    def load(path: Path | str) -> "Run":
        """Reads what it takes to act: replay is not needed, and may be missing."""
        directory = RunDirectory.open(Path(path))
        config = directory.config()
        saved, complaints = newest_readable(directory, lambda checkpoints, saved: saved)
        agent, state = acting_state(config, saved)
        return Run(Path(path), config, agent, state, (*complaints, *directory.remarks()))

    @property
    def domain(self) -> Domain:
        """The domain it lives in."""
        return self.config.domain

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks it has learnt, in their order."""
        return self.state.met

    @property
    def modules(self) -> Pytree:
        """What it has learnt: a `Bank` of modules where it is modular."""
        return self.state.params

    @property
    def structures(self) -> Mapping[str, Structure]:
        """Which modules it uses for each task learnt; empty where it does not find or get them one by one."""
        return {str(task): one for task, one in zip(self.state.met, self.state.structures, strict=False)}

    @property
    def untrained(self) -> "Run":
        """The same agent with fresh parameters: the structures are those that it found, the modules know nothing."""
        key = jax.random.fold_in(jax.random.key(self.config.seed), FRESH)
        return replace(self, state=replace(self.agent.init(key=key), facts=self.state.facts))

    @property
    def records(self) -> list[dict[str, Any]]:
        """The lines of its metrics so far."""
        return RunDirectory(self.path).metrics()

    @property
    def summary(self) -> dict[str, Any] | None:
        """What the life came to; None while it goes on."""
        return RunDirectory(self.path).summary()

    @cached_property
    def unseen(self) -> tuple[Task, ...]:
        """Tasks it never trained on for which it has a policy."""
        others = (task for task in self.agent.env.graph.tasks if task not in self.state.met)
        return tuple(task for task in others if self.agent.policy(self.state, task) is not None)

    def knowing(self, tasks: Sequence[Task]) -> AgentState:
        """Its state with a structure for each task: for those that it never met, where it searches, by its search.

        The search tries the modules as they are, in episodes of its own; nothing is learnt.
        """
        never_met = [task for task in tasks if task not in self.state.met]
        every = counted(never_met, "new tasks whose modules were searched for")
        more = {task: found for task in every if (found := self.search(task)) is not None}
        met, structures = (*self.state.met, *more), (*self.state.structures, *more.values())
        return self.state.noting(met=met, structures=structures) if more else self.state

    def search(self, task: Task) -> Structure | None:
        """The structure that its search finds for a task that it never met, the same whenever it is asked."""
        if task not in self.found:
            key = jax.random.fold_in(jax.random.key(self.config.seed), SEARCH)
            key = jax.random.fold_in(key, self.agent.env.graph.tasks.index(task))
            self.found[task] = found_structure(self.agent, self.state, task, key=key)
        return self.found[task]

    def task(self, name: str | None) -> Task:
        """The task of this name, or the last one learnt."""
        if name:
            return self.agent.env.graph.parse(name)
        return self.learnt()[-1]

    def learnt(self) -> tuple[Task, ...]:
        """The tasks it has learnt; at least one."""
        if not self.state.met:
            raise InputError(f"The agent of '{self.path}' has not learnt any task yet.")
        return self.state.met

    def policy(self, task: Task | str) -> Pytree:
        """Its policy for a task; for one that it never met, with the structure that it finds without learning."""
        parsed = self.agent.env.graph.parse(str(task))
        return self.check_policy(self.knowing([parsed]), parsed)

    def check_policy(self, state: AgentState, task: Task) -> Pytree:
        """The policy that it has for a task in a state; or that it has none."""
        found = self.agent.policy(state, task)
        if found is None:
            raise InputError(
                f"The agent of '{self.path}' has not learnt '{task}', and shares nothing to solve it with."
            )
        return found

    def actor(self, task: Task | str) -> Callable[[Pytree, Any], Any]:
        """A function that draws actions as the agent does in a task, from an environment's state and a JAX key."""
        agent = self.agent
        policy = self.policy(task)

        @jax.jit
        def act(state: Pytree, key: Any) -> Any:
            observation = jax.tree.map(lambda leaf: leaf[None], agent.env.observe(state))
            says = agent.acting(agent.network(policy, agent.env.parts(observation)))
            return says.sample(noise(agent.env.graph.actions, (1,), key=key))[0]

        return act

    def evaluate(
        self,
        tasks: Sequence[Task | str] | None = None,
        *,
        episodes: int = 1000,
        acting: Acting | None = None,
        seed: int = 0,
        by_components: bool = False,
    ) -> dict[str, Any]:
        """Returns on tasks, by default those learnt, as a record; and what else the agent knows of them.

        Where it searches for structures, it does so for tasks that it never met; or they follow from their components.
        """
        check_evaluation(tasks, episodes=episodes, acting=acting, seed=seed)
        graph = self.agent.env.graph
        chosen = [graph.parse(str(task)) for task in tasks] if tasks is not None else list(self.learnt())
        if not chosen:
            all_learnt = set(graph.tasks) <= set(self.learnt())
            why = f"has learnt all {graph.task_count}" if all_learnt else "has a policy for none that it has not learnt"
            raise InputError(f"There are no tasks to evaluate the agent of '{self.path}' on: it {why}.")
        state = self.state if by_components else self.knowing(chosen)
        for task in chosen:
            self.check_policy(state, task)
        rule = self.agent.acting if acting is None else replace(self.agent.acting, name=acting)
        if rule.needs_q and not self.has_q(state, chosen[0]):
            raise InputError(f"Acting by '{rule.name}' takes a critic with a value per action; this agent has none.")
        key = jax.random.fold_in(jax.random.key(seed), EVALUATION)
        evaluation = evaluate_agent(self.agent, state, chosen, episodes=episodes, rule=rule, key=key)
        return {**evaluation_record(evaluation), "acting": rule.name, **self.agent.about(state, chosen)}

    def has_q(self, state: AgentState, task: Task) -> bool:
        """Whether the agent's critic tells the value of each action."""
        env, policy = self.agent.env, self.check_policy(state, task)

        def output(key: Any) -> Any:
            state = env.reset(jax.numpy.array(env.graph.indices(task)), key=key)
            seen = jax.tree.map(lambda leaf: leaf[None], env.observe(state))
            return self.agent.network(policy, env.parts(seen))

        shapes = jax.eval_shape(output, jax.random.key(0))
        return isinstance(shapes, Output) and shapes.values.shape == shapes.logits.shape
