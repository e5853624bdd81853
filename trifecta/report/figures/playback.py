"""Watches of a video: what the player held ahead, the bitrate it showed, and when it stood still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.page_waterfall import WIDE

_Line = Sequence[tuple[float, float]]

_LEFT, _RIGHT, _PANEL, _TITLE, _AXIS = 66.0, 10.0, 150.0, 26.0, 40.0
_MOST_ROWS = 420.0  # height of all rows of the Gantt chart


@dataclass
class Watch:
    """One watch; times in ns since play."""

    arm: str
    name: str
    seconds: list[tuple[float, float, float]] = field(default_factory=list)  # time, buffer in ns, bitrate in bit/s
    first_frame_ns: float | None = None
    stalls: list[tuple[float, float]] = field(default_factory=list)
    watched_ns: float = 0.0


class Second(TypedDict):
    """What the player had at a second of a watch, counted from play."""

    arm: str
    trial: str
    visit: int
    second: int
    buffer_ns: int | None
    bitrate_bits_per_s: int | None


class Event(TypedDict):
    """What happened in a watch: ``play``, ``first_frame`` or a ``stall``, which has an end; ns since play."""

    arm: str
    trial: str
    visit: int
    event: str
    at_ns: int
    until_ns: int | None
    watched_ns: int


def watches(seconds: Sequence[Second], events: Sequence[Event]) -> list[Watch]:
    """The watches of a cell from the answers of ``playback`` and ``stalls``."""
    by_name: dict[tuple[str, int], Watch] = {}
    for event in events:
        one = _watch(by_name, event)
        one.watched_ns = event["watched_ns"]
        if event["event"] == "first_frame":
            one.first_frame_ns = event["at_ns"]
        elif event["event"] == "stall" and event["until_ns"] is not None:
            one.stalls.append((event["at_ns"], event["until_ns"]))
    for second in seconds:
        one = _watch(by_name, second)
        if second["buffer_ns"] is not None:
            one.seconds.append((second["second"] * 1e9, second["buffer_ns"], second["bitrate_bits_per_s"] or 0.0))
    return list(by_name.values())


def _watch(watches: dict[tuple[str, int], Watch], row: Second | Event) -> Watch:
    key = (row["trial"], row["visit"])
    return watches.setdefault(key, Watch(row["arm"], f"{row['trial']}-{row['visit']}"))


def playback(watches: Sequence[Watch], bold: Mapping[str, str], identity: str) -> str:
    """Buffer, bitrate and stalls on one axis of time; ``bold`` has the watch of each arm that stands out."""
    arms = list(dict.fromkeys(one.arm for one in watches))
    line = min(7.0, _MOST_ROWS / max(len(watches), 1))
    gantt = line * len(watches) + 6.0 * (len(arms) - 1)
    tall = 2 * (_PANEL + _TITLE) + _TITLE + gantt + _AXIS
    figure = svg.figure(tall, WIDE)
    high = max((one.watched_ns for one in watches), default=1e9)
    ticks = scales.labelled(scales.linear_ticks(high, 10))
    bits = max((bitrate for one in watches for _, _, bitrate in one.seconds), default=1.0) or 1.0
    held = max((buffer for one in watches for _, buffer, _ in one.seconds), default=1e9) or 1e9
    upper = _axes(figure, 0, _PANEL, tall, (high, held * 1.05))
    svg.ticks(upper, "y", *scales.labelled(scales.linear_ticks(held, 4)))
    _title(upper, "media held ahead of the picture", _PANEL)
    middle = _axes(figure, _PANEL + _TITLE, _PANEL, tall, (high, bits * 1.08))
    svg.ticks(middle, "y", *scales.labelled(scales.linear_ticks(bits, 4), lambda v: numbers.bit_rate(v) if v else "0"))
    _title(middle, "bitrate shown", _PANEL)
    lower = _axes(figure, 2 * (_PANEL + _TITLE), gantt, tall, (high, gantt))
    lower.set_ylim(gantt, 0)
    _title(lower, "startup (light) and stalls (dark), one line per watch", gantt)
    for target in (upper, middle, lower):
        svg.ticks(target, "x", ticks[0], ticks[1] if target is lower else [""] * len(ticks[0]))
    for place, arm in enumerate(arms):
        here = [one for one in watches if one.arm == arm and one.seconds]
        shown = next((one for one in here if one.name == bold.get(arm)), None)
        thin = [[(at, buffer) for at, buffer, _ in one.seconds] for one in here if one is not shown]
        _lines(upper, arm, [(at, buffer) for at, buffer, _ in shown.seconds] if shown else [], thin, place)
        _lines(middle, arm, _steps(shown) if shown else [], [_mean_bitrate(here)], place)
    svg.ticks(lower, "y", [], [])
    _gantt(lower, watches, arms, line)
    lower.set_xlabel("time since play", color=style.INK, fontsize=svg.FONT)
    return svg.render(figure, identity, f"Watches of a video. {'; '.join(_arm_words(watches, arm) for arm in arms)}")


def _axes(figure: Figure, top: float, height: float, tall: float, limits: tuple[float, float]) -> Axes:
    target = svg.axes(figure, _LEFT, top + _TITLE, _RIGHT, tall - top - _TITLE - height)
    target.set_xlim(0, limits[0])
    target.set_ylim(0, limits[1])
    return target


def _title(target: Axes, text: str, height: float) -> None:
    target.text(
        -_LEFT / (WIDE - _LEFT - _RIGHT), 1 + 7 / height, text, transform=target.transAxes, ha="left", va="bottom",
        color=style.INK, fontsize=svg.FONT,
    )  # fmt: skip


def _lines(target: Axes, arm: str, bold: _Line, thin: Sequence[_Line], place: int) -> None:
    """Thin lines and a bold one; those of later arms are narrower, so that lines on each other can all be seen."""
    look = style.arm_style(arm)
    target.add_collection(
        LineCollection([line for line in thin if line], colors=look.colour, linewidths=0.7, alpha=0.5), autolim=False
    )
    if bold:
        xs, ys = zip(*bold, strict=True)
        marks = max(1, len(xs) // 9)
        target.plot(
            xs, ys, color=look.colour, linewidth=(3.4, 2.4, 1.5)[min(place, 2)], linestyle=look.line,
            marker=look.marker, markersize=4.5, markevery=(place * marks // 3, marks), zorder=3,
        )  # fmt: skip


def _steps(watch: Watch) -> list[tuple[float, float]]:
    """A bitrate holds until it changes."""
    steps: list[tuple[float, float]] = []
    for at, _, bitrate in watch.seconds:
        if steps:
            steps.append((at, steps[-1][1]))
        steps.append((at, bitrate))
    return steps


def _mean_bitrate(watches: Sequence[Watch]) -> list[tuple[float, float]]:
    """The mean over watches, second by second."""
    by_second: dict[float, list[float]] = {}
    for one in watches:
        for at, _, bitrate in one.seconds:
            by_second.setdefault(at, []).append(bitrate)
    return [(at, sum(values) / len(values)) for at, values in sorted(by_second.items())]


def _gantt(target: Axes, watches: Sequence[Watch], arms: Sequence[str], line: float) -> None:
    at = 0.0
    for arm in arms:
        top, light, dark = at, [], []
        for one in (one for one in watches if one.arm == arm):
            light.append(_box(0, one.first_frame_ns or one.watched_ns, at, line))
            dark += [_box(start, end, at, line) for start, end in one.stalls]
            at += line
        colour = style.arm_style(arm).colour
        target.add_collection(PolyCollection(light, facecolors=colour, alpha=0.35, linewidths=0), autolim=False)
        if dark:
            target.add_collection(PolyCollection(dark, facecolors=colour, linewidths=0), autolim=False)
        target.text(
            -0.008, (top + at) / 2, style.name(arm), transform=target.get_yaxis_transform(), ha="right", va="center",
            color=style.INK, fontsize=svg.SMALL,
        )  # fmt: skip
        at += 6.0


def _box(left: float, right: float, top: float, line: float) -> list[tuple[float, float]]:
    lower = top + line * 0.8
    return [(left, top), (right, top), (right, lower), (left, lower)]


def _arm_words(watches: Sequence[Watch], arm: str) -> str:
    here = [one for one in watches if one.arm == arm]
    stalls = sum(len(one.stalls) for one in here)
    starts = sorted(one.first_frame_ns for one in here if one.first_frame_ns is not None)
    middle = numbers.duration(starts[len(starts) // 2]) if starts else "never"
    return f"{style.name(arm)}: {len(here)} watches, {stalls} stalls, first frame after {middle}"
