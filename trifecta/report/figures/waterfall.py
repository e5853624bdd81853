"""A cycle hop by hop: when each call began, its handshake, the way there, the time at the service, the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict, cast

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.transforms import blended_transform_factory

from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.latency import Phase

HOP_PHASES = (
    Phase("handshake_ns", "handshake of a hop", style.TLS, "\\\\", "tls"),
    Phase("way_ns", "way there", style.TRANSFER, ""),
    Phase("at_callee_ns", "at the service and behind it (thin)", style.SEND, ""),
    Phase("back_ns", "way back", style.WAIT, "//", "tcp"),
)
FEW = 9  # calls of a cycle that fit a panel of the usual width
WIDE = 800.0
_ROW, _HEAD = 15.0, 21.0


class Hop(TypedDict):
    """A call of a cycle: when it began, its phases (of HOP_PHASES) and how long the cycle took, in ns."""

    caller: str
    callee: str
    method: str
    path: str
    depth: int
    start_ns: int
    handshake_ns: int | None
    way_ns: int | None
    at_callee_ns: int | None
    back_ns: int | None
    total_ns: int
    trial: str
    request: int


def is_wide(cycles: Mapping[str, Sequence[Hop]]) -> bool:
    """Whether there are too many calls, or names too long, for a panel of the usual width."""
    return any(
        len(hops) > FEW or any(len(hop["caller"] + hop["callee"]) > 4 for hop in hops) for hops in cycles.values()
    )


def waterfall(cycles: Mapping[str, Sequence[Hop]], quantile: str, identity: str) -> str:
    """The cycles of all arms on one axis of time, one row per call; calls are in the order in which they began."""
    wide = is_wide(cycles)
    rows = sum(len(hops) for hops in cycles.values())
    figure = svg.figure(46 + _HEAD * len(cycles) + _ROW * rows, WIDE if wide else svg.WIDTH)
    target = svg.axes(figure, 226 if wide else 36, 4, 16, 40)
    high = max((hop["total_ns"] for hops in cycles.values() for hop in hops), default=1.0)
    target.set_xlim(0, high * 1.01)
    target.set_ylim(_HEAD * len(cycles) + _ROW * rows, 0)
    svg.ticks(target, "x", *scales.labelled(scales.linear_ticks(high, 8 if wide else 5)))
    svg.ticks(target, "y", [], [])
    at, descriptions, places = 0.0, [], []
    for arm, hops in cycles.items():
        total = numbers.duration(hops[0]["total_ns"])
        _label(target, at + _HEAD - 3, f"{style.name(arm)}, {total}", left=True)
        at += _HEAD
        for hop in hops:
            _label(target, at + _ROW / 2, _name(hop, wide), left=False)
            places.append((hop, at + _ROW / 2))
            at += _ROW
        descriptions.append(
            f"{style.name(arm)}: {total} over {len(hops)} calls; {'; '.join(_hop_words(hop) for hop in hops[:8])}"
        )
    _bars(target, places)
    target.set_xlabel("time since the cycle began", color=style.INK, fontsize=svg.FONT)
    return svg.render(figure, identity, f"The {quantile} cycle hop by hop. {'. '.join(descriptions)}")


def _label(target: Axes, at: float, text: str, *, left: bool) -> None:
    mixed = blended_transform_factory(target.transAxes, target.transData)
    if left:
        target.text(0.0, at, text, transform=mixed, ha="left", va="bottom", color=style.INK, fontsize=svg.SMALL)
    else:
        target.text(
            -0.008, at, text, transform=mixed, ha="right", va="center", color=style.MUTED, fontsize=svg.SMALL - 1
        )


def _bars(target: Axes, places: Sequence[tuple[Hop, float]]) -> None:
    """One collection of boxes a phase: a bar artist each would take most of the report's time."""
    lefts = [float(hop["start_ns"]) for hop, _ in places]
    for phase in HOP_PHASES:
        half = _ROW * (0.11 if phase.column == "at_callee_ns" else 0.33)
        boxes = []
        for place, (hop, at) in enumerate(places):
            value = _phase_ns(hop, phase)
            if value is None:
                continue
            left, right = lefts[place], lefts[place] + value
            boxes.append([(left, at - half), (right, at - half), (right, at + half), (left, at + half)])
            lefts[place] = right
        if boxes:
            target.add_collection(
                PolyCollection(
                    boxes, facecolors=phase.colour, edgecolors=style.PAPER, linewidths=0.4, hatch=phase.hatch or None
                ),
                autolim=False,
            )


def _phase_ns(hop: Hop, phase: Phase) -> float | None:
    return cast(Mapping[str, float | None], hop)[phase.column]


def _name(hop: Hop, wide: bool) -> str:
    """``A → B``; ``AMF → UDM PUT amf-3gpp-access`` where there is room, inner calls set in."""
    pair = f"{hop['caller']} → {hop['callee']}"
    if not wide:
        return pair if len(pair) > 5 else pair.replace(" ", "")
    what = str(hop["path"]).split("?")[0].rstrip("/").rsplit("/", 1)[-1]
    what = what if len(what) <= 24 else f"{what[:23]}…"
    return f"{pair} {hop['method']} {what}"


def _hop_words(hop: Hop) -> str:
    parts = [f"{phase.name} {numbers.duration(spent)}" for phase in HOP_PHASES if (spent := _phase_ns(hop, phase))]
    return f"{hop['caller']} to {hop['callee']} {', '.join(parts)}"
