"""How complete pages looked over time, load by load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg


def visual_progress(curves: Mapping[str, Sequence[tuple[float, float]]], high: float, identity: str) -> str:
    """Draw the share of the page that was there, until ``high`` ns; a picture holds until the next."""
    figure = svg.figure(252)
    target = svg.axes(figure, 46, 20, 14, 40)
    target.set_xlim(0, high)
    target.set_ylim(0, 1.02)
    svg.ticks(target, "x", *scales.labelled(scales.linear_ticks(high, 5)))
    svg.ticks(target, "y", [0, 0.25, 0.5, 0.75, 1.0], ["0", "25 %", "50 %", "75 %", "100 %"])
    sentences = []
    for arm, points in curves.items():
        look = style.arm_style(arm)
        xs, ys = zip(*points, (high, points[-1][1]), strict=True)
        target.step(xs, ys, where="post", linestyle=look.line, color=look.colour, linewidth=1.7)
        half = next((at for at, share in points if share >= 0.5), None)
        sentences.append(f"{style.name(arm)}: half complete at {numbers.duration(half)}")
    target.set_xlabel("time since the navigation began", color=style.INK, fontsize=svg.FONT)
    svg.head(target, "visually complete")
    return svg.render(figure, identity, f"Visual progress of page loads. {'; '.join(sentences)}")
