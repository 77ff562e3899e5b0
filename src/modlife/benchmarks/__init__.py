"""Benchmarks: records with a throughput each, for this machine."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from modlife.domains.domain import Domain
from modlife.errors import InputError
from modlife.registry import resolve
from modlife.runtime import start_jax
from modlife.timing import Record, rate

BATCHES = (1, 16, 256, 4096)

USUAL = "comp-struct"
"""The agent that others' online rates are shares of."""

LIVES = 8
"""Tiny lives of a sweep."""


def bench_env(domain: Domain, *, threads: int | None, seconds: float) -> Iterator[Record]:
    """Steps per second of a domain; and of what the domain is compared with."""
    if threads is not None:
        yield from bench_env_here(domain, threads=threads, seconds=seconds)
        return
    rivals = list(resolve(domain.bench)(seconds=seconds)) if domain.bench else []
    yield from rivals
    rival = next((record for record in rivals if record["case"] == "minigrid" and "value" in record), None)
    for count in sorted({1, os.cpu_count() or 1}):
        for record in in_new_process("env", domain, threads=count, seconds=seconds):
            yield record
            if rival and record["batch"] == BATCHES[-1]:
                ratio = round(record["value"] / rival["value"], 1)
                yield {**record, "case": "modlife / minigrid", "value": ratio, "unit": "times"}


def in_new_process(bench: str, domain: Domain, *, threads: int, seconds: float) -> Iterator[Record]:
    """The records of `modlife bench` run by another process: the number of threads is settled when JAX starts."""
    arguments = ["bench", bench, f"--domain={domain.name}", f"--threads={threads}", f"--seconds={seconds}"]
    with subprocess.Popen([sys.executable, "-m", "modlife", *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield from (json.loads(line) for line in process.stdout)
    if process.returncode:
        raise InputError(f"`modlife {' '.join(arguments)}` ended with exit code {process.returncode}.")


def bench_env_here(domain: Domain, *, threads: int, seconds: float) -> Iterator[Record]:
    """A domain at each batch size; the batch is divided over as many devices as there are threads."""
    start_jax(threads=threads)
    from modlife.benchmarks.programs import random_steps

    for batch in BATCHES:
        steps, run = random_steps(domain, batch=batch, devices=power_of_two(min(threads, batch)), seconds=seconds)
        speed = rate(run, steps, seconds=seconds)
        yield line("env", domain, round(speed), "steps/s", case="modlife", batch=batch, threads=threads)
        if steps / speed > 1:  # a call of a still larger batch would take many seconds
            return


def bench_ppo(domain: Domain, *, threads: int | None, seconds: float) -> Iterator[Record]:
    """Environment steps per second of complete PPO training, the lives side by side started together."""
    if threads is not None:
        yield from bench_ppo_here(domain, threads=threads, seconds=seconds)
        return
    cores = os.cpu_count() or 1
    for lives, each in sorted({(1, 1), (1, power_of_two(cores)), (cores, 1)}):
        processes = [in_new_process("ppo", domain, threads=each, seconds=seconds) for _ in range(lives)]
        with ThreadPoolExecutor(lives) as pool:
            results = list(pool.map(list, processes))
        for same in zip(*results, strict=True):
            yield {**same[0], "lives": lives, "value": sum(record["value"] for record in same)}


def bench_ppo_here(domain: Domain, *, threads: int, seconds: float) -> Iterator[Record]:
    """One life of single-task learning, in this process: whole updates, and their two parts by themselves."""
    start_jax(threads=threads)
    from modlife.benchmarks.programs import updates

    steps, parts = updates(domain, devices=threads)
    for case, run in parts.items():
        speed = rate(run, steps, seconds=seconds)
        yield line("ppo", domain, round(speed), "steps/s", case=case, lives=1, threads=threads)


def bench_search(domain: Domain, *, threads: int | None, seconds: float) -> Iterator[Record]:
    """Environment steps per second of a structure search: all structures, 10 episodes each, one thread."""
    start_jax(threads=threads or 1)
    from modlife.benchmarks.programs import searching

    structures, steps, run = searching(domain)
    speed, what = rate(run, steps, seconds=seconds), {"case": f"{structures} structures x 10 episodes"}
    yield line("search", domain, round(speed), "steps/s", **what, threads=threads or 1)
    yield line("search", domain, round(steps / speed, 3), "s", **what, threads=threads or 1)


def bench_offline(domain: Domain, *, threads: int | None, seconds: float) -> Iterator[Record]:
    """Sample-passes per second of the offline phase, and the time of a whole one, by the number of tasks in it."""
    if threads is None:
        for count in sorted({1, power_of_two(os.cpu_count() or 1)}):
            yield from in_new_process("offline", domain, threads=count, seconds=seconds)
        return
    start_jax(threads=threads)
    from modlife.benchmarks.programs import offline

    for phase in offline(domain, devices=threads):
        speed = rate(phase.run, phase.samples, seconds=seconds)
        what = {"case": phase.case, "tasks": phase.tasks, "threads": threads}
        yield line("offline", domain, round(speed), "samples/s", **what)
        yield line("offline", domain, round(phase.whole / speed, 1), "s/phase", **what)


def bench_life(domain: Domain, *, threads: int | None, seconds: float) -> Iterator[Record]:
    """A whole small life of comp-search, by phase: 6 tasks of 100,000 steps; compilation included."""
    threads = threads or 1
    start_jax(threads=threads)
    from modlife.runs.config import life_from_options
    from modlife.runs.life import run_life

    config = life_from_options("comp-search", domain.name, {"tasks": 6, "steps": 100_000})
    with tempfile.TemporaryDirectory() as folder:
        summary = run_life(config, Path(folder) / "life", devices=threads)
    what = {"threads": threads, "tasks": 6, "steps": config.steps}
    for phase, value in summary["wall_seconds"].items():
        yield line("life", domain, value, "s", **what, case=phase)
    yield line("life", domain, summary["seconds"], "s", **what, case="whole")
    yield line("life", domain, summary["steps_per_second"], "steps/s", **what, case="whole")


def bench_agents(domain: Domain, *, threads: int | None, seconds: float) -> Iterator[Record]:
    """Environment steps per second of each agent's online phase, beside old tasks, and its share of comp-struct's."""
    start_jax(threads=threads or 1)
    from modlife.benchmarks.programs import online_rate
    from modlife.lifelong.agents import AGENTS

    usual = None
    for agent in (USUAL, *(name for name in AGENTS.names if name != USUAL)):
        what = {"agent": agent, "threads": threads or 1}
        try:
            speed = online_rate(domain, agent, devices=threads or 1)
        except InputError as error:
            yield {"bench": "agents", "domain": domain.name, **what, "refused": str(error)}
            continue
        usual = speed if agent == USUAL else usual
        ratio = {"share": round(speed / usual, 3)} if usual else {}
        yield line("agents", domain, round(speed), "steps/s", **what, **ratio)


def bench_sweep(domain: Domain, *, threads: int | None, seconds: float) -> Iterator[Record]:
    """Tiny lives, each a process: one after the other, then as many at once as there are cores; programs compiled."""
    from modlife.runs.config import life_from_options
    from modlife.runs.many import Planned, live_all

    config, took = life_from_options("stl", domain.name, {"tasks": 2, "steps": 50_000}), {}
    processes = threads or os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        for case, at_once, count in (("before", 1, 1), ("in turn", 1, LIVES), ("at once", processes, LIVES)):
            lives = [Planned(replace(config, seed=seed), Path(folder) / case / f"{seed}") for seed in range(count)]
            begun = time.perf_counter()
            if failed := live_all(lives, at_once=at_once, tell=lambda _: None):
                raise InputError(str(failed[0]))
            took[case] = time.perf_counter() - begun
            if count > 1:
                what = {"case": case, "lives": count, "processes": at_once}
                yield line("sweep", domain, round(took[case], 1), "s", **what)
    ratio = round(took["in turn"] / took["at once"], 2)
    yield line("sweep", domain, ratio, "times", case="in turn / at once", lives=LIVES, processes=processes)


def line(bench: str, domain: Domain, value: float, unit: str, **more: Any) -> Record:
    """A record: of what, how much."""
    return {"bench": bench, "domain": domain.name, **more, "value": value, "unit": unit}


def power_of_two(most: int) -> int:
    """The largest power of two up to `most`: batches and minibatches can be divided by it evenly."""
    return 1 << (most.bit_length() - 1)


BENCHES = {
    "env": bench_env,
    "ppo": bench_ppo,
    "search": bench_search,
    "offline": bench_offline,
    "life": bench_life,
    "agents": bench_agents,
    "sweep": bench_sweep,
}
