"""The questions that a page answers, in their order; a file for each. A new one is a function and a line here."""

from modlife.analysis.report.panels import learning, memory, modules, origin, phases, tasks, times
from modlife.analysis.report.sections import Panel

PANELS: tuple[Panel, ...] = (
    learning.panel,
    phases.panel,
    memory.panel,
    modules.panel,
    modules.searches,
    phases.wrong_modules,
    tasks.panel,
    times.panel,
)
ORIGINS: tuple[Panel, ...] = (origin.differences, origin.panel)
"""What lives were made from: at the end."""
