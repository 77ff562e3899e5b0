"""What a life is made from: one frozen, documented value, written to and read from JSON. No JAX here."""

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import tyro

from modlife.checks import check_between, check_episodes, check_fields, check_once, check_seed, shown
from modlife.domains.curricula import CURRICULA, Order
from modlife.domains.domain import DOMAINS, Domain, environment_of
from modlife.errors import InputError
from modlife.lifelong.agents import AGENTS, AgentEntry, Plan
from modlife.registry import Table, resolve
from modlife.runs.codec import TABLE, from_json, tagged, to_json
from modlife.types import Curriculum, Task

SCHEMA = 3
"""Version of a config's JSON."""
BESIDE = ("domain", "threads", "out", "config", "resume", "resume_or_begin", "wait", "parent", "save_every")
"""Options that stand beside a life's own, on the command line and in files."""
CHOSEN = ("search", "offline")
"""Options that choose from tables of the agent's settings, and may be called as these fields are."""


@dataclass(frozen=True)
class LifeConfig:
    """One agent over one curriculum with one seed."""

    agent: str = "comp-search"
    """Who learns; `modlife list` shows all agents."""
    curriculum: str | None = None
    """In which order tasks come: paper, random, together, ...; by default what is usual for the agent."""
    tasks: int | None = None
    """How many tasks: the first of the order; by default all."""
    only: tuple[str, ...] = ()
    """Exactly these tasks instead, each as one component per factor, such as wall/red/dynamics-2."""
    steps: int = 1_000_000
    """Environment steps per task."""
    seed: int = 0
    """Everything random follows from it."""
    episodes: int = 100
    """Episodes per task in the evaluation after each stage; ten times as many at the end (robots: three times)."""
    panel: int | None = None
    """Tasks in the evaluation after each stage, at most: the first ones met, others in turn, and the newest; or all."""
    grown: tyro.conf.Suppress[tyro.conf.Fixed[tuple[int, ...]]] = ()
    """How many tasks it was planned for before, if it went on with more."""
    world: Any = field(default_factory=lambda: DOMAINS["grid2d"].usual_world(), metadata={TABLE: DOMAINS})
    """Which tasks there are."""
    settings: Annotated[Any, tyro.conf.arg(name="")] = None
    """The agent's own options."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.settings is None:
            object.__setattr__(self, "settings", usual_settings(self.entry, self.domain))
        if type(self.settings) is not settings_class(self.entry):
            raise InputError(f"Settings of the agent '{self.agent}' cannot be {type(self.settings).__name__}.")
        if self.steps < 1:
            raise InputError(f"steps = {self.steps}, but an agent needs at least 1 environment step per task to learn.")
        check_between(self, 1, 10**12, "steps")
        check_episodes(self.episodes, most=10**5)
        check_seed(self.seed)
        if self.panel is not None:
            check_between(self, 3, 10**6, "panel")
            if self.order.together:
                raise InputError(f"panel = {self.panel}, but tasks that are learnt together are all evaluated.")
        self.check_tasks()
        sizes = (*self.grown, len(self.chosen))
        if list(sizes) != sorted(set(sizes)) or sizes[0] < 1:
            raise InputError(f"A life of {self.grown} tasks cannot have grown to {len(self.chosen)}.")
        graph, horizon, settings = self.world.graph, self.world.horizon, self.settings
        assert settings is not None
        usual = usual_settings(self.entry, self.domain)
        settings.check(tasks=len(self.chosen), steps=self.steps, graph=graph, horizon=horizon, usual=usual)

    def check_tasks(self) -> None:
        """Tasks are either counted or named, each once."""
        if self.only and self.tasks is not None:
            raise InputError(
                f"tasks = {self.tasks} beside only = {' '.join(self.only)}: give either how many tasks or which ones."
            )
        check_once("only", self.only)

    @property
    def entry(self) -> AgentEntry:
        """The agent's line in the table."""
        return AGENTS[self.agent]

    @property
    def domain(self) -> Domain:
        """The domain's line in its table."""
        return DOMAINS.of(self.world)

    @property
    def order(self) -> Order:
        """The curriculum's line in its table."""
        return CURRICULA[self.curriculum or self.entry.curriculum]

    @property
    def chosen(self) -> tuple[Task, ...]:
        """The tasks to learn, in their order."""
        graph = self.world.graph
        if self.only:
            return tuple(graph.parse(text) for text in self.only)
        count = graph.task_count if self.tasks is None else self.tasks
        return self.order.tasks(graph, count=count, seed=self.seed, first=self.settings.first_tasks(graph))

    @property
    def stages(self) -> Curriculum:
        """One task after the other; or as many at once as the life was planned for, and those it grew by."""
        tasks = self.chosen
        cuts = (0, *self.grown, len(tasks)) if self.order.together else range(len(tasks) + 1)
        return Curriculum(tuple(tasks[start:end] for start, end in itertools.pairwise(cuts)))

    def planned_for(self, tasks: int) -> "LifeConfig":
        """The config of the same life when it was planned for fewer tasks."""
        if tasks == len(self.chosen):
            return self
        return replace(self, tasks=tasks, grown=tuple(size for size in self.grown if size < tasks))

    def grown_to(self, tasks: int) -> "LifeConfig":
        """The config of this life with further tasks."""
        if self.only:
            raise InputError("A life of named tasks has no further ones.")
        return replace(self, tasks=tasks, grown=(*self.grown, len(self.chosen)))


def build(config: LifeConfig, *, devices: int = 1) -> Any:
    """The agent that a config names, its learning divided over devices."""
    env, modules = environment_of(config.world), config.domain.of("modules")
    tasks = len(config.chosen)
    plan = Plan(config.domain, env, modules, config.settings, config.steps, config.episodes, tasks, devices)
    return resolve(config.entry.build)(plan)


def settings_class(entry: AgentEntry) -> Any:
    """The class of an agent's settings; none of its fields is called as an option that is not the agent's."""
    kind, taken = resolve(entry.settings), {one.name for one in dataclasses.fields(LifeConfig)} | {*BESIDE}
    for one in dataclasses.fields(kind):
        if one.name in taken or (one.name in CHOSEN and TABLE not in one.metadata):
            raise InputError(
                f"The agent '{entry.name}' has a setting '{one.name}', which is the name of an option that all agents "
                f"have: in the agent's package, give this field of {kind.__name__} another name."
            )
    return kind


def usual_settings(entry: AgentEntry, domain: Domain) -> Any:
    """The settings of an agent without any option, in a domain."""
    kind, usual = settings_class(entry), resolve(domain.usual) or {}
    own = {one.name for one in dataclasses.fields(kind)}
    return from_json(kind, {name: value for name, value in usual.items() if name in own}, where="usual settings")


def usual_options(domain: Domain) -> dict[str, Any]:
    """What differs in a domain of a life's own options."""
    usual, own = resolve(domain.usual) or {}, {one.name for one in dataclasses.fields(LifeConfig)}
    return {name: value for name, value in usual.items() if name in own}


def usual_life(agent: str, world: Any, named: Mapping[str, str]) -> LifeConfig:
    """The life of an agent in a world without options, but for entries of tables by name (`offline`, `search`)."""
    settings = usual_settings(AGENTS[agent], DOMAINS.of(world))
    tables = {one.name: one.metadata[TABLE] for one in dataclasses.fields(settings) if TABLE in one.metadata}
    for option, name in named.items():
        if option not in tables:
            raise InputError(f"The agent '{agent}' has no --{option}: leave it out, or choose another agent.")
        if tables[option].of(getattr(settings, option)).name != name:
            settings = dataclasses.replace(settings, **{option: resolve(tables[option][name].config)()})
    return LifeConfig(agent=agent, world=world, settings=settings, **usual_options(DOMAINS.of(world)))


def life_json(config: LifeConfig) -> dict[str, Any]:
    """A life's config for a manifest."""
    return {"schema": SCHEMA, **to_json(config)}


def in_full(config: LifeConfig, *, tasks: int) -> dict[str, Any]:
    """A config as JSON, of so many tasks, but with what is usual written out: lives that are alike have the same."""
    settings = {**to_json(config.settings), **config.settings.meant(config.world.graph)}
    return {**to_json(config), "tasks": tasks, "curriculum": config.order.name, "settings": settings}


def life_from_json(data: Any, *, where: str = "config") -> LifeConfig:
    """A life's config from a manifest of this or an earlier schema."""
    if not isinstance(data, dict):
        raise InputError(f"{where} must be a table of fields, but is {shown(data)}.")
    data = dict(data)
    schema = data.pop("schema", 1)
    if schema not in range(1, SCHEMA + 1) or isinstance(schema, bool):
        raise InputError(f"{where} has schema {shown(schema)}; this version reads 1 to {SCHEMA}.")
    if schema == 1:
        data = upgraded(data, where=where)
    if schema < SCHEMA:
        data = without_margin(data)
    agent = data.get("agent", LifeConfig.agent)
    if not isinstance(agent, str):
        raise InputError(f"{where}.agent = {shown(agent)}, which is not a text.")
    settings = from_json(settings_class(AGENTS[agent]), data.pop("settings", {}), where=f"{where}.settings")
    return from_json(LifeConfig, data, where=where, given={"settings": settings})


def life_from_options(agent: str, domain: str, options: Mapping[str, Any]) -> LifeConfig:
    """A life's config from options as people write them: fields of the life or of the agent's settings, by name.

    A group of options is a table or a config; where one of several can be chosen, its name alone will do.
    """
    own = {one.name for one in dataclasses.fields(LifeConfig)} - {"settings", "world"}
    usual = usual_settings(AGENTS[agent], DOMAINS[domain])
    plain = {name: to_json(value) for name, value in options.items()}
    life = {**usual_options(DOMAINS[domain]), **{name: value for name, value in plain.items() if name in own}}
    world = plain.pop("world", {})
    if not isinstance(world, dict):
        raise InputError(f"world = {shown(world)}, which is not a table of fields, such as {{'size': 10}}.")
    world = {"domain": domain, **world}
    settings = {name: value for name, value in plain.items() if name not in own}
    for one in dataclasses.fields(usual):
        table, before = one.metadata.get(TABLE), getattr(usual, one.name)
        if one.name in settings:
            value = named(table, settings[one.name], before) if table else settings[one.name]
            settings[one.name] = over(tagged(one, before), value, tag=table.kind if table else "")
    settings = {**to_json(usual), **settings}
    return life_from_json({"schema": SCHEMA, **life, "agent": agent, "world": world, "settings": settings})


def over(usual: Any, value: Any, *, tag: str) -> Any:
    """A group of options over those that are usual, unless it is another entry of a table."""
    if not isinstance(usual, dict) or not isinstance(value, dict) or usual.get(tag) != value.get(tag):
        return value
    return {**usual, **value}


def named(table: Table, value: Any, usual: Any) -> Any:
    """A choice from a table with its name: of the name alone, or of a table of options for the usual one."""
    if isinstance(value, str):
        return {table.kind: value}
    return {table.kind: table.of(usual).name, **value} if isinstance(value, dict) else value


def without_margin(data: dict[str, Any]) -> dict[str, Any]:
    """A config of schema 2 in the words of schema 3, whose searches may favour structures that no task has."""
    settings = data.get("settings")
    if not isinstance(settings, dict):
        return data
    search = settings.get("search")
    if not isinstance(search, dict) or search.get("search") != "halving":
        return data
    return {**data, "settings": {**settings, "search": {"margin": 0.0, **search}}}


def upgraded(data: dict[str, Any], *, where: str) -> dict[str, Any]:
    """A config of schema 1 in the words of schema 2: one domain, and all agents' options in one place."""
    known = {"agent", "tasks", "only", "steps", "seed", "episodes"}
    renamed = {"offline_epochs": "epochs", "offline_batch": "batch", "offline_learning_rate": "learning_rate"}
    for name in ("world", "ppo", "bcq"):
        if not isinstance(data.get(name, {}), dict):
            raise InputError(f"{where}.{name} must be a table of fields, but is {shown(data[name])}.")
    bcq = dict(data.get("bcq", {}))
    options = {
        "modules": data.get("modules"),
        "replay_size": bcq.pop("replay_size", 100_000),
        "search": {"search": "exhaustive", "episodes": data.get("search_episodes", 10)},
        "ppo": data.get("ppo", {}),
        "offline": {"consolidator": "bcq", **{renamed.get(name, name): value for name, value in bcq.items()}},
    }
    agent = data.get("agent", "mtl")
    takes = dataclasses.fields(settings_class(AGENTS[agent])) if isinstance(agent, str) else ()
    settings = {one.name: options[one.name] for one in takes if one.name in options}
    rest = {name: value for name, value in data.items() if name not in {*options, "bcq", "search_episodes", "world"}}
    odd = sorted(set(rest) - known)
    if odd:
        raise InputError(f"No field in {where} '{odd[0]}' in schema 1.")
    return {**rest, "agent": agent, "world": {"domain": "grid2d", **data.get("world", {})}, "settings": settings}
