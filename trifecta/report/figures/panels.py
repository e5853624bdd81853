"""Panels side by side on one pair of axes, a capture each, and marks that stay small in a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from trifecta.report.figures import style, svg

WIDE = 960.0
_LEFT, _RIGHT, _GAP = 58.0, 8.0, 16.0
_MOST_POINTS = 6_000  # of one kind in one panel


@dataclass(frozen=True)
class DescribedFigure:
    """A figure and what it shows, in words."""

    figure: Figure
    label: str

    def svg(self, identity: str) -> str:
        """The figure as an element of a page."""
        return svg.render(self.figure, identity, self.label)


def panels(
    titles: Sequence[str], height: float, *, left: float = _LEFT, gap: float = _GAP, bottom: float = 40.0
) -> tuple[Figure, list[Axes]]:
    """A wide figure with a panel a title; ``height`` is that of the whole, in CSS pixels."""
    figure = svg.figure(height, WIDE)
    width = (WIDE - left - _RIGHT - gap * (len(titles) - 1)) / len(titles)
    targets = []
    for place, title in enumerate(titles):
        start = left + place * (width + gap)
        target = svg.axes(figure, start, 26, WIDE - start - width, bottom)
        target.text(
            0.0, 1.0 + 10 / (height - 26 - bottom), fitted(title, width), transform=target.transAxes, ha="left",
            va="center", color=style.INK, fontsize=svg.FONT,
        )  # fmt: skip
        targets.append(target)
    return figure, targets


def fitted(text: str, width: float) -> str:
    """The text, cut in its middle where it would not fit into so many pixels."""
    most = max(8, int(width / 6.4))
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-(most - most // 2 - 1) :]}"


def points(xs: Sequence[float], ys: Sequence[float]) -> Any:
    """Places (number, 2) for `dots` and `crosses`."""
    return np.column_stack([xs, ys])


def dots(target: Axes, points: Any, colour: str, *, size: float = 2.0, layer: float = 2.0) -> None:
    """Mark points with small squares: one path, and no two marks on the same pixel.

    Of what would not be seen apart only one mark is drawn, so that a million packets do not make a page of 100 MB.
    """
    if not len(points):
        return
    width, height = _pixels(target)
    (left, right), (low, high) = target.get_xlim(), target.get_ylim()
    per_x, per_y = (right - left) / width or 1.0, abs(high - low) / height or 1.0
    cells = np.column_stack([np.round((points[:, 0] - left) / per_x), np.round((points[:, 1] - low) / per_y)])
    _, first = np.unique(cells, axis=0, return_index=True)
    drawn_points = points[np.sort(first)]
    drawn_points = drawn_points[:: -(-len(drawn_points) // _MOST_POINTS)]
    ends = np.repeat(drawn_points, 2, axis=0).astype(float)
    ends[0::2, 0] -= per_x * size / 2
    ends[1::2, 0] += per_x * size / 2
    codes = np.tile([Path.MOVETO, Path.LINETO], len(drawn_points))
    target.add_patch(PathPatch(Path(ends, codes), edgecolor=colour, facecolor="none", linewidth=size, zorder=layer))


def mark_size(count: int) -> float:
    """The size of marks, in pixels, so that a few are seen and many do not run together."""
    return 4.5 if count <= 60 else 3.2 if count <= 300 else 2.2


def crosses(target: Axes, points: Any) -> None:
    """Mark what was lost."""
    if len(points):
        target.plot(
            points[:, 0], points[:, 1], "x", color=style.LATE, markersize=6, markeredgewidth=1.6, linestyle="none",
            zorder=5, clip_on=False,
        )  # fmt: skip


def _pixels(target: Axes) -> tuple[float, float]:
    figure = target.get_figure()
    assert figure is not None
    width, height = figure.get_size_inches() * svg.POINTS  # type: ignore[union-attr]
    box = target.get_position()
    return width * box.width, height * box.height
