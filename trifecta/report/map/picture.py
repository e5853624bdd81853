"""The picture of a map: the speed-up in steps of colour, the border with its uncertainty, and where was measured."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from trifecta.analysis.mapping.result import MapResult
from trifecta.analysis.mapping.search import PlaceIntervals
from trifecta.design import numbers
from trifecta.design.axes import Axis
from trifecta.design.metrics import METRICS
from trifecta.report.claims import is_
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.panels import DescribedFigure

WIDTH, HEIGHT = 640.0, 520.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 70.0, 40.0, 132.0, 84.0
_FINE = 61  # places of the picture on each axis
STEPS = (1.05, 1.1, 1.2, 1.35, 1.6, 2.0, 3.0, 5.0)  # ratios at which the colour changes, on both sides
SHADES = (0.10, 0.20, 0.30, 0.42, 0.55, 0.68, 0.82, 0.95)


def draw(result: MapResult) -> DescribedFigure:
    """The map; colour deepens with the ratio, hatching lies where the winner is open, dots grow with the blocks."""
    figure = svg.figure(HEIGHT, WIDTH)
    target = svg.axes(figure, _LEFT, _TOP, _RIGHT, _BOTTOM)
    target.set_xlim(0, 1)
    target.set_ylim(0, 1)
    arm, reference = style.name(result.plan.arm), style.name(result.plan.reference)
    label = f"{arm} against {reference} over {result.plan.x.name} and {result.plan.y.name}"
    if result.surface is not None:
        steps, sides = result.fine(_FINE)
        largest = _colours(target, result, sides, steps)
        _border(target, result, sides, steps)
        _legend(figure, result, largest)
    _draw_measured(target, result)
    for which, axis in (("x", result.plan.x), ("y", result.plan.y)):
        values = ticks(axis)
        svg.ticks(target, which, [axis.share(value) for value in values], [tick(axis, v) for v in values], grid=False)
    target.set_xlabel(_axis_label(result.plan.x), color=style.INK, fontsize=svg.FONT)
    target.set_ylabel(_axis_label(result.plan.y), color=style.INK, fontsize=svg.FONT)
    title = f"Who {is_(METRICS[result.metric], 'faster')}, for {result.traffic}"
    figure.text(
        _LEFT / WIDTH, 1 - 18 / HEIGHT, title, ha="left", va="center", color=style.INK,
        fontsize=svg.FONT + 1,
    )  # fmt: skip
    return DescribedFigure(figure, label)


def _colours(target: Axes, result: MapResult, sides: PlaceIntervals, steps: Any) -> float:
    """Bands of the expected ratio; the first ratio of the deepest colour used.

    Filled with the protocol's own colour and thinned by its opacity, so that light and dark pages both can show it.
    """
    mean = sides.mean.reshape(_FINE, _FINE)
    reach = float(abs(mean).max())
    used = [step for step in STEPS if math.log(step) < reach]
    bounds = [*(math.log(step) for step in used), reach + 0.01]
    for number, shade in enumerate(SHADES[: len(used)]):
        low, high = bounds[number], bounds[number + 1]
        for arm, band in ((result.plan.arm, [low, high]), (result.plan.reference, [-high, -low])):
            for path in _filled(target, steps, mean, band):
                colour = style.arm_style(arm).colour
                target.add_patch(PathPatch(path, facecolor=colour, edgecolor="none", alpha=shade, zorder=1))
    return used[-1] if used else 1.0


def _border(target: Axes, result: MapResult, sides: PlaceIntervals, steps: Any) -> None:
    """The line where none is faster, and the region where it may be, at the confidence asked for."""
    mean = sides.mean.reshape(_FINE, _FINE)
    tail = (1 - result.confidence) / 2
    unknown, band, ends = sides.above.reshape(_FINE, _FINE), [tail, 1 - tail], [tail, 1 - tail]
    if result.nodes() is not None:  # what is said without each node in turn is in the intervals alone
        unknown = sides.apart.reshape(_FINE, _FINE)
        band, ends = [float(unknown.min()) - 1, 0.0], [0.0]
    for path in _filled(target, steps, unknown, band):
        target.add_patch(PathPatch(path, facecolor="none", edgecolor=style.MUTED, linewidth=0, hatch="///", zorder=2))
    for level in ends:
        for path in _lines(target, steps, unknown, level):
            dashed = PathPatch(path, facecolor="none", edgecolor=style.INK, linewidth=0.9, zorder=3)
            dashed.set_linestyle((0, (4.0, 2.5)))
            target.add_patch(dashed)
    for path in _lines(target, steps, mean, 0.0):
        target.add_patch(PathPatch(path, facecolor="none", edgecolor=style.INK, linewidth=2.4, zorder=4))


def _filled(target: Axes, steps: Any, values: Any, band: list[float]) -> list[Path]:
    """Where the values lie in a band: paths, since a contour set takes its colours from a colour map of its own."""
    if values.max() <= band[0] or values.min() >= band[1]:
        return []
    contours = target.contourf(steps, steps, values, levels=band)
    paths = list(contours.get_paths())
    contours.remove()
    return paths


def _lines(target: Axes, steps: Any, values: Any, level: float) -> list[Path]:
    """The lines on which the values have a level."""
    if not values.min() < level < values.max():
        return []
    contours = target.contour(steps, steps, values, levels=[level])
    paths = list(contours.get_paths())
    contours.remove()
    return paths


def _draw_measured(target: Axes, result: MapResult) -> None:
    shares = result.plan.shares()
    for spot in result.spots:
        x, y = shares[spot.place]
        if spot.values:
            target.plot(
                [x], [y], "o", markersize=2.5 + 1.5 * math.sqrt(len(spot.values)), markerfacecolor=style.PAPER,
                markeredgecolor=style.INK, markeredgewidth=1.0, clip_on=False, zorder=6,
            )  # fmt: skip
        else:
            target.plot(
                [x], [y], "x", markersize=6, color=style.LATE, markeredgewidth=1.6, clip_on=False, zorder=6,
            )  # fmt: skip


def _legend(figure: Any, result: MapResult, largest: float) -> None:
    """Beside the picture: the steps of colour of both sides; below it: what the signs mean."""
    used = [step for step in STEPS if step <= largest]
    width, height = _RIGHT - 14, HEIGHT - _TOP - _BOTTOM
    box = figure.add_axes((1 - width / WIDTH, _BOTTOM / HEIGHT, width / WIDTH, height / HEIGHT))
    box.set_axis_off()
    row = min(22.0, (height - 72) / (2 * len(used) + 1))
    box.set_xlim(0, width)
    box.set_ylim(-height, 0)
    steps = [
        (
            SHADES[n],
            f"{scales.tick_label(one)} {f'to {scales.tick_label(used[n + 1])}' if n + 1 < len(used) else 'and more'}",
        )
        for n, one in enumerate(used)
    ]
    ours, theirs = (style.arm_style(arm).colour for arm in (result.plan.arm, result.plan.reference))
    lines = [(ours, *step) for step in reversed(steps)]
    lines += [(style.PAPER, 1.0, f"below {scales.tick_label(STEPS[0])}"), *((theirs, *step) for step in steps)]
    for number, (colour, shade, text) in enumerate(lines):
        y = -36.0 - row * number
        box.fill_between([0, 16], y, y - row, color=colour, alpha=shade, linewidth=0)
        box.plot([0, 16, 16, 0, 0], [y, y, y - row, y - row, y], color=style.GRID, linewidth=0.6)
        box.text(22, y - row / 2, text, va="center", color=style.INK, fontsize=svg.SMALL)
    for arm, y in ((result.plan.arm, -2.0), (result.plan.reference, -40.0 - row * len(lines))):
        text = f"{style.name(arm)} {METRICS[result.metric].word('faster')},\ntimes"
        box.text(0, y, text, va="top", color=style.INK, fontsize=svg.SMALL, linespacing=1.1)
    share = numbers.percent(result.confidence)
    sentence = (
        f"Thick line: the border. Hatched, between dashed lines: the winner is unknown at {share} confidence.\n"
        f"Dots: measured, larger with more blocks ({result.blocks} in all). Crosses: no trial counts."
    )
    figure.text(
        _LEFT / WIDTH,
        8 / HEIGHT,
        sentence,
        ha="left",
        va="bottom",
        color=style.MUTED,
        fontsize=svg.SMALL,
        linespacing=1.3,
    )


def ticks(axis: Axis) -> list[float]:
    """Round values of an axis."""
    if axis.scale == "log":
        return scales.log_ticks(axis.low, axis.high, 7)
    even = [value for value in scales.linear_ticks(axis.high, 6) if value >= axis.low]
    if axis.scale == "sqrt" and len(even) > 1:
        return [even[0], even[1] / 10, even[1] / 2 if even[1] else 0, *even[1:]]
    return even


def tick(axis: Axis, value: float) -> str:
    """What stands at one of them."""
    if axis.kind.digits == 2:
        return f"{scales.tick_label(100 * value)} %"
    return axis.kind.format(value)


def _axis_label(axis: Axis) -> str:
    words = {"rtt": "round-trip time", "loss": "loss, each way", "rate": "rate", "in_flight": "requests in flight"}
    how = {"log": " (log)", "sqrt": " (square root)", "linear": ""}[axis.scale]
    return f"{words.get(axis.name, axis.name.replace('_', ' '))}{how}"
