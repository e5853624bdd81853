"""The sections of a report beyond its verdicts: a new one is a file that has a ``Section``, and a line here.

A line says ``module:attribute``. Another package adds a section of its own with an entry point of the group
``trifecta.sections``, and no line here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from operator import attrgetter
from pathlib import Path
from typing import Any

import duckdb

from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import Views
from trifecta.report.figure import Figure
from trifecta.report.page_templates import TEMPLATES
from trifecta.report.tables import Table

GROUP = "trifecta.sections"
# In the order of the page, and of the parts of a cell.
SECTIONS = (
    "trifecta.report.far.section:SECTION",
    "trifecta.report.programs:SECTION",
    "trifecta.report.sweep:SECTION",
    "trifecta.report.sequential:SECTION",
    "trifecta.report.services:SECTION",
    "trifecta.report.visits:SECTION",
    "trifecta.report.packets:SECTION",
    "trifecta.report.why.section:SECTION",
    "trifecta.report.explain:SECTION",
)


@dataclass(frozen=True)
class Run:
    """What a section is made from: the run's views, what it says about itself, and its comparisons."""

    connection: duckdb.DuckDBPyConnection
    about: RunFacts
    comparisons: Sequence[Comparison]


@dataclass(frozen=True)
class Section:
    """A part that a report has when the run has something for it: first derived, then drawn.

    ``derive`` works out of the run what the section says; None: the run has nothing for it. ``rows`` are the derived
    tables among that, which the SQL in the report reads. ``draw`` makes, once those tables are there, what the
    templates show; None: nothing. The template ``page`` has it under ``name``, as a section with the anchor ``name``
    and ``title`` in the list of contents. The template ``cell`` has under ``part`` what ``cells`` of it has for a cell.
    """

    name: str
    title: str
    derive: Callable[[Run], Any]
    draw: Callable[[Run, Any], Any]
    rows: Callable[[Any], Views] = attrgetter("rows")
    page: str = ""
    cell: str = ""
    templates: Path = TEMPLATES


@dataclass(frozen=True)
class CellPart:
    """What a cell shows in a section whose cells have the template ``packets-cell``."""

    whose: str
    figures: list[Figure]
    tables: list[Table]
    sql: dict[str, str]


@dataclass(frozen=True)
class SectionIndex:
    """All sections, and why one is missing."""

    sections: tuple[Section, ...]
    missing: tuple[str, ...]


def load_sections() -> SectionIndex:
    """Trifecta's sections, then those of other packages by name; one that cannot be loaded is named in ``missing``."""
    from trifecta import entries as packages

    sections = [EntryPoint("", value, GROUP).load() for value in SECTIONS]
    entries, refused = packages.installed(GROUP)
    missing = [f"{one.package}: {one.reason}" for one in refused]
    taken = {one.name for one in sections}
    for entry in sorted(entries, key=lambda one: (one.name, one.value)):
        try:
            added = entry.load()
        except Exception as error:
            missing.append(f"{entry.name} ({entry.value}): {type(error).__name__}: {error}")
            continue
        if not isinstance(added, Section):
            missing.append(f"{entry.name} ({entry.value}): not a trifecta.report.sections.Section")
        elif added.name in taken:
            missing.append(f"{entry.name} ({entry.value}): there is a section {added.name!r} already")
        else:
            taken.add(added.name)
            sections.append(added)
    return SectionIndex(tuple(sections), tuple(missing))
