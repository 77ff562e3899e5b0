"""What the README shows works as it stands there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("code", BLOCKS, ids=range(len(BLOCKS)))
def test_code_blocks_run(code: str):
    exec(compile(code, "README.md", "exec"), {})


def test_it_is_short_and_its_links_lead_somewhere():
    assert len(README.splitlines()) < 140
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert len(links) >= 4
    assert all((ROOT / link).exists() for link in links)


def test_the_demo_runs_commands_that_exist():
    from modlife.cli.main import COMMANDS

    used = re.findall(r"\$\(BIN\)/modlife (\w+)", (ROOT / "Makefile").read_text())
    assert set(used) <= set(COMMANDS)
    assert used
