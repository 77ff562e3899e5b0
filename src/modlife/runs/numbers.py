"""A life watches its numbers: what it learns and what it is told must be such, or it stops before it saves them."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np

from modlife.errors import Diverged
from modlife.lifelong.loop import Moment
from modlife.runs.codec import flat, to_json
from modlife.runs.config import LifeConfig


def check_numbers(moment: Moment, config: LifeConfig) -> None:
    """What is learnt and reported at a moment are numbers; if not, says which, where, and what to try."""
    wrong = wrong_parameter(moment) or wrong_report(moment)
    if wrong is None:
        return
    tasks = config.stages.stages[moment.told_of]
    where = tasks[0] if len(tasks) == 1 else f"{len(tasks)} tasks"
    options = flat({**to_json(config.settings), "world": to_json(config.world)})
    rates = [f"--{name.replace('_', '-')} (now {value})" for name, value in options.items() if "learning_rate" in name]
    advice = f"Try a new one with a smaller {' or '.join(rates)}, and look" if moment.done and rates else "Look"
    raise Diverged(
        f"Learning {where}, {moment.phase}, step {moment.done} of {moment.length}: {wrong} not finite. The life is "
        f"saved as it was one step before; going on with it leads here again. {advice} at the rewards of your tasks."
    )


def wrong_parameter(moment: Moment) -> str | None:
    """The first of the agent's parameters that is not finite, or of what a phase works on that is NaN."""
    learnt = {"parameters": moment.state.params, "the work of this phase": moment.state.work}
    for name, tree in learnt.items():
        for where, leaf in jax.tree_util.tree_leaves_with_path(eqx.filter(tree, eqx.is_inexact_array)):
            if is_bad(leaf, infinite=tree is moment.state.params):
                return f"{name} ({jax.tree_util.keystr(where).lstrip('.')}) are"
    return None


def is_bad(leaf: Any, *, infinite: bool) -> bool:
    """Whether an array has NaN; or, if asked for, infinities. A search may well hold some of those."""
    numbers = np.asarray(leaf)
    return not np.isfinite(numbers).all() if infinite else bool(np.isnan(numbers).any())


def wrong_report(moment: Moment) -> str | None:
    """The first number in a report that is infinite or NaN; None stands for what is not known."""
    for report in moment.reports:
        numbers = getattr(report, "numbers", None)
        found = first_wrong(numbers() if numbers else report.record())
        if found:
            return f"its {found} is"
    return None


def first_wrong(values: Mapping[str, Any]) -> str | None:
    """The name of the first value that has a number which is not finite."""
    for name, value in values.items():
        data = np.asarray(value)
        numbers = data if data.dtype.kind == "f" else [one for one in data.ravel() if isinstance(one, float)]
        if not np.isfinite(numbers).all():
            return name
    return None
