"""The first flights of a connection as a ladder: client left, server right, time downwards."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from trifecta.conclude.packets.points import Flight, Ladder
from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.panels import WIDE, DescribedFigure, fitted, panels

_HEIGHT, _STEP = 430.0, 13.0
_MAX_ROUND_TRIPS = 12
_PER_LETTER = 5.2  # pixels, of the small font
_CLIENT, _SERVER = 0.0, 1.0


def setup_ladder(shown: Sequence[tuple[str, str, Ladder]]) -> DescribedFigure:
    """Draw captures, each (title, arm, ladder), on one axis of time."""
    most = max((len(one.flights) for _, _, one in shown), default=1)
    height = max(_HEIGHT, 90 + most * 26.0)
    figure, targets = panels([title for title, _, _ in shown], height, left=52, bottom=30)
    end = max((_end(one) for _, _, one in shown), default=1e6) * 1.06
    sentences = []
    for place, (target, (title, arm, one)) in enumerate(zip(targets, shown, strict=True)):
        target.set_xlim(-0.06, 1.06)
        target.set_ylim(end, 0)
        target.spines["bottom"].set_visible(False)
        svg.ticks(target, "x", [_CLIENT, _SERVER], ["client", "server"], grid=False)
        positions, labels = scales.labelled(scales.linear_ticks(end, 6))
        svg.ticks(target, "y", positions, labels if place == 0 else ["" for _ in labels])
        for lane in (_CLIENT, _SERVER):
            target.plot([lane, lane], [0, end], color=style.MUTED, linewidth=1.2)
        step = end * _STEP / (height - 56)
        _round_trips(target, one, end, step)
        labels_at = _spread([_middle(flight) for flight in one.flights], step)
        for flight, at in zip(one.flights, labels_at, strict=True):
            _arrow(target, flight, style.arm_style(arm).colour if flight.direction == "down" else style.INK)
            # Where flights lie close together their words cannot stand at them: then they say when.
            moved = at - _middle(flight) > step / 2
            when = f"{numbers.duration(_middle(flight))}: " if moved else ""
            width = ((WIDE - 60) / len(shown) - 16) / 1.12 * 0.92  # of the way between both lanes
            taken = _label_height(one, at, step)  # at the right, by the words of a round trip
            words = when + _flight_label(flight, width - taken - len(when) * _PER_LETTER)
            aside = taken > 0 and len(words) * _PER_LETTER > width - 2 * taken
            target.text(
                0.03 if aside else 0.5, at, words, ha="left" if aside else "center", va="center",
                color=style.MUTED if moved else style.INK, fontsize=svg.SMALL - 1,
                bbox={"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.8}, zorder=6,
            )  # fmt: skip
        if one.first_response_ns is not None:
            target.plot(
                [_CLIENT], [one.first_response_ns], "o", color=style.arm_style(arm).colour, markersize=7, zorder=7
            )
        sentences.append(f"{title}: {summary(one)}")
    return DescribedFigure(figure, f"The first flights of a connection. {'; '.join(sentences)}")


def summary(ladder: Ladder) -> str:
    """``first octet of a response after 122 ms, 3.05 round trips of 40.0 ms; 3 are the least``."""
    if ladder.first_response_ns is None:
        return "the first octet of a response cannot be told"
    text = f"first octet of a response after {numbers.duration(ladder.first_response_ns)}"
    if ladder.round_trip_ns:
        round_trips = ladder.first_response_ns / ladder.round_trip_ns
        text += f", {numbers.ratio(round_trips)} round trips of {numbers.duration(ladder.round_trip_ns)}"
    return text + (f"; {ladder.least_round_trips} are the least" if ladder.least_round_trips else "")


def _end(ladder: Ladder) -> float:
    least = (ladder.round_trip_ns or 0.0) * (ladder.least_round_trips or 0)
    return max([*(max(_ends(flight)) for flight in ladder.flights), ladder.first_response_ns or 0.0, least, 1.0])


def _ends(flight: Flight) -> tuple[float, float]:
    """When a flight begins, and when its last packet arrived (or was seen)."""
    return flight.sent_ns[0], flight.arrived_ns[1] if flight.arrived_ns else flight.sent_ns[1]


def _middle(flight: Flight) -> float:
    """Where a flight's words belong: the middle of its arrows, of level ones the first."""
    return sum(_ends(flight)) / 2 if flight.arrived_ns else flight.sent_ns[0]


def _round_trips(target: Axes, ladder: Ladder, end: float, step: float) -> None:
    """Lines at whole round trips since the first packet; the one that the protocol cannot beat is heavier.

    None where they would lie on top of each other: on a path without delay the hosts take most of the time.
    """
    if not ladder.round_trip_ns or ladder.round_trip_ns < step:
        return
    round_trips = 1
    while round_trips * ladder.round_trip_ns <= end and round_trips <= _MAX_ROUND_TRIPS:
        least = round_trips == ladder.least_round_trips
        target.axhline(
            round_trips * ladder.round_trip_ns, color=style.INK if least else style.MUTED,
            linewidth=1.6 if least else 0.8,
            linestyle=(0, (4.0, 2.5)), zorder=1.5,
        )  # fmt: skip
        target.text(
            1.06, round_trips * ladder.round_trip_ns, _round_trip_label(ladder, round_trips), ha="right", va="bottom",
            color=style.INK if least else style.MUTED, fontsize=svg.SMALL - 1, zorder=7,
            bbox={"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.4},
        )  # fmt: skip
        round_trips += 1


def _round_trip_label(ladder: Ladder, round_trips: int) -> str:
    return f"{round_trips} RTT{', the least' if round_trips == ladder.least_round_trips else ''}"


def _label_height(ladder: Ladder, at: float, step: float) -> float:
    """How many pixels the words of a round trip take at this height; they stand above its line."""
    if not ladder.round_trip_ns or ladder.round_trip_ns < step:
        return 0.0
    round_trips = max(1, round((at + step / 2) / ladder.round_trip_ns))
    near = abs(at + step / 2 - round_trips * ladder.round_trip_ns) < step
    return (
        len(_round_trip_label(ladder, round_trips)) * _PER_LETTER if near and round_trips <= _MAX_ROUND_TRIPS else 0.0
    )


def _arrow(target: Axes, flight: Flight, colour: str) -> None:
    start, stop = (_CLIENT, _SERVER) if flight.direction == "up" else (_SERVER, _CLIENT)
    if flight.arrived_ns is None:
        # One side was captured: when the packet was at the other one is not known, so the arrow is level; a flight that
        # was lost as a whole ends in the middle.
        half = (start + stop) / 2 if flight.lost else stop
        target.annotate("", (half, flight.sent_ns[0]), (start, flight.sent_ns[0]), arrowprops=_line_style(colour))
        if flight.lost:
            target.plot([half], [flight.sent_ns[0]], "x", color=style.LATE, markersize=7, markeredgewidth=1.8)
        return
    if flight.packets > 1:
        corners = [(start, flight.sent_ns[0]), (stop, flight.arrived_ns[0]), (stop, flight.arrived_ns[1])]
        xs, ys = zip(*corners, (start, flight.sent_ns[1]), strict=True)
        target.fill(xs, ys, color=style.BAND, linewidth=0, zorder=1)
        target.annotate("", (stop, flight.arrived_ns[1]), (start, flight.sent_ns[1]), arrowprops=_line_style(colour))
    target.annotate("", (stop, flight.arrived_ns[0]), (start, flight.sent_ns[0]), arrowprops=_line_style(colour))


def _line_style(colour: str) -> dict[str, object]:
    return {"arrowstyle": "-|>", "color": colour, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 8}


def _flight_label(flight: Flight, width: float) -> str:
    """What a flight is, with as many of its words as fit into so many pixels."""
    count = f"{flight.packets} × " if flight.packets > 1 else ""
    lost = f", {flight.lost} lost" if flight.lost else ""
    size = f" ({numbers.size(flight.octets)}{lost})"
    words = flight.what.split(", ")
    for words_kept in range(len(words), 0, -1):
        text = (
            count
            + ", ".join(words[:words_kept])
            + (", …" if words_kept < len(words) and words[words_kept - 1] != "…" else "")
            + size
        )
        if len(text) * _PER_LETTER <= width:
            return text
    first = words[0].split("+")  # frames of QUIC
    for words_kept in range(len(first) - 1, 0, -1):
        text = count + "+".join(first[:words_kept]) + "+…" + size
        if len(text) * _PER_LETTER <= width:
            return text
    return fitted(text, width)


def _spread(wanted: Sequence[float], step: float) -> list[float]:
    """Places near the wanted ones, in their order, at least ``step`` apart."""
    positions: list[float] = []
    for one in wanted:
        positions.append(max(one, positions[-1] + step) if positions else one)
    return positions
