"""A figure of a study, drawn from what was measured here in the shape in which the study drew it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StudyFigure:
    """One figure or table: a picture, the rows behind it, and what a reader must know of both."""

    id: str
    """``bourbon2020-figure-14``: the name of its ``.svg`` and ``.csv``."""
    title: str
    source: str
    """Where the study has it: ``figure 14, 6.1``."""
    caption: str
    """What a reader must know; what is not as the study had it."""
    svg: str
    """An ``<svg>`` element; empty for a table only."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | int | None, ...], ...]
    """Units are in the names of the columns, times are integers in ns."""
    table: bool = False
    """Whether it is shown as a table in the page."""
