"""Writes the tables of the README and the pages that follow from committed results, where each is marked.

    python scripts/docs_tables.py            # writes them; --check only says which are not current

A table stands between two comments, such as <!-- modlife: fig3 --> and <!-- end -->; what else stands there goes.
Returns are means over seeds, with the standard error over seeds in parentheses where there are several.
"""

import argparse
import contextlib
import csv
import json
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from digest_lives import losses, short, table, tasks_of
from long_life import tables as long_life_tables

from modlife import metrics
from modlife.analysis import estimates
from modlife.analysis.catalog import EXPERIMENTS, INGREDIENTS, SCALES, with_other
from modlife.analysis.comparison import COLUMNS, compare_lives, told
from modlife.analysis.figures.figure_e1 import MODULAR
from modlife.analysis.figures.figure_e2 import modules
from modlife.analysis.groups import Group, grouped
from modlife.analysis.lives import FinishedLife, label, read_life
from modlife.analysis.measures import scores_of_life
from modlife.analysis.report.sections import plural
from modlife.domains.domain import DOMAINS
from modlife.domains.robot.world import RobotWorld
from modlife.errors import InputError, unknown
from modlife.lifelong.agents import AGENTS
from modlife.lifelong.settings import SEARCHES
from modlife.metrics import Curve, Scores, every_metric, known_mean, mean_and_error, steps_to
from modlife.runs.codec import flat, to_json
from modlife.runs.config import LifeConfig, usual_settings
from modlife.runs.glimpses import all_left
from modlife.runs.store import RunDirectory
from modlife.timing import foreseen

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/figures.md", "docs/metrics.md", "docs/performance.md", "docs/reproduction.md")
MARKED = re.compile(r"<!-- modlife: (\S+) -->(?:(?!<!-- modlife:).)*?<!-- end -->", re.DOTALL)
DOMAIN, QUARTER = "grid2d", 250_000
"""What the figures are about, and the steps per task of those that took a quarter of the paper's."""
RELEASED = {
    "wall/red/dynamics-0": 0.531,
    "floor/purple/dynamics-3": 0.875,
    "lava/blue/dynamics-1": 0.716,
    "food/green/dynamics-2": 0.815,
}
"""Returns of the authors' released code after 1,000,000 steps, one seed."""
LOST = 0.02
STEPS = (50_000, 100_000, 250_000, 500_000, 1_000_000)
PARTS = 8
MOST = RobotWorld().graph.highest_return
"""The largest return of a robot task."""
RECENT, OFTEN = 5, 0.8
"""A task counts as learnt when its mean success over so many updates is so high."""
ROBOTS = DOMAINS["robot"]
BEGINNING = ("critic", "fresh_critics", "unsolved", "ppo.timid_start")
"""Options about what practice begins with, and what it learns by."""
AT_ONCE = 2
"""Lives at a time, where it is said how long many last."""
PHASES = ("structure", "online", "offline", "evaluation")

Cells = Sequence[Sequence[str]]


def lives_where(wanted: Callable[[LifeConfig], bool], domain: str = DOMAIN) -> list[FinishedLife]:
    """The committed lives of a domain whose config is wanted."""
    paths = sorted(path.parent for path in Path("results").glob("*/manifest.json"))
    return [read(path) for path in paths if config_of(path).world.graph.name == domain and wanted(config_of(path))]


@cache
def config_of(path: Path) -> LifeConfig:
    """The config of a committed life."""
    return RunDirectory.open(path).config()


@cache
def read(path: Path) -> FinishedLife:
    """A committed life; read once."""
    return read_life(path)


def markdown(heads: Sequence[str], rows: Cells) -> str:
    """A table."""
    lines = ["|".join(["", *(f" {cell} " if cell else " " for cell in line), "\n"]) for line in (heads, *rows)]
    return "".join([lines[0], "|---" * len(heads) + "|\n", *lines[1:]])


def over_seeds(values: Sequence[float], sign: str = "") -> str:
    """A mean over seeds, with its error where there are several."""
    known = [value for value in values if not np.isnan(value)]
    if not known:
        return ""
    mean, error = mean_and_error(known)
    return short(mean, sign) + (f" ({short(error)})" if len(known) > 1 else "")


def called(life: FinishedLife) -> str:
    """What tables call a life and its like."""
    return f"{label(life.agent)}, {life.steps_per_task:,}" + (f", `{life.consolidator}`" if life.consolidator else "")


# One table each


def results() -> str:
    """README: all agents over all 64 tasks, at a quarter of the paper's steps; the best at the end first."""
    groups = [group for group in all_tasks() if group.lives[0].steps_per_task == QUARTER]
    groups.sort(key=lambda group: -np.mean([bar(life, "at the end") for life in group.lives]))
    rows = []
    for group in groups:
        bars = [over_seeds([bar(life, name) for life in group.lives]) for name in BARS]
        lost = [known_mean(metrics.final_minus_offline(scored(life.path))) for life in group.lives]
        name = group.label.replace(f", {QUARTER:,}", "")
        rows.append([name, str(len(group.lives)), *bars, over_seeds(lost, "+")])
    return markdown(["agent, offline", "seeds", *BARS, "change since learnt"], rows)


BARS = {
    "zero-shot": metrics.zero_shot_bar,
    "online": metrics.online_bar,
    "offline": metrics.offline_bar,
    "at the end": metrics.final_bar,
}


def bar(life: FinishedLife, name: str) -> float:
    """The mean over tasks of one of the paper's bars; not known where a life tells of no phases."""
    if name == "offline" and name not in life.by_phase:
        return float("nan")
    return known_mean(BARS[name](scored(life.path)))


@cache
def scored(path: Path) -> Scores:
    """The scores of a committed life."""
    return scores_of_life(read(path), {})


def all_tasks() -> list[Group]:
    """Lives of all 64 tasks, one after another, with as many modules as is usual."""
    return grouped(lives_where(lambda config: is_lifelong(config) and not other_modules(config)), called)


def is_lifelong(config: LifeConfig) -> bool:
    """Whether it is of all 64 tasks, one after another."""
    return len(config.chosen) == 64 and not config.order.together


def other_modules(config: LifeConfig) -> bool:
    """Whether there are more modules, or fewer, than is usual."""
    return getattr(config.settings, "modules", None) is not None


def single_tasks() -> str:
    """Single-task learning, against the released code."""
    lives = lives_where(lambda config: config.entry.alone and {str(task) for task in config.chosen} == {*RELEASED})
    rows = []
    for task, released in RELEASED.items():
        each = [life.finals[task] for life in lives]
        mean, error = mean_and_error(each)
        rows.append([task, short(released), f"**{short(mean)}** ({short(error)})", " ".join(map(short, each))])
    return markdown(["task", "released code", f"ours, mean (s.e. over {len(lives)} seeds)", "each seed"], rows)


def figure_2(steps: int = QUARTER) -> str:
    """Multi-task learning: trained tasks, and combinations never met."""
    together = grouped(lives_where(lambda config: config.order.together and config.steps == steps), called)
    alone = [one for one in all_tasks() if one.lives[0].config.entry.alone and one.lives[0].steps_per_task == steps]
    agents = [name for name in AGENTS.names if any(group.agent == name for group in together)]
    beside = [over_seeds(finals(group.lives, "seen")) for group in alone]
    rows = []
    for count in sorted({group.tasks for group in together}):
        for what, name in (("trained tasks", "seen"), ("unseen combinations", "unseen")):
            own = [[one for one in together if (one.agent, one.tasks) == (agent, count)] for agent in agents]
            cells = ["; ".join(over_seeds(finals(group.lives, name)) for group in found) for found in own]
            rows.append([str(count), what, *cells, *(beside if not rows else [""] * len(alone))])
    return markdown(["training tasks", "", *map(label, agents), *(f"STL, {one.tasks} tasks" for one in alone)], rows)


def wrong_modules() -> str:
    """The multi-task agent with modules and most tasks, with a wrong module of each factor."""
    found = grouped(lives_where(lambda config: config.agent == MODULAR and len(config.chosen) == 48), called)
    factors = list(found[0].lives[0].summary["wrong_module"])
    rows = []
    for group in sorted(found, key=lambda one: one.lives[0].steps_per_task):
        wrong = [[life.summary["wrong_module"][factor] for life in group.lives] for factor in factors]
        cells = [over_seeds(values) for values in (finals(group.lives, "seen"), *wrong)]
        rows.append([f"{group.lives[0].steps_per_task:,}", str(len(group.lives)), *cells])
    return markdown(["steps a task", "seeds", "all correct", *(f"wrong {factor}" for factor in factors)], rows)


def finals(lives: Sequence[FinishedLife], name: str) -> list[float]:
    """The mean return of each life at its end, on tasks `seen` or `unseen`."""
    return [life.summary[name]["mean_return"] for life in lives if name in life.summary]


def figure_3() -> str:
    """Lifelong learning: what is reached and kept."""
    heads = [
        "agent, steps a task, offline",
        "seeds",
        *BARS,
        "at the end minus offline",
        "worst task",
        "lost more than .02",
    ]
    rows = []
    for group in all_tasks():
        changes = [metrics.final_minus_offline(scored(life.path)) for life in group.lives]
        bars = [over_seeds([bar(life, name) for life in group.lives]) for name in BARS]
        worst = [float(metrics.worst_change(scored(life.path))[0]) for life in group.lives]
        known = [change for one in changes for change in one if not np.isnan(change)]
        lost = f"{sum(change < -LOST for change in known)} of {len(known)}" if known else ""
        kept = [over_seeds([known_mean(one) for one in changes], "+"), short(min(worst), "+"), lost]
        rows.append([group.label, str(len(group.lives)), *bars, *kept, as_expected(group), different(group)])
    return markdown([*heads, "structures as first components suggest", "different structures, each seed"], rows)


def as_expected(group: Group) -> str:
    """How many of the structures that were searched for are those that the modules' first components suggest."""
    found = [metrics.structures(life.records) for life in group.lives]
    if not all(found):
        return ""
    searched = sum(one["searched"] for one in found)
    return f"{sum(one['as_expected'] for one in found)} of {searched}" if searched else "given"


def different(group: Group) -> str:
    """How many structures the tasks of each life have: fewer than tasks, where some have all modules in common."""
    found = [metrics.structures(life.records) for life in group.lives]
    return " ".join(str(len({tuple(structure) for structure in one["tasks"].values()})) for one in found if one)


def figure_3_over_time() -> str:
    """Lifelong learning: the training return within a task, and the return before learning as tasks accumulate."""
    heads = [
        "agent, steps a task, offline",
        *(f"at {step:,}" for step in STEPS),
        "zero-shot, by eights of tasks in order",
    ]
    rows = []
    for group in all_tasks():
        at = [short(float(np.mean([trained(life, step) for life in group.lives]))) for step in STEPS]
        before = np.mean([metrics.zero_shot_bar(scored(life.path)) for life in group.lives], axis=0)
        eights = [short(part.mean(), digits=2) for part in np.split(before, PARTS)]
        rows.append([group.label, *at, " ".join(filter(None, eights))])
    return markdown(heads, rows)


def trained(life: FinishedLife, step: int) -> float:
    """The mean training return at a step of each task; NaN beyond its steps."""
    return float(np.interp(step, life.curves.steps, life.mean_curve())) if step <= life.steps_per_task else float("nan")


def figure_3_cost() -> str:
    """Lifelong learning: minutes and memory, of lives that tell."""
    costs = ["all, wall-clock minutes", "processor minutes", "online steps per processor second", "most memory"]
    heads = ["agent, steps a task, offline", *PHASES, *costs]
    rows = []
    for group in all_tasks():
        lives = [life for life in group.lives if "wall_seconds" in life.summary]
        told = [life.summary for life in lives]
        if told:
            phases = [f"{np.mean([one['wall_seconds'].get(name, 0) for one in told]) / 60:.1f}" for name in PHASES]
            every = f"{np.mean([one['seconds'] for one in told]) / 60:.0f}"
            processor = f"{np.mean([sum(one['cpu_seconds'].values()) for one in told]) / 60:.0f}"
            steps = sum(life.tasks * life.steps_per_task - searched(life) for life in lives)
            online = steps / sum(one["cpu_seconds"]["online"] for one in told)
            memory = f"{max(one['peak_megabytes'] for one in told) / 1000:.2f} GB"
            rows.append([group.label, *phases, every, processor, f"{online:,.0f}", memory])
    return markdown(heads, rows)


def figure_e2() -> str:
    """Fewer and more modules than components: agents that search by halving, at a quarter of the paper's steps."""

    def wanted(config: LifeConfig) -> bool:
        search = getattr(config.settings, "search", None)
        return (
            is_lifelong(config)
            and config.steps == QUARTER
            and search is not None
            and SEARCHES.of(search).name == "halving"
        )

    rows = []
    for group in grouped(sorted(lives_where(wanted), key=modules), lambda life: f"{label(life.agent)} {modules(life)}"):
        first = group.lives[0]
        bars = [over_seeds([bar(life, name) for life in group.lives]) for name in BARS]
        lost = [known_mean(metrics.final_minus_offline(scored(life.path))) for life in group.lives]
        steps = np.mean([searched(life) / first.tasks for life in group.lives])
        count = [label(first.agent), str(modules(first)), str(len(group.lives))]
        rows.append([*count, *bars, over_seeds(lost, "+"), f"{steps:,.0f}", different(group)])
    heads = ["agent", "modules a factor", "seeds", *BARS, "change since learnt"]
    return markdown([*heads, "steps of search a task", "different structures, each seed"], sorted(rows))


def compared() -> str:
    """All agents over all 64 tasks at a quarter of the paper's steps: what they reached, kept and cost."""
    lives = [life for group in all_tasks() for life in group.lives if life.steps_per_task == QUARTER]
    cells = [
        [row["label"].replace(", 64 tasks, 250k steps", ""), str(row["seeds"]), *numbers(row)]
        for row in compare_lives(lives)
    ]
    return markdown(["agent, offline", "seeds", *(column.name for column in COLUMNS)], cells)


def numbers(row: dict[str, Any]) -> list[str]:
    """The columns of a line of `modlife table`."""
    return [told(row[one.name], row[f"{one.name} +-"], one.digits).replace("+-", "± ") for one in COLUMNS]


def tuning() -> str:
    """What was tried for baselines, and chosen."""
    rows = []
    for path in sorted(Path("docs/tuning").glob("*.csv")):
        with path.open() as file:
            lines = list(csv.DictReader(file))
        option = next(name for name in lines[0] if "." in name)
        tried = [f"{float(line[option]):g}: {short(float(line['return']))}{errors(line)}" for line in lines]
        best = next(float(line[option]) for line in lines if line["chosen"])
        rows.append([lines[0]["agent"], f"`--{option}`", lines[0]["lives"], "; ".join(tried), f"{best:g}"])
    return markdown(["agent", "option", "seeds", "mean return over five tasks at the end", "chosen"], rows)


def errors(line: dict[str, str]) -> str:
    """The standard error over seeds of a line of a search for settings, where there are several."""
    return f" ({short(float(line['standard_error']))})" if line["standard_error"] else ""


def forgotten() -> str:
    """Tasks that ended more than .05, beyond twice their error, below their return after their own stage."""
    rows = []
    for group, life in ((one, life) for one in all_tasks() for life in one.lives if metrics.structures(life.records)):
        tasks = tasks_of(life)
        for task in losses({"tasks": tasks}):
            then, end = (short(tasks[task][name][0]) for name in ("after_own_stage", "at_the_end"))
            rows.append([group.label, str(life.config.seed), task, then, end, repairs(life, task)])
    return markdown(["agent, steps a task, offline", "seed", "task", "then", "at the end", "repair"], rows)


def repairs(life: FinishedLife, task: str) -> str:
    """What was tried for a task that was harmed."""
    looks = [record for record in life.records if record["kind"] == "retention"]
    told = [look for look in looks if any(one["task"] == task for one in look["harmed"])]
    if not looks:
        return "nobody looked"
    rounds, left = (sum((look["round"] is None) == last for look in told) for last in (False, True))
    return f"{plural(rounds, 'round')}; still harmed after {plural(left, 'phase')}" if told else "not noticed"


def searched(life: FinishedLife) -> int:
    """Environment steps of its searches, which count against those of the online phase."""
    return sum(one.steps for one in scored(life.path).searches.values())


def rehearsal() -> str:
    """Bounded rehearsal beside the paper's way."""
    return table(json.loads(Path("docs/offline-32.json").read_text())) + "\n"


def ingredients() -> str:
    """Bounded rehearsal with each of its choices made differently in turn: lives of the catalog's `ingredients`."""
    found = json.loads(Path("docs/ingredients.json").read_text())
    rows = []
    for tag, change in INGREDIENTS.items():
        own = [life for life in found if life["life"].rsplit("-", 1)[0] == with_other(tag, change).name]
        phases = [over_seeds([life["by_phase"][name] for life in own]) for name in ("online", "offline")]
        lost = [one["at_the_end"][0] - one["after_own_stage"][0] for life in own for one in life["tasks"].values()]
        seconds, passes = (np.mean([number(life) for life in own]) for number in (offline_seconds, million_passes))
        choice = ", ".join(f"{name} {'all' if value is None else value}" for name, value in change.items())
        cells = [choice or "as it is", str(len(own)), *phases, over_seeds([life["end"] for life in own])]
        repairs = sum(life["repair_rounds"] for life in own)
        rows.append([*cells, short(min(lost), "+"), str(repairs), f"{seconds:.0f} s", f"{passes:.0f} M"])
    heads = ["", "seeds", "online", "offline", "at the end", "worst change", "rounds of repair"]
    return markdown([*heads, "offline, processor time", "passes"], rows)


def offline_seconds(life: dict[str, Any]) -> float:
    """Processor time of all offline phases of a digested life."""
    return life["cpu_seconds"]["offline"]


def million_passes(life: dict[str, Any]) -> float:
    """Samples that went through the network in them, in millions."""
    return life["sample_passes"] / 1e6


def pilots() -> str:
    """Single robot tasks: what was reached, and when."""
    rows = []
    alone = lives_where(lambda config: config.entry.alone and len(config.chosen) == 1, "robot")
    for life in sorted(alone, key=lambda life: (life.names, life.config.world.inputs, life.config.seed)):
        curve = [record for record in life.records if record["kind"] == "curve"]
        steps = np.array([record["steps"] for record in curve])
        success = np.array([np.mean(record["success"]) for record in curve])
        recent = np.convolve(success, np.full(RECENT, 1 / RECENT), "valid")
        first = first_at(Curve(steps, success), success[success > 0].min(initial=1))
        most = first_at(Curve(steps[RECENT - 1 :], recent), OFTEN)
        (task,), (end,) = life.names, life.summary["seen"]["success"]
        about = [task, life.config.world.inputs, str(life.config.seed), commit_of(life)]
        rows.append([*about, f"{life.steps_per_task:,}", f"{life.finals[task]:.0f}", f"{end:.2f}", first, most])
    heads = ["task", "inputs", "seed", "commit", "steps", "return", "success"]
    return markdown([*heads, "first success at", "80 % success at"], rows)


def several_arms(tasks: int) -> list[FinishedLife]:
    """Lives of so many robot tasks."""
    return lives_where(lambda config: len(config.chosen) == tasks, "robot")


def robot_lives(tasks: int) -> str:
    """Several robot tasks in a row: mean returns before learning, after each phase and at the end; successes then."""
    rows = []
    for life in several_arms(tasks):
        means = [f"{value:.0f}" if np.isfinite(value) else "" for value in (bar(life, name) for name in BARS)]
        success = life.summary["seen"]["success"]
        rows.append(
            [
                *(label(life.agent), unlike_usual(life.config), str(life.config.seed), commit_of(life), *means),
                *(f"{np.mean(success):.2f}", " ".join(f"{one:.2f}" for one in success)),
                f"{life.summary['seconds'] / 60:.0f}",
            ]
        )
    heads = ["agent", "options", "seed", "commit", *BARS, "success at the end", "of each task", "minutes"]
    return markdown(heads, rows)


def unlike_usual(config: LifeConfig) -> str:
    """The options about how practice begins in which lives of robots differ from what is usual there."""
    own, usual = (flat(to_json(one)) for one in (config.settings, usual_settings(AGENTS[config.agent], ROBOTS)))
    return " ".join(f"`{option(name, own[name])}`" for name in BEGINNING if name in own and own[name] != usual[name])


def option(name: str, value: Any) -> str:
    """An option as it is given."""
    said = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{said}" if value else f"--no-{said}"
    return f"--{said} {value:g}" if isinstance(value, float) else f"--{said} {value}"


def robots_compared(tasks: int) -> str:
    """The same lives: what they reached, kept and cost, by agents."""
    cells = [[row["label"], str(row["seeds"]), *numbers(row)] for row in compare_lives(several_arms(tasks))]
    return markdown(["agent, offline", "seeds", *(column.name for column in COLUMNS)], cells)


def commit_of(life: FinishedLife) -> str:
    """The commit that a life was lived with, in short."""
    return RunDirectory.open(life.path).manifest()["git"]["commit"][:7]


def first_at(curve: Curve, threshold: float) -> str:
    """The first step at which a threshold is reached."""
    step = steps_to(curve, threshold)
    return f"{step:,.0f}" if np.isfinite(step) else "never"


def consolidators() -> str:
    """What consolidators made of the same explored replay of robot tasks; and the mean of each over tasks."""
    told = [json.loads(line) for line in Path("docs/consolidators.jsonl").read_text().splitlines()]
    rows, lost = [], {}
    for one in (one for one in told if one["acting"] == "actor"):
        by_mean = next(two for two in told if two["acting"] != "actor" and same_learner(one, two))
        online = next(two for two in told if two["learner"] == "online" and two["task"] == one["task"])
        lost.setdefault(one["learner"], []).append((one["return"] - online["return"]) / MOST)
        error = np.hypot(one["error"], online["error"]) / MOST
        change = "" if one is online else f"{short(lost[one['learner']][-1], '+')} ({short(error)})"
        values = [f"{two['return']:.0f} ({two['error']:.0f}), {two['success']:.2f}" for two in (one, by_mean)]
        rows.append([one["task"], one["learner"], *values, change, f"{one['seconds']:.0f} s"])
    for learner in list(lost)[1:]:
        rows.append([f"mean over {len(lost[learner])} tasks", learner, "", "", over_seeds(lost[learner], "+"), ""])
    heads = ["task", "policy", "drawn actions: return, success", "mean action: return, success"]
    return markdown([*heads, "change, of the maximum", "processor time"], rows)


def same_learner(one: dict[str, Any], two: dict[str, Any]) -> bool:
    """Whether two lines are of the same policy."""
    return (one["task"], one["learner"]) == (two["task"], two["learner"])


def refolded() -> str:
    """Offline phases gone through again, each with one choice made differently: means over phases."""
    found = json.loads(Path("docs/refold.json").read_text())
    rows = []
    for choice in dict.fromkeys(one["choice"] for one in found):
        own = [one for one in found if one["choice"] == choice]
        lost = over_seeds([one["return"] - one["online"] for one in own], "+")
        old, worst = over_seeds([one["old"] for one in own], "+"), short(min(one["worst_old"] for one in own), "+")
        drift, seconds = (np.mean([one[name] for one in own]) for name in ("drift", "seconds"))
        rows.append([choice, lost, short(drift), old, worst, f"{seconds:.0f} s"])
    heads = ["", "new task, against online", "from its teacher, nats", "old tasks' change", "worst of these"]
    return markdown([*heads, "processor time"], rows)


def long_life() -> str:
    """Costs of a life of 768 tasks as it goes on, and by how much they rise."""
    costs = json.loads((ROOT / "docs/long-life.json").read_text())
    return long_life_tables(costs, list(RunDirectory.open(ROOT / "results/world-768-0").metrics()))


def definitions() -> str:
    """All metrics."""
    rows = [
        [metric.name, metric.source, f"`{metric.formula}`".replace("|", r"\|"), metric.better]
        for metric in every_metric()
    ]
    return markdown(["metric", "by", "formula", "better"], rows)


def durations() -> str:
    """How long experiments last at each scale, by estimate."""
    rows = []
    for experiment in EXPERIMENTS:
        planned = [experiment.planned(scale, Path("runs")) for scale in SCALES]
        left = [all_left([], [estimates.seconds(life.config) for life in lives], AT_ONCE) for lives in planned]
        rows.append([f"`{experiment.name}`", *(foreseen(seconds).removeprefix("about ") for seconds in left)])
    return markdown(["", *(f"`{scale}`" for scale in SCALES)], rows)


TABLES: dict[str, Callable[[], str]] = {
    "durations": durations,
    "results": results,
    "stl": single_tasks,
    "fig2": figure_2,
    "fig2-million": partial(figure_2, 1_000_000),
    "wrong-modules": wrong_modules,
    "fig3": figure_3,
    "fig3-time": figure_3_over_time,
    "fig3-cost": figure_3_cost,
    "figE2": figure_e2,
    "compared": compared,
    "tuning": tuning,
    "forgotten": forgotten,
    "robot-pilots": pilots,
    "robot-lives": partial(robot_lives, 4),
    "robots-compared": partial(robots_compared, 4),
    "robot-lives-8": partial(robot_lives, 8),
    "robots-compared-8": partial(robots_compared, 8),
    "consolidators": consolidators,
    "refold": refolded,
    "ingredients": ingredients,
    "offline-32": rehearsal,
    "long-life": long_life,
    "metrics": definitions,
}


def rewritten(text: str) -> str:
    """A page with its tables as they are now."""

    def current(found: re.Match) -> str:
        if found[1] not in TABLES:
            raise unknown("table", found[1], TABLES)
        return f"<!-- modlife: {found[1]} -->\n\n{TABLES[found[1]]()}<!-- end -->"

    if len(MARKED.findall(text)) != text.count("<!-- modlife:"):
        raise InputError("A table has no <!-- end -->.")
    with contextlib.chdir(ROOT):
        return MARKED.sub(current, text)


def main() -> None:
    """Writes all pages, or says which are not current."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    for name in PAGES:
        page = ROOT / name
        text, new = page.read_text(), rewritten(page.read_text())
        if text != new:
            print(f"{name}: {'not current' if options.check else 'written'}")
            if options.check:
                sys.exit(1)
            page.write_text(new)


if __name__ == "__main__":
    main()
