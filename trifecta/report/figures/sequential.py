"""Requests one after the other: how long each took, and how fast a connection went on."""

from __future__ import annotations

from collections.abc import Sequence

from trifecta.analysis.sequential import Histogram, Progress
from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.panels import WIDE

_HEIGHT = 280


def histogram(latencies: Histogram, word: str, identity: str) -> str:
    """The round trips of every arm in the same bins; what is longer than the axis is said beside it."""
    figure = svg.figure(_HEIGHT, WIDE)
    target = svg.axes(figure, 58, 24, 14, 42)
    edges = latencies.edges
    target.set_xlim(edges[0] - 0.01 * (edges[-1] - edges[0]), edges[-1])
    top, descriptions = 0.0, []
    for arm, arm_histogram in latencies.arms.items():
        look, shares = style.arm_style(arm), arm_histogram.shares
        top = max(top, float(shares.max(initial=0.0)))
        target.stairs(shares, edges, fill=True, facecolor=look.colour, alpha=0.16, linewidth=0)
        target.stairs(shares, edges, edgecolor=look.colour, linewidth=1.5, linestyle=look.line)
        middle = (edges[arm_histogram.fullest] + edges[arm_histogram.fullest + 1]) / 2
        target.plot(
            [middle], [shares[arm_histogram.fullest]], look.marker, color=look.colour, markersize=6, clip_on=False
        )
        descriptions.append(
            f"{style.name(arm)}: {numbers.duration(arm_histogram.smallest)} to "
            f"{numbers.duration(arm_histogram.largest)}, "
            f"most about {numbers.duration(middle)}, mean {numbers.duration(arm_histogram.mean)}"
        )
    target.set_ylim(0, top * 1.1 or 1.0)
    span = [one for one in scales.linear_ticks(float(edges[-1]), 8) if one >= edges[0]]
    if len(span) < 4:  # far from 0: its ticks would leave the axis empty
        span = scales.log_ticks(float(edges[0]), float(edges[-1]), 8) if edges[0] > 0 else span
    svg.ticks(target, "x", *scales.labelled(span), grid=False)
    svg.ticks(target, "y", *scales.labelled(scales.linear_ticks(top * 1.1, 4), _percent))
    target.set_xlabel(word, color=style.INK, fontsize=svg.FONT)
    svg.head(target, "share of requests", 0.0)
    return svg.render(figure, identity, f"Histogram of the {word}. {'; '.join(descriptions)}")


def progression(points: Sequence[Progress], identity: str) -> str:
    """T_i over i: the mean over trials with its interval; thin, the smallest and the largest of all trials."""
    figure = svg.figure(_HEIGHT, WIDE)
    target = svg.axes(figure, 58, 24, 14, 42)
    arms = list(dict.fromkeys(point.arm for point in points))
    most = max(point.place for point in points)
    top = max(point.largest for point in points if point.place >= min(10, most)) * 1.08
    target.set_xscale("log")
    target.set_xlim(0.95, most * 1.05)
    target.set_ylim(0, top)
    sentences = []
    for arm in arms:
        look = style.arm_style(arm)
        own = [point for point in points if point.arm == arm]
        xs = [point.place for point in own]
        known = [point for point in own if point.low is not None and point.high is not None]
        if known:
            lows, highs = [point.low or 0.0 for point in known], [point.high or 0.0 for point in known]
            target.fill_between(
                [point.place for point in known], lows, [min(high, top) for high in highs], color=look.colour,
                alpha=0.16, linewidth=0,
            )  # fmt: skip
        for ends in ([point.smallest for point in own], [point.largest for point in own]):
            target.plot(xs, ends, color=look.colour, linewidth=0.6, alpha=0.7)
        target.plot(xs, [point.value for point in own], **look.marked, linewidth=1.7, markersize=4.2, markevery=15)
        sentences.append(f"{style.name(arm)}: {numbers.per_second(own[-1].value)} after {own[-1].place} requests")
    positions = [one for power in range(7) for one in (10.0**power, 3 * 10.0**power) if one <= most]
    svg.ticks(target, "x", positions, [scales.tick_label(one) for one in positions])
    svg.ticks(target, "y", *scales.labelled(scales.linear_ticks(top, 5), scales.rate_label))
    target.set_xlabel("i, requests answered on the connection (log)", color=style.INK, fontsize=svg.FONT)
    svg.head(target, "i ÷ (response i − request 1), requests per second", 0.0)
    return svg.render(figure, identity, f"Progression of requests per second. {'; '.join(sentences)}")


def _percent(share: float) -> str:
    return "0" if share == 0 else f"{scales.tick_label(round(share * 100, 3))} %"
