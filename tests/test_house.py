"""The house stays one house: each thing in one place, no long functions, nothing that asks which agent it is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_layers import FILES, SOURCE

import modlife
from modlife.domains.domain import DOMAINS
from modlife.lifelong.agents import AGENTS
from modlife.registry import resolve
from modlife.tables import TABLES

TREES = {path: ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")}
LONGEST = 40


def functions() -> Iterator[tuple[Path, ast.FunctionDef]]:
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                yield path, node


def body_lines(function: ast.FunctionDef) -> int:
    """Lines of a body, without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    last = body[-1].end_lineno if body else None
    return last - body[0].lineno + 1 if last else 0


def test_function_bodies_have_at_most_40_lines():
    long = {f"{path.name}:{node.name}": body_lines(node) for path, node in functions() if body_lines(node) > LONGEST}
    assert long == {}


def classes_of(package: str) -> set[str]:
    return {
        node.name
        for path, tree in TREES.items()
        if package in str(path.relative_to(SOURCE))
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }


def asked_about(tree: ast.AST) -> set[str]:
    """The names of classes that `isinstance` or `issubclass` is asked about."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            names |= {one.id for one in ast.walk(node.args[1]) if isinstance(one, ast.Name)}
            names |= {one.attr for one in ast.walk(node.args[1]) if isinstance(one, ast.Attribute)}
    return names


def own_classes() -> dict[str, Path]:
    """Classes of agents, environments and worlds, with the file that each stands in."""
    found = {}
    for entry in AGENTS:
        built = resolve(entry.build).__annotations__["return"]
        found[built.__name__] = built
    for domain in DOMAINS:
        for target in (domain.config, domain.environment):
            kind = resolve(target)
            found[kind.__name__] = kind
    return {name: Path(*kind.__module__.split(".")[1:]).with_suffix(".py") for name, kind in found.items()}


def test_nobody_asks_which_agent_or_domain_it_is():
    own = own_classes()
    assert {"Compositional", "SingleTask", "MultiTask", "Grid2D", "RobotLift", "World", "RobotWorld"} <= set(own)
    for path, tree in TREES.items():
        for name in asked_about(tree) & set(own):
            assert path.relative_to(SOURCE) == own[name], f"{path} asks about {name}"


MAY_NAME = {
    "lifelong/agents.py": "the table of agents",
    "domains/domain.py": "the table of domains",
    "domains/robot/world.py": "a factor is called as the domain",
    "domains/robot/environment.py": "a factor is called as the domain",
    "analysis/figures/__init__.py": "a figure is called as an agent",
    "analysis/figures/figure_e1.py": "the paper's Figure E.1a is about the modules of one agent",
    "analysis/catalog.py": "experiments are lives of certain agents",
    "analysis/studies.py": "a grid is for one agent, and so is what was chosen from it",
    "benchmarks/__init__.py": "online rates are told as shares of one agent's",
}
"""Files that may hold names of agents or domains in what they define outside of functions, each with its reason."""


def named_in(tree: ast.AST) -> set[str]:
    """The names of agents and domains in code."""
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return texts & {*AGENTS.names, *DOMAINS.names}


def looked_up(tree: ast.AST) -> Iterator[ast.AST]:
    """Where values are compared, or looked up: comparisons, patterns, dictionaries that are asked at once."""
    for node in ast.walk(tree):
        asked = isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.value, ast.Dict)
        if asked or isinstance(node, ast.Compare | ast.MatchValue):
            yield node


def without_functions(tree: ast.Module) -> list[ast.stmt]:
    """Constants and tables: what stands at the top of a file."""
    return [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]


def test_no_behaviour_follows_from_a_name():
    """No name of an agent or domain is compared with, or looked up; none stands in a constant, where it need not."""
    found = set()
    for path, tree in TREES.items():
        file = path.relative_to(SOURCE).as_posix()
        if any(named_in(node) for node in without_functions(tree)):
            found.add(file)
        for node in looked_up(tree):
            assert not named_in(node), f"{path}:{ast.unparse(node)}"
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == "startswith":
                assert ast.unparse(node.value) not in ("agent", "self.agent", "config.agent"), path
    assert found == set(MAY_NAME)


@pytest.mark.parametrize(
    "source",
    [
        "def f(life):\n    return life.agent == 'stl'",
        "def f(life):\n    return life.agent in ('stl', 'mtl')",
        "def f(life):\n    match life.agent:\n        case 'stl':\n            pass",
        "def f(life):\n    return {'pc': 3.2}.get(life.agent)",
        "ALONE = 'stl'",
        "SLOWER: dict[str, float] = {'pc': 3.2}",
        "RATES = {('robot', 'fast'): 1}",
    ],
)
def test_the_search_for_names_finds(source: str):
    tree = ast.parse(source)
    assert any(named_in(node) for node in (*without_functions(tree), *looked_up(tree)))


@pytest.mark.parametrize(("word", "home"), [("Grid2D", "domains/grid2d"), ("RobotLift", "domains/robot")])
def test_domains_are_named_only_at_home(word: str, home: str):
    """Besides the tables that say where to find them, as text."""
    for path, tree in TREES.items():
        if str(path.relative_to(SOURCE)).startswith(home):
            continue
        used = {getattr(node, "id", None) or getattr(node, "attr", None) for node in ast.walk(tree)}
        imported = {a.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for a in node.names}
        assert word not in used | imported, path


def test_imports_have_no_cycle():
    """At the top of files; what is imported inside functions may point anywhere that the layers allow."""
    graph: dict[str, set[str]] = {}
    for path in FILES:
        module = ".".join(["modlife", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")
        graph[module] = {
            found
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("modlife")
            for found in [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        }
    seen: dict[str, int] = {}

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " -> ".join((*way, module))
        if module in graph and not seen.get(module):
            for other in graph[module] & set(graph) - {module}:
                visit(other, (*way, module))
            seen[module] = 1

    for module in graph:
        visit(module, ())


def test_every_table_says_what_its_entries_are():
    for table in TABLES.values():
        for entry in table:
            assert entry.about and not entry.about.endswith("."), entry
            targets = [
                value for value in vars(entry).values() if isinstance(value, str) and re.match(r"[\w.]+:\w", value)
            ]
            needs = getattr(entry, "needs", ())
            assert targets or callable(getattr(entry, "tasks", None))
            if not needs:
                assert all(resolve(target) is not None for target in targets)


def test_shapes_are_checked_in_every_learner(pytestconfig: pytest.Config):
    """Not in their configs, where users' values enter: that is where sentences are under test."""
    checked = str(pytestconfig.getoption("--jaxtyping-packages")).split(",")
    learners = {f"modlife.learners.{path.stem}" for path in SOURCE.glob("learners/[a-z]*.py")}
    assert len(learners) > 10 and learners - set(checked) == {"modlife.learners.config"}


def test_the_front_door_is_typed_and_documented():
    for name in modlife.__all__:
        function = getattr(modlife, name)
        assert function.__doc__ and "return" in function.__annotations__
