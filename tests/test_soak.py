"""Every trial of `scripts/soak.py`, in small: what it tries holds, and it counts what it tried."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "scripts"))

import soak
from trials.bench import Bench, Tally
from trials.table import TRIALS

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def bench(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A bench with the lives that all tests share."""
    return Bench(tmp_path, tmp_path_factory.getbasetemp())


def tried(bench: Bench, name: str, *units: str) -> Tally:
    """What some units of a trial come to together; none fails."""
    whole = Tally()
    for unit in units:
        one = TRIALS[name].run(bench, unit)
        assert one.failures == []
        whole.trials += one.trials
        whole.seen += one.seen
        whole.seconds += one.seconds
    return whole


def test_kills(bench: Bench):
    tally = tried(bench, "kills", "3x1")  # stl
    assert tally.trials <= 1 and tally.seen["lives that ended"] == 1  # on a fast machine it may end before the kill


def test_signals(bench: Bench):
    tally = tried(bench, "signals", "5x1")  # ewc
    assert tally.trials == len(tally.seconds) <= 1  # on a fast machine the life may end before the signal


def test_bits(bench: Bench):
    tally = tried(bench, "bits", *TRIALS["bits"].units("1/900"))
    assert tally.trials > 150
    assert len(tally.seen) == 7  # files


@pytest.mark.parametrize("unit", ["1x40", "18x40"])  # comp-search, running; stl, finished
def test_damage(bench: Bench, unit: str):
    tally = tried(bench, "damage", unit)
    assert tally.trials == 40
    assert tally.seen["readings refused"] > 20 and tally.seen["readings with a value"] > 20


FAULTS = (
    *("stl create EACCES 0", "comp-search save EIO 5", "stl finish ENOSPC 1"),
    *("stl resume EIO 0", "stl eval EMFILE 0", "stl figure EIO 0"),
)
"""Parts of the calls of operations that write, and of those that read."""


def test_faults(bench: Bench):
    assert tried(bench, "faults", *FAULTS).trials > 25


def test_power(bench: Bench):
    tally = tried(bench, "power", "3x100")  # stl
    assert tally.trials == 100
    assert len(tally.seen) >= 3  # before and after each promise


def test_races(bench: Bench):
    assert tried(bench, "races", "0x10").trials == 10


def test_fuzz(bench: Bench):
    assert tried(bench, "fuzz", "0x25", "2x25").trials == 50


def test_the_table_adds_up_what_was_tried(tmp_path: Path):
    ledger = soak.Ledger(tmp_path / "results.jsonl")
    line = {"trial": "kills", "seed": 0, "took": 1.0, "commit": "abc", "seen": {"a": 1}, "seconds": [], "failures": []}
    for unit, trials, failures in (("0", 15, []), ("1", 14, ["it is gone"]), ("1", 14, ["it is gone"])):
        ledger.add({**line, "unit": unit, "trials": trials, "failures": failures})
    (row,) = soak.table(ledger.lines(), TRIALS)
    assert (row.trials, row.failures, row.seen, row.took) == (29, 1, {"a": 2}, 2.0)
    assert soak.markdown([row]).splitlines()[2].endswith(" | 29 kills | 1 |")
    assert row.failed == ["unit 1, seed 0: it is gone"]
