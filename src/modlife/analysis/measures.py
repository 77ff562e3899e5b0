"""Lives as metrics need them: their scores, in groups, beside the curves of tasks that were learnt alone."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from modlife.analysis.groups import Group, grouped, in_steps
from modlife.analysis.lives import FinishedLife, label, read_lives
from modlife.metrics import Curve, Scores, mean_curve, scores_of


def scores_of_life(life: FinishedLife, alone: Mapping[str, Curve]) -> Scores:
    """What all metrics of a life follow from."""
    return scores_of(life.records, life.summary, alone, highest=life.config.world.graph.highest_return)


def curves_alone(lives: Sequence[FinishedLife], like: FinishedLife) -> dict[str, Curve]:
    """For each task, the mean curve over single-task lives with which a life can be compared; none of one of these."""
    found: dict[str, list[Curve]] = {}
    for life in lives:
        if life.config.entry.alone and not like.config.entry.alone and is_comparable(life, like):
            for task, returns in zip(life.curves.tasks, life.curves.returns, strict=True):
                found.setdefault(task, []).append(Curve(life.curves.steps, returns))
    return {task: mean_curve(curves) for task, curves in found.items()}


def is_comparable(life: FinishedLife, like: FinishedLife) -> bool:
    """Whether two lives have the same world, steps and, where both learn by it, settings of PPO."""
    ours, theirs = (getattr(one.config.settings, "ppo", None) for one in (life, like))
    same = (life.steps_per_task, life.config.world) == (like.steps_per_task, like.config.world)
    return same and (theirs is None or ours == theirs)


def groups_of(lives: Sequence[FinishedLife]) -> list[Group]:
    """Lives that differ in nothing but the seed, called by their agent, tasks and steps."""
    return grouped(lives, lambda life: f"{label(life.agent)}, {life.tasks} tasks, {in_steps(life.steps_per_task)}")


def scores_of_runs(paths: Sequence[Path]) -> dict[str, list[Scores]]:
    """The scores of run directories, by group; single-task lives are what others are measured against."""
    lives, found = read_lives(paths), {}
    for group in groups_of(lives):
        alone = curves_alone(lives, group.lives[0])
        found[group.label] = [scores_of_life(life, alone) for life in group.lives]
    return found
