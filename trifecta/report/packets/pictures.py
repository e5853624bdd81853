"""The pictures of captures, protocols side by side: what each shows, how to read it, and the files of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trifecta.conclude.packets import flights, series
from trifecta.conclude.packets.captured import Captured, captures
from trifecta.conclude.packets.points import Ladder
from trifecta.conclude.packets.times import Times
from trifecta.report.figures import style, svg
from trifecta.report.figures.packet_sizes import packet_gaps, packet_sizes
from trifecta.report.figures.rate_over_time import acknowledgements, rates
from trifecta.report.figures.setup_ladder import setup_ladder
from trifecta.report.figures.stream_lanes import MOST_LANES, stream_lanes
from trifecta.report.figures.time_sequence import swatches, time_sequence
from trifecta.report.packets import parts
from trifecta.report.packets.picture import Picture

if TYPE_CHECKING:
    import pyarrow as pa

MOST_PANELS = 4
_PROTOCOL = re.compile(r"[-_. ]?(?<![a-z0-9])(?:http[-/]?[123](?:\.[01])?|h[123])(?![a-z0-9])", re.IGNORECASE)


def pictures(shown: Sequence[Captured], times: Times | None = None) -> list[Picture]:
    """The pictures of captures that belong together, at most four; none of what they have no data for.

    ``times`` are those of a run's blocks; without, each capture's own requests are shown.
    """
    heads = [(one.label, one.arm) for one in shown]
    drawn = parts.where_time_went(shown, times)
    if not shown:  # of a cell only a trial of the A/A test may count
        return drawn
    octets = [series.octets(one) for one in shown]
    if any(len(one.sent) for one in octets):
        caption = (
            "A mark is a packet with octets of a response, at its sender; the slope is the rate. Connections, "
            "and streams of QUIC, stand one on top of the other, so that retransmissions lie below new octets."
        )
        if any(one.of == "datagrams" for one in octets):
            caption += " Without keys the octets of QUIC streams cannot be identified: datagrams are counted."
        legend = [(words, variable, "") for variable, words in swatches(octets).items()]
        placed = [(*head, one) for head, one in zip(heads, octets, strict=True)]
        drawn.append(
            Picture("time-sequence", "Time and sequence", caption, lambda: time_sequence(placed), legend=legend)
        )
    drawn += _streams(shown)
    sizes = [(one.label, one.arm, series.sizes(one, "down"), series.sizes(one, "up")) for one in shown]
    caption = "A mark is a packet as it was captured, with its link-layer header; above zero those of the server."
    drawn.append(Picture("packet-sizes", "Packet sizes over time", caption, lambda: packet_sizes(sizes)))
    drawn += _over_time(shown)
    ladders = [(one.label, one.arm, values) for one in shown if (values := flights.ladder(one)) is not None]
    if ladders:
        drawn.append(_ladder(ladders))
    drawn += parts.octets_and_sender_waits(shown) + parts.blocked_octets(shown)
    gaps = [(one.label, one.arm, series.gap_shares(one, "down"), series.gap_shares(one, "up")) for one in shown]
    if any(one.count for _, _, *both in gaps for one in both):
        caption = "Bold: server to client. Thin: client to server."
        arms = [(label, style.CSS_VARIABLES[style.arm_style(arm).colour], "") for label, arm, _, _ in gaps]
        drawn.append(
            Picture("packet-gaps", "Gaps between packets", caption, lambda: packet_gaps(gaps), wide=False, legend=arms)
        )
    return drawn


def _streams(shown: Sequence[Captured]) -> list[Picture]:
    lanes = [(one.label, one.arm, series.lanes(one)) for one in shown]
    if not any(found for _, _, found in lanes):
        return []
    caption = (
        "A lane is a request; of several connections its label is CONNECTION: STREAM. A mark: "
        "the server sent a packet with octets of its response; ×: it was lost."
    )
    if max(len(found) for _, _, found in lanes) > MOST_LANES:
        caption += f" The first {MOST_LANES} requests."
    legend = [
        ("from request to first octet at the client", "--phase-wait", ""),
        ("to the last octet", "--band", ""),
    ]
    return [Picture("streams", "Streams", caption, lambda: stream_lanes(lanes), legend=legend)]


def _over_time(shown: Sequence[Captured]) -> list[Picture]:
    pictures = []
    longest = max(one.end_ns for one in shown)
    flow = [(one.label, one.arm, series.rates(one, longest)) for one in shown]
    if any(one.down.any() or one.up.any() for _, _, one in flow):
        caption = (
            "Octets on the wire where they arrive, in bins of equal length. Coloured: server to client; grey: client "
            "to server."
        )
        pictures.append(Picture("rate", "Rate over time", caption, lambda: rates(flow)))
    acks = [(one.label, one.arm, series.acknowledged(one, longest)) for one in shown]
    if any(one.mean is not None for _, _, one in acks):
        caption = (
            "The server's packets with data per acknowledgement of the client, in bins of equal "
            "length. Heading: the mean, and the size of packets that only acknowledge."
        )
        pictures.append(
            Picture("acknowledgements", "Packets per acknowledgement", caption, lambda: acknowledgements(acks))
        )
    return pictures


def _ladder(ladders: Sequence[tuple[str, str, Ladder]]) -> Picture:
    caption = (
        "The first flights of the first connection: an arrow from when a packet was sent to when it was at the other "
        "side; of several packets the first and the last. Round mark: the first octet of a response. Dashed: round "
        "trips of the path since the first packet; the heavy line is the minimum that the protocol needs."
    )
    if not all(one.sides for _, _, one in ladders):
        caption += (
            " Where only one side was captured the arrows are level: when the other side saw a packet is not known."
        )
    return Picture("set-up", "Set-up", caption, lambda: setup_ladder(ladders))


def groups(captures: Sequence[Captured]) -> list[tuple[str, list[Captured]]]:
    """Captures that belong side by side, each group with a name: equal but for the protocol in their names.

    ``small-closed-http2`` and ``small-closed-http3`` stand together. Names without a protocol go by fours.
    """
    by_name: dict[str, list[Captured]] = {}
    for one in captures:
        by_name.setdefault(_PROTOCOL.sub("", one.label), []).append(one)
    if all(len(group) == 1 for group in by_name.values()):
        by_name = {"captures": list(captures)}
    named_groups = []
    for name, group in by_name.items():
        some = [group[at : at + MOST_PANELS] for at in range(0, len(group), MOST_PANELS)]
        named_groups += [(name if len(some) == 1 else f"{name}-{place}", part) for place, part in enumerate(some, 1)]
    return named_groups


def write_figures(tables: Mapping[str, pa.Table], folder: Path) -> list[Path]:
    """Write the pictures of a dissection's captures into a folder, SVG and PNG; returns the files.

    Files are called ``NAME-PICTURE.svg``, NAME that of the group.
    """
    from trifecta.report.figures import picture_files

    written: list[Path] = []
    with svg.drawing():
        for name, group in groups(captures(tables)):
            for picture in pictures(group):
                written += picture_files.write(picture.draw(), folder, f"{stem(name)}-{picture.name}", picture.legend)
    return written


def stem(name: str) -> str:
    """A name as it can stand in that of a file."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "captures"
