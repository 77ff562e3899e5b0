"""Where a life stands, from its files alone: nothing is locked, loaded or changed. No JAX here."""

from dataclasses import dataclass, field
from typing import Literal

from modlife.runs.lease import is_held
from modlife.runs.store import RunDirectory


@dataclass(frozen=True)
class Standing:
    """How far a life has come, and what it has cost."""

    state: Literal["ended", "running", "interrupted"]
    met: int
    """Tasks that it has learnt."""
    planned: int
    """Tasks that it is planned for."""
    phase: str = ""
    """The phase in which it was saved last; empty between tasks."""
    done: int = 0
    """Steps done in that phase."""
    wall_seconds: dict[str, float] = field(default_factory=dict)
    """Spent on each phase; empty where nothing is known."""
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    peak_megabytes: float | None = None


def standing(run: RunDirectory) -> Standing:
    """Where the life of a run directory stands."""
    planned, summary = len(run.config().chosen), run.summary()
    if summary is not None and summary["tasks"] == planned:
        times = {name: summary.get(name, {}) for name in ("wall_seconds", "cpu_seconds")}
        return Standing("ended", planned, planned, **times, peak_megabytes=summary.get("peak_megabytes"))
    state = "running" if is_held(run.path) else "interrupted"
    known = run.newest_description()
    if known is None:
        return Standing(state, 0, planned)
    facts, times = known.facts, (known.wall_seconds, known.cpu_seconds, known.peak_megabytes)
    return Standing(state, len(facts.met), planned, facts.phase, facts.done, *times)
