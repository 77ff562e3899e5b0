"""Packages that an export takes, and that are not installed with modlife itself."""

import importlib.util

from modlife.errors import InputError, installing


def need(extra: str, *packages: str) -> None:
    """Says what to install, if anything is missing."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(f"This takes {' and '.join(missing)}: {installing(extra)}.")
