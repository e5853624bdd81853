"""Along a factor: the value of every protocol, and the ratio of two of them, level by level."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from trifecta.design.numbers import FORMATS
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.ratios import estimate


@dataclass(frozen=True)
class Point:
    """A level and what was found there; None is not known."""

    level: float
    text: str
    value: float | None
    low: float | None
    high: float | None
    decided: bool = True


def _frame(points: Sequence[Point], label: str, wide_left: float) -> tuple[Axes, Callable[[str, str], str]]:
    figure = svg.figure(252)
    target = svg.axes(figure, wide_left, 22, 16, 40)
    levels = {point.level: point.text for point in points}
    low, high = min(levels), max(levels)
    if low > 0:
        target.set_xscale("log")
        target.set_xlim(low / (high / low) ** 0.06, high * (high / low) ** 0.06)
    else:
        target.set_xlim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    svg.ticks(target, "x", sorted(levels), [levels[level] for level in sorted(levels)], grid=False)
    target.set_xlabel(f"{label}{' (log)' if low > 0 else ''}", color=style.INK, fontsize=svg.FONT)
    return target, lambda identity, description: svg.render(figure, identity, description)


def values(curves: Mapping[str, Sequence[Point]], label: str, metric: str, unit: str, identity: str) -> str:
    """The metric of every protocol over the levels, with intervals; both axes logarithmic where they can be."""
    every = [point for points in curves.values() for point in points]
    target, render = _frame(every, label, 52)
    ends = [value for point in every for value in (point.value, point.low, point.high) if value]
    write = {"ns": scales.time_label, "1/s": scales.rate_label}.get(unit, scales.tick_label)
    if unit in ("ns", "1/s") and ends:
        low, high = min(ends) * 0.92, max(ends) * 1.08
        target.set_yscale("log")
        target.set_ylim(low, high)
        svg.ticks(target, "y", *scales.labelled(scales.log_ticks(low, high, 5), write))
    elif ends:
        target.set_ylim(0, max(ends) * 1.05)
        svg.ticks(target, "y", *scales.labelled(scales.linear_ticks(max(ends), 4), write))
    for arm, points in curves.items():
        look = style.arm_style(arm)
        known = [point for point in points if point.value is not None]
        xs, ys = [point.level for point in known], [point.value or math.nan for point in known]
        target.plot(xs, ys, **look.marked, linewidth=1.6, markersize=5)
        for point in known:
            if point.low is not None and point.high is not None:
                target.plot([point.level] * 2, [point.low, point.high], color=look.colour, linewidth=1.2)
    svg.head(target, metric)
    form = FORMATS[{"ns": "duration", "1/s": "per_second"}.get(unit, "text")]
    sentence = "; ".join(
        f"{style.name(arm)}: {', '.join(f'{form(point.value)} at {point.text}' for point in points)}"
        for arm, points in curves.items()
    )
    return render(identity, f"{metric} along {label}. {sentence}")


def ratios(points: Sequence[Point], pair: tuple[str, str], label: str, margin: float, identity: str) -> str:
    """The ratio of two protocols over the levels: filled where the verdict is decided, hollow where it is open."""
    target, render = _frame(points, label, 46)
    ends = [value for point in points for value in (point.value, point.low, point.high) if value]
    low, high = scales.ratio_limits([min(max(value, 1 / 20), 20.0) for value in ends if math.isfinite(value)], margin)
    target.set_yscale("log")
    target.set_ylim(low, high)
    svg.ticks(target, "y", *scales.ratio_ticks(low, high))
    target.axhspan(1 / (1 + margin), 1 + margin, color=style.BAND, linewidth=0, zorder=0)
    target.axhline(1.0, color=style.INK, linewidth=1.0, zorder=1)
    arm, reference = pair
    look = style.arm_style(arm)
    known = [point for point in points if point.value is not None]
    xs, ys = [point.level for point in known], [point.value or math.nan for point in known]
    target.plot(xs, ys, color=look.colour, linewidth=0.8, alpha=0.6)
    for point in known:
        ends_here = [max(point.low or low, low), min(point.high or high, high)]
        target.plot([point.level] * 2, ends_here, color=look.colour, linewidth=2.0, solid_capstyle="butt")
        estimate(target, point.level, scales.clamp(point.value or math.nan, low, high), look, filled=point.decided)
    svg.head(target, f"{style.name(arm)} ÷ {style.name(reference)} (log)")
    sentence = "; ".join(
        f"at {point.text} {FORMATS['ratio'](point.value)} {FORMATS['interval']((point.low, point.high))}"
        for point in points
    )
    return render(identity, f"{style.name(arm)} against {style.name(reference)} along {label}. {sentence}")
