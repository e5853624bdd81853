"""What other installed packages add to Trifecta, by entry points of the groups ``trifecta.*``.

https://packaging.python.org/en/latest/specifications/entry-points/
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
BUILT_IN = "trifecta"


@dataclass(frozen=True)
class Refused:
    """An entry point that cannot be used, because it cannot be read or its name cannot be."""

    name: str
    package: str
    reason: str


ReadEntries = Callable[[str], tuple[list[EntryPoint], list[Refused]]]


def installed(group: str) -> tuple[list[EntryPoint], list[Refused]]:
    """The entry points of a group in all installed packages, of the first where one is installed twice on the path.

    ``importlib.metadata.entry_points`` would raise for all when the file of one is malformed.
    """
    entries: list[EntryPoint] = []
    refused: list[Refused] = []
    names_taken: set[str] = set()
    for package in importlib.metadata.distributions():
        name = "a package without a name"
        try:
            text = package.read_text("entry_points.txt") or ""
            if f"[{group}]" not in text:
                continue  # its name would be asked for in vain: that parses all of its metadata
            name = package.name or name
            if name not in names_taken:
                names_taken.add(name)
                entries += package.entry_points.select(group=group)
        except Exception as error:
            with suppress(Exception):
                name = package.name or name
            reason = f"its entry_points.txt cannot be read ({error}); report it to its author"
            refused.append(Refused(name, name, reason))
    return entries, refused


def package_of(entry: EntryPoint) -> str:
    """The package of an entry point, with its version."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else BUILT_IN


def place_of(entry: EntryPoint) -> str:
    """Where an entry point points, and whose it is."""
    return f"{entry.value} of {package_of(entry)}"


class Registry(Mapping[str, Item], Generic[Item]):
    """Parts of one kind by name: Trifecta's own, then those of other packages, loaded when the registry is first used.

    A part that decides what counts cannot be left out in silence, so one that is broken stops whoever asks, with one
    line that names the package and the remedy.
    """

    def __init__(
        self,
        kind: str,
        own: Mapping[str, Item],
        base: type[Item],
        adopt: Callable[[str, Item, str], Item],
        *,
        error: Callable[[str], Exception],
        taken: Collection[str] = (),
        beside: tuple[type[Any], ...] = (),
    ) -> None:
        """``adopt``: what stands in the registry for a part of this name from this package; ValueError: what is wrong.

        ``error`` makes of a line what is raised. ``taken``: names that are in use besides; ``beside``: types of the
        same group that are for another registry.
        """
        self.kind = kind
        self.group = f"trifecta.{kind}s"
        self.own = dict(own)
        """Trifecta's."""
        self._base = base
        self._adopt = adopt
        self._error = error
        self._taken = {*own, *taken}
        self._other_types = beside

    def __getitem__(self, name: str) -> Item:
        """The part of this name."""
        return self.own[name] if name in self.own else self._outside[name]

    def __iter__(self) -> Iterator[str]:
        """The names, Trifecta's own first."""
        yield from self.own
        yield from self._outside

    def __len__(self) -> int:
        """How many there are."""
        return len(self.own) + len(self._outside)

    @cached_property
    def _outside(self) -> dict[str, Item]:
        entries, refused = installed(self.group)
        for one in refused:
            raise self._error(f"package {one.package}: {one.reason}")
        items: dict[str, Item] = {}
        whose: dict[str, EntryPoint] = {}
        for entry in sorted(entries, key=lambda each: (each.name, package_of(each))):
            loaded = self._load(entry)
            if isinstance(loaded, self._other_types):
                continue
            if entry.name in self._taken or entry.name in whose:
                other = place_of(whose[entry.name]) if entry.name in whose else BUILT_IN
                raise self._broken(entry, f"has the name of that of {other}", "rename one, or uninstall its package")
            if not isinstance(loaded, self._base):
                raise self._broken(entry, f"is a {type(loaded).__name__}, no {self._base.__name__}")
            try:
                items[entry.name] = self._adopt(entry.name, loaded, package_of(entry))
            except ValueError as error:
                raise self._broken(entry, str(error)) from None
            whose[entry.name] = entry
        return items

    def _load(self, entry: EntryPoint) -> Any:
        try:
            return entry.load()
        except (Exception, SystemExit) as error:  # whatever foreign code raises is its own affair
            sentence = " ".join(str(error).split())
            raise self._broken(entry, f"cannot be loaded ({type(error).__name__}: {sentence})") from error

    def _broken(self, entry: EntryPoint, what: str, remedy: str = "") -> Exception:
        package = entry.dist.name if entry.dist is not None else BUILT_IN
        mend = remedy or f"report it to its author, or run: pip uninstall {package}"
        return self._error(f"{self.kind} {entry.name!r} ({place_of(entry)}) {what}; {mend}")
