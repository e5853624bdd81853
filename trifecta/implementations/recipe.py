"""How an implementation that the machine does not have is brought into the project's own cache (``trifecta get``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from trifecta.store.cache import cache_folder

Say = Callable[[str], None]


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

    def missing(self) -> str:
        """What to tell when it is not there whole: what is wrong, where, and the remedy."""
        there = "another version's" if self.folder().exists() else "missing"
        return f"{self.name} is not in the cache ({self.folder()} is {there}); run: trifecta get {self.name}"


class ProgramRecipe(Recipe):
    """One that brings a single program."""

    @abstractmethod
    def program(self) -> Path:
        """The program; Unsupported, with the remedy, when it is not installed."""
