"""The variation of the effect by its parts: shares with intervals, and how they differ from place to place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import blended_transform_factory

from trifecta.analysis.layout import CLIENT, CROSSED, PROGRAM, PROTOCOL, SERVER
from trifecta.analysis.mean_squares import NOISE
from trifecta.analysis.shares import Share
from trifecta.design import numbers
from trifecta.report.figures import style, svg


@dataclass(frozen=True)
class PartLook:
    """How a part is drawn: a stand-in colour, hatching, a marker, and the class of the same hatching in CSS."""

    colour: str
    hatch: str
    marker: str
    texture: str = ""


LOOKS: Mapping[str, PartLook] = {
    PROTOCOL: PartLook(style.PART_PROTOCOL, "", "o"),
    PROGRAM: PartLook(style.PART_SERVER, "", "s"),
    SERVER: PartLook(style.PART_SERVER, "", "s"),
    CLIENT: PartLook(style.PART_CLIENT, "//", "^", "tcp"),
    CROSSED: PartLook(style.PART_CROSSED, "xx", "D", "quic"),
    NOISE: PartLook(style.PART_NOISE, "", "v"),
}


@dataclass(frozen=True)
class Bar:
    """A comparison in one place and its shares."""

    label: str
    shares: Sequence[Share]


def _percent_axis(made_height: float, rows: float) -> tuple[Figure, Axes]:
    figure = svg.figure(made_height)
    target = svg.axes(figure, 12, 8, 18, 36)
    target.set_xlim(0, 1)
    target.set_ylim(rows - 0.02, -0.02)
    svg.ticks(target, "x", [0, 0.25, 0.5, 0.75, 1.0], ["0", "25 %", "50 %", "75 %", "100 %"])
    svg.ticks(target, "y", [], [])
    target.set_xlabel("share of the mean square of the effect", color=style.INK, fontsize=svg.FONT)
    return figure, target


def intervals(shares: Sequence[Share], names: Mapping[str, str], identity: str) -> str:
    """A row a part: its share and interval for the measured programs."""
    figure, target = _percent_axis(48 + 34.0 * len(shares), len(shares))
    mixed = blended_transform_factory(target.transAxes, target.transData)
    for row, one in enumerate(shares):
        look = LOOKS[one.part]
        target.text(
            0.0, row + 0.08, names[one.part], transform=mixed, ha="left", va="top", color=style.INK, fontsize=svg.SMALL
        )
        target.plot([one.low, one.high], [row + 0.72] * 2, color=look.colour, linewidth=3.2, solid_capstyle="butt")
        target.plot(
            [one.share],
            [row + 0.72],
            look.marker,
            color=look.colour,
            markersize=8,
            markeredgecolor=style.PAPER,
            markeredgewidth=1.0,
            clip_on=False,
        )
    sentence = "; ".join(f"{one.part} {_share_words(one)}" for one in shares)
    return svg.render(figure, identity, f"Shares of the variation of the effect, with intervals. {sentence}")


def bars(rows: Sequence[Bar], identity: str) -> str:
    """A stacked bar a comparison, the protocol's part first; the line over it is that part's interval."""
    figure, target = _percent_axis(44 + 36.0 * len(rows), len(rows))
    mixed = blended_transform_factory(target.transAxes, target.transData)
    sentences = []
    for row, bar in enumerate(rows):
        target.text(
            0.0, row + 0.06, bar.label, transform=mixed, ha="left", va="top", color=style.INK, fontsize=svg.SMALL
        )
        left = 0.0
        for one in bar.shares:
            look = LOOKS[one.part]
            target.barh(
                row + 0.62,
                one.share,
                height=0.32,
                left=left,
                color=look.colour,
                edgecolor=style.PAPER,
                linewidth=0.6,
                hatch=look.hatch or None,
            )
            left += one.share
        protocol = next(one for one in bar.shares if one.part == PROTOCOL)
        target.plot([protocol.low, protocol.high], [row + 0.86] * 2, color=style.INK, linewidth=1.4, clip_on=False)
        sentences.append(f"{bar.label}: {', '.join(f'{one.part} {numbers.percent(one.share)}' for one in bar.shares)}")
    return svg.render(figure, identity, f"The same, comparison by comparison. {'; '.join(sentences)}")


def _share_words(share: Share) -> str:
    return f"{numbers.percent(share.share)} {numbers.FORMATS['percent_interval']((share.low, share.high))}"
