"""A package outside modlife adds a domain, an agent, a consolidator, a search and a figure; and everything works.

The package is `drill`, beside this file, written by following docs/extending.md. It is installed for the processes
here as any package is: its metadata has an entry point.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from nursery import Child
from PIL import Image
from terminal import End
from test_kill import assert_newest_is_intact, ended, living, newest, phase, results, strike

HERE = Path(__file__).parent
EXTENDING = HERE.parent / "docs" / "extending.md"
SMALL = {"domain": "reach", "steps": 400, "episodes": 4, "ppo.envs": 4, "ppo.length": 25, "ppo.minibatch": 50}
OWN = {"modules": 2, "tasks": 5, "search": "some", "search.count": 4, "offline": "cloning", "replay-size": 200}
LIVES = {"comp-search": SMALL | OWN, "carry-on": SMALL | {"tasks": 3}}

SEVERAL = """
import dataclasses, json, sys
from terminal import command
print(json.dumps([dataclasses.asdict(command(*line.split())) for line in sys.argv[1:]]))
"""

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Installed:
    """A folder in which the package is installed, for processes that are started here."""

    folder: Path

    def run(self, *commands: str) -> list[End]:
        """Several commands one after the other, in one process."""
        out = subprocess.run(
            [sys.executable, "-c", SEVERAL, *commands],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment(HERE),
        )
        assert out.returncode == 0, out.stderr
        return [End(**end) for end in json.loads(out.stdout)]

    def start(self, arguments: str) -> Child:
        return Child(*arguments.split(), cwd=self.folder, env=self.environment())

    def environment(self, *paths: Path) -> dict[str, str]:
        every = (self.folder / "site", *paths, os.environ.get("PYTHONPATH", ""))
        return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, every))}


def begin(agent: str, out: Path) -> str:
    options = " ".join(f"--{name} {value}" for name, value in LIVES[agent].items())
    return f"train --agent {agent} {options} --save-every 0 --out {out}"


def go_on(out: Path) -> str:
    return f"train --resume --save-every 0 --out {out}"


def install(folder: Path) -> Installed:
    site = folder / "site"
    shutil.copytree(HERE / "drill", site / "drill", ignore=shutil.ignore_patterns("__pycache__"))
    metadata = site / "drill-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: drill\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[modlife]\ndrill = drill\n")
    return Installed(folder)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """With a life of each kind, lived to its end."""
    home = install(tmp_path_factory.mktemp("drill"))
    for end in home.run(*(begin(agent, home.folder / agent) for agent in LIVES)):
        assert end.code == 0, end.err
    return home


def test_everything_is_listed_with_its_options(installed: Installed):
    text, data, options = (
        end.out
        for end in installed.run(
            "list --domain reach",
            "list --json",
            "train --help --domain reach --offline cloning --search some",
        )
    )
    assert "domain reach: 3 x 3 = 9 tasks, 2 numbers to act" in text
    for name in ("reach", "carry-on", "cloning", "some", "finals"):
        assert re.search(rf"^  {name} ", text, re.MULTILINE), name
    every = json.loads(data)
    tables = (every[kind] for kind in ("domains", "agents", "consolidators", "searches", "figures"))
    assert {"reach", "carry-on", "cloning", "some", "finals"} <= {name for table in tables for name in table}
    assert (
        "--world.speed" in options and "--search.count" in options and "How far an action moves the point." in options
    )
    assert "--world.colour-count" not in options and "--offline.td-weight" not in options


@pytest.mark.parametrize(("agent", "kills"), [("comp-search", 10), ("carry-on", 2)])
def test_a_life_killed_at_random_moments_ends_with_the_same_bytes(
    installed: Installed, tmp_path: Path, agent: str, kills: int
):
    run, rng, phases = tmp_path / "life", random.Random(0), list[str | None]()
    while True:
        with living(installed.start(go_on(run) if run.exists() else begin(agent, run))) as process:
            enough = len(phases) >= kills
            end = ended(process) if enough else strike(process, run, processes=len(phases), rng=rng)
        if end.code == 0:
            break
        assert end.code == -signal.SIGKILL, end.err
        phases.append(phase(run))
        if newest(run) >= 0:
            assert_newest_is_intact(run)
    assert len(phases) == kills
    assert results(run) == results(installed.folder / agent)


def test_a_life_went_through_the_packages_search_and_consolidator(installed: Installed):
    lines = (installed.folder / "comp-search/metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    searched = [record for record in records if record["kind"] == "structure" and record["how"] == "searched"]
    assert [len(record["returns"]) for record in searched] == [4, 4, 4]
    offline = [record for record in records if record["kind"] == "offline"]
    assert offline and all(set(record) == {"kind", "epoch", "tasks", "likelihood", "stage"} for record in offline)


def test_it_is_evaluated_filmed_drawn_and_benchmarked(installed: Installed):
    evaluated, refused, played, sheet, graph, figure, speed = installed.run(
        "eval comp-search --episodes 5 --json",
        "eval comp-search --acting boltzmann",
        "play carry-on --episodes 1 --out film.gif",
        "list --domain reach --picture tasks.png",
        "graph --domain reach --task east/plain --out graph.svg",
        "figure finals comp-search carry-on --out finals.png",
        "bench search --domain reach --seconds 0.05",
    )
    record = json.loads(evaluated.out)
    assert len(record["tasks"]) == 5 and record["acting"] == "actor" and len(record["structure"]) == 5
    assert refused.code == 2 and "takes a critic with a value per action" in refused.err
    assert re.match(r"carry-on in \w+/\w+: mean return ", played.out)
    with Image.open(installed.folder / "film.gif") as film:
        assert getattr(film, "n_frames", 1) > 5
    assert [sheet.code, graph.code, figure.code] == [0, 0, 0]
    assert "path of east/plain" in (installed.folder / "graph.svg").read_text()
    table = (installed.folder / "finals.csv").read_text().splitlines()
    assert len(table) == 1 + 5 + 3
    records = [json.loads(line) for line in speed.out.splitlines()]
    assert [record["domain"] for record in records] == ["reach", "reach"] and records[0]["value"] > 0


def test_a_package_that_cannot_be_loaded_is_named(tmp_path: Path):
    home = install(tmp_path)
    (tmp_path / "site/drill/__init__.py").write_text("import no_such_thing\n")
    end = ended(home.start("list"))
    assert end.code == 2
    assert end.err == (
        "modlife: The plugin 'drill' of package 'drill' cannot be loaded: No module named 'no_such_thing'.\n"
    )


def test_the_page_on_extending_shows_the_package_word_for_word():
    blocks = re.findall(r"```python\n(.*?)```", EXTENDING.read_text(), re.DOTALL)
    sources = [path.read_text() for path in (HERE / "drill").glob("*.py")]
    assert len(blocks) >= 5
    for block in blocks:
        assert any(block in source for source in sources), block[:200]
