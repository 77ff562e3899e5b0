"""All tables in one place: which kind of entry stands in which."""

from typing import Any

from modlife.analysis.figures import FIGURES, Figure
from modlife.domains.curricula import CURRICULA, Order
from modlife.domains.domain import DOMAINS, Domain
from modlife.errors import InputError
from modlife.lifelong.agents import AGENTS, AgentEntry
from modlife.lifelong.settings import CONSOLIDATORS, SEARCHES, ConsolidatorEntry, SearchEntry
from modlife.registry import Table

TABLES: dict[type, Table] = {
    Domain: DOMAINS,
    AgentEntry: AGENTS,
    Order: CURRICULA,
    SearchEntry: SEARCHES,
    ConsolidatorEntry: CONSOLIDATORS,
    Figure: FIGURES,
}


def add(entry: Any) -> None:
    """Puts an entry into the table of its kind."""
    if type(entry) not in TABLES:
        kinds = ", ".join(kind.__name__ for kind in TABLES)
        raise InputError(f"{type(entry).__name__} cannot be registered; {kinds} can.")
    TABLES[type(entry)].add(entry)
