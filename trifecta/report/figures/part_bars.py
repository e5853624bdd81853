"""A whole split into parts, a stacked bar a protocol: where the time went, what the wire carried."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.transforms import blended_transform_factory

from trifecta.conclude.packets import labels
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.panels import WIDE, DescribedFigure


@dataclass(frozen=True)
class PartLook:
    """How a part is drawn: its words, a stand-in colour, hatching, and the class of the same hatching in CSS."""

    words: str
    colour: str
    hatch: str = ""
    texture: str = ""


def _part_looks(words: Mapping[str, str], drawn: Mapping[str, tuple[str, ...]]) -> Mapping[str, PartLook]:
    """Each part with its words, colour, hatching and texture."""
    return {part: PartLook(description, *drawn[part]) for part, description in words.items()}


TIME = _part_looks(
    labels.TIME,
    {
        "handshake": (style.QUIC, "xx", "quic"),
        "propagation": (style.PART_NOISE,),
        "server": (style.WAIT,),
        "transmission": (style.PART_CLIENT,),
        "congestion window": (style.PART_PROTOCOL,),
        "loss recovery": (style.LATE, "//", "tcp"),
        "head-of-line blocking": (style.PART_CROSSED, "\\\\", "tls"),
        "flow control": (style.TCP,),
        "queueing": (style.TRANSFER,),
        "cpu": (style.CLIENT,),
        "rest": (style.SEND,),
    },
)
"""Parts of a request's time (`analysis.transport.attribution`), in the order in which they are drawn."""

OCTETS = _part_looks(
    labels.OCTETS,
    {
        "content": (style.TRANSFER,),
        "fields": (style.WAIT,),
        "http_framing": (style.PART_CLIENT, "//", "tcp"),
        "protection": (style.QUIC, "xx", "quic"),
        "transport_frames": (style.PART_CROSSED,),
        "padding": (style.PART_PROTOCOL,),
        "handshake": (style.DNS,),
        "transport": (style.TCP,),
        "ip": (style.TLS, "\\\\", "tls"),
        "link": (style.SEND,),
        "acknowledgements": (style.CLIENT,),
        "retransmissions": (style.LATE, "//", "tcp"),
        "unknown": (style.PART_NOISE,),
    },
)
"""Parts of the octets on the wire (`analysis.transport.overhead`)."""

HELD = _part_looks(
    labels.HELD,
    {
        "sender": (style.CLIENT,),
        "application": (style.WAIT,),
        "congestion_window": (style.QUIC, "xx", "quic"),
        "stream_window": (style.PART_CROSSED, "\\\\", "tls"),
        "connection_window": (style.LATE, "//", "tcp"),
        "receiver_window": (style.TCP,),
        "unknown": (style.PART_NOISE,),
    },
)
"""What a sender of responses waited for (`analysis.transport.stalls`)."""


@dataclass(frozen=True)
class Bar:
    """A bar: its title, and its parts. They add up to the whole; a part below zero is drawn left of the axis."""

    title: str
    parts: Mapping[str, float]

    @property
    def total(self) -> float:
        """The sum of the parts."""
        return sum(self.parts.values())


def part_bars(
    bars: Sequence[Bar], looks: Mapping[str, PartLook], axis: str, write: Callable[[float | None], str]
) -> DescribedFigure:
    """Draw bars on one axis; parts that a table of looks does not know are refused."""
    figure = svg.figure(46 + 40.0 * len(bars), WIDE)
    target = svg.axes(figure, 12, 6, 70, 38)
    high = max((sum(value for value in bar.parts.values() if value > 0) for bar in bars), default=1.0) or 1.0
    low = min((sum(value for value in bar.parts.values() if value < 0) for bar in bars), default=0.0)
    target.set_xlim(low * 1.02, high * 1.02)
    target.set_ylim(len(bars), 0)
    ticks = scales.linear_ticks(high, 6)
    svg.ticks(target, "x", ticks, [write(tick) if tick else "0" for tick in ticks])
    svg.ticks(target, "y", [], [])
    target.set_xlabel(axis, color=style.INK, fontsize=svg.SMALL)
    mixed = blended_transform_factory(target.transAxes, target.transData)
    sentences = []
    for row, bar in enumerate(bars):
        title = f"{bar.title}: {write(bar.total)}" if bar.parts else bar.title
        target.text(0.0, row + 0.08, title, transform=mixed, ha="left", va="top", color=style.INK, fontsize=svg.SMALL)
        ends = {True: 0.0, False: 0.0}
        for name, look in looks.items():
            value = bar.parts.get(name, 0.0)
            if not value:
                continue
            target.barh(
                row + 0.68, value, height=0.36, left=ends[value > 0], color=look.colour, edgecolor=style.PAPER,
                linewidth=0.6, hatch=look.hatch or None,
            )  # fmt: skip
            ends[value > 0] += value
        unknown = set(bar.parts) - set(looks)
        if unknown:
            raise KeyError(f"no look for {sorted(unknown)}")
        words = ", ".join(f"{looks[name].words} {write(value)}" for name, value in bar.parts.items() if value)
        sentences.append(f"{title} ({words})")
    return DescribedFigure(figure, f"Parts of a whole, {axis}. {'; '.join(sentences)}")


def legend(bars: Sequence[Bar], looks: Mapping[str, PartLook]) -> list[tuple[str, str, str]]:
    """(words, CSS variable, texture) of the parts that are there."""
    used = {name for bar in bars for name, value in bar.parts.items() if value}
    return [
        (look.words, style.CSS_VARIABLES[look.colour], look.texture) for name, look in looks.items() if name in used
    ]
