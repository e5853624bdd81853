"""How an implementation that the machine does not have is brought into the project's own cache (``trifecta get``)."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

Say = Callable[[str], None]
CACHE_VARIABLE = "TRIFECTA_CACHE"


def cache_folder() -> Path:
    """Where fetched implementations live: ``TRIFECTA_CACHE``, or the user's cache folder (XDG base directories)."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "trifecta"


class Recipe(ABC):
    """A way to get one implementation without root. What it fetches is verified by checksum, and resumable.

    ``install`` works in a folder beside the final one and renames it at the end: what is there is whole.
    """

    name: str
    origin: str
    """Where from, in a few words: ``Debian sid``, ``PyPI``, ``Go modules``."""

    @abstractmethod
    def installed(self) -> bool:
        """Whether it is in the cache, whole."""

    @abstractmethod
    def install(self, say: Say) -> None:
        """Bring it into the cache; CannotError, with the remedy, when that fails. ``say`` is told of each step."""

    def folder(self) -> Path:
        """Its folder in the cache."""
        return cache_folder() / self.name
