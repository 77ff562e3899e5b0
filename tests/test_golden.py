"""Nothing that was right changed: small lives give the metrics that commit 186938a gave.

The files of `data/golden` were written by that commit, compiled as the tests are (`conftest.py`), and their hashes
recorded, on the processor and with versions named below. There, every byte must be the same. Elsewhere compiled
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
    "comp-search": "1ad778b3baf6f4b6464fedd2fc4b1582abbc765c4d21139dbabe67628e0070d8",
    "comp-search-nc": "f09a9e9db66a24c9df05c21faac047fd57f0be9b58e9e7498f1885a85ea383c2",
    "comp-struct": "e0f4d23af0bc089eab584bc0e98e4dd215754e6b355fe1a6fede73f17e5bb3f2",
    "mtl": "926d078b0415d15e99f6c17b015aa713c917d66964f851cfc50563bae25499a0",
    "mtl-chain": "50ce2730183c0efe0d6a64d99cded1c376ca01388936728b799c7ce569782c61",
    "mtl-monolithic": "9f4e3081dce044cf49e3dd167e81d5095aab990646e03ba02169ced7a243f78d",
    "stl": "4014a8e8e9854b642409263b57a39d653a82176c5a1aa29658a5e97a52b7cbed",
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
