"""Streams over time, the protocols side by side: a lane a request, with the instants at which its octets were sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.collections import PolyCollection
from matplotlib.transforms import blended_transform_factory

from trifecta.conclude.packets.points import Lane
from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.panels import DescribedFigure, crosses, dots, fitted, panels, points

MOST_LANES = 60
_GUTTER = 66.0


def stream_lanes(shown: Sequence[tuple[str, str, Sequence[Lane]]]) -> DescribedFigure:
    """Draw captures, each (title, arm, lanes); of many requests the first 60."""
    cut = [(title, arm, lanes[:MOST_LANES]) for title, arm, lanes in shown]
    count = max((len(lanes) for _, _, lanes in cut), default=1)
    pitch = 22.0 if count <= 8 else 13.0 if count <= 24 else 8.0
    named = pitch > 10
    gutter = _GUTTER if named else 16.0
    figure, targets = panels([title for title, _, _ in cut], 66 + pitch * count, left=gutter, gap=gutter)
    right = max((_end(lane) for _, _, lanes in cut for lane in lanes), default=1e6) * 1.02
    sentences = []
    for target, (title, arm, lanes) in zip(targets, cut, strict=True):
        target.set_xlim(0, right)
        target.set_ylim(count, 0)
        svg.ticks(target, "x", *scales.labelled(scales.linear_ticks(right, 4)))
        svg.ticks(target, "y", [], [])
        target.set_xlabel("time since the first packet", color=style.INK, fontsize=svg.SMALL)
        for first, second, colour in (("started_ns", "first_ns", style.WAIT), ("first_ns", "done_ns", style.BAND)):
            boxes = [_box(getattr(lane, first), getattr(lane, second), row) for row, lane in enumerate(lanes)]
            known = [box for box in boxes if box]
            if known:
                target.add_collection(PolyCollection(known, facecolors=colour, linewidths=0), autolim=False)
        dots(target, _moments([lane.sent_ns for lane in lanes]), style.arm_style(arm).colour, size=2.4, layer=3)
        if not lanes:
            svg.absent(target, "cannot be known")
        crosses(target, _moments([lane.lost_ns for lane in lanes]))
        if named:
            mixed = blended_transform_factory(target.transAxes, target.transData)
            for row, lane in enumerate(lanes):
                target.text(
                    -4 / (960 / len(cut) - _GUTTER), row + 0.55, fitted(lane.name, _GUTTER - 8), transform=mixed,
                    ha="right", va="center", color=style.MUTED, fontsize=svg.SMALL - 1,
                )  # fmt: skip
        sentences.append(f"{title}: {len(lanes)} requests, the last done after {numbers.duration(_last(lanes))}")
    return DescribedFigure(
        figure, f"Requests over time and when the octets of their responses were sent. {'; '.join(sentences)}"
    )


def _end(lane: Lane) -> float:
    return max([lane.started_ns, lane.first_ns or 0.0, lane.done_ns or 0.0, *map(float, lane.sent_ns[-1:])])


def _last(lanes: Sequence[Lane]) -> float | None:
    return max((lane.done_ns for lane in lanes if lane.done_ns is not None), default=None)


def _moments(lanes: Sequence[Iterable[float]]) -> Any:
    """The middle of its lane at each moment."""
    positions = [(at, row + 0.55) for row, moments in enumerate(lanes) for at in moments]
    return points([at for at, _ in positions], [row for _, row in positions])


def _box(left: float | None, right: float | None, row: int) -> list[tuple[float, float]]:
    if left is None or right is None:
        return []
    return [(left, row + 0.24), (right, row + 0.24), (right, row + 0.86), (left, row + 0.86)]
