"""The top of a page: what the lives came to, in a sentence and a few numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from modlife.analysis.groups import Group, counted
from modlife.analysis.lives import label
from modlife.analysis.report.charts import Table, number
from modlife.analysis.report.markup import Markup, element, joined
from modlife.analysis.report.sections import plural, shown_table
from modlife.analysis.report.told import Study, Told
from modlife.domains.graph import ProblemGraph
from modlife.metrics import mean_and_error
from modlife.runs.store import OLD
from modlife.timing import took

DOING = {
    "structure": "has found its modules",
    "curve": "is practising",
    "offline": "is folding in what it learnt",
    "retention": "is folding in what it learnt",
}
"""What the last record of a stage says of a life that goes on."""


def title_of(study: Study) -> str:
    """What the page is about."""
    only = study.only
    if only is None:
        return f"{plural(len(study.lives), 'life', 'lives')} compared"
    return f"A life of {label(only.life.agent)}"


def subtitle_of(study: Study) -> str:
    """Who learnt, in words."""
    only = study.only
    return f"{only.life.config.entry.about[:1].upper()}{only.life.config.entry.about[1:]}." if only else ""


def terms_of(study: Study) -> list[str]:
    """What tasks are made of, and how returns come about, in each domain that these lives are in."""
    found = {one.life.config.domain.name: one.life.config for one in study.lives}
    names = [f"{name}: " if len(found) > 1 else "" for name in found]
    texts = [f"{made_of(config.world.graph)} {config.domain.returns}".strip() for config in found.values()]
    return [f"{name}{text}" for name, text in zip(names, texts, strict=True)]


def made_of(graph: ProblemGraph) -> str:
    """What a task of a domain is made of."""
    factors = ", ".join(factor.name for factor in graph.factors)
    example = "/".join(factor.components[0] for factor in graph.factors)
    return f"A task has a component for each factor ({factors}), such as {example}."


def headline(study: Study) -> Markup:
    """The sentence, the numbers, and what is wrong with files."""
    only = study.only
    body = one_life(only) if only else several(study)
    remarks = list(dict.fromkeys(remark for told in study.lives for remark in told.remarks))
    old = [told.name for told in study.lives if told.is_old]
    remarks += [f"{', '.join(old)}: {OLD}; damage may go unnoticed."] if old else []
    complaints = element("ul", *(element("li", remark) for remark in remarks), class_="remarks") if remarks else ""
    return joined([*body, complaints])


def one_life(told: Told) -> list[Markup]:
    """Of a life: what it came to, and its numbers."""
    tiles = [
        element("div", element("dt", name), element("dd", value, element("small", about)))
        for name, value, about in numbers(told)
    ]
    return [element("p", sentence(told), class_="lead"), element("dl", *tiles, class_="tiles")]


def sentence(told: Told) -> str:
    """What a life came to."""
    life = told.life
    how = "together" if life.config.order.together else "one after another"
    steps = f"{life.steps_per_task:,} steps each"
    if not told.has_ended:
        done = (
            f"{label(life.agent)} has learnt {life.tasks} of {plural(told.planned, 'task')} so far, {how}, in {steps}."
        )
        return " ".join([done, now(told), reached(told)]).strip()
    return f"{label(life.agent)} learnt {plural(life.tasks, 'task')} {how}, in {steps}. {reached(told)}"


def now(told: Told) -> str:
    """What a life that goes on is doing."""
    if not told.current:
        return "The next one has not begun."
    stage = told.current[-1].get("stage")
    tasks = told.stages[stage] if type(stage) is int and 0 <= stage < len(told.stages) else []
    doing = DOING.get(told.current[-1]["kind"], "is at work")
    return f"It {doing}" + (f": {tasks[0]}." if len(tasks) == 1 else ".")


def reached(told: Told) -> str:
    """The return and success, before learning and after."""
    life = told.life
    if not life.names:
        return ""
    seen = life.summary["seen"]
    when, success = "At the end" if told.has_ended else "Now", 100 * np.mean(seen["success"])
    text = f"{when} its mean return is {seen['mean_return']:.3f}, and it meets the goal in {success:.0f} % of episodes."
    if "zero-shot" in life.by_phase:
        before = life.by_phase["zero-shot"]["mean_return"]
        text += f" A task that it had not practised yet got {before:.3f} on average."
    return text


def numbers(told: Told) -> list[tuple[str, str, str]]:
    """Names, values, and words about them."""
    life, found = told.life, []
    seen = life.summary["seen"]
    if life.names:
        found.append(
            (
                "Return at the end" if told.has_ended else "Return now",
                number(seen["mean_return"]),
                f"mean over {plural(life.tasks, 'task')}",
            )
        )
        found.append(("Goal met", f"{100 * np.mean(seen['success']):.0f} %", "of episodes"))
    if "zero-shot" in life.by_phase:
        found.append(
            ("Before learning", number(life.by_phase["zero-shot"]["mean_return"]), "return of a task not yet practised")
        )
    if told.kept:
        worst = min(told.kept, key=lambda one: one.change)
        mean = float(np.mean([one.change for one in told.kept]))
        found.append(("Change since learnt", f"{mean:+.3f}", f"on average; at worst {worst.change:+.3f}"))
    if "unseen" in life.summary:
        unseen = life.summary["unseen"]
        found.append(
            ("Never met", number(unseen["mean_return"]), f"return in {plural(len(unseen['tasks']), 'other task')}")
        )
    if not told.has_ended:
        found.append(("Tasks", f"{life.tasks} of {told.planned}", "learnt so far"))
    if told.cost.seconds:
        found.append(("Time", took(told.cost.seconds), "wall-clock"))
    return found


def several(study: Study) -> list[Markup]:
    """Of several lives: which kind did best, and a row for each kind."""
    names, shared = without_shared([group.label for group in study.groups])
    rows = [row_of(study, group, name) for group, name in zip(study.groups, names, strict=True)]
    head = ["lives", "seeds", "return", "goal met", "before learning", "change", "worst change", "hours"]
    errors = " ± standard error" if any(len(group.lives) > 1 for group in study.groups) else ""
    caption = f"{shared}{'; means' if shared else 'Means'} over seeds{errors}; return: at the end, change: since learnt"
    return [element("p", best(study), class_="lead"), shown_table(Table(head, rows), caption)]


def without_shared(labels: Sequence[str]) -> tuple[list[str], str]:
    """Labels without what all of them say after who learnt; and what that is."""
    parts = [label.split(", ") for label in labels]
    shared = [part for part in parts[0][1:] if len(labels) > 1 and all(part in one[1:] for one in parts)]
    return [", ".join([one[0], *(part for part in one[1:] if part not in shared)]) for one in parts], ", ".join(shared)


def best(study: Study) -> str:
    """Which kind of lives has the highest return at the end."""
    goes_on = [told for told in study.lives if not told.has_ended]
    ended = [group for group in study.groups if not any(told in goes_on for told in study.told(group))]
    means = [(mean_and_error(values), group) for group in ended or study.groups if (values := finals(group))]
    if not means:
        return "None of these lives has learnt a task yet."
    (mean, error), group = max(means, key=lambda one: one[0][0])
    value = f"{mean:.3f}" + (f" ± {error:.3f}" if np.isfinite(error) else "") + f" ({counted(len(group.lives))})."
    more = f" {len(goes_on)} of {plural(len(study.lives), 'life', 'lives')} not ended yet." if goes_on else ""
    if len(study.groups) == 1:
        return f"{group.label}: mean return {'so far' if goes_on else 'at the end'} {value}{more}"
    return f"{group.label} has the highest mean return {'at the end' if ended else 'so far'}: {value}{more}"


def finals(group: Group) -> list[float]:
    """The mean return of each life of a group, of those that have learnt a task."""
    return [life.summary["seen"]["mean_return"] for life in group.lives if life.names]


def row_of(study: Study, group: Group, label: str) -> tuple[Any, ...]:
    """The numbers of a kind of lives, after what it is called here."""
    told = [one for one in study.told(group) if one.life.names]
    changes = [[kept.change for kept in one.kept] for one in told if one.kept]
    before = [one.life.by_phase["zero-shot"]["mean_return"] for one in told if "zero-shot" in one.life.by_phase]
    success = [100 * float(np.mean(one.life.summary["seen"]["success"])) for one in told]
    name = joined([element("span", class_=f"swatch {study.look(group)}"), label])
    return (
        name,
        len(group.lives),
        with_error(finals(group)),
        with_error(success, 0, " %"),
        with_error(before),
        with_error([float(np.mean(one)) for one in changes]),
        with_error([min(one) for one in changes]),
        with_error([one.cost.seconds / 3600 for one in told if one.cost.seconds], 2),
    )


def with_error(values: Sequence[float], digits: int = 3, unit: str = "") -> str:
    """A mean over seeds and its standard error; nothing where no life tells."""
    if not values:
        return ""
    mean, error = mean_and_error(values)
    return number(mean, digits) + (f" ± {number(error, digits)}" if np.isfinite(error) else "") + unit
