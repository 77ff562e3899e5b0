"""Where the time went."""

from modlife.analysis.report.bars import lying_chart
from modlife.analysis.report.charts import Chart, Range, Table, number
from modlife.analysis.report.sections import Section
from modlife.analysis.report.told import Study, Told
from modlife.timing import took

WORDS = {
    "structure": "searching",
    "online": "practising",
    "offline": "folding in",
    "evaluation": "evaluating",
}
"""What people call the phases that take time."""


def panel(study: Study) -> Section | None:
    """Minutes by phase of each life."""
    known = [told for told in study.lives if told.cost.seconds > 0]
    if not known:
        return None
    phases = list(dict.fromkeys(phase for told in known for phase in told.cost.wall))
    parts = [of_life(known[0], phases)] if study.only else [of_lives(study, known, phases)]
    return Section("times", "Where did the time go?", "Time", sentence(study, known), parts)


def sentence(study: Study, known: list[Told]) -> str:
    """Time and memory in words."""
    if not study.only:
        return f"Wall-clock time; together {took(sum(told.cost.seconds for told in known))}."
    cost, steps = known[0].cost, known[0].life.summary.get("steps_per_second")
    most = f" Its process took at most {cost.megabytes:,.0f} MB of memory." if cost.megabytes else ""
    speed = f" That is {steps:,} environment steps a second, all phases counted." if type(steps) is int else ""
    return f"{took(cost.seconds)} in all.{speed}{most}"


def of_life(told: Told, phases: list[str]) -> Chart:
    """A bar for each phase."""
    wall, cpu = told.cost.wall, told.cost.cpu
    rows = [(phase, [(0.0, wall[phase] / 60, "g0")]) for phase in phases if wall[phase] > 0]
    numbers = [
        (WORDS.get(phase, phase), number(wall[phase] / 60, 2), number(cpu[phase] / 60, 2) if phase in cpu else "")
        for phase, _ in rows
    ]
    most = max(wall.values()) / 60
    longest = max(wall, key=wall.__getitem__)
    return lying_chart(
        [(WORDS.get(phase, phase), pieces) for phase, pieces in rows],
        Range(0, 1.02 * most),
        title="Minutes by phase",
        about=f"Most of it, {100 * wall[longest] / told.cost.seconds:.0f} %, went into {WORDS.get(longest, longest)}.",
        say="{row}, {column}: {value} minutes",
        table=Table(["phase", "wall-clock", "processor"], numbers),
        x="minutes",
    )


def of_lives(study: Study, known: list[Told], phases: list[str]) -> Chart:
    """A bar for each life."""
    rows = [(told.name, [(0.0, told.cost.seconds / 60, study.colour(told))]) for told in known]
    numbers = [
        (
            told.name,
            number(told.cost.seconds / 60, 1),
            *(number(told.cost.wall.get(phase, float("nan")) / 60, 1) for phase in phases),
            number(told.cost.megabytes, 0),
        )
        for told in known
    ]
    slowest = max(known, key=lambda told: told.cost.seconds)
    head = ["life", "all", *(WORDS.get(phase, phase) for phase in phases), "megabytes"]
    return lying_chart(
        rows,
        Range(0, 1.02 * slowest.cost.seconds / 60),
        title="Minutes of each life",
        about=f"{slowest.name} took longest: {took(slowest.cost.seconds)}.",
        say="{row}, {column}: {value} minutes",
        table=Table(head, numbers),
        x="minutes",
    )
