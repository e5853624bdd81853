"""A figure in a page."""

from __future__ import annotations

from dataclasses import dataclass

from trifecta.report.figures.picture_files import Legend


@dataclass(frozen=True)
class Figure:
    """A figure as an ``<svg>`` element, its title, and what a reader must know to read it.

    ``wide``: it needs the width of the page. ``shown``: unfolded at first. ``legend``: words, CSS variable of the
    colour and class of the hatching. ``query``: name of the query behind it.
    """

    title: str
    caption: str
    svg: str
    wide: bool = False
    shown: bool = True
    legend: Legend = ()
    query: str = ""
