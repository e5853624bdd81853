"""Rate over time by direction, and how many packets each acknowledgement stands for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes

from trifecta.conclude.packets.points import Acknowledged, Rates
from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.panels import DescribedFigure, panels


def rates(shown: Sequence[tuple[str, str, Rates]]) -> DescribedFigure:
    """Draw captures, each (title, arm, rates), on one pair of axes: server to client filled, client to server thin."""
    figure, targets = panels([f"{title}: {_peak(one)}" for title, _, one in shown], 220, left=78)
    right = max((one.end_ns for _, _, one in shown), default=1e6) or 1e6
    top = max((float(one.down.max(initial=0)) for _, _, one in shown), default=0.0)
    top = max(top, *(float(one.up.max(initial=0)) for _, _, one in shown)) * 1.08 or 1e6
    for place, (target, (_, arm, one)) in enumerate(zip(targets, shown, strict=True)):
        _axes(target, right)
        target.set_ylim(0, top)
        ticks = scales.linear_ticks(top, 4)
        svg.ticks(
            target, "y", ticks, [(numbers.bit_rate(tick) if tick else "0") if place == 0 else "" for tick in ticks]
        )
        edges = [place * one.bin_ns for place in range(len(one.down) + 1)]
        target.stairs(one.down, edges, color=style.arm_style(arm).colour, linewidth=1.4)
        target.stairs(one.up, edges, color=style.MUTED, linewidth=0.9)
    sentence = "; ".join(f"{title}: {_peak(one)}" for title, _, one in shown)
    return DescribedFigure(figure, f"Rate over time, where packets arrive. {sentence}")


def acknowledgements(shown: Sequence[tuple[str, str, Acknowledged]]) -> DescribedFigure:
    """Draw captures, each (title, arm, what the client acknowledged), on one pair of axes."""
    figure, targets = panels([f"{title}: {_mean(one)}" for title, _, one in shown], 220)
    right = max((one.end_ns for _, _, one in shown), default=1e6) or 1e6
    known = [float(each) for _, _, one in shown for each in one.each if math.isfinite(each)]
    top = max(known, default=0.0) * 1.1 or 1.0
    for place, (target, (_, arm, one)) in enumerate(zip(targets, shown, strict=True)):
        _axes(target, right)
        target.set_ylim(0, top)
        ticks = scales.linear_ticks(top, 4)
        svg.ticks(target, "y", ticks, [scales.tick_label(tick) if place == 0 else "" for tick in ticks])
        edges = [place * one.bin_ns for place in range(len(one.each) + 1)]
        target.stairs(one.each, edges, color=style.arm_style(arm).colour, linewidth=1.4, baseline=None)
    sentence = "; ".join(f"{title}: {_mean(one)}" for title, _, one in shown)
    return DescribedFigure(figure, f"Packets with data for each acknowledgement of the client, over time. {sentence}")


def _axes(target: Axes, right: float) -> None:
    target.set_xlim(0, right * 1.02)
    svg.ticks(target, "x", *scales.labelled(scales.linear_ticks(right * 1.02, 4)))
    target.set_xlabel("time since the first packet", color=style.INK, fontsize=svg.SMALL)


def _peak(one: Rates) -> str:
    most = float(one.down.max(initial=0))
    return f"up to {numbers.bit_rate(most)}" if most else "nothing from the server"


def _mean(one: Acknowledged) -> str:
    if one.mean is None:
        return "not known"
    size = "" if one.size is None else f", {numbers.size(one.size)}"
    return f"{numbers.number(one.mean)} packets an ACK{size}"
