"""How fast robot arms are simulated, beside the physics alone: the same episodes, in turn, in one process."""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import get_args

import numpy as np
from jaxtyping import Float

from modlife.domains.robot import control, control_numba
from modlife.domains.robot.engine import mujoco
from modlife.domains.robot.physics import QPOS, QVEL, WARMSTART, Physics
from modlife.domains.robot.world import ACTIONS, PresetName, RobotWorld
from modlife.timing import Record

ROBOSUITE = 188 / 1825
"""Steps of robosuite 1.5.2 for each of bare physics at 2 ms. It cannot live in one environment with JAX: these are the
middles of what was measured of both (179 to 197 and 1,685 to 1,966) on one machine (docs/performance.md)."""
TASK = "wall/can/Panda"
BATCH, LENGTH = 16, 25
REPEATS = 15


def robot(*, seconds: float) -> Iterator[Record]:
    """Steps per second of processor time on one core, for each preset."""
    limit = None
    for preset in get_args(PresetName):
        world = RobotWorld(preset=preset)
        ours, raw = episodes(world)
        rates = in_turn({"modlife": ours, "raw": raw}, seconds=seconds)
        record = {"bench": "env", "domain": "robot", "preset": preset, "batch": BATCH, "threads": 1}
        for case, values in rates.items():
            yield record | {"case": case, "value": round(statistics.median(values)), "unit": "steps/s"}
        shares = [one / most for one, most in zip(rates["modlife"], rates["raw"], strict=True)]
        yield record | {"case": "modlife / raw", "value": round(statistics.median(shares), 3), "unit": "times"}
        limit = limit or statistics.median(rates["raw"])
        against = statistics.median(rates["modlife"]) / (ROBOSUITE * limit)
        yield record | {"case": "modlife / robosuite 1.5.2", "value": round(against, 1), "unit": "times"}
        yield record | {"case": "reset", "value": round(reset_time(world) * 1e6, 1), "unit": "us"}
        cores = os.cpu_count() or 1
        yield record | {"threads": cores, "case": "modlife", "value": round(on_all(world, cores)), "unit": "steps/s"}


def reset_time(world: RobotWorld) -> float:
    """Seconds of processor time that a new episode takes."""
    physics, count = Physics(world), 1000
    tasks = np.tile(world.graph.indices(world.graph.parse(TASK)), (count, 1))
    draws = np.full((count, 3), 0.5)
    physics.start(tasks[:1], draws[:1])  # compiles
    start = time.process_time()
    physics.start(tasks, draws)
    return (time.process_time() - start) / count


def on_all(world: RobotWorld, workers: int) -> float:
    """Steps per second of wall time on several threads; the best of a few, for want of a quiet machine."""
    ours, _ = episodes(world, workers=workers)
    ours()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        ours()
        times.append(time.perf_counter() - start)
    return BATCH * LENGTH / min(times)


def in_turn(cases: dict[str, Callable[[], None]], *, seconds: float) -> dict[str, list[float]]:
    """Rates of several cases, measured in turn so that the machine treats them alike."""
    for run in cases.values():
        run()  # compiles
    rates: dict[str, list[float]] = {case: [] for case in cases}
    for _ in range(REPEATS):
        for case, run in cases.items():
            start, calls = time.process_time(), 0
            while (spent := time.process_time() - start) < seconds / REPEATS:
                run()
                calls += 1
            rates[case].append(BATCH * LENGTH * calls / spent)
    return rates


def episodes(world: RobotWorld, *, workers: int = 1) -> tuple[Callable[[], None], Callable[[], None]]:
    """The first second or so of some episodes with random actions: as the domain plays them, and as bare physics."""
    random = np.random.default_rng(0)
    physics = Physics(world, workers=workers)
    tasks = np.tile(world.graph.indices(world.graph.parse(TASK)), (BATCH, 1))
    start = physics.start(tasks, random.random((BATCH, 3))).rows
    actions = random.uniform(-1, 1, (LENGTH, BATCH, ACTIONS))

    def ours() -> None:
        rows = start
        for action in actions:
            rows = physics.step(tasks, rows, action).rows

    recorded = controls(world, tasks, start, actions)
    scene = physics.scene_of(tasks)
    data = mujoco.MjData(scene.model)

    def raw() -> None:
        for place in range(BATCH):
            data.qpos[:], data.qvel[:], data.qacc_warmstart[:] = (
                start[place, part] for part in (QPOS, QVEL, WARMSTART)
            )
            control_numba.replay(scene.model, data, recorded[place])

    return ours, raw


def controls(
    world: RobotWorld, tasks: np.ndarray, start: np.ndarray, actions: np.ndarray
) -> Float[np.ndarray, "E steps 9"]:
    """What the controller sends to the motors at each physics step."""
    sent: list[np.ndarray] = []

    def listening(model, data, drive, goal, fingers, closing) -> float:  # pyright: ignore[reportMissingParameterType]  # Advance
        for rate in drive.finger_rates:
            one = replace(drive, finger_rates=np.array([rate]))
            fingers = control.advance(model, data, one, goal, fingers, closing)
            sent.append(data.ctrl.copy())
        return fingers

    physics = Physics(world, advance=listening)
    rows = start
    for action in actions:
        rows = physics.step(tasks, rows, action).rows
    substeps = world.timing.substeps
    in_order = np.array(sent).reshape(LENGTH, BATCH, substeps, -1)
    return np.ascontiguousarray(in_order.swapaxes(0, 1).reshape(BATCH, LENGTH * substeps, -1))
