"""The agent that comes with the package: whole, small, and good at tasks that it never trained on."""

import subprocess
import tomllib
from pathlib import Path

import jax
import pytest
from PIL import Image
from terminal import command

import modlife
from modlife.domains.domain import DOMAINS
from modlife.runs.load import Run
from modlife.runs.shipped import SHIPPED
from modlife.runs.store import RunDirectory

UNTRAINED = 0.15
"""Nearly twice what networks get that have learnt nothing: .09 (`modlife eval --unseen`)."""


@pytest.fixture(scope="module")
def agent() -> Run:
    return modlife.load()


def test_it_is_whole_and_under_a_megabyte():
    run = RunDirectory.open(SHIPPED)
    assert run.is_sealed and run.has_ended and run.remarks() == []
    assert sum(path.stat().st_size for path in SHIPPED.rglob("*") if path.is_file()) < 1_000_000
    assert run.manifest()["git"]["dirty"] is False and not any("/" in word for word in run.manifest()["command"])
    summary = run.summary()
    assert summary is not None and summary["tasks"] == 48 and summary["seen"]["mean_return"] > 0.75


def test_it_knows_its_structures_and_has_never_met_a_quarter_of_the_tasks(agent: Run):
    world = DOMAINS[agent.domain.name].usual_world()
    assert agent.config.world == world and len(agent.tasks) == len(agent.structures) == 48
    assert set(agent.tasks) | set(agent.unseen) == set(world.graph.tasks) and len(agent.unseen) == 16
    seen = [{task.components[depth] for task in agent.tasks} for depth in range(3)]
    assert all(component in seen[depth] for task in agent.unseen for depth, component in enumerate(task.components))


def test_it_solves_tasks_that_it_never_trained_on_without_learning(agent: Run):
    """Modules of other tasks, put together by trying them, do several times as well as untrained ones."""
    before, some = agent.state, agent.unseen[5::5]
    record = agent.evaluate(some, episodes=40)
    assert min(record["return"]) > UNTRAINED and record["mean_return"] > 4 * UNTRAINED
    assert agent.state is before and len(agent.tasks) == 48
    assert record["structure"] == [agent.found[task] for task in some]
    fresh = agent.untrained.evaluate(some, episodes=40)
    assert 0 < fresh["mean_return"] < UNTRAINED and fresh["structure"] == record["structure"]
    plain = agent.evaluate(some, episodes=40, by_components=True)
    assert plain["structure"] == plain["expected"] and plain["mean_return"] < record["mean_return"]


def test_what_a_search_finds_is_the_same_each_time_and_used_to_act(agent: Run):
    task = agent.unseen[5]
    again = Run(agent.path, agent.config, agent.agent, agent.state)
    assert again.found == {} and again.search(task) == agent.search(task) is not None
    structure = agent.search(task)
    pairs = zip(jax.tree.leaves(agent.policy(task)), jax.tree.leaves(agent.modules.pick(structure)), strict=True)
    assert all(bool((one == other).all()) for one, other in pairs)
    assert agent.search(agent.tasks[0]) is None


def test_eval_and_play_use_it_when_no_run_is_named(tmp_path: Path):
    table = command("eval", "--task", "floor/purple/dynamics-3", "floor/purple/dynamics-0", "--episodes", "40")
    assert table.code == 0 and "has learnt 48 of the 64 tasks of 'grid2d'" in table.err
    assert table.out.splitlines()[-1].startswith("On 1 of these 2 tasks it was never trained: it tried combinations")
    mean, untrained = table.out.splitlines()[3:5]
    assert float(mean.split()[1]) > 5 * float(untrained.split()[1]) > 0 and len(untrained) <= 80
    assert untrained.startswith("untrained ") and untrained.endswith("  this agent before it learnt anything")
    film = command("play", "--task", "floor/purple/dynamics-3", "--episodes", "1", "--out", "a.gif", cwd=tmp_path)
    assert (
        film.out.startswith("the agent in floor/purple/dynamics-3: mean return 0.") and "goal met in 1 of 1" in film.out
    )
    with Image.open(tmp_path / "a.gif") as frames:
        assert frames.size == (256, 316) and getattr(frames, "n_frames", 1) > 2  # with lines of text below the grid


def test_the_wheel_has_it():
    """All of the package's folder is packed, but for what git ignores."""
    root = Path(__file__).parent.parent
    packed = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    files = [str(path.relative_to(root)) for path in SHIPPED.rglob("*") if path.is_file() and path.name != "lock"]
    assert all(any(name.startswith(f"{folder}/") for folder in packed["only-include"]) for name in files)
    ignored = subprocess.run(["git", "check-ignore", "--no-index", *files], cwd=root, capture_output=True, text=True)
    assert len(files) == 6 and ignored.stdout == ""
