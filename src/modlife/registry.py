"""Tables of what there is by name: domains, agents, curricula, searches, consolidators, figures.

An entry is a frozen value with a `name` and a sentence, `about`. What it stands for is given as `package.module:name`
and imported when needed, so that a table can be shown at once. Other packages add entries by a Python entry point of
the group `modlife`, which names a module or function that calls `modlife.register`.
"""

import importlib
import importlib.metadata
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

from modlife.errors import InputError, unknown

GROUP = "modlife"
"""The group of entry points that add to the tables."""


class Entry(Protocol):
    """What stands in a table."""

    @property
    def name(self) -> str:
        """What users type."""
        ...

    @property
    def about(self) -> str:
        """One sentence."""
        ...


EntryT = TypeVar("EntryT", bound=Entry)


class Table(Generic[EntryT]):
    """Entries of one kind by name, in the order in which they were added."""

    def __init__(self, kind: str, *entries: EntryT):
        self.kind, self._entries = kind, {entry.name: entry for entry in entries}

    def add(self, entry: EntryT) -> None:
        """One entry more; the same one twice is one."""
        if self._entries.setdefault(entry.name, entry) != entry:
            raise InputError(f"There is a {self.kind} '{entry.name}' already; choose another name.")

    def __getitem__(self, name: str) -> EntryT:
        load_plugins()
        if not isinstance(name, str) or name not in self._entries:
            raise unknown(self.kind, name, self._entries, hint="`modlife list` shows all.")
        return self._entries[name]

    def __iter__(self) -> Iterator[EntryT]:
        load_plugins()
        return iter(list(self._entries.values()))

    @property
    def names(self) -> tuple[str, ...]:
        """What can be asked for."""
        return tuple(entry.name for entry in self)

    def of(self, config: Any) -> EntryT:
        """The entry whose `config` is the class of this value. Its name is enough: nothing is imported for it."""
        here = f"{type(config).__module__}:{type(config).__qualname__}"
        for entry in self:
            if getattr(entry, "config", None) in (here, type(config)):
                return entry
        raise InputError(f"{type(config).__name__} is no config of a {self.kind}; known: {', '.join(self.names)}.")


def resolve(target: Any) -> Any:
    """What `package.module:name` stands for; anything else stands for itself."""
    if not isinstance(target, str):
        return target
    module, _, name = target.partition(":")
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


_loaded: set[str] = set()


def load_plugins() -> None:
    """Lets installed packages add to the tables, once per process; one that cannot be loaded is named."""
    if GROUP in _loaded:
        return
    _loaded.add(GROUP)
    for point in importlib.metadata.entry_points(group=GROUP):
        try:
            found = point.load()
            if callable(found):
                found()
        except InputError:
            raise
        except Exception as error:  # somebody else's code: whatever goes wrong in it has its name on it
            of = point.dist.name if point.dist else "?"
            raise InputError(f"The plugin '{point.name}' of package '{of}' cannot be loaded: {error}.") from error
