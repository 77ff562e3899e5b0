"""Files import from their own layer or from those before it, and light modules stay light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import modlife
from modlife.cli.main import COMMANDS

SOURCE = Path(modlife.__file__).parent
LAYERS = ["errors", "types", "arrays", "checks", "registry", "pauses", "memory", "runtime", "timing", "metrics"]
LAYERS += ["domains", "policies", "learners", "lifelong", "runs", "analysis", "exports", "benchmarks", "tables", "cli"]
LIGHT = ("main", *COMMANDS)
FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem in LAYERS)


def layer(path: Path) -> int:
    return LAYERS.index(path.relative_to(SOURCE).parts[0].removesuffix(".py"))


def imported_layers(path: Path) -> list[int]:
    tree = ast.parse(path.read_text())
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return [LAYERS.index(name.split(".")[1]) for name in names if name.startswith("modlife.")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_to_earlier_layers(path: Path):
    assert all(other <= layer(path) for other in imported_layers(path))


@pytest.mark.parametrize(
    "module",
    ["modlife", "modlife.cli.main", "modlife.cli.list", "modlife.cli.graph", "modlife.cli.train", "modlife.tables"],
)
def test_light_modules_do_not_load_jax(module: str):
    code = f"import sys, {module}; print([name for name in ('jax', 'matplotlib', 'minigrid') if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
