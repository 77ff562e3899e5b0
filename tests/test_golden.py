"""Nothing that was right changed: small lives give the metrics that commit 186938a gave.

The files of `data/golden` were written by that commit (`modlife train --size 5 --horizon 16` and the other settings of
`lives.small`), compiled as the tests are (`conftest.py`, XLA's flags included). Compiled arithmetic rounds differently
in the last bits from processor to processor, so that commit's hashes are recorded from several. On those named below
every byte must be the same. Elsewhere records must be the same but for numbers, and those nearly.
"""

import hashlib
import importlib.metadata
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lives import Lived

from modlife.runs.provenance import processor

GOLDEN = Path(__file__).parent / "data" / "golden"
RECORDED_ON = {
    ("AMD EPYC", "25", "1", "1", "0.10.2", "2.4.6"),
    ("AMD EPYC", "26", "2", "1", "0.10.2", "2.4.6"),
}
"""Processor (name, family, model, stepping), jaxlib, NumPy; of an earlier recording only the name is known."""
HASHES = {
    "comp-search": {
        "164fb4f17b0a64dd94b9bb2ab84dda59f37e239a6d40a0dd08bdcf075d69c7fd",
        "eeb11e2cd4d2d6a3af280d62651cedfaa9caf2a24941657a8093ca6eb8d5044f",
    },
    "comp-search-nc": {"18a875efe36905416b6f4a3fccb5a2af0734235525fd8e22b0cc1b59fb0f9f9a"},
    "comp-struct": {
        "0b7c7e53bd2c3bb3d8d05a420ec6260d5afe7f2597f2e0f2443426ef556b4024",
        "c9a252cc36089c8d3b951f774c4eb72c5eeb8bfb2c2a81d83f78dd891519473d",
    },
    "mtl": {"596e16f01ce990aca838dd2e0e6cd0d36370a77251ad0f84d57fb083f5620c1f"},
    "mtl-chain": {"99c19397edaf38f9b06904b327a521ad84f4648bfec2e93a486634cf1f5a5d0c"},
    "mtl-monolithic": {"4096976d410e9722190af78245506856618b9d085e268fba848e09c0342d25bc"},
    "stl": {"5b58b4298eca64280b179aef2106ee733e826cae49dd47c42e1110df5b90b503"},
}


def here() -> tuple[str, ...]:
    about = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    kind = (re.search(rf"^{name}\s*: (.*)$", about, re.MULTILINE) for name in ("cpu family", "model", "stepping"))
    versions = (importlib.metadata.version(name) for name in ("jaxlib", "numpy"))
    return (processor(), *(found[1] if found else "" for found in kind), *versions)


def nearly(one: Any, other: Any) -> bool:
    """The same but for numbers that are not whole, which differ by at most 0.02."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 0.02
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(nearly, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(nearly(one[key], other[key]) for key in one)
    return one == other


@pytest.mark.parametrize("agent", HASHES)
def test_the_files_are_those_that_were_recorded(agent: str):
    assert hashlib.sha256((GOLDEN / f"{agent}.jsonl").read_bytes()).hexdigest() in HASHES[agent]


@pytest.mark.parametrize("agent", HASHES)
def test_the_files_say_what_was_chosen_and_why(agent: str):
    """Nothing is the same whatever was done: structures differ in what they return, and so do tasks."""
    records = [json.loads(line) for line in (GOLDEN / f"{agent}.jsonl").read_text().splitlines()]
    assert any(any(record["return"]) for record in records if record["kind"] == "evaluation")
    searched = [record for record in records if record.get("how") == "searched"]
    assert all(len(set(record["returns"])) > 1 and any(record["structure"]) for record in searched)
    assert len(searched) == (2 if agent.startswith("comp-search") else 0)


@pytest.mark.parametrize("agent", HASHES)
def test_a_small_life_gives_the_metrics_that_it_always_gave(lives: Callable[[str], Lived], agent: str):
    found, recorded = (lives(agent).path / "metrics.jsonl").read_bytes(), (GOLDEN / f"{agent}.jsonl").read_bytes()
    if here() in RECORDED_ON:
        assert hashlib.sha256(found).hexdigest() in HASHES[agent]
    for one, other in zip(found.splitlines(), recorded.splitlines(), strict=True):
        assert nearly(json.loads(one), json.loads(other)), (one, other)
