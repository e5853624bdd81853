"""Packet sizes over time by direction, and the gaps between packets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trifecta.conclude.packets.points import Gaps
from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.panels import DescribedFigure, dots, mark_size, panels, points

Sizes = tuple[Any, Any]  # (ns, octets)
_WORDS = {"down": "server to client", "up": "client to server"}


def packet_sizes(shown: Sequence[tuple[str, str, Sizes, Sizes]], absent: str = "no packets") -> DescribedFigure:
    """Draw captures, each (title, arm, down, up); what the server sent above zero, what the client sent below.

    One without packets says ``absent``.
    """
    titles = [
        f"{title}: largest {_largest(down, up)}" if len(down[0]) or len(up[0]) else title
        for title, _, down, up in shown
    ]
    figure, targets = panels(titles, 260)
    every = [one for _, _, *both in shown for one in both if len(one[0])]
    right = max((float(times.max()) for times, _ in every), default=1e6) * 1.02
    top = max((float(octets.max()) for _, octets in every), default=1500.0) * 1.22  # room for words
    sentences = []
    for place, (target, (title, arm, down, up)) in enumerate(zip(targets, shown, strict=True)):
        target.set_xlim(0, right)
        target.set_ylim(-top, top)
        svg.ticks(target, "x", *scales.labelled(scales.linear_ticks(right, 4)))
        ticks = scales.linear_ticks(top, 3)
        both = [*[-tick for tick in ticks[:0:-1]], *ticks]
        svg.ticks(target, "y", both, [numbers.size(abs(tick)) if place == 0 else "" for tick in both])
        target.axhline(0, color=style.MUTED, linewidth=0.8)
        target.set_xlabel("time since the first packet", color=style.INK, fontsize=svg.SMALL)
        if not len(down[0]) and not len(up[0]):
            svg.absent(target, absent, 0.75, svg.FONT)
            sentences.append(f"{title}: {absent}")
            continue
        size = mark_size(max(len(times) for times, _ in every)) if every else 2.2
        dots(target, points(down[0], down[1]), style.arm_style(arm).colour, size=size)
        dots(target, points(up[0], -up[1]), style.MUTED, size=size)
        for word, at in (("down", 0.995), ("up", 0.005)):
            target.text(
                0.995, at, _WORDS[word], transform=target.transAxes, ha="right", va="top" if at > 0.5 else "bottom",
                color=style.MUTED, fontsize=svg.SMALL - 1,
            )  # fmt: skip
        sentences.append(f"{title}: {len(down[0])} packets down, {len(up[0])} up, the largest of {_largest(down, up)}")
    return DescribedFigure(figure, f"Packet sizes over time by direction. {'; '.join(sentences)}")


def _largest(down: Sizes, up: Sizes) -> str:
    return numbers.count(max((float(octets.max()) for _, octets in (down, up) if len(octets)), default=None)) + " B"


def packet_gaps(shown: Sequence[tuple[str, str, Gaps, Gaps]]) -> DescribedFigure:
    """Distribution of gaps, each capture (title, arm, down, up); up is drawn thin."""
    figure = svg.figure(252)
    target = svg.axes(figure, 46, 20, 14, 40)
    known = [gaps for _, _, *both in shown for gaps in both]
    low = max(1_000.0, min((gaps.least for gaps in known if gaps.least is not None), default=1_000.0))
    high = max((gaps.most for gaps in known if gaps.most is not None), default=1e9) * 1.1
    high = max(high, low * 10)
    target.set_xscale("log")
    target.set_xlim(low, high)
    target.set_ylim(0, 1.02)
    svg.ticks(target, "x", *scales.labelled(scales.log_ticks(low, high, 5)))
    svg.ticks(target, "y", [0, 0.25, 0.5, 0.75, 1.0], ["0", "25 %", "50 %", "75 %", "100 %"])
    sentences = []
    for title, arm, down, up in shown:
        look = style.arm_style(arm)
        for gaps, width in ((down, 1.8), (up, 0.8)):
            if gaps.count:
                target.plot(gaps.at.clip(low), gaps.shares, color=look.colour, linestyle=look.line, linewidth=width)
        sentences.append(f"{title}: median {_median(down)} down, {_median(up)} up")
    target.set_xlabel("time between packets of a direction, where they arrive", color=style.INK, fontsize=svg.FONT)
    svg.head(target, "share of gaps")
    return DescribedFigure(figure, f"Gaps between packets. {'; '.join(sentences)}")


def _median(gaps: Gaps) -> str:
    return "none" if gaps.median is None else numbers.duration(gaps.median)
