"""Packets that were there and are not in the capture, by what proves them.

* A peer acknowledges only what it got: octets of TCP (RFC 9293, 3.4), packet numbers of QUIC (RFC 9000, 13.1).
* A link of ours numbers the packets that come to it (`epb_packetid`, docs/architecture.md, 1.3).
* Whoever writes a pcapng file may say how many it dropped (Interface Statistics Block).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from trifecta.trace.capture_file import CaptureFile, Ints
from trifecta.trace.correlation import CorrelatedTrace
from trifecta.trace.documents import ConnectionRow
from trifecta.trace.headers import ACK, FIN, RST, SYN, Headers
from trifecta.trace.segments import Numbers

_ORDINAL = (1 << 48) - 1
_MOST = 1 << 62  # packet numbers are less (RFC 9000, 12.3)
_NAMED = 10  # connections that a note names
UNKNOWN = "what packets count and how long things took is not known of this connection"


@dataclass(slots=True)
class PacketNumbers:
    """Of one QUIC connection: packet numbers that were seen, and those that the other end acknowledged."""

    _numbers_seen: dict[tuple[int, str], array[int]] = field(default_factory=dict)
    _acknowledged: dict[tuple[int, str], dict[int, int]] = field(default_factory=dict)  # last by first of a range
    unread: list[int] = field(default_factory=lambda: [0, 0])  # captured packets by direction whose number is not known

    def see(self, direction: int, space: str, number: int) -> None:
        """A packet of this direction is in the capture."""
        mine = self._numbers_seen.get((direction, space))
        if mine is None:
            mine = self._numbers_seen[direction, space] = array("Q")
        mine.append(number)

    def acknowledge(self, direction: int, space: str, ranges: Sequence[tuple[int, int]]) -> None:
        """An ACK frame in a packet of ``direction`` tells of the other direction."""
        known = self._acknowledged.setdefault((1 - direction, space), {})
        for first, last in ranges:
            if known.get(first, -1) < last < _MOST:
                known[first] = last

    def missing(self, direction: int) -> int:
        """How many packets of a direction were acknowledged and are not in the capture, at least."""
        missing_count = 0
        for (acknowledged, space), ranges in self._acknowledged.items():
            if acknowledged == direction:
                seen_numbers = np.unique(np.asarray(self._numbers_seen.get((direction, space), ()), dtype=np.uint64))
                missing_count += _without(sorted(ranges.items()), seen_numbers)
        return max(0, missing_count - self.unread[direction])


def _without(ranges: list[tuple[int, int]], seen_numbers: npt.NDArray[np.uint64]) -> int:
    """How many numbers of these ranges, both ends included, are not among those seen; both are in order."""
    total, reached = 0, -1
    for first, last in ranges:
        new = max(first, reached + 1)
        if last >= new:
            low, high = np.searchsorted(seen_numbers, np.asarray([new, last + 1], dtype=np.uint64)).tolist()
            total += last - new + 1 - (high - low)
            reached = last
    return total


def tcp_octets(headers: Headers, numbers: Numbers, rows: Ints, back: Ints, *, begins: bool) -> tuple[int, bool]:
    """Octets of the packets ``rows`` (one direction) that those of ``back`` acknowledged and nobody captured.

    And whether any packet of the direction is missing: one of these, its SYN or its FIN. ``begins``: a SYN of the
    connection was seen. The last acknowledgement counts, for one of a former connection on these ports comes before it.
    """
    flags = headers.flags[back]
    acknowledging = back[(flags & ACK > 0) & (flags & RST == 0) & (numbers.acknowledged[back] >= 0)]
    # One that began before the capture has octets that were sent before it, too.
    if not begins or not len(acknowledging) or not len(rows):
        return 0, False
    acknowledged = int(numbers.acknowledged[acknowledging[-1]])
    opening, ending = headers.flags[rows] & SYN > 0, headers.flags[rows] & FIN > 0
    start = numbers.sequence[rows] + opening
    end = start + headers.payload[rows]
    first = 1
    lost_ends = not bool(opening.any())
    if not bool(ending.any()) and acknowledged == int(end.max()) + 1:
        acknowledged, lost_ends = acknowledged - 1, True
    end = np.minimum(end + ending, acknowledged)
    order = np.argsort(start, kind="stable")
    start, end = np.maximum(start[order], first), end[order]
    before = np.concatenate([[first], np.maximum(np.maximum.accumulate(end)[:-1], first)])
    missing = max(0, acknowledged - first - int(np.maximum(end - np.maximum(start, before), 0).sum()))
    return missing, missing > 0 or lost_ends


@dataclass(frozen=True, slots=True)
class LinkNumbers:
    """A capture of our link: the ordinals of the packets that it has where they came in, by direction, in order."""

    seen: tuple[Ints, Ints]
    missing: int  # of those that came to the link
    taken_out: bool  # the link says that it left out none: somebody else did

    def below(self, direction: int, ordinals: Ints) -> Ints:
        """How many below each of these are missing."""
        return ordinals - self.seen[direction].searchsorted(ordinals)


def link_numbers(capture: CaptureFile) -> LinkNumbers | None:
    """What is missing of a capture of our link; None for a capture of somebody else."""
    if capture.packet_id is None:
        return None
    directions = (capture.packet_id >> np.uint64(63)).astype(np.int64)
    ordinal = (capture.packet_id & np.uint64(_ORDINAL)).astype(np.int64)
    numbers_by_side, missing = [], 0
    for direction in (0, 1):
        mine = directions == direction
        near = np.unique(ordinal[mine & (capture.interface == direction)])
        numbers_by_side.append(near)
        missing += int(ordinal[mine].max()) + 1 - len(near) if bool(mine.any()) else 0
    says_none = set(capture.dropped) == {0, 1} and not any(capture.dropped.values())
    return LinkNumbers((numbers_by_side[0], numbers_by_side[1]), missing, says_none)


def notes_on(capture: CaptureFile, link: LinkNumbers | None) -> list[str]:
    """What the file as a whole says of packets that are not in it."""
    notes = []
    dropped = sum(capture.dropped.values())
    if dropped:
        was, they = ("packet was", "it is") if dropped == 1 else ("packets were", "they are")
        where = " (each side of the link counts)" if link else ""
        notes.append(f"{dropped} {was} dropped by the capturing program{where}: {they} not in the file")
    if link is not None and link.missing:
        why = "taken out after the capture" if link.taken_out else "not captured"
        of = "1 packet" if link.missing == 1 else f"{link.missing} packets"
        notes.append(
            f"{of} that came to the link cannot be found where they came in ({why}): their numbers are missing"
        )
    return notes


def left_out(joined: CorrelatedTrace, link: LinkNumbers | None) -> set[int]:
    """Connections of which the link left out packets, or may have.

    Their numbers lie between those of the connection; or what was delivered is not seen at the far side. Where the
    link left out any, nobody knows of what it did not lose whether it was under way at the end.
    """
    if link is None or link.taken_out:
        return set()
    delivered, unknown = joined.unseen
    excluded = set(np.unique(joined.connection[delivered]).tolist())
    if link.missing or any(joined.trace.capture.dropped.values()):
        excluded |= set(np.unique(joined.connection[unknown]).tolist())
    if link.missing:
        excluded |= _between(joined, link)
    return excluded


def _between(joined: CorrelatedTrace, link: LinkNumbers) -> set[int]:
    """Connections with a missing number between two of their own."""
    flows = joined.trace.flows
    assert flows.packet_id is not None
    directions = (flows.packet_id >> np.uint64(63)).astype(np.int64)
    ordinal = (flows.packet_id & np.uint64(_ORDINAL)).astype(np.int64)
    excluded: set[int] = set()
    for direction in (0, 1):
        rows = np.flatnonzero((directions == direction) & (flows.side == direction))
        connection = joined.connection[rows]
        below = link.below(direction, ordinal[rows])
        order = np.lexsort((below, connection))
        connection, below = connection[order], below[order]
        edges = np.flatnonzero((np.diff(connection) == 0) & (np.diff(below) > 0))
        excluded |= set(np.unique(connection[edges]).tolist())
    return excluded


def headless(connections: Sequence[ConnectionRow]) -> list[str]:
    """Name what may be QUIC without its first packets. Nothing tells: the fixed bit may be any (RFC 9287)."""
    unknown = {
        int(row["connection"])
        for row in connections
        if row["transport"] == "udp" and not (row["quic_version"] or row["protocol"] or row["truncated"])
    }
    if not unknown:
        return []
    return [
        f"{connections_in_words(unknown)}: UDP that is not read here; QUIC whose first packets are not in the "
        "capture looks alike"
    ]


def connections_in_words(connections: set[int]) -> str:
    """Some of them by number."""
    numbers = sorted(connections)
    more = f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else ""
    return ("connection " if len(numbers) == 1 else "connections ") + ", ".join(map(str, numbers[:_NAMED])) + more
