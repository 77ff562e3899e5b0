"""Time left is right: the model on its own, on what real lives took, and what people see of it."""

import io
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from lives import Lived
from rich.console import Console
from rich.progress import Progress
from terminal import lenient

from modlife.cli.counter import counting
from modlife.cli.progress import Lines, Meter, Said
from modlife.lifelong.agent import AgentState, Facts
from modlife.lifelong.agents import AGENTS
from modlife.lifelong.foresight import by_chance, sharing_counts, work_ahead
from modlife.lifelong.loop import Left, Moment
from modlife.pauses import counted
from modlife.runs.clock import seconds_within
from modlife.runs.config import LifeConfig, build, life_from_options
from modlife.runs.final import final_work
from modlife.runs.forecast import FINAL, Forecast
from modlife.runs.life import run_life
from modlife.runs.outlook import Part, Spell, compiling_left, seconds_left
from modlife.runs.store import RunDirectory
from modlife.timing import foreseen
from modlife.types import Task

RESULTS = Path(__file__).parent.parent / "results"
CLOSE = 0.2
MEASURED = ([1, 4, 16, 37, 64], [1 / 202, 4 / 279, 16 / 297, 37 / 310, 64 / 310])
"""Time of a gradient step with so many tasks (docs/performance.md, the offline phase); more than 37 at its rate."""


# The model


def test_what_took_so_long_takes_so_long_again():
    spells = [Spell("online", n, 10.0, 100.0) for n in range(3)]
    assert seconds_left(spells, [Part("online", 100.0)] * 4) == pytest.approx(40)
    assert seconds_left(spells, [Part("online", 100.0, share=0.25), Part("online", 200.0)]) == pytest.approx(22.5)
    assert seconds_left(spells, []) == 0
    assert seconds_left(spells, [Part("offline", 1.0)]) is None  # nothing is known of it
    assert seconds_left(spells, [Part("evaluation", 100.0)]) == pytest.approx(1)  # as far as anything is


def test_two_points_will_do_for_work_that_grows():
    """Offline, seconds = 2 x tasks: the second task is known, the rest foreseen."""
    spells = [Spell("offline", 0, 2.0, 1.0), Spell("offline", 1, 4.0, 2.0)]
    assert seconds_left(spells, [Part("offline", float(n)) for n in range(3, 17)]) == pytest.approx(
        2 * sum(range(3, 17))
    )


def test_what_is_alike_counts():
    """Units that take longer where there are more of them: a search takes what searches took, not what none took."""
    spells = [Spell("structure", n, 0.2, 100.0) for n in range(20)] + [Spell("structure", 20, 3.0, 150.0)]
    assert seconds_left(spells, [Part("structure", 150.0)]) == pytest.approx(3, rel=0.2)
    assert seconds_left(spells, [Part("structure", 100.0)]) == pytest.approx(0.2, rel=0.2)


def test_one_that_took_much_too_long_is_not_believed():
    spells = [Spell("online", n, 60.0 if n == 3 else 10.0, 1.0) for n in range(6)]
    assert seconds_left(spells, [Part("online", 1.0)]) == pytest.approx(10)


def test_a_beginning_tells_nothing_yet():
    spells = [Spell("offline", 0, 10.0, 1.0), Spell("offline", 1, 5.0, 4.0, share=0.01)]
    assert seconds_left(spells, [Part("offline", 4.0)]) == pytest.approx(40)
    assert seconds_left(spells[1:], [Part("offline", 4.0)]) == pytest.approx(500)


def test_a_machine_that_became_slower_is_noticed():
    spells = [Spell("online", n, 10.0 if n < 10 else 20.0, 1.0) for n in range(20)]
    assert seconds_left(spells, [Part("online", 1.0)]) == pytest.approx(20, rel=0.15)


def test_what_is_unlike_all_before_is_compiled():
    spells = [Spell("offline", 0, 5.0, 1.0, compiling=7.0), Spell("evaluation", 0, 1.0, 10.0, compiling=2.0)]
    assert compiling_left(spells, [Part("offline", 1.0)]) == 0
    assert compiling_left(spells, [Part("offline", 3.0), Part("offline", 4.0)]) == 7
    assert compiling_left(spells, [Part(FINAL, 100.0)]) == 2
    spells += [Spell("offline", 1, 5.0, 3.0, compiling=1.0), Spell("offline", 2, 5.0, 2.0)]
    assert compiling_left(spells, [Part("offline", 3.5)]) == 0  # as good as what there was
    assert compiling_left(spells, [Part("offline", 4.0)]) == 1  # most had been compiled before


def test_time_in_which_programs_are_compiled_is_counted_once():
    spans = deque([(0.0, 1.0), (2.5, 3.0), (2.0, 4.0), (5.0, 6.0)])  # the second lies within the third
    assert seconds_within(spans, -1.0) == 4
    assert seconds_within(spans, 3.0) == 2
    assert seconds_within(spans, 6.0) == 0


# What agents foresee


def test_sharing_is_foreseen_by_what_searches_chose():
    """Two sets of two modules: two structures share one by chance with 3/4; eight such searches are granted."""
    assert by_chance((2, 2)) == 0.75
    assert sharing_counts([], 0, 5, (2, 2), fresh=2) == [1, 1, 1 + 2, 1 + 2, 1 + 3]  # 1.5 and 2.25 others, rounded
    known = [(0, 0), (1, 1), (0, 1), (0, 1)]
    assert sharing_counts(known, 1, 4, (2, 2), fresh=2) == [1, 3, 4]
    assert sharing_counts(known, 4, 101, (2, 2), fresh=2)[-1] == 1 + 80  # 8 of 10 share with 3/4, and 2 with all


@pytest.mark.parametrize(
    ("name", "modules", "share"),
    [
        ("world-768-0", 16, 0.177),
        ("comp-search-nc-64x250k-halving-modules-2-0", 2, 0.89),
        ("comp-search-nc-64x250k-halving-modules-6-0", 6, 0.39),
        ("comp-search-64x250k-bcq-0", 4, 0.53),
        ("comp-search-64-0", 4, 0.71),  # the most of all: there, searches chose what others had
    ],
)
def test_searched_tasks_share_modules_with_about_as_many_as_by_chance(name: str, modules: int, share: float):
    records = RunDirectory.open(RESULTS / name).metrics()
    found = [tuple(record["structure"]) for record in records if record["kind"] == "structure"]
    counts = sharing_counts(found, modules, len(found), (modules,) * 3, fresh=modules)
    shares = [(count - 1) / number for number, count in enumerate(counts, start=modules)]
    assert np.mean(shares) == pytest.approx(share, abs=0.005)
    assert share == pytest.approx(by_chance((modules,) * 3), abs=0.005 if modules == 16 else 0.14)


def test_an_agent_that_is_told_structures_foresees_what_they_share():
    run = RunDirectory.open(RESULTS / "comp-struct-64-0")
    shared = {record["stage"]: record["tasks"] for record in run.metrics() if record["kind"] == "offline"}
    config = run.config()
    agent = build(config)
    work = work_ahead(agent, Facts(), [[task] for task in config.chosen])
    learner = agent.consolidator(agent.layout(64))
    assert [one["offline"] for one in work] == [float(learner.steps * learner.load(shared[n])) for n in range(64)]


# What real lives took


@dataclass(frozen=True)
class Recorded:
    """A life whose parts took known times: seconds by (stage, phase), and for all that comes at the end."""

    config: LifeConfig
    seconds: Mapping[tuple[int, str], float]
    final: float
    structures: Sequence[tuple[int, ...]] = ()
    spent: Sequence[int] = ()
    saving: float = 0.0
    """Beside that, whenever a part has ended."""


def moments(life: Recorded, agent: Any, *, parts: int = 2) -> Iterator[tuple[Moment, float]]:
    """The moments of such a life, with the seconds that each took."""
    names = [phase.name for phase in agent.phases([life.config.chosen[0]], key=jax.random.key(0))]
    state = agent.init(key=jax.random.key(0))
    for stage, task in enumerate(life.config.chosen):
        for place, name in enumerate(names):
            facts = state.facts
            for done in range(1, parts + 1):
                if done == parts:
                    facts = after(life, facts, stage, [*names[place + 1 :], ""][0], task)
                yield moment_of(state, facts, stage, stage, name, done, parts), life.seconds[stage, name] / parts
            state = replace(state, facts=facts)
        yield moment_of(state, state.facts, stage + 1, stage, "evaluation", 1, 1), life.seconds[stage, "evaluation"]
    last = len(life.config.chosen) - 1
    for done in (0, 1, 2):
        yield moment_of(state, state.facts, last + 1, last, FINAL, done, 2), life.final / 2 if done else 0.0


def moment_of(state: AgentState, facts: Facts, stage: int, told_of: int, *where: Any) -> Moment:
    return Moment(stage, replace(state, facts=facts), (), told_of, *where)


def after(life: Recorded, facts: Facts, stage: int, phase: str, task: Task) -> Facts:
    """Facts when a phase has ended: the structure is settled by the first one, the task is met with the last."""
    known = tuple(life.structures[: stage + 1])
    met = facts.met if phase else (*facts.met, task)
    return Facts(met, known, life.spent[stage] if phase and life.spent else 0, phase)


def told(life: Recorded) -> list[tuple[int, str, float | None, float]]:
    """Stage, phase, seconds left as they were told, and as they were; at every moment."""
    agent = build(life.config)
    forecast, every = Forecast(life.config, agent, life.config.stages, often=0), list(moments(life, agent))
    forecast.begin(Moment(0, agent.init(key=jax.random.key(0))), {}, 0.0)
    saving = [life.saving * (one.done == one.length and one.phase != FINAL) for one, _ in every]
    truth, found = sum(saving) + sum(seconds for _, seconds in every), []
    for (moment, seconds), then in zip(every, saving, strict=True):
        truth -= seconds
        found.append((moment.told_of, moment.phase, forecast.note(moment, seconds, 0.0).seconds, truth))
        forecast.saved(then)
        truth -= then
    return found


def errors(life: Recorded) -> list[float]:
    """How much of the truth it was wrong by, from the second task on."""
    late = [one for one in told(life) if one[0] >= 1 and one[3] > 1e-6]
    return [1.0 if left is None else abs(left - truth) / truth for _, _, left, truth in late]


def from_results(name: str) -> Recorded:
    """A committed life: its seconds by phase, over its stages as its records tell of them."""
    run = RunDirectory.open(RESULTS / name)
    records, summary = run.metrics(), run.summary()
    assert summary is not None
    chosen = [record for record in records if record["kind"] == "structure"]
    offline = {record["stage"]: record["tasks"] for record in records if record["kind"] == "offline"}
    config, spent = run.config(), [record["steps"] for record in chosen]
    stages, structures = range(len(config.chosen)), [tuple(record["structure"]) for record in chosen]
    weights = {
        "structure": [1 + steps / 25_000 for steps in spent],
        "online": [config.steps - steps for steps in spent] or [1] * len(stages),
        "offline": [float(np.interp(offline[n], *MEASURED)) for n in stages] if offline else [],
        "evaluation": [-(-(n + 1) // 16) for n in stages],
    }
    agent = build(config)
    state = agent.init(key=jax.random.key(0)).noting(met=config.chosen, structures=tuple(structures))
    at_the_end = sum(final_work(agent, state, config.chosen, episodes=1)) / (16 * agent.env.horizon)
    part = sum(weights["evaluation"]) / (sum(weights["evaluation"]) + at_the_end)
    wall = {**summary["wall_seconds"], "evaluation": part * summary["wall_seconds"]["evaluation"]}
    seconds = {
        (n, phase): wall[phase] * values[n] / sum(values) for phase, values in weights.items() if values for n in stages
    }
    final = summary["wall_seconds"]["evaluation"] - wall["evaluation"]
    return Recorded(config, seconds, final, structures, spent)


@pytest.mark.parametrize(
    ("name", "share", "worst"),
    [
        ("comp-struct-64-0", 1.0, 0.02),
        ("comp-search-64-0", 1.0, CLOSE),
        ("comp-search-64x250k-bcq-0", 0.97, 0.28),  # its last searches chose modules that fewer tasks have
        ("stl-24-0", 1.0, 0.01),
    ],
)
def test_time_left_in_committed_lives(name: str, share: float, worst: float):
    found = errors(from_results(name))
    assert max(found) < worst and sum(one < CLOSE for one in found) >= share * len(found)


@pytest.mark.parametrize("saving", [0.0, 5.0])
def test_time_left_where_nothing_is_known_beforehand(saving: float):
    """An agent that says nothing of what is ahead: all stages are alike; saving takes as long whatever is saved."""
    config = life_from_options("pc", "hall", {"tasks": 6, "steps": 4096})
    each = {"zero-shot": 3.0, "online": 60.0, "offline": 45.0}
    seconds = {(n, phase): value for phase, value in each.items() for n in range(6)}
    seconds |= {(n, "evaluation"): 0.5 for n in range(6)}
    final = 2 * 10 * 0.5  # with ten times the episodes, those learnt and the others: each fit into a call
    assert max(errors(Recorded(config, seconds, final, saving=saving))) < CLOSE / 10


@pytest.mark.parametrize("phase", ["online", "offline", ""])
def test_a_resumed_life_knows_what_its_stages_took(searched: Lived, phase: str, tmp_path: Path):
    """From the clocks in its checkpoints; each stage took 1, 10, 20 and 2 seconds."""
    state = searched.state(searched.amid(phase), tmp_path / "run")
    config, stage = searched.config, len(state.met)
    each = {"structure": 1.0, "online": 10.0, "offline": 20.0, "evaluation": 2.0}
    clocks = {n: {name: n * value for name, value in each.items()} for n in range(1, stage + 1)}
    agent = build(config)
    forecast = Forecast(config, agent, config.stages, often=0)
    forecast.begin(Moment(stage, state), clocks, 33.0 * stage)
    here = forecast.slots[forecast.at]
    assert (here.stage, here.phase) == (stage, phase or "structure") and stage >= 1
    length = 10 * max(1, state.facts.done)
    left = forecast.note(moment_of(state, state.facts, stage, stage, here.phase, 9 * length // 10, length), 0.0, 0.0)
    assert left.seconds is not None and left.seconds > 33.0 * (len(config.chosen) - 1 - stage) / 3
    assert left.share is not None and 0 < left.share < 1


@pytest.mark.parametrize("name", AGENTS.names)
def test_every_agents_life_can_be_foreseen(name: str):
    """Each of its phases has work, in every stage, before anything was learnt."""
    config = life_from_options(name, "grid2d", {"tasks": 8})
    agent = build(config)
    forecast = Forecast(config, agent, config.stages)
    forecast.begin(Moment(0, agent.init(key=jax.random.key(0))), {}, 0.0)
    assert forecast.slots[-1].phase == FINAL and all(work > 0 for work in forecast.work)
    assert forecast.left(anew=True) == Left()


def test_a_phase_that_nobody_foresaw_is_no_matter():
    config = LifeConfig("stl", tasks=2)
    agent = build(config)
    state = agent.init(key=jax.random.key(0))
    forecast = Forecast(config, agent, config.stages)
    forecast.begin(Moment(0, state), {}, 0.0)
    assert forecast.note(Moment(0, state, (), 0, "dreaming", 1, 2), 1.0, 0.0) == Left()
    assert forecast.note(Moment(0, state, (), 0, "online", 1, 2), 1.0, 0.0).seconds is not None


# What people see


@dataclass
class Listening:
    """Keeps all moments."""

    told: list[Moment]

    def moment(self, moment: Moment) -> None:
        self.told.append(moment)

    def say(self, sentence: str) -> None:
        raise AssertionError(sentence)


def test_a_life_tells_what_is_left(searched: Lived, tmp_path: Path):
    """From the second task on; the share never falls, and the last thing told is that nearly nothing is left."""
    searched.copy(tmp_path / "run", searched.amid("online"))
    listening = Listening([])
    with lenient():
        run_life(None, tmp_path / "run", watch=listening)
    told = listening.told
    assert told[-1].phase == FINAL and {one.phase for one in told} >= {"offline", "evaluation"}
    known = [one.left for one in told if one.left.seconds is not None]
    shares = [one.share for one in known if one.share is not None]
    assert shares == sorted(shares) and 0 < shares[0] < shares[-1] <= 1
    assert (tmp_path / "run/metrics.jsonl").read_bytes() == (searched.path / "metrics.jsonl").read_bytes()


def at(state: AgentState, *, share: float | None, seconds: float | None) -> Moment:
    facts = replace(state.facts, phase="offline", done=45)
    return Moment(1, replace(state, facts=facts), (), 1, "offline", 45, 100, Left(share, seconds))


@pytest.fixture
def state() -> AgentState:
    return AgentState(None, Facts())


def shown(meter: Meter, width: int, *, encoding: str = "utf-8") -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(width=width, force_terminal=True, color_system=None, file=file)
    bars = Progress(Said(meter, console), console=console)
    bars.update(bars.add_task("comp-search", total=1.0), completed=meter.now.share or 0.0)
    with console.capture() as caught:
        console.print(bars.get_renderable())
    return caught.get()


def test_the_bar_keeps_what_matters_in_a_narrow_terminal(state: AgentState):
    meter = Meter(LifeConfig("comp-search", tasks=8), usual=360.0)
    assert "-%  perhaps 6 min left  beginning" in shown(meter, 60)
    assert "-%  - left  beginning" in shown(Meter(meter.config), 60)  # one that goes on from somewhere
    assert "-%  - left  beginning" in shown(Meter(meter.config, usual=0.0), 60)  # one that takes longer than usual
    meter.note(at(state, share=0.345, seconds=250.0))
    task = str(meter.stages[1][0])
    assert (
        shown(meter, 60).startswith(f"━━────── 34%  about 4 min left  2/8 {task[:8]}")
        and shown(meter, 60).count("\n") == 1
    )
    plain = shown(meter, 40, encoding="ascii")
    assert plain.startswith("##...... 34%  about 4 min left  2/8") and plain.isascii() and len(plain) == 41
    assert shown(meter, 120).startswith(
        f"comp-search {6 * '━'}{14 * '─'} 34%"
    ) and f"left  2/8 {task} offline 45%" in shown(meter, 120)


def test_the_bar_says_what_is_being_done_and_lines_what_was(state: AgentState, capsys: pytest.CaptureFixture[str]):
    config = LifeConfig("comp-search", tasks=2, only=())
    meter = Meter(config)
    first, second = (str(task) for task in config.chosen)
    meter.note(Moment(0, replace(state, facts=Facts(phase="offline")), (), 0, "online", 9, 9))
    assert (meter.done, meter.doing) == (f"1/2 {first} online", f"1/2 {first} offline")
    met = replace(state, facts=Facts(config.chosen[:1]))
    meter.note(Moment(0, met, (), 0, "offline", 9, 9))
    assert meter.doing == f"1/2 {first} evaluation"
    Lines(meter).moment(Moment(1, met, (), 0, "evaluation", 1, 1, Left(0.5, 30.0)))
    assert meter.doing == f"2/2 {second} beginning"
    assert capsys.readouterr().err == f"1/2 {first} evaluation  50%  about 30 s left\n"
    meter.note(Moment(2, met, (), 1, "evaluation", 1, 1, Left(0.9, 3.0)))
    assert (meter.doing, meter.left) == ("final evaluation", "a few seconds left")


def test_times_are_no_more_precise_than_they_can_be():
    seconds = (-3, 4, 12, 54, 56, 100, 1150, 1300, 3590, 5400, 40_000, 1e6)
    words = "a few seconds, a few seconds, 10 s, 55 s, 1 min, 2 min, 19 min, 20 min, 1.0 h, 1.5 h, 11 h, 12 days"
    assert [foreseen(one).removeprefix("about ") for one in seconds] == words.split(", ")


# A line that counts


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_takes_long_is_counted_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with counting():
        assert [one for one in counted("ab", "tasks", each=2, whole=3) for _ in counted("xyz", "inside")] == [*"aaabbb"]
    said = [text for text in terminal.getvalue().split("\r") if text.strip()]
    assert [text for text in said if text == text.strip()] == ["tasks: 0 of 3 ...", "tasks: 2 of 3 ..."]
    assert terminal.getvalue().endswith("\r")  # the line is gone
    before = terminal.getvalue()
    assert list(counted("ab", "tasks")) == [*"ab"] and terminal.getvalue() == before


def test_elsewhere_nothing_is_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stderr", plain_file := io.StringIO())
    with counting():
        assert list(counted("ab", "tasks")) == [*"ab"]
    assert plain_file.getvalue() == ""
