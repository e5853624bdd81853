"""What a change costs each protocol: a ratio with its interval a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.transforms import blended_transform_factory

from trifecta.design.numbers import FORMATS
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.ratios import estimate, ratio_frame


@dataclass(frozen=True)
class Change:
    """A row: its label, the protocol whose mark it gets, ratio and interval; hollow when nothing is decided."""

    label: str
    arm: str
    ratio: float | None
    low: float | None
    high: float | None
    decided: bool


def changes(rows: Sequence[Change], margin: float, label: str, identity: str) -> str:
    """The rows on one logarithmic axis of ratios."""
    figure = svg.figure(58 + 30.0 * len(rows))
    target = svg.axes(figure, 12, 6, 16, 40)
    ends = [value for row in rows for value in (row.ratio, row.low, row.high) if value]
    low, high = scales.ratio_limits([min(max(value, 1 / 20), 20.0) for value in ends], margin)
    target.set_ylim(len(rows), 0)
    ratio_frame(target, low, high, margin, "x")
    svg.ticks(target, "y", [], [])
    mixed = blended_transform_factory(target.transAxes, target.transData)
    for place, row in enumerate(rows):
        look = style.arm_style(row.arm)
        target.text(
            0.0, place + 0.08, row.label, transform=mixed, ha="left", va="top", color=style.INK, fontsize=svg.SMALL
        )
        if row.ratio is None:
            continue
        span = [max(row.low or row.ratio, low), min(row.high or row.ratio, high)]
        target.plot(span, [place + 0.72] * 2, color=look.colour, linewidth=2.2, solid_capstyle="butt")
        estimate(target, scales.clamp(row.ratio, low, high), place + 0.72, look, filled=row.decided)
    target.set_xlabel(f"{label} (log)", color=style.INK, fontsize=svg.FONT)
    sentence = "; ".join(
        f"{row.label}: {FORMATS['ratio'](row.ratio)} {FORMATS['interval']((row.low, row.high))}" for row in rows
    )
    return svg.render(figure, identity, f"{label}. {sentence}")
