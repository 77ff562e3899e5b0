"""Lives as text for a terminal: one with all that it tells, or several side by side by what differs between them."""

import json
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from modlife.analysis.groups import in_steps
from modlife.analysis.sparks import BLOCKS, in_bins, sparkline, table
from modlife.analysis.story import SURE, ModuleStory, Story, TaskStory
from modlife.errors import plain
from modlife.runs.codec import flat
from modlife.runs.config import in_full
from modlife.runs.store import OLD
from modlife.timing import took

EACH = 96
"""Lives with more tasks are told in groups of tasks, unless every task is asked for."""
GROUPS = 32
"""About so many groups."""
WORST = 10
"""Losses and alarms that are listed."""
MODULES, COMPONENTS = 8, 4
"""Modules of a factor, and components of each, that are named unless every task is asked for."""
NARROW, WIDE = 8, 24
"""Letters of a curve."""
MISSED = ("found", "online", "before", "structure")
"""Columns that are left out of narrow terminals, the first one first."""


@dataclass(frozen=True)
class Page:
    """Where text is written."""

    width: int = 100
    ramp: str = BLOCKS
    every_task: bool = False


def show(story: Story, page: Page) -> str:
    """One life."""
    parts = (about(story), curves(story, page), losses(story), modules(story, page), alarms(story), times(story))
    text = "\n\n".join("\n".join(flowed(part, page.width)) for part in parts if part)
    if story.standing.state != "interrupted":
        return text
    return f"{text}\n\ngo on with: modlife train --resume --out {plain(story.path)}"  # in one line, to be copied


def flowed(lines: Sequence[str], width: int) -> Iterator[str]:
    """Lines, those in pieces that are longer than there is room."""
    for line in lines:
        short = len(line) <= width
        yield from [line] if short else textwrap.wrap(line, width, subsequent_indent="  ", break_long_words=False)


def about(story: Story) -> list[str]:
    """Who learnt what, how far it has come, and what it came to."""
    config, now = story.config, story.now
    lines = [
        f"{plain(story.path)}: {config.agent} in {config.domain.name}, {story.standing.planned} tasks x "
        f"{in_steps(config.steps)}, seed {config.seed}",
        stands(story),
    ]
    if now is not None:
        when = "at the end of the life" if story.standing.state == "ended" else "in the last evaluation"
        lines.append(f"return {now:.3f}, mean over {counted(len(met(story)), 'task')} {when}")
    phases = [("before learning", "zero_shot"), ("after the online phase", "online"), ("after its stage", "first")]
    told = [f"{name} {mean:.3f}" for name, when in phases if (mean := story.mean(when)) is not None]
    if told:
        lines.append(f"each task in its own time: {', '.join(told)}")
    return lines


def met(story: Story) -> Sequence[Any]:
    """The tasks that the mean return is over."""
    return story.tasks if story.standing.state == "ended" else story.seen[-1]["tasks"]


def stands(story: Story) -> str:
    """Where the life stands."""
    now = story.standing
    if now.state == "ended":
        return f"ended: {counted(now.met, 'task')} learnt{'' if story.sealed else f'; {OLD}'}"
    doing = f", in the {plain(now.phase, 40)} phase of the next" if now.phase else ""
    return f"{now.state}: {now.met} of {counted(now.planned, 'task')} learnt{doing}"


def counted(number: int, what: str) -> str:
    """So many of something."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


# Curves


def curves(story: Story, page: Page) -> list[str]:
    """A line per task, or per group of tasks: its learning curve, and its returns."""
    if not story.tasks:
        return []
    groups = grouped(story.tasks, EACH if not page.every_task else len(story.tasks))
    body = returns(groups, shown_columns(story), page.width - NARROW - 2)
    room = min(WIDE, page.width - max(map(len, body)) - 2)
    low, high = span(story)
    if room < NARROW or not story.curves:
        return body
    lines = [f"{'curve':<{room}}  {body[0]}"]
    for group, line in zip(groups, body[1:], strict=True):
        lines.append(f"{sparkline(mean_curve(story, group, room), low=low, high=high, ramp=page.ramp)}  {line}")
    search = "; blank at first: a search for modules" if story.how.get("searched") else ""
    return [
        *lines,
        f"curve: training return over {in_steps(story.config.steps)}, from {low:.3g} to {high:.3g}{search}",
        MEANINGS,
    ]


MEANINGS = "returns of a task: before it was learnt, after its online phase, at the end of its stage, and now"


@dataclass(frozen=True)
class Column:
    """A value of tasks."""

    name: str
    of: Callable[[TaskStory], str | float | None]


COLUMNS = (
    Column("before", lambda one: one.zero_shot and one.zero_shot.mean),
    Column("online", lambda one: one.online and one.online.mean),
    Column("stage", lambda one: one.first and one.first.mean),
    Column("now", lambda one: one.now and one.now.mean),
    Column("structure", lambda one: "-".join(map(str, one.structure)) or None),
    Column("found", lambda one: one.how or None),
)


def shown_columns(story: Story) -> list[Column]:
    """Those that any task has a value for."""
    return [column for column in COLUMNS if any(column.of(one) is not None for one in story.tasks)]


def returns(groups: Sequence[Sequence[TaskStory]], columns: Sequence[Column], room: int) -> list[str]:
    """A table of tasks, or groups of them; where there is no room for it, without what can best be missed."""
    names = ["task" if all(len(group) == 1 for group in groups) else "tasks (means)", *map(label, groups)]
    kept = list(columns)
    while True:
        cells = [[column.name, *(cell(group, column) for group in groups)] for column in kept]
        cells = [column for column in cells if any(column[1:])]
        body = table(list(zip(names, *cells, strict=True)))
        missed = [column for column in kept if column.name in MISSED]
        if not missed or max(map(len, body)) <= room:
            return body
        kept.remove(min(missed, key=lambda column: MISSED.index(column.name)))


def grouped(tasks: Sequence[TaskStory], most: int) -> list[Sequence[TaskStory]]:
    """Each task by itself, or groups of neighbours if there are more than `most`."""
    size = 1 if len(tasks) <= most else -(-len(tasks) // GROUPS)
    return [tasks[start : start + size] for start in range(0, len(tasks), size)]


def label(group: Sequence[TaskStory]) -> str:
    """What a group is called."""
    return group[0].task if len(group) == 1 else f"{group[0].stage + 1} to {group[-1].stage + 1}"


def cell(group: Sequence[TaskStory], column: Column) -> str:
    """The mean of numbers; a text that only a single task has."""
    values = [value for one in group if (value := column.of(one)) is not None]
    numbers = [value for value in values if isinstance(value, float | int)]
    if numbers:
        return f"{np.mean(numbers):.3f}"
    return plain(values[0], 20) if values and len(group) == 1 else ""


def mean_curve(story: Story, group: Sequence[TaskStory], bins: int) -> Float[np.ndarray, " bins"]:
    """The mean of the learning curves of some tasks, in parts of a task's steps."""
    found = np.array([in_bins(*story.points(one), end=story.config.steps, bins=bins) for one in group])
    known = ~np.isnan(found)
    total, count = np.where(known, found, 0).sum(axis=0), known.sum(axis=0)
    return np.where(count > 0, total / np.maximum(1, count), np.nan)


def span(story: Story) -> tuple[float, float]:
    """From 0 to 1, or of what there is beyond."""
    values = [value for told in story.curves.values() for one in told for value in one["return"] if value is not None]
    return min(0.0, *values, 0.0), max(1.0, *values, 1.0)


# What was lost, what serves what


def losses(story: Story) -> list[str]:
    """The tasks that lost most since their stage, the worst first."""
    if not story.losses or story.mean_change is None:
        return []
    lost = [one for one in story.losses if one.change is not None and one.change < 0]
    sure = sum(one.is_sure for one in lost)
    lines = [
        f"forgetting: since its own stage a task's return changed by {story.mean_change:+.3f} on average over "
        f"{counted(len(story.losses), 'task')}; {len(lost)} lost, {sure} of them more than chance would give (*)"
    ]
    rows = [
        [one.task, f"{one.first.mean:.3f}", f"{one.now.mean:.3f}", f"{one.change:+.3f}{'*' if one.is_sure else ' '}"]
        for one in lost[:WORST]
        if one.first and one.now and one.change is not None
    ]
    if rows:
        when = "at the end" if story.standing.state == "ended" else "now"
        lines += table([["worst first", "after its stage", when, "change "], *rows])
        lines.append(f"*: more than {SURE} standard errors of the difference of the two evaluations")
    return lines


def modules(story: Story, page: Page) -> list[str]:
    """Which module serves which tasks, and how structures were found."""
    how = story.how
    if not how:
        return []
    ways = ", ".join(f"{plain(way, 20)} {count}" for way, count in how["found"].items())
    lines = [f"structures: {ways}"]
    if how["searched"]:
        lines.append(
            f"searched ones that have, for every component, the module first used for it: {how['as_expected']} of "
            f"{how['searched']}; others may be as good. Steps of a search: {how['steps_per_search']:,} on average"
        )
    rows = [["factor", "module", "tasks", "first for", "serves"]]
    for factor in dict.fromkeys(one.factor for one in story.modules):
        rows += of_factor([one for one in story.modules if one.factor == factor], whole=page.every_task)
    body = table(rows, left=(0, 3, 4))
    indent = " " * body[0].index("serves")
    return [*lines, *(part for line in body for part in textwrap.wrap(line, page.width, subsequent_indent=indent))]


def of_factor(modules: Sequence[ModuleStory], *, whole: bool) -> list[list[str]]:
    """A row for each module of a factor; of many, those that serve most tasks, and how many more there are."""
    kept = sorted(modules, key=lambda one: -len(one.tasks))[: None if whole else MODULES]
    rows = [
        [one.factor, str(one.module), str(len(one.tasks)), one.made_for, served(one, whole=whole)]
        for one in modules
        if one in kept
    ]
    more = len(modules) - len(kept)
    return [*rows, [modules[0].factor, "", "", "", f"and {counted(more, 'module')} more"]] if more else rows


def served(module: ModuleStory, *, whole: bool) -> str:
    """The components that a module serves; of many, those with most tasks, and how many more there are."""
    names = [f"{name} {count}" for name, count in module.components.items()]
    more = 0 if whole else len(names) - COMPONENTS
    return ", ".join(names[:COMPONENTS] if more > 0 else names) + (f" and {more} more" if more > 0 else "")


def alarms(story: Story) -> list[str]:
    """What was found harmed when old tasks were looked at."""
    if not story.looked:
        return []
    left = [one for one in story.alarms if one.left]
    lines = [
        f"retention: old tasks were looked at {counted(story.looked, 'time')}; {counted(len(story.alarms), 'alarm')}, "
        f"{len(left)} of them after all repair"
    ]
    worst = sorted(story.alarms, key=lambda one: one.after - one.before)[:WORST]
    rows = [
        [
            one.task,
            one.new,
            f"{one.before:.3f}",
            f"{one.after:.3f}",
            "refused" if one.refused else "repaired" if one.repaired else "",
        ]
        for one in worst
    ]
    return [*lines, *table([["harmed", "by", "return", "then", ""], *rows], left=(0, 1, 4))] if rows else lines


def times(story: Story) -> list[str]:
    """Where the time went, and the memory."""
    wall, peak = story.standing.wall_seconds, story.standing.peak_megabytes
    seconds = sum(wall.values()) or (story.summary or {}).get("seconds", 0.0)
    if not seconds:
        return []
    parts = ", ".join(f"{plain(name, 40)} {value / seconds:.0%}" for name, value in wall.items())
    memory = f", at most {peak:,.0f} MB of memory" if peak is not None else ""
    return [f"time: {took(seconds)}{f' ({parts})' if parts else ''}{memory}"]


# Several


def side_by_side(stories: Sequence[Story], page: Page) -> str:
    """Several lives: the options that differ, then their numbers, a column per life."""
    rows = [*differing(stories), *numbers(stories)]
    names, heads = short_names([one.path for one in stories]), max(len(row[0]) for row in rows)
    widths = [max(len(name), *(len(row[n + 1]) for row in rows)) + 2 for n, name in enumerate(names)]
    blocks = []
    for part in fitting(widths, page.width - heads):
        cells = [["", *(names[n] for n in part)], *([row[0], *(row[n + 1] for n in part)] for row in rows)]
        blocks.append("\n".join(table(cells)))
    return "\n\n".join(blocks)


def fitting(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Columns in blocks that have room, at least one in each."""
    block: list[int] = []
    for number, width in enumerate(widths):
        if block and sum(widths[n] for n in block) + width > room:
            yield block
            block = []
        block.append(number)
    yield block


def short_names(paths: Sequence[Path]) -> list[str]:
    """Paths by as many of their last parts as tell them apart."""
    for parts in range(1, max(len(path.parts) for path in paths) + 1):
        names = [plain(Path(*path.parts[-parts:]), 60) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{number}: {plain(path, 60)}" for number, path in enumerate(paths, start=1)]


def differing(stories: Sequence[Story]) -> list[list[str]]:
    """Options that are not the same in all lives that have them; a dash where one has not."""
    options = [meant(story) for story in stories]
    rows = []
    for name in dict.fromkeys(name for own in options for name in own):
        values = {json.dumps(own[name]) for own in options if name in own}
        if len(values) > 1:
            rows.append([name, *(in_cell(own[name]) if name in own else "-" for own in options)])
    return rows


def meant(story: Story) -> dict[str, Any]:
    """All options; where none is given for what the world or the agent says, what that is."""
    return flat(in_full(story.config, tasks=story.standing.planned))


def in_cell(value: Any) -> str:
    """An option's value."""
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return plain(text, 40) or "none"


def numbers(stories: Sequence[Story]) -> list[list[str]]:
    """What lives came to; rows that none has are left out."""
    shared = min(len(story.seen) for story in stories)
    lines: list[tuple[str, Callable[[Story], str | None]]] = [
        ("state", lambda one: one.standing.state),
        ("tasks learnt", lambda one: str(one.standing.met)),
        ("return now", lambda one: told(one.now)),
        (f"return after {counted(shared, 'stage')}", lambda one: told(after(one, shared))),
        ("before learning", lambda one: told(one.mean("zero_shot"))),
        ("after the online phase", lambda one: told(one.mean("online"))),
        ("after its stage", lambda one: told(one.mean("first"))),
        ("change since, mean", lambda one: told(one.mean_change, sign=True)),
        ("change since, worst", lambda one: told(one.losses[0].change, sign=True) if one.losses else None),
        ("alarms", lambda one: str(len(one.alarms)) if one.looked else None),
        ("time", lambda one: took(seconds) if (seconds := spent(one)) else None),
        ("megabytes", lambda one: told(one.standing.peak_megabytes, digits=0)),
    ]
    rows = [[name, *((of(story) or "-") for story in stories)] for name, of in lines]
    return [row for row in rows if set(row[1:]) != {"-"}]


def spent(story: Story) -> float:
    """Seconds of the life so far."""
    return sum(story.standing.wall_seconds.values()) or (story.summary or {}).get("seconds", 0.0)


def after(story: Story, stages: int) -> float | None:
    """The mean return over tasks when so many stages had ended."""
    return story.seen[stages - 1]["mean_return"] if stages else None


def told(value: float | None, *, sign: bool = False, digits: int = 3) -> str | None:
    """A number, if it is known."""
    return None if value is None else f"{value:{'+' if sign else ''},.{digits}f}"
