"""Octets over time, the protocols side by side: what was sent, sent again, lost, and what arrived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trifecta.conclude.packets.points import Octets
from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.panels import DescribedFigure, crosses, dots, mark_size, panels

_MEANS = {
    "TCP sequence": "TCP sequence",
    "stream offset": "QUIC stream offsets",
    "datagrams": "octets of datagrams",
}


def time_sequence(shown: Sequence[tuple[str, str, Octets]]) -> DescribedFigure:
    """Draw captures, each (title, arm, octets), on one pair of axes."""
    figure, targets = panels([f"{title}: {_MEANS[one.of]}" for title, _, one in shown], 300)
    every = [
        points for _, _, one in shown for points in (one.sent, one.retransmitted, one.lost, one.arrived) if len(points)
    ]
    right = max((float(points[:, 0].max()) for points in every), default=1e6) * 1.02
    top = max((float(points[:, 1].max()) for points in every), default=1.0) * 1.05 or 1.0
    sentences = []
    for place, (target, (title, arm, one)) in enumerate(zip(targets, shown, strict=True)):
        target.set_xlim(0, right)
        target.set_ylim(0, top)
        svg.ticks(target, "x", *scales.labelled(scales.linear_ticks(right, 4)))
        svg.ticks(target, "y", *_sizes(top, place == 0))
        target.set_xlabel("time since the first packet", color=style.INK, fontsize=svg.SMALL)
        size = mark_size(max(len(each.sent) for _, _, each in shown))
        if len(one.acknowledged):
            marks = one.acknowledged[one.acknowledged[:, 0].argsort()]
            dots(target, marks, style.OTHER, size=0.55 * size, layer=1.5)
        dots(target, one.arrived, style.TRANSFER, size=0.64 * size, layer=1.8)
        dots(target, one.sent, style.arm_style(arm).colour, size=size, layer=3)
        if len(one.retransmitted):
            dots(target, one.retransmitted, style.INK, size=4.0, layer=4)
        crosses(target, one.lost)
        sentences.append(
            f"{title}: {numbers.size(float(one.sent[:, 1].max()) if len(one.sent) else 0)} in "
            f"{numbers.duration(float(one.sent[:, 0].max()) if len(one.sent) else 0)}, {len(one.retransmitted)} "
            f"packets with octets sent again, {len(one.lost)} lost"
        )
    return DescribedFigure(figure, f"Octets that the server sent, over time. {'; '.join(sentences)}")


def _sizes(top: float, labelled: bool) -> tuple[list[float], list[str]]:
    ticks = scales.linear_ticks(top, 5)
    return ticks, [numbers.size(tick) if labelled else "" for tick in ticks]


def swatches(shown: Sequence[Octets]) -> Mapping[str, str]:
    """What stands in the legend: words by CSS variable."""
    legend = {"--phase-transfer": "arrived at the client"} if any(len(one.arrived) for one in shown) else {}
    legend |= {"--other": "acknowledged"} if any(len(one.acknowledged) for one in shown) else {}
    legend |= {"--ink": "octets sent again"} if any(len(one.retransmitted) for one in shown) else {}
    return legend | ({"--phase-late": "lost (×)"} if any(len(one.lost) for one in shown) else {})
