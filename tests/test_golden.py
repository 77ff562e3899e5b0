"""Nothing that was right changed: small lives give the metrics that commit 186938a gave.

The files of `data/golden` were written by that commit, compiled as the tests are (`conftest.py`), and their hashes
recorded, on the processor and with versions named below (its `modlife train` with `--horizon 16` and the other settings
of `lives.small`). There, every byte must be the same. Elsewhere compiled
arithmetic rounds differently in the last bits: records must then be the same but for numbers, and those nearly.
"""

import hashlib
import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lives import Lived

from modlife.runs.provenance import processor

GOLDEN = Path(__file__).parent / "data" / "golden"
RECORDED_ON = ("AMD EPYC", "0.10.2", "2.4.6")
"""Processor, jaxlib, NumPy."""
HASHES = {
    "comp-search": "173830a6f86c38644364809878540afdee783857b6a40d116f0a1b714008457f",
    "comp-search-nc": "05de206ed6a4d261c8112ea1d198a0cb6e783d68aa5cb8048b473afec2a922da",
    "comp-struct": "07f6097488b334fd5d5825de845ec6aa6925aee8a9af332b816e882ca10abdb5",
    "mtl": "29aad89f66e5732890d5867c5ac8c916c509b3d064e26b30eaea8f6ef36ac9cc",
    "mtl-chain": "4a21fb9b48797f8ac3a63fc437c132f5a604546cc48a8f3bee114c2ba5f6e5ed",
    "mtl-monolithic": "a5b39e1c2d35b0a5416c06282382289025be35684b24839eac3fcde0cca954c8",
    "stl": "c64831ba1699e97a695edd2e9f2e08f9c794f54dbf6d3f9df536ee6e5414ee14",
}


def here() -> tuple[str, ...]:
    return (processor(), *(importlib.metadata.version(name) for name in ("jaxlib", "numpy")))


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
    assert hashlib.sha256((GOLDEN / f"{agent}.jsonl").read_bytes()).hexdigest() == HASHES[agent]


@pytest.mark.parametrize("agent", HASHES)
def test_a_small_life_gives_the_metrics_that_it_always_gave(lives: Callable[[str], Lived], agent: str):
    found, recorded = (lives(agent).path / "metrics.jsonl").read_bytes(), (GOLDEN / f"{agent}.jsonl").read_bytes()
    if here() == RECORDED_ON:
        assert hashlib.sha256(found).hexdigest() == HASHES[agent]
    for one, other in zip(found.splitlines(), recorded.splitlines(), strict=True):
        assert nearly(json.loads(one), json.loads(other)), (one, other)
