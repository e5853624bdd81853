"""What an export format is: the function that writes it, and the documentation that its file begins with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb

from trifecta.design.documented import Documentation, read

HEADINGS = ("Writes", "For")

Write = Callable[[duckdb.DuckDBPyConnection, Path], list[Path]]
"""Given a run's views, read-only, and an empty folder: writes into it, and says which files."""


@dataclass(frozen=True)
class Exporter:
    """A format: what it writes and for whom stands in the docstring of its function's file, under fixed headings."""

    write: Write
    package: str = ""
    """The package that it comes from; empty for Trifecta's own."""

    @cached_property
    def documentation(self) -> Documentation:
        """Title and sections; ValueError where the docstring has other headings."""
        return read(getattr(self.write, "__globals__", {}).get("__doc__"), HEADINGS)
