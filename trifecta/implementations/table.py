"""A table of adapters by name: those of this package, and those that other installed packages add by entry points.

Everything is loaded when it is used; what is not of this package first in a process of its own, with a time limit,
since an import can do anything. An adapter that cannot be loaded stays in its table in the form of one that is never
found and says why, so that it is a row with its reason and never harms the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Generic, TypeVar

from trifecta.design.any_level import ANY
from trifecta.design.errors import CannotError
from trifecta.design.model import PROTOCOLS
from trifecta.entries import BUILT_IN, ReadEntries, Refused, installed, package_of, place_of
from trifecta.implementations.browser import BrowserAdapter, RunningBrowser
from trifecta.implementations.browser import Job as BrowserJob
from trifecta.implementations.client import ClientAdapter, Job, Output, Row
from trifecta.implementations.isolated import call_apart, is_apart
from trifecta.implementations.recipe import Recipe, Say
from trifecta.implementations.server import Command, ServerAdapter, ServerOptions, Site, Unsupported
from trifecta.implementations.services.program import ServicesProgram

Adapter = TypeVar("Adapter")  # ServerAdapter, ClientAdapter, BrowserAdapter, ServicesProgram or Recipe
LOAD_TIMEOUT_S = 15.0  # as long as an adapter may take to find its program

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")  # it is a level of a factor, a folder, a word in a shell


class Table(Mapping[str, Adapter], Generic[Adapter]):
    """Adapters by name, loaded when they are asked for: built-in ones first, then others by name.

    Two packages that add the same name are both refused, since neither can be chosen for the user: the name stays in
    the table as a broken adapter that names both. A name of this package cannot be taken: see ``refused``.
    """

    def __init__(
        self,
        kind: str,
        built_in: Mapping[str, str],
        base: type[Any],
        broken: Callable[[str, str], Adapter],
        *,
        reserved: Sequence[str] = (),
        entries: ReadEntries = installed,
    ) -> None:
        """``built_in``: name -> ``module:attribute``; ``broken`` stands in for what cannot be loaded."""
        self.kind = kind
        self.group = f"trifecta.{kind}s"
        self._built_in = dict(built_in)
        self._base = base
        self._broken = broken
        self._taken = {*built_in, *reserved, ANY}
        self._entries = entries
        self._loaded: dict[str, Adapter] = {}

    def __getitem__(self, name: str) -> Adapter:
        """The adapter of this name, loaded now; one that cannot be loaded says so when it is looked for."""
        if name not in self._loaded:
            entries = self._choices[name]
            self._loaded[name] = self._load(name, entries)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        """Whether there is such a name, without loading it."""
        return name in self._choices

    def __iter__(self) -> Iterator[str]:
        """The names, without loading anything."""
        return iter(self._choices)

    def __len__(self) -> int:
        """How many names there are."""
        return len(self._choices)

    def package(self, name: str) -> str:
        """The installed package, with its version, that the adapter of this name comes from."""
        return " and ".join(package_of(entry) for entry in self._choices[name])

    def refused(self) -> list[Refused]:
        """Entry points that cannot be in the table, with the reason for each."""
        entries, unread = self._outside
        reasons = [(entry, self._refusal(entry)) for entry in entries]
        return [*unread, *(Refused(entry.name, package_of(entry), reason) for entry, reason in reasons if reason)]

    def _refusal(self, entry: EntryPoint) -> str | None:
        """Why an entry point of another package cannot be in the table; None when it can."""
        if not _NAME.fullmatch(entry.name):
            return f"{place_of(entry)} is not used: {entry.name!r} is not a name; use letters, digits and ._+-"
        if entry.name not in self._taken:
            return None
        own = f"{self._built_in[entry.name]} of {BUILT_IN}" if entry.name in self._built_in else "Trifecta itself"
        return f"{place_of(entry)} is not used: {self.kind} {entry.name!r} is {own}; rename it in {self.group}"

    @cached_property
    def _outside(self) -> tuple[list[EntryPoint], list[Refused]]:
        entries, refused = self._entries(self.group)
        return sorted(entries, key=lambda each: (each.name, package_of(each), each.value)), refused

    @cached_property
    def _choices(self) -> dict[str, list[EntryPoint]]:
        choices = {name: [EntryPoint(name, value, self.group)] for name, value in self._built_in.items()}
        for entry in self._outside[0]:
            if self._refusal(entry) is None:
                choices.setdefault(entry.name, []).append(entry)
        return choices

    def _load(self, name: str, entries: Sequence[EntryPoint]) -> Adapter:
        if len(entries) > 1:
            both = " and ".join(place_of(entry) for entry in entries)
            return self._broken(name, f"{both} have the same name, so neither is used; uninstall or rename one")
        entry = entries[0]
        problem = self._tried_apart(entry) if entry.dist is not None and not is_apart() else None
        try:
            if problem is None:
                adapter = self._object(entry)
                problem = self._problem(name, adapter)
        except (Exception, SystemExit) as error:  # whatever foreign code raises is its own affair
            problem = f"cannot be loaded ({type(error).__name__}: {error})"
        if problem:
            return self._broken(name, f"{place_of(entry)} {problem}; report it to its author")
        result: Adapter = adapter
        return result

    def _object(self, entry: EntryPoint) -> Any:
        loaded = entry.load()
        return loaded if isinstance(loaded, self._base) else loaded()

    def _tried_apart(self, entry: EntryPoint) -> str | None:
        """Why it hangs or crashes when it is loaded; None when it does neither: what it raises is met again."""

        def load() -> None:
            with suppress(Exception, SystemExit):
                self._object(entry)

        problem = call_apart({entry.name: load}, timeout_s=LOAD_TIMEOUT_S)[entry.name].problem
        return f"cannot be loaded ({problem})" if problem else None

    def _problem(self, name: str, adapter: Any) -> str | None:
        """What is wrong with a loaded adapter, or None."""
        if not isinstance(adapter, self._base):
            return f"is no {self._base.__name__}"
        if getattr(adapter, "name", None) != name:
            return f"calls itself {getattr(adapter, 'name', None)!r}; its name and the entry point's must be the same"
        if isinstance(adapter, Recipe):
            return None if isinstance(getattr(adapter, "origin", None), str) else "has no text 'origin'"
        if not isinstance(getattr(adapter, "source", None), str):
            return "has no text 'source'"
        protocols = getattr(adapter, "protocols", None)
        if not isinstance(protocols, frozenset) or not protocols or not protocols <= {*PROTOCOLS}:
            return f"has protocols {protocols!r}; a frozenset of {', '.join(PROTOCOLS)} is needed"
        return None


class _Broken:
    """Stands in for what cannot be loaded, and is never found."""

    def __init__(self, name: str, reason: str) -> None:
        """``reason``: one line, with the remedy."""
        self.name = name
        self.source = reason

    def find(self) -> str:
        """Never found."""
        raise Unsupported(self.source)


class BrokenServer(_Broken, ServerAdapter):
    """Stands in for a server's adapter that cannot be loaded."""

    def command(self, site: Site, options: ServerOptions) -> Command:
        """Never started."""
        raise Unsupported(self.source)


class BrokenClient(_Broken, ClientAdapter):
    """Stands in for a client's adapter that cannot be loaded."""

    def command(self, job: Job) -> Command:
        """Never started."""
        raise Unsupported(self.source)

    def rows(self, job: Job, output: Output) -> Iterator[Row]:
        """Never asked."""
        raise Unsupported(self.source)


class BrokenBrowser(_Broken, BrowserAdapter):
    """Stands in for a browser's adapter that cannot be loaded."""

    async def launch(self, job: BrowserJob) -> RunningBrowser:
        """Never started."""
        raise Unsupported(self.source)


class BrokenServices(_Broken, ServicesProgram):
    """Stands in for a program of services that cannot be loaded."""

    quic_congestion_control = "unknown"

    def program(self) -> Path:
        """Never started."""
        raise Unsupported(self.source)


class BrokenRecipe(Recipe):
    """Stands in for a recipe that cannot be loaded."""

    def __init__(self, name: str, reason: str) -> None:
        """``reason``: one line, with the remedy."""
        self.name = name
        self.origin = reason

    def installed(self) -> bool:
        """Never."""
        return False

    def install(self, say: Say) -> None:
        """Says why not."""
        raise CannotError(self.origin)

    def folder(self) -> Path:
        """No folder belongs to it, so none is touched."""
        raise CannotError(self.origin)
