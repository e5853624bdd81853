"""What led a sender to send octets again: acknowledgements, a probe, or a timer that expired."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from trifecta.analysis.transport.directions import NOTED_NS, Direction, coded, integer_column
from trifecta.analysis.transport.ranges import NEVER, Ints
from trifecta.analysis.transport.transmissions import Repeats, Sent

if TYPE_CHECKING:
    import pyarrow as pa

ACKNOWLEDGEMENT, PROBE, TIMEOUT = "acknowledgement", "probe", "timeout"
FRESH_NS = 10_000_000  # how long, besides a round trip, a sender may take to act on an acknowledgement
PTO_NS = 1_000_000  # probe packets of one probe timeout (up to two, RFC 9002, 6.2.4) are sent within this
DUPLICATES = 3  # RFC 5681, 3.2


def quic_causes(
    sent: Sent, repeats: Repeats, direction: Direction, acknowledged: dict[int, tuple[Ints, Ints]]
) -> tuple[dict[int, str], dict[str, int]]:
    """A packet is declared lost only if a later one was acknowledged (RFC 9002, 6.1); else it was a probe (6.2)."""
    causes: dict[int, str] = {}
    last: dict[int, tuple[int, int]] = {}  # by tile: packet number and space of its last transmission
    wanted = np.isin(repeats.cell, np.unique(repeats.cell[repeats.repeated]))
    least = int((direction.arrived_ns - direction.sent_ns)[direction.arrived_ns < NEVER].min(initial=NOTED_NS * 2))
    slack_ns = min(NOTED_NS, least // 2)
    probes = 0
    probed_ns = -NEVER
    for piece, cell, repeated in zip(
        repeats.piece[wanted].tolist(), repeats.cell[wanted].tolist(), repeats.repeated[wanted].tolist(), strict=True
    ):
        row, number, space = int(sent.row[piece]), int(sent.packet_number[piece]), int(sent.space[piece])
        if repeated and cell in last and causes.get(row) != ACKNOWLEDGEMENT:
            before, its_space = last[cell]
            times, largest = acknowledged.get(its_space, (np.zeros(0), np.zeros(0)))
            at = int(times.searchsorted(direction.sent_ns[row] + slack_ns, side="right")) - 1
            acknowledged_later = at >= 0 and int(largest[at]) > before
            causes[row] = ACKNOWLEDGEMENT if acknowledged_later else PROBE
        last[cell] = (number, space)
    for row in sorted(row for row, cause in causes.items() if cause == PROBE):
        if direction.sent_ns[row] - probed_ns > PTO_NS:
            probes += 1
        probed_ns = int(direction.sent_ns[row])
    return causes, {PROBE: probes}


class Words:
    """What the acknowledgements of TCP say, by row of the table of packets; read when it is first asked for."""

    def __init__(self, packets: pa.Table) -> None:
        self._packets = packets

    @cached_property
    def acknowledged(self) -> Ints:
        """The cumulative one."""
        return integer_column(self._packets, "acknowledged", 0)

    @cached_property
    def sacked(self) -> Ints:
        """The highest octet of a SACK option (RFC 2018), exclusive; 0: none."""
        codes, blocks_json = coded(self._packets, "sack")
        highest = [max((right for _, right in json.loads(text)), default=0) if text else 0 for text in blocks_json]
        return np.array(highest, dtype=np.int64)[codes]


@dataclass(slots=True)
class _Arrivals:
    """What had reached a TCP sender, in the order of its arrival."""

    at: Ints
    acknowledged: Ints
    sacked: Ints  # the highest octet that a SACK block named so far
    duplicates: Ints  # how often this acknowledgement had come again without payload


def _acknowledgement_arrivals(back: Direction, words: Words) -> _Arrivals:
    there = (back.arrived_ns < NEVER).nonzero()[0]
    order = there[back.arrived_ns[there].argsort(kind="stable")]
    acknowledged, highest = words.acknowledged[back.row[order]], words.sacked[back.row[order]]
    plain = back.payload[order] == 0
    duplicates = np.zeros(len(order), dtype=np.int64)
    same = np.append(False, (acknowledged[1:] == acknowledged[:-1]) & plain[1:])
    starts = (~same).nonzero()[0]
    duplicates[:] = np.arange(len(order)) - starts[(~same).cumsum() - 1] if len(order) else 0
    if len(order):
        acknowledged, highest = np.maximum.accumulate(acknowledged), np.maximum.accumulate(highest)
    return _Arrivals(back.arrived_ns[order], acknowledged, highest, duplicates)


def tcp_causes(
    direction: Direction, back: Direction, sent: Sent, repeats: Repeats, words: Words
) -> tuple[dict[int, str], dict[str, int]]:
    """What told the sender: SACK or three duplicates (RFC 6675, 8985), a tail loss probe (RFC 8985, 7), the timer.

    The timer is that of RFC 6298, 5.
    """
    arrivals = _acknowledgement_arrivals(back, words)
    delays = [(one.arrived_ns - one.sent_ns)[one.arrived_ns < NEVER] for one in (direction, back)]
    round_trip_ns = sum(int(one.min()) for one in delays if len(one))
    fresh_ns, slack_ns = round_trip_ns + FRESH_NS, min(NOTED_NS, round_trip_ns // 4)
    top = np.maximum.accumulate(sent.end) if len(sent.end) else sent.end
    causes: dict[int, str] = {}
    expired = {TIMEOUT: 0, PROBE: 0}
    recovery_point = probed_at = -1
    for piece in repeats.retransmission[sent.row].nonzero()[0].tolist():
        row, start, end = int(sent.row[piece]), int(sent.start[piece]), int(sent.end[piece])
        now = int(direction.sent_ns[row])
        at = int(arrivals.at.searchsorted(now + slack_ns, side="right")) - 1
        una = int(arrivals.acknowledged[at]) if at >= 0 else 0
        fresh = at >= 0 and now - int(arrivals.at[at]) <= fresh_ns
        evidence = at >= 0 and (int(arrivals.sacked[at]) > start or (int(arrivals.duplicates[at]) >= DUPLICATES))
        highest = int(top[piece - 1]) if piece else end
        if fresh and evidence:
            causes[row] = ACKNOWLEDGEMENT
        elif fresh and una < recovery_point:
            causes[row] = TIMEOUT  # what an expired timer declared lost, sent as acknowledgements come
        elif end == highest and probed_at != una and start < highest:
            causes[row], probed_at = PROBE, una
            expired[PROBE] += 1
        elif fresh:
            causes[row] = ACKNOWLEDGEMENT
        else:
            causes[row], recovery_point = TIMEOUT, highest
            expired[TIMEOUT] += 1
    return causes, expired
