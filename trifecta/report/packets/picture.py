"""A picture: what it is called, how to read it, and how to draw it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from trifecta.report.figures.panels import DescribedFigure
from trifecta.report.figures.picture_files import Legend


@dataclass(frozen=True)
class Picture:
    """A figure, the stem of its file, its title and how to read it; ``draw`` makes a new one each time."""

    name: str
    title: str
    caption: str
    draw: Callable[[], DescribedFigure]
    wide: bool = True
    legend: Legend = field(default_factory=list)
