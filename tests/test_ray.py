"""The same sweep on a Ray cluster of two machines, both of them here: the same bytes, and no life is lost."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_sweep import TINY, command, wait_for

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]' in the checkout of modlife")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A cluster of two machines with a core each."""
    from ray.cluster_utils import Cluster

    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_DISABLE_IMPORT_WARNING="1")
    small: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=small)
    try:
        cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
        yield str(cluster.address)
    finally:
        cluster.shutdown()


def killed(log: Path) -> None:
    """Kills the Ray worker of a life that has begun, as a machine that goes down does."""
    wait_for(lambda: (log.with_suffix("") / "manifest.json").exists())
    holder = next(log.with_suffix("").glob("lease-*.json")).read_text()
    process = int(holder.split('"process": ')[1].split(",")[0])
    with open(f"/proc/{process}/stat") as stat:
        os.kill(int(stat.read().rpartition(")")[2].split()[1]), signal.SIGKILL)


@pytest.mark.timeout(280)
@pytest.mark.filterwarnings("ignore")
def test_a_sweep_on_two_machines_gives_the_same_bytes_and_loses_no_life(tmp_path: Path, address: str):
    sweep = ["--agents", "stl", "--seeds", "0..1", "--out"]
    killer = threading.Thread(target=killed, args=(tmp_path / "there/stl-0.log",))
    killer.start()
    end = command("sweep", *sweep, "there", "--ray", address, "--", *TINY, cwd=tmp_path)
    killer.join()
    assert end.code == 0, end.err
    assert "stl-0 was stopped, and goes on" in end.err
    assert command("sweep", *sweep, "here", "--", *TINY, cwd=tmp_path).code == 0
    for name in ("stl-0", "stl-1"):
        one, other = ((tmp_path / place / name / "metrics.jsonl").read_bytes() for place in ("here", "there"))
        assert one == other and len(one) > 500


@pytest.mark.timeout(280)
@pytest.mark.filterwarnings("ignore")
def test_bad_input_is_not_tried_again(tmp_path: Path, address: str):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/stl-0").write_text("no directory")
    end = command("sweep", "--agents", "stl", "--out", "runs", "--ray", address, "--", *TINY, cwd=tmp_path)
    assert end.code == 1 and "did not end (exit code 2)" in end.err and "goes on" not in end.err
