"""The connections of a page load: a lane each, with its handshake and the requests that it carried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.transforms import blended_transform_factory

from trifecta.design import numbers
from trifecta.design.phrases import counted
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.page_waterfall import SPANS, WIDE, Fetch, Load, bars, end_of

_LABELS, _RIGHT, _AXIS = 250.0, 10.0, 40.0
_HEAD, _AIR, _LINE = 22.0, 5.0, 4.0
_LEAST = 12.0  # a lane is as high as its label
_MOST_LINES = 24  # requests at once that a lane shows; of more they lie on each other
_CARRIED = frozenset({"first_byte_ns", "done_ns"})


@dataclass
class Lane:
    """A connection and what it carried, each request on the first line that was free."""

    number: int
    origin: str
    fetches: list[tuple[Fetch, int]]
    lines: int

    @property
    def height(self) -> float:
        """In pixels."""
        return max(_LEAST, min(self.lines, _MOST_LINES) * _LINE)

    def label(self) -> str:
        """``2  cdn.light.lab, 11 requests, 0-RTT``."""
        opening = [row for row, _ in self.fetches if row["secured_ns"] is not None] or [self.fetches[0][0]]
        mark = ", 0-RTT" if opening[0]["zero_rtt"] else ", resumed" if opening[0]["resumed"] else ""
        count = len(self.fetches)
        host = self.origin.removesuffix(":443")
        return f"{self.number}  {host}, {counted(count, 'request')}{mark}"


def lanes(load: Load) -> list[Lane]:
    """The connections of a load, in the order of their numbers; what needed none (a cache) is left out."""
    fetches: dict[int, list[Fetch]] = {}
    for row in load.fetches:
        if row["connection"] is not None and not row["from_cache"]:
            fetches.setdefault(int(row["connection"]), []).append(row)
    load_lanes = []
    for number, rows in sorted(fetches.items()):
        ends: list[float] = []
        placed = []
        for row in sorted(rows, key=lambda one: one["request_sent_ns"] or one["start_ns"]):
            start = row["request_sent_ns"] or row["start_ns"]
            line = next((place for place, end in enumerate(ends) if end <= start), len(ends))
            ends[line : line + 1] = [row["done_ns"] or start]
            placed.append((row, line))
        load_lanes.append(Lane(number, str(rows[0]["origin"] or ""), placed, len(ends)))
    return load_lanes


def connections(loads: Mapping[str, Load], identity: str) -> str:
    """Draw the connections of all arms below each other on one axis of time."""
    of_arms = {arm: lanes(load) for arm, load in loads.items()}
    tall = sum(_HEAD + sum(lane.height + _AIR for lane in arm_lanes) for arm_lanes in of_arms.values())
    figure = svg.figure(tall + _AXIS + 4, WIDE)
    target = svg.axes(figure, _LABELS, 4, _RIGHT, _AXIS)
    high = end_of(loads.values())
    target.set_xlim(0, high)
    target.set_ylim(tall, 0)
    svg.ticks(target, "x", *scales.labelled(scales.linear_ticks(high, 8)))
    svg.ticks(target, "y", [], [])
    mixed = blended_transform_factory(target.transAxes, target.transData)
    at, boxes, descriptions = 0.0, _Boxes({}), []
    for arm, arm_lanes in of_arms.items():
        at += _HEAD
        title = f"{style.name(arm)}, {counted(len(arm_lanes), 'connection')}"
        target.text(
            -(_LABELS - 2) / (WIDE - _LABELS - _RIGHT), at - 5, title, transform=mixed, ha="left", va="bottom",
            color=style.INK, fontsize=svg.SMALL,
        )  # fmt: skip
        for lane in arm_lanes:
            target.text(
                -0.008, at + lane.height / 2, lane.label(), transform=mixed, ha="right", va="center",
                color=style.MUTED, fontsize=svg.SMALL - 1,
            )  # fmt: skip
            boxes.add(lane, at)
            at += lane.height + _AIR
        descriptions.append(f"{title}: {'; '.join(lane.label() for lane in arm_lanes[:8])}")
    boxes.draw(target)
    for arm, load in loads.items():
        descriptions.append(f"{style.name(arm)} loaded in {numbers.duration(load.marks['load_ns'])}")
    target.set_xlabel("time since the navigation began", color=style.INK, fontsize=svg.FONT)
    return svg.render(figure, identity, f"Connections of a page load. {'. '.join(descriptions)}")


@dataclass
class _Boxes:
    """Boxes by phase."""

    by_phase: dict[str, list[Any]]

    def add(self, lane: Lane, top: float) -> None:
        for row, line in lane.fetches:
            own = top + (line % _MOST_LINES) * _LINE
            for span, left, right in bars(row):
                if span.column == "free_ns":
                    continue
                # A handshake is the whole lane's; what was carried has a line.
                carried = span.column in _CARRIED
                upper, lower = (own, own + _LINE * 0.85) if carried else (top, top + lane.height)
                if lane.lines * _LINE < lane.height and carried:
                    upper, lower = top, top + lane.height
                self.by_phase.setdefault(span.column, []).append(
                    [(left, upper), (right, upper), (right, lower), (left, lower)]
                )

    def draw(self, target: Axes) -> None:
        for span in SPANS:
            boxes: Sequence[Any] = self.by_phase.get(span.column, ())
            if len(boxes):
                target.add_collection(
                    PolyCollection(
                        boxes, facecolors=span.colour, edgecolors=style.PAPER, linewidths=0.3, hatch=span.hatch or None
                    ),
                    autolim=False,
                )
