"""Small panels in rows, as studies of many scenarios draw them: scenarios down, tests across, a mark a protocol."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.panels import WIDE, DescribedFigure, fitted
from trifecta.report.figures.picture_files import Legend, with_legend

Ends = tuple[float | None, float | None]
_LEFT, _RIGHT, _GAP, _AXIS = 54.0, 6.0, 14.0, 48.0  # between panels of one scale, and where ticks need room
_TITLE, _TICKS, _NAMES, _LINE = 22.0, 17.0, 14.0, 24.0  # above a panel; below it; names of groups; a row not run
_PUBLISHED = "published"
_AIR = 1.06  # above the highest
_NEAR = 2.5  # a published value that far beyond ours still has a place on the axis
# Colour never stands alone: hatching and, of points, a marker; the texture is that of the legend.
_HATCHES = {"h1": ("//", "tcp"), "h2": ("", ""), "h3": ("xx", "quic")}


@dataclass(frozen=True)
class Scale:
    """An axis: panels of a row with the same have the same ends. ``top``: where it ends, where that is known."""

    name: str
    kind: Literal["box", "bar", "point"]
    write: Callable[[float], str]
    top: float | None = None


@dataclass(frozen=True)
class Mark:
    """What stands at a place: its middle, a box, and whiskers; inf lies beyond the axis, None is not known."""

    arm: str
    label: str
    middle: float | None = None
    box: Ends = (None, None)
    whisker: Ends = (None, None)
    word: str = ""
    """Written above it."""
    band: Ends | None = None
    """Between which values the study has it."""

    def values(self) -> Iterator[float]:
        """What the axis has to hold."""
        ends = (self.middle, *self.box, *self.whisker)
        yield from (value for value in ends if value is not None and math.isfinite(value))


@dataclass(frozen=True)
class Group:
    """Marks that belong together, and their name; ``note`` stands where there are none."""

    marks: Sequence[Mark]
    name: str = ""
    note: str = ""


@dataclass(frozen=True)
class Panel:
    """A panel: its title, its axis, and its groups from left to right."""

    title: str
    scale: Scale
    groups: Sequence[Group]


@dataclass(frozen=True)
class Row:
    """Panels side by side; a row of which nothing was run is one line that says so."""

    panels: Sequence[Panel]
    missing: str = ""


def draw(rows: Sequence[Row], height: float, description: str, more: Legend = ()) -> DescribedFigure:
    """Draw the rows; a panel is so many CSS pixels high. ``description``: in words; ``more`` goes into the legend."""
    heights = [_LINE if row.missing else _TITLE + height + _TICKS + _names(row) for row in rows]
    total_height = sum(heights) + 4
    figure = svg.figure(total_height, WIDE)
    top = 2.0
    for row, needs in zip(rows, heights, strict=True):
        if row.missing:
            line = svg.axes(figure, _LEFT, top, _RIGHT, total_height - top - needs)
            line.set_axis_off()
            line.text(0, 0.5, row.missing, color=style.MUTED, fontsize=svg.FONT, ha="left", va="center")
        else:
            for panel, left, width, first in _places(row):
                below = total_height - top - _TITLE - height
                target = svg.axes(figure, left, top + _TITLE, WIDE - left - width, below)
                _panel(target, panel, row, (width, height), first=first)
        top += needs
    return with_legend(DescribedFigure(figure, description), [*_legend(rows), *more])


def _names(row: Row) -> float:
    return _NAMES if any(group.name for panel in row.panels for group in panel.groups) else 0.0


def _places(row: Row) -> Iterator[tuple[Panel, float, float, bool]]:
    """Each panel with its left edge, its width, and whether it is the first of its scale and has the ticks."""
    firsts = [at == 0 or one.scale != row.panels[at - 1].scale for at, one in enumerate(row.panels)]
    gaps = sum(_AXIS if first else _GAP for first in firsts[1:])
    width = (WIDE - _LEFT - _RIGHT - gaps) / len(row.panels)
    left = _LEFT
    for at, (panel, first) in enumerate(zip(row.panels, firsts, strict=True)):
        left += 0 if at == 0 else _AXIS if first else _GAP
        yield panel, left, width, first
        left += width


def _legend(rows: Sequence[Row]) -> Iterator[tuple[str, str, str]]:
    panels = [(panel, _top(row, panel.scale)) for row in rows if not row.missing for panel in row.panels]
    marks = [(mark, high) for panel, high in panels for group in panel.groups for mark in group.marks]
    for arm, (_, texture) in _HATCHES.items():
        if any(mark.arm == arm for mark, _ in marks):
            yield style.name(arm), style.CSS_VARIABLES[style.arm_style(arm).colour], texture
    if any(len(set(mark.band)) > 1 and _within(mark.band, high) for mark, high in marks if mark.band):
        yield _PUBLISHED, style.CSS_VARIABLES[style.BAND], ""


def _within(band: Ends, high: float) -> list[float]:
    """The ends that lie on the axis."""
    return [end for end in band if end is not None and end <= high * _AIR]


def _top(row: Row, scale: Scale) -> float:
    """Where the axis of a row's panels ends."""
    if scale.top is not None:
        return scale.top
    marks = [mark for panel in row.panels if panel.scale == scale for group in panel.groups for mark in group.marks]
    high = max((value for mark in marks for value in mark.values()), default=0.0)
    bands = [end for mark in marks for end in mark.band or () if end is not None]
    return max([high, *(end for end in bands if end <= high * _NEAR)]) or 1.0


def _panel(target: Axes, panel: Panel, row: Row, size: tuple[float, float], *, first: bool) -> None:
    width, height = size
    scale, high = panel.scale, _top(row, panel.scale)
    positions: list[float] = []
    labels: list[str] = []
    at = 0.5
    for group in panel.groups:
        begins = at
        slots = [at + number for number in range(max(len(group.marks), 1))]
        at = slots[-1] + 1.0
        for x, mark in zip(slots, group.marks, strict=False):
            if mark.band:
                _band(target, mark.band, x, (scale, high))
            _mark(target, mark, x, (scale, high))
            positions.append(x)
            labels.append(mark.label)
        middle = (begins + at - 1.0) / 2
        if group.note:
            target.text(middle, high * 0.5, group.note, color=style.MUTED, fontsize=svg.SMALL, ha="center", va="center")
        if group.name:
            target.text(middle, -high * _AIR * (_TICKS + 6) / height, group.name, color=style.MUTED,
                        fontsize=svg.SMALL, ha="center", va="center")  # fmt: skip
        at += 0.6
    target.set_xlim(0, at - 0.6)
    target.set_ylim(0, high * _AIR)
    svg.ticks(target, "x", positions, labels, grid=False)
    target.tick_params(axis="x", length=0)
    marks = scales.linear_ticks(high, 4)
    svg.ticks(target, "y", marks, [scale.write(one) if first else "" for one in marks])
    target.tick_params(axis="y", length=0)
    target.text(0, 1 + 9 / height, fitted(panel.title, width), transform=target.transAxes, color=style.INK,
                fontsize=svg.FONT, ha="left", va="center")  # fmt: skip


def _band(target: Axes, band: Ends, x: float, axis: tuple[Scale, float]) -> None:
    """What was published, from the one end to the other; a single value is a line. Beyond the axis there is nothing."""
    scale, high = axis
    edge, known = high * _AIR, _within(band, high)
    if not known:
        return
    low, top = (0.0 if band[0] is None else band[0]), (edge if band[1] is None else min(band[1], edge))
    target.add_patch(Rectangle((x - 0.5, low), 1.0, top - low, facecolor=style.BAND, edgecolor="none", zorder=0.5))
    for end in known:
        target.plot([x - 0.5, x + 0.5], [end, end], color=style.INK, linewidth=1.0, linestyle=(0, (4, 2)),
                    zorder=1.5 if scale.kind == "point" else 4)  # fmt: skip


def _mark(target: Axes, mark: Mark, x: float, axis: tuple[Scale, float]) -> None:
    scale, high = axis
    if mark.middle is None:
        return
    look, edge = style.arm_style(mark.arm), high * _AIR
    if math.isinf(mark.middle):
        target.text(x, high, "∞", color=look.colour, fontsize=svg.FONT, ha="center", va="center")
    low, top = (None if end is None else min(end, edge) for end in mark.whisker)
    if low is not None and top is not None:
        target.plot(
            [x, x], [low, top], color=style.INK if scale.kind == "bar" else look.colour, linewidth=1.3, zorder=3
        )
        if mark.whisker[1] == math.inf:
            target.plot([x], [edge], "^", color=look.colour, markersize=4.5, clip_on=False, zorder=3)
    if scale.kind == "point":
        target.plot([x], [min(mark.middle, edge)], look.marker, color=look.colour, markersize=5.5, zorder=3)
    elif scale.kind == "bar":
        _block(target, mark.arm, x, (0.0, min(mark.middle, edge)))
    else:
        ends = tuple(min(end, edge) for end in mark.box if end is not None)
        if len(ends) == 2:
            _block(target, mark.arm, x, (ends[0], ends[1]))
        if math.isfinite(mark.middle):
            target.plot([x - 0.36, x + 0.36], [mark.middle] * 2, color=style.INK, linewidth=1.6, zorder=3.5)
    if mark.word:
        target.text(x, min(mark.middle, edge) + high * 0.08, mark.word, color=style.INK, fontsize=svg.SMALL,
                    ha="center", va="bottom")  # fmt: skip


def _block(target: Axes, arm: str, x: float, ends: tuple[float, float]) -> None:
    hatch, _ = _HATCHES.get(arm, ("", ""))
    target.add_patch(
        Rectangle((x - 0.36, ends[0]), 0.72, ends[1] - ends[0], facecolor=style.arm_style(arm).colour,
                  edgecolor=style.PAPER, linewidth=0.5, hatch=hatch or None, zorder=2)
    )  # fmt: skip
