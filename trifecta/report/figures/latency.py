"""How long requests took: the whole distribution, and where the time went."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.panels import DescribedFigure

_MARK_AT = {"h1": 4, "h2": 10, "h3": 16}  # in % of the requests, modulo 20


def ecdf(
    curves: Mapping[str, Sequence[float]], shares: Sequence[float], word: str, identity: str, samples: str = "requests"
) -> str:
    """The empirical distribution of each arm; it stays below 100 % where requests failed."""
    return distribution(curves, shares, word, samples).svg(identity)


def distribution(
    curves: Mapping[str, Sequence[float]], shares: Sequence[float], word: str, samples: str = "requests"
) -> DescribedFigure:
    """The same as a figure."""
    figure = svg.figure(252)
    target = svg.axes(figure, 46, 20, 14, 40)
    finite = [value for curve in curves.values() for value in curve if math.isfinite(value) and value > 0]
    low, high = (min(finite), max(finite)) if finite else (1e6, 1e9)
    target.set_xscale("log")
    low, high = low * 0.94, max(high * 1.06, low * 1.5)
    target.set_xlim(low, high)
    target.set_ylim(0, 1.02)
    positions = scales.log_ticks(low, high, 5)
    svg.ticks(target, "x", *scales.labelled(positions))
    svg.ticks(target, "y", [0, 0.25, 0.5, 0.75, 1.0], ["0", "25 %", "50 %", "75 %", "100 %"])
    for number, (arm, curve) in enumerate(curves.items()):
        look = style.arm_style(arm)
        points = [(value, share) for value, share in zip(curve, shares, strict=True) if math.isfinite(value)]
        if not points:
            continue
        xs, ys = zip(*points, strict=True)
        # Markers sit at different shares so that curves that cover each other can still be distinguished.
        marks = [i for i, share in enumerate(ys) if round(share * 100) % 20 == _MARK_AT.get(arm, 4 * (number % 5))]
        target.plot(xs, ys, **look.marked, linewidth=1.7, markersize=4.2, markevery=marks)
    target.set_xlabel(f"{word} (log)", color=style.INK, fontsize=svg.FONT)
    svg.head(target, f"share of {samples} done")
    middle = list(shares).index(0.5)
    sentence = "; ".join(
        f"{style.name(arm)}: half done within {numbers.duration(curve[middle])}" for arm, curve in curves.items()
    )
    return DescribedFigure(figure, f"Distribution of {word}. {sentence}")


@dataclass(frozen=True)
class Phase:
    """A part of a request's time: the query's column, its name, its stand-in colour and hatching."""

    column: str
    name: str
    colour: str
    hatch: str
    texture: str = ""  # class of the legend's swatch, the same hatching in CSS


PHASES = (
    Phase("late_start_ns", "late start", style.LATE, ""),
    Phase("tcp_connect_ns", "TCP connect", style.TCP, "//", "tcp"),
    Phase("tls_ns", "TLS handshake", style.TLS, "\\\\", "tls"),
    Phase("quic_handshake_ns", "QUIC handshake", style.QUIC, "xx", "quic"),
    Phase("send_ns", "send", style.SEND, ""),
    Phase("wait_ns", "wait for the first byte", style.WAIT, ""),
    Phase("transfer_ns", "transfer", style.TRANSFER, ""),
)


def phases(rows: Mapping[str, Mapping[str, float | None]], identity: str) -> str:
    """One stacked bar an arm; a phase that an arm does not have is not drawn."""
    figure = svg.figure(252)
    target = svg.axes(figure, 12, 20, 14, 40)
    totals = [sum(row[phase.column] or 0.0 for phase in PHASES) for row in rows.values()]
    high = max([*totals, 1.0]) * 1.02
    target.set_xlim(0, high)
    target.set_ylim(max(3, len(rows)) - 0.05, 0.0)
    svg.ticks(target, "x", *scales.labelled(scales.linear_ticks(high)))
    svg.ticks(target, "y", [], [])
    sentences = []
    for place, (arm, row) in enumerate(rows.items()):
        target.text(0, place + 0.08, style.name(arm), ha="left", va="top", color=style.INK, fontsize=svg.SMALL)
        left, parts = 0.0, []
        for phase in PHASES:
            value = row[phase.column]
            if value is None:
                continue
            parts.append(f"{phase.name} {numbers.duration(value)}")
            target.barh(
                place + 0.6,
                value,
                height=0.46,
                left=left,
                color=phase.colour,
                edgecolor=style.PAPER,
                linewidth=0.6,
                hatch=phase.hatch or None,
            )
            left += value
        sentences.append(f"{style.name(arm)}: {', '.join(parts)}")
    target.set_xlabel("mean time of a request", color=style.INK, fontsize=svg.FONT)
    return svg.render(figure, identity, f"Where the time went. {'; '.join(sentences)}")
