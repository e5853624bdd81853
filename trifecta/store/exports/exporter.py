"""What an export is: a format that a folder gets, or a target that is reached by a URL; each documented in its file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb

from trifecta.design.documented import Documentation, read

HEADINGS = ("Writes", "For")
ALSO = ("Needs",)


@dataclass(frozen=True)
class Source:
    """A run that is exported: its folder, its views, and a folder to which these may COPY."""

    path: Path
    connection: duckdb.DuckDBPyConnection
    scratch: Path


Write = Callable[[duckdb.DuckDBPyConnection, Path], list[Path]]
"""Given a run's views and an empty folder, to which these may COPY: writes into it, and says which files."""

Gather = Callable[[Source, Path], list[Path]]
"""As `Write`, given the whole run: its folder, which is not to be changed, and its views."""

Send = Callable[[Source, str], list[str]]
"""Given a run and a URL: sends it there, and says what is there now, a line each.

CannotError, in one line without a secret, where the target cannot be reached or refuses; UserError for a bad URL.
Sent again, all is there once; sent again after it was cut, too.
"""


def _documented(function: Callable[..., Any] | None) -> Documentation:
    """The docstring of a function's file; ValueError where it has other headings."""
    return read(getattr(function, "__globals__", {}).get("__doc__"), HEADINGS, ALSO)


@dataclass(frozen=True)
class Exporter:
    """A format: what it writes and for whom stands in the docstring of its function's file, under fixed headings."""

    write: Write | None = None
    package: str = ""
    """The package that it comes from; empty for Trifecta's own."""
    gather: Gather | None = None
    """In the place of `write`, for what needs the run's name or its files."""

    def into(self, source: Source, folder: Path) -> list[Path]:
        """Write a run into an empty folder."""
        if self.gather is not None:
            return self.gather(source, folder)
        if self.write is None:
            raise TypeError("an exporter has a function `write` or `gather`")
        return self.write(source.connection, folder)

    @cached_property
    def documentation(self) -> Documentation:
        """Title and sections; ValueError where the docstring has other headings."""
        return _documented(self.write or self.gather)


@dataclass(frozen=True)
class Target:
    """A place that is reached by a URL, documented as a format is; ``Needs`` says extra and credentials."""

    send: Send
    schemes: tuple[str, ...]
    """Of the URLs that it takes."""
    package: str = ""

    @cached_property
    def documentation(self) -> Documentation:
        """Title and sections; ValueError where the docstring has other headings."""
        return _documented(self.send)
