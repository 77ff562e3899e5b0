"""One life, from its config to its run directory; and the rest of one that was interrupted."""

import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from modlife.errors import InputError
from modlife.experiments.agents import build
from modlife.experiments.checkpoints import PHASES, Description
from modlife.experiments.config import LifeConfig
from modlife.experiments.records import as_record, record_of
from modlife.experiments.restore import newest, tree_of
from modlife.experiments.store import RunWriter
from modlife.lifelong.compositional import Compositional, expected_or_none
from modlife.lifelong.evaluation import evaluate_tasks, wrong_structures
from modlife.lifelong.loop import Agent, AgentState, Chosen, Moment, evaluate_agent, live
from modlife.lifelong.multi_task import MultiTask
from modlife.policies.networks import Monolithic

FINAL = 10
"""The evaluation at the end has this many times the episodes of those on the way."""


class Progress:
    """What a life tells a person while it runs; the base class says nothing."""

    def moment(self, moment: Moment, stages: int) -> None:
        """Something was done."""

    def say(self, sentence: str) -> None:
        """Something out of the ordinary happened."""


class Stopped(Exception):
    """A life was asked to stop; it is saved."""

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.number = number


class Interrupts:
    """Turns signals into a wish to stop: the handler only notes it, and a second one ends the program at once."""

    def __init__(self) -> None:
        self.wish: int | None = None

    def __enter__(self) -> "Interrupts":
        self.before = {number: signal.signal(number, self.note) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def note(self, number: int, frame: Any) -> None:
        """Notes the wish; from now on signals do what they did before."""
        self.wish = number
        for other, handler in self.before.items():
            signal.signal(other, handler)

    def __exit__(self, *error: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


class Clock:
    """Seconds spent on each of `PHASES`, on the wall and of the processor, over all the processes of a life."""

    def __init__(self, wall: tuple[float, ...] = (), cpu: tuple[float, ...] = (), peak: float = 0.0):
        self.wall = list(wall) or [0.0] * len(PHASES)
        self.cpu = list(cpu) or [0.0] * len(PHASES)
        self.before, self.peak_before = (time.perf_counter(), time.process_time()), peak

    def tick(self, phase: str) -> None:
        """The time since the last tick was spent on a phase."""
        now, number = (time.perf_counter(), time.process_time()), PHASES.index(phase)
        self.wall[number] += now[0] - self.before[0]
        self.cpu[number] += now[1] - self.before[1]
        self.before = now

    @property
    def peak(self) -> float:
        """Most memory that a process of this life has held, in megabytes."""
        scale = 1 if sys.platform == "darwin" else 1024
        return max(self.peak_before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e6)


class Life:
    """A life that is being lived: its agent, its run directory, and when it was last saved."""

    def __init__(self, config: LifeConfig, run: RunWriter, *, devices: int, save_every: float, progress: Progress):
        self.config, self.run, self.progress, self.save_every = config, run, progress, save_every
        self.curriculum, self.agent = config.curriculum, build(config, devices=devices)
        self.clock, self.saved = Clock(), time.perf_counter()

    def resume(self) -> Moment | None:
        """Where the life stands; None if it was killed before anything was saved."""
        if not self.run.checkpoints.numbers():
            if any(True for _ in self.run.metrics()):
                raise InputError(f"'{self.run.path}' has metrics but no checkpoints: they are missing.")
            return None
        found = newest(self.run, self.agent, self.curriculum)
        for sentence in (*found.complaints, self.run.differences()):
            if sentence:
                self.progress.say(sentence)
        facts = found.description
        self.run.rewind_metrics(facts.metrics_bytes, facts.metrics_sha256)
        self.clock = Clock(facts.wall_seconds, facts.cpu_seconds, facts.peak_megabytes)
        return found.moment

    def live(self, start: Moment | None, interrupts: Interrupts) -> AgentState:
        """Lives on, writes what happens, saves from time to time, and stops when asked to."""
        key_life, _ = self.keys()
        life = live(self.agent, self.curriculum, episodes=self.config.episodes, key=key_life, start=start)
        now = next(life)
        if start is None:
            self.save(now)
        if self.run.written == 0:
            stages = [[str(task) for task in stage] for stage in self.curriculum.stages]
            self.run.append({"kind": "curriculum", "stages": stages})
        for moment in life:
            self.clock.tick(phase_between(now, moment))
            for report in moment.reports:
                self.run.append({**record_of(report), "stage": moment.stage - moment.ended})
            now = moment
            self.progress.moment(moment, len(self.curriculum.stages))
            if self.is_due(moment) or interrupts.wish:
                self.save(moment)
            if interrupts.wish:
                raise Stopped(interrupts.wish)
        return now.state

    def is_due(self, moment: Moment) -> bool:
        """Whether to save now: after a search, after a stage, or when the last time is long enough ago."""
        searched = any(isinstance(report, Chosen) for report in moment.reports)
        return moment.ended or searched or time.perf_counter() - self.saved >= self.save_every

    def save(self, moment: Moment) -> None:
        """Writes a checkpoint."""
        size, checksum = self.run.sync_metrics()
        state, work = moment.state, moment.state.work
        description = Description(
            stage=moment.stage,
            ended=moment.ended,
            met=tuple(str(task) for task in state.met),
            structures=state.structures,
            phase=work.phase if work else "",
            number=work.number if work else 0,
            structure=work.structure if work else (),
            spent=work.spent if work else 0,
            metrics_bytes=size,
            metrics_sha256=checksum,
            wall_seconds=tuple(round(value, 3) for value in self.clock.wall),
            cpu_seconds=tuple(round(value, 3) for value in self.clock.cpu),
            peak_megabytes=round(self.clock.peak, 1),
        )
        self.run.checkpoints.save(tree_of(state), state.memory, description)
        self.saved = time.perf_counter()

    def keys(self) -> tuple[jax.Array, jax.Array]:
        """For the life, and for the evaluation at its end."""
        key_life, key_final = jax.random.split(jax.random.key(self.config.seed))
        return key_life, key_final

    def finish(self, state: AgentState) -> dict[str, Any]:
        """Evaluates at the end and writes the summary."""
        _, key_final = self.keys()
        tasks, steps = len(self.curriculum.tasks), self.config.steps
        final = final_evaluations(self.agent, state, episodes=FINAL * self.config.episodes, key=key_final)
        self.clock.tick("evaluation")
        seconds = sum(self.clock.wall)
        summary = {
            "agent": self.config.agent,
            "seed": self.config.seed,
            "tasks": tasks,
            "steps_per_task": steps,
            "seconds": round(seconds, 1),
            "steps_per_second": round(tasks * steps / seconds),
            "wall_seconds": {phase: round(value, 1) for phase, value in zip(PHASES, self.clock.wall, strict=True)},
            "cpu_seconds": {phase: round(value, 1) for phase, value in zip(PHASES, self.clock.cpu, strict=True)},
            "peak_megabytes": round(self.clock.peak),
            **stage_averages(list(self.run.metrics())),
            **final,
        }
        if isinstance(self.agent, Compositional):
            summary["structures"] = structures_found(self.agent, state)
        self.run.finish(summary)
        return summary


def run_life(
    config: LifeConfig,
    out: Path,
    *,
    progress: Progress,
    devices: int = 1,
    resume: bool = False,
    save_every: float = 30.0,
) -> dict[str, Any]:
    """Lives a life into a new run directory, or goes on with one, and returns its summary."""
    run = RunWriter.reopen(out) if resume else RunWriter.create(out, config)
    ended = run.summary()
    if ended is not None:
        run.close()
        return ended
    with Interrupts() as interrupts:
        life = Life(config, run, devices=devices, save_every=save_every, progress=progress)
        state = life.live(life.resume() if resume else None, interrupts)
    summary = life.finish(state)  # all is saved: a signal may end this at once
    run.close()
    return summary


def phase_between(before: Moment, after: Moment) -> str:
    """What was done between two moments."""
    if after.ended:
        return "evaluation"
    if before.state.work is not None:
        return before.state.work.phase
    return "structure" if any(isinstance(report, Chosen) for report in after.reports) else "online"


def stage_averages(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean return over tasks at each stage of learning: before it, after the online and the offline phase."""
    averages = {}
    for when in ("zero-shot", "online"):
        returns = [record["mean_return"] for record in records if record.get("when") == when]
        if returns:
            averages[when] = {"return": returns, "mean_return": round(float(np.mean(returns)), 4)}
    if averages:
        seen = [record for record in records if record.get("when") == "seen"]
        returns = [record["return"][-1] for record in seen]
        averages["offline"] = {"return": returns, "mean_return": round(float(np.mean(returns)), 4)}
    return {"stages": averages} if averages else {}


def structures_found(agent: Compositional, state: AgentState) -> dict[str, Any]:
    """Each task's structure, and how many searched ones are those that the modules' first components suggest."""
    pairs = list(zip(state.met, state.structures, strict=True))
    searched = pairs[min(agent.network.sizes) :] if agent.searches else []
    right = [structure == expected_or_none(agent, state, task) for task, structure in searched]
    return {
        "tasks": {str(task): list(structure) for task, structure in pairs},
        "searched": len(right),
        "as_expected": sum(right),
    }


def final_evaluations(agent: Agent, state: AgentState, *, episodes: int, key: jax.Array) -> dict[str, Any]:
    """Tasks learnt; unseen combinations and deliberately wrong modules where the agent can."""
    key_seen, key_unseen, key_wrong = jax.random.split(key, 3)
    results = {"seen": as_record(evaluate_agent(agent, state, state.met, episodes=episodes, key=key_seen))}
    if not isinstance(agent, MultiTask):
        return results
    unseen = [task for task in agent.env.graph.tasks if task not in state.met]
    if unseen:
        results["unseen"] = as_record(evaluate_agent(agent, state, unseen, episodes=episodes, key=key_unseen))
    if not isinstance(agent.network, Monolithic):
        results["wrong_module"] = wrong_modules(agent, state, episodes=max(2, episodes // FINAL), key=key_wrong)
    return results


def wrong_modules(agent: MultiTask, state: AgentState, *, episodes: int, key: jax.Array) -> dict[str, float]:
    """For each factor, the mean return when its module is replaced by each wrong one, over the tasks learnt."""
    means = {}
    for number, factor in enumerate(agent.env.graph.factors):
        pairs = [
            (task, wrong)
            for task in state.met
            for wrong in wrong_structures(agent.structure(state, task), number, len(factor.components))
        ]
        if pairs:
            tasks, structures = zip(*pairs, strict=True)
            result = evaluate_tasks(
                agent.env,
                agent.network,
                state.params,
                tasks,
                structures,
                episodes=episodes,
                rule=agent.acting,
                key=jax.random.fold_in(key, number),
            )
            means[factor.name] = round(float(result.returns.mean()), 4)
    return means
