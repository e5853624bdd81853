"""Paired ratios: block by block in one cell, their interval as blocks come in, and all cells at a glance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.transforms import blended_transform_factory

from trifecta.conclude.pairs import PairSeries
from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.panels import DescribedFigure


def _not_none(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value) and value > 0]


def ratio_frame(target: Axes, low: float, high: float, margin: float, axis: str) -> None:
    """A logarithmic ratio axis with the margin shaded and a line at 1."""
    positions, labels = scales.ratio_ticks(low, high)
    (target.set_xscale if axis == "x" else target.set_yscale)("log")
    (target.set_xlim if axis == "x" else target.set_ylim)(low, high)
    svg.ticks(target, axis, positions, labels)
    if axis == "x":
        target.axvspan(1 / (1 + margin), 1 + margin, color=style.BAND, linewidth=0, zorder=0)
        target.axvline(1.0, color=style.INK, linewidth=1.0, zorder=1)
    else:
        target.axhspan(1 / (1 + margin), 1 + margin, color=style.BAND, linewidth=0, zorder=0)
        target.axhline(1.0, color=style.INK, linewidth=1.0, zorder=1)


def say_sides(target: Axes, words: tuple[str, str], low: float, high: float) -> None:
    """Name the sides of 1 above a ratio axis, where there is room for it."""
    mixed = blended_transform_factory(target.transData, target.transAxes)
    span = math.log(high / low)
    gap = max(1.015, math.exp(0.012 * span))
    if -math.log(low) / span > 0.18:
        target.text(
            1 / gap, 1.015, words[0], transform=mixed, ha="right", va="bottom", color=style.MUTED, fontsize=svg.SMALL
        )
    if math.log(high) / span > 0.18:
        target.text(
            gap, 1.015, words[1], transform=mixed, ha="left", va="bottom", color=style.MUTED, fontsize=svg.SMALL
        )


def interval_bar(
    target: Axes,
    ends: tuple[float | None, float | None],
    limits: tuple[float, float],
    at: float,
    colour: str,
    *,
    width: float = 2.0,
) -> None:
    """An interval on a ratio axis, with an arrowhead where it goes on beyond the axis or has no bound."""
    (low, high), left, right = limits, ends[0] or 0.0, ends[1] or math.inf
    target.plot([max(left, low), min(right, high)], [at] * 2, color=colour, linewidth=width, solid_capstyle="butt")
    for goes_on, edge, head in ((left < low, low, "<"), (right > high, high, ">")):
        if goes_on:
            target.plot([edge], [at], head, color=colour, markersize=6.0, markeredgewidth=0, clip_on=False)


def estimate(target: Axes, x: float, y: float, look: style.ArmStyle, *, filled: bool, size: float = 6.5) -> None:
    """The mark of an estimate: filled when decided, hollow when open."""
    target.plot(
        [x], [y], look.marker, markersize=size, markerfacecolor=look.colour if filled else style.PAPER,
        markeredgecolor=look.colour, markeredgewidth=1.4 if size > 6 else 1.3,
    )  # fmt: skip


def blocks(series: Sequence[PairSeries], margin: float, metric: str, sides: tuple[str, str], identity: str) -> str:
    """One row a pair: a mark for every block (first block on top), the interval and the estimate below them."""
    figure = svg.figure(252)
    target = svg.axes(figure, 12, 20, 12, 40)
    ends = [value for one in series for value in (*one.ratios, *_not_none([one.low, one.high]))]
    spread = _not_none(ends)
    low, high = scales.ratio_limits(_clip(spread), margin)
    target.set_ylim(len(series) - 0.02, -0.02)
    ratio_frame(target, low, high, margin, "x")
    svg.ticks(target, "y", [], [])
    mixed = blended_transform_factory(target.transAxes, target.transData)
    for row, one in enumerate(series):
        look = style.arm_style(one.arm)
        target.text(
            0.0, row + 0.04, one.label, transform=mixed, ha="left", va="top", color=style.INK, fontsize=svg.SMALL
        )
        if row:
            target.axhline(row, color=style.GRID, linewidth=0.8)
        if one.ratios:
            count = len(one.ratios)
            heights = [row + 0.34 + 0.34 * place / max(1, count - 1) for place in range(count)]
            size = 3.6 if len(one.ratios) <= 30 else 2.4
            target.plot(
                [scales.clamp(ratio, low, high) for ratio in one.ratios],
                heights,
                look.marker,
                color=look.colour,
                markersize=size,
                alpha=0.65,
                markeredgewidth=0,
            )
        if one.ratio is not None and math.isfinite(one.ratio):
            interval_bar(target, (one.low, one.high), (low, high), row + 0.84, look.colour, width=2.2)
            target.plot(
                [scales.clamp(one.ratio, low, high)],
                [row + 0.84],
                look.marker,
                color=look.colour,
                markersize=6.5,
                markeredgecolor=style.PAPER,
                markeredgewidth=0.8,
            )
    say_sides(target, sides, low, high)
    target.set_xlabel(f"ratio of {metric} (log)", color=style.INK, fontsize=svg.FONT)
    sentence = "; ".join(
        f"{one.label}: {len(one.ratios)} blocks, ratio {_interval_words(one.ratio, one.low, one.high)}"
        for one in series
    )
    return svg.render(figure, identity, f"Paired ratios of {metric} per block. {sentence}")


def _interval_words(middle: float | None, low: float | None, high: float | None) -> str:
    return f"{numbers.ratio(middle)} {numbers.interval((low, high))}"


def _clip(values: Sequence[float]) -> list[float]:
    """Keep an interval that is still unbounded, or one wild block, from flattening everything else."""
    return [min(max(value, 1 / 20), 20.0) for value in values]


def sequence(series: Sequence[PairSeries], margin: float, metric: str, identity: str) -> str:
    """The estimate and its confidence sequence after each block."""
    figure = svg.figure(252)
    target = svg.axes(figure, 42, 20, 12, 40)
    shown = [one for one in series if one.looks]
    ends = [value for one in shown for value in one.middles]
    ends += [value for one in shown for value in _not_none([*one.lows[-2:], *one.highs[-2:]])]
    low, high = scales.ratio_limits(_clip(ends), margin)
    last = max((max(one.looks) for one in shown), default=1)
    target.set_xlim(0.6, last + 0.4)
    ratio_frame(target, low, high, margin, "y")
    positions = [value for value in scales.linear_ticks(last, 6) if 1 <= value == int(value)] or [1.0]
    svg.ticks(target, "x", positions, [scales.tick_label(value) for value in positions], grid=False)
    for one in shown:
        look = style.arm_style(one.arm)
        bottoms = [low if value is None else max(low, value) for value in one.lows]
        tops = [high if value is None else min(high, value) for value in one.highs]
        if one.reference != "h1":
            target.fill_between(one.looks, bottoms, tops, color=look.colour, alpha=0.13, linewidth=0)
        line = look.line if one.reference != "h1" else (0, (1.0, 1.2))
        target.plot(
            one.looks,
            one.middles,
            linestyle=line,
            color=look.colour,
            linewidth=1.7,
            marker=look.marker,
            markersize=3.4,
            markevery=max(1, len(one.looks) // 10),
        )
        target.plot(one.looks, bottoms, color=look.colour, linewidth=0.6, alpha=0.6)
        target.plot(one.looks, tops, color=look.colour, linewidth=0.6, alpha=0.6)
    target.set_xlabel("blocks", color=style.INK, fontsize=svg.FONT)
    target.text(
        0.0,
        1.015,
        f"ratio of {metric} (log)",
        transform=target.transAxes,
        ha="left",
        va="bottom",
        color=style.INK,
        fontsize=svg.FONT,
    )
    sentence = "; ".join(
        f"{one.label}: after {one.looks[-1]} blocks {_interval_words(one.middles[-1], one.lows[-1], one.highs[-1])}"
        for one in shown
    )
    return svg.render(figure, identity, f"Estimate and confidence sequence over blocks. {sentence}")


@dataclass(frozen=True)
class ForestRow:
    """One cell in the overview: its name and a series a pair."""

    label: str
    ratio: float | None
    low: float | None
    high: float | None
    decided: bool


def small_forest(
    rows: Sequence[ForestRow], pair: tuple[str, str], limits: tuple[float, float], margin: float, identity: str
) -> str:
    """The same for the first screen: a line a cell, without its name, on an axis that all paths share."""
    figure = svg.figure(20 + 15.0 * len(rows), 200.0)
    target = svg.axes(figure, 8, 3, 8, 17)
    low, high = limits
    target.set_ylim(len(rows) - 0.5, -0.5)
    ratio_frame(target, low, high, margin, "x")
    positions, labels = scales.ratio_ticks(low, high, 4)
    svg.ticks(target, "x", positions, labels)
    svg.ticks(target, "y", [], [])
    look = style.arm_style(pair[0])
    for row, one in enumerate(rows):
        if one.ratio is not None:
            interval_bar(target, (one.low, one.high), limits, row, look.colour)
            estimate(target, scales.clamp(one.ratio or 1.0, *limits), row, look, filled=one.decided)
    sentence = "; ".join(f"{one.label}: {_interval_words(one.ratio, one.low, one.high)}" for one in rows)
    return svg.render(
        figure, identity, f"{style.name(pair[0])} against {style.name(pair[1])}, cell by cell. {sentence}"
    )


def forest(
    rows: Sequence[ForestRow],
    pair: tuple[str, str],
    limits: tuple[float, float],
    margin: float,
    identity: str,
    *,
    sides: tuple[str, str],
) -> str:
    """The interval of every cell of a path for one pair, filled when decided and hollow when open."""
    return cells(rows, pair, limits, margin, sides=sides).svg(identity)


def cells(
    rows: Sequence[ForestRow],
    pair: tuple[str, str],
    limits: tuple[float, float],
    margin: float,
    *,
    sides: tuple[str, str],
    axis: str = "",
) -> DescribedFigure:
    """The same as a figure, of any cells; ``axis`` names what the ratio is of, where nothing beside it does."""
    below = 18.0 if axis else 0.0
    figure = svg.figure(52 + below + 27.0 * len(rows))
    target = svg.axes(figure, 12, 20, 12, 22 + below)
    arm, reference = pair
    low, high = limits
    target.set_ylim(len(rows) - 0.02, -0.02)
    ratio_frame(target, low, high, margin, "x")
    svg.ticks(target, "y", [], [])
    look = style.arm_style(arm)
    mixed = blended_transform_factory(target.transAxes, target.transData)
    for row, one in enumerate(rows):
        target.text(
            0.0, row + 0.08, one.label, transform=mixed, ha="left", va="top", color=style.INK, fontsize=svg.SMALL
        )
        if one.ratio is None:
            continue
        interval_bar(target, (one.low, one.high), limits, row + 0.74, look.colour)
        estimate(target, scales.clamp(one.ratio or 1.0, *limits), row + 0.74, look, filled=one.decided)
    say_sides(target, sides, low, high)
    if axis:
        target.set_xlabel(axis, color=style.INK, fontsize=svg.FONT)
    sentence = "; ".join(f"{one.label}: {_interval_words(one.ratio, one.low, one.high)}" for one in rows)
    return DescribedFigure(
        figure, f"{style.name(arm)} against {style.name(reference)}, ratio and interval of every cell. {sentence}"
    )
