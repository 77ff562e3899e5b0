"""Benchmarks: records with a throughput each, for this machine."""

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from modlife.domains.grid2d.spec import World
from modlife.errors import InputError
from modlife.runtime import start_jax

Record = dict[str, Any]

BATCHES = (1, 16, 256, 4096)
REPEATS = 5
"""A case is timed in this many pieces; the median counts."""
TASK = "lava/red/dynamics-0"


def bench_env(*, threads: int | None, seconds: float, domain: str = "grid2d") -> Iterator[Record]:
    """Steps per second of a domain; of the 2-D world also on minigrid, of the robot also of physics alone."""
    if domain == "robot":
        from modlife.experiments.bench_robot import bench_robot

        yield from bench_robot(seconds=seconds)
        return
    if threads is not None:
        yield from bench_env_here(threads=threads, seconds=seconds)
        return
    rival = bench_minigrid(seconds=seconds)
    yield rival
    for count in sorted({1, os.cpu_count() or 1}):
        for record in in_new_process(["env", f"--threads={count}", f"--seconds={seconds}"]):
            yield record
            if record["batch"] == BATCHES[-1] and "value" in rival:
                ratio = round(record["value"] / rival["value"], 1)
                yield {**record, "case": "modlife / minigrid", "value": ratio, "unit": "times"}


def in_new_process(arguments: list[str]) -> Iterator[Record]:
    """The records of `modlife bench` run by another process: the number of threads is settled when JAX starts."""
    command = [sys.executable, "-m", "modlife", "bench", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield from (json.loads(line) for line in process.stdout)
    if process.returncode:
        raise InputError(f"`modlife bench {' '.join(arguments)}` ended with exit code {process.returncode}.")


def bench_env_here(*, threads: int, seconds: float) -> Iterator[Record]:
    """Our world at each batch size; the batch is divided over as many devices as there are threads."""
    start_jax(threads=threads)
    from modlife.experiments.bench_env import random_steps

    for batch in BATCHES:
        steps, run = random_steps(World(), TASK, batch=batch, devices=power_of_two(min(threads, batch)))
        yield {
            **{"bench": "env", "domain": "grid2d", "case": "modlife", "batch": batch, "threads": threads},
            **{"value": round(rate(run, steps, seconds=seconds)), "unit": "steps/s"},
        }


def bench_ppo(*, threads: int | None, seconds: float) -> Iterator[Record]:
    """Environment steps per second of complete PPO training, the lives side by side started together."""
    if threads is not None:
        yield from bench_ppo_here(threads=threads, seconds=seconds)
        return
    cores = os.cpu_count() or 1
    for lives, each in sorted({(1, 1), (1, power_of_two(cores)), (cores, 1)}):
        arguments = ["ppo", f"--threads={each}", f"--seconds={seconds}"]
        processes = [in_new_process(arguments) for _ in range(lives)]
        with ThreadPoolExecutor(lives) as pool:
            results = list(pool.map(list, processes))
        for same in zip(*results, strict=True):
            yield {**same[0], "lives": lives, "value": sum(record["value"] for record in same)}


def bench_ppo_here(*, threads: int, seconds: float) -> Iterator[Record]:
    """One life of single-task learning, in this process: whole updates, and their two parts by themselves."""
    start_jax(threads=threads)
    from modlife.experiments.bench_ppo import training

    steps, parts = training(World(), TASK, devices=threads)
    for case, run in parts.items():
        yield {
            **{"bench": "ppo", "domain": "grid2d", "case": case, "lives": 1, "threads": threads},
            **{"value": round(rate(run, steps, seconds=seconds)), "unit": "steps/s"},
        }


def bench_search(*, threads: int | None, seconds: float) -> Iterator[Record]:
    """Environment steps per second of a structure search: all 64 structures, 10 episodes each, one thread."""
    start_jax(threads=threads or 1)
    from modlife.experiments.bench_offline import searching

    steps, run = searching(World(), TASK)
    record = {"bench": "search", "domain": "grid2d", "case": "64 structures x 10 episodes", "threads": threads or 1}
    speed = rate(run, steps, seconds=seconds)
    yield record | {"value": round(speed), "unit": "steps/s"}
    yield record | {"value": round(steps / speed, 3), "unit": "s"}


def bench_offline(*, threads: int | None, seconds: float) -> Iterator[Record]:
    """Sample-passes per second of the offline stage, by the number of tasks in it."""
    if threads is None:
        for count in sorted({1, power_of_two(os.cpu_count() or 1)}):
            yield from in_new_process(["offline", f"--threads={count}", f"--seconds={seconds}"])
        return
    start_jax(threads=threads)
    from modlife.experiments.bench_offline import offline

    for tasks, samples, run in offline(World(), devices=threads):
        yield {
            **{"bench": "offline", "domain": "grid2d", "case": "bcq", "tasks": tasks, "threads": threads},
            **{"value": round(rate(run, samples, seconds=seconds)), "unit": "samples/s"},
        }


def bench_life(*, threads: int | None, seconds: float) -> Iterator[Record]:
    """A whole small life of comp-search, by phase: 6 tasks of 100,000 steps; compilation included."""
    threads = threads or 1
    start_jax(threads=threads)
    from modlife.experiments.config import LifeConfig
    from modlife.experiments.life import Progress, run_life

    config = LifeConfig(agent="comp-search", tasks=6, steps=100_000)
    with tempfile.TemporaryDirectory() as folder:
        summary = run_life(config, Path(folder) / "life", progress=Progress(), devices=threads)
    record = {"bench": "life", "domain": "grid2d", "threads": threads, "tasks": 6, "steps": config.steps}
    for phase, value in summary["wall_seconds"].items():
        yield record | {"case": phase, "value": value, "unit": "s"}
    yield record | {"case": "whole", "value": summary["seconds"], "unit": "s"}
    yield record | {"case": "whole", "value": summary["steps_per_second"], "unit": "steps/s"}


def bench_minigrid(*, seconds: float) -> Record:
    """The same task on Farama's minigrid, one environment, seven channels."""
    record: Record = {"bench": "env", "domain": "grid2d", "case": "minigrid", "batch": 1, "threads": 1}
    if importlib.util.find_spec("minigrid") is None:
        return record | {"skipped": "minigrid is not installed: pip install 'modlife[minigrid]'"}
    from modlife.domains.grid2d.farama import FaramaGrid2D

    static, target, dynamics = TASK.split("/")
    env = FaramaGrid2D(static, target, int(dynamics.removeprefix("dynamics-")), world=World())
    env.reset(seed=0)
    env.action_space.seed(0)

    def run() -> None:
        for _ in range(500):
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                env.reset()

    return record | {"value": round(rate(run, 500, seconds=seconds)), "unit": "steps/s"}


def power_of_two(most: int) -> int:
    """The largest power of two up to `most`: batches and minibatches can be divided by it evenly."""
    return 1 << (most.bit_length() - 1)


def rate(run: Callable[[], object], steps: int, *, seconds: float) -> float:
    """Steps per second of a function that does `steps` of them: the median over pieces of equal length."""
    run()  # compiles
    rates = []
    for _ in range(REPEATS):
        start, calls = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - start) < seconds / REPEATS:
            run()
            calls += 1
        rates.append(steps * calls / elapsed)
    return statistics.median(rates)


BENCHES = {
    "env": bench_env,
    "ppo": bench_ppo,
    "search": bench_search,
    "offline": bench_offline,
    "life": bench_life,
}
