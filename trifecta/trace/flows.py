"""Which packet belongs to which connection, direction and side, and which packets are the same one seen twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trifecta.design.errors import CannotError
from trifecta.trace.capture_file import CaptureFile, Ints
from trifecta.trace.headers import ACK, SYN, TCP, Headers
from trifecta.trace.link_layer import Flags

UP, DOWN = 0, 1
_MOST_ADDRESSES = 1 << 15
_ORIGINAL = np.uint64(~(0x7FFF << 48) & ((1 << 64) - 1))  # without the number of the copy (architecture.md, 1.3)


@dataclass(slots=True)
class Flows:
    """An entry a packet. ``origin`` is the place of the same packet at its sending side, else its own place."""

    connection: Ints
    direction: Ints  # 0 up, 1 down
    side: Ints  # 0 a, 1 b, -1 unknown
    packet_id: npt.NDArray[np.uint64] | None
    origin: Ints
    view: Flags  # one entry for each packet that was sent: what is dissected
    count: int
    syn_seen: Flags  # by connection: the client's
    begins: Flags  # by connection: that of either end, so that it is known where octets begin


def find_flows(capture: CaptureFile, headers: Headers) -> Flows:
    """Connections by addresses and ports; a new SYN on the same ports is a new connection."""
    count = len(headers.index)
    if len(headers.addresses) >= _MOST_ADDRESSES:
        raise CannotError(
            f"{capture.path}: has {len(headers.addresses)} addresses; filter the capture with editcap first"
        )
    here = headers.source << 16 | headers.source_port
    there = headers.destination << 16 | headers.destination_port
    low, high = np.minimum(here, there), np.maximum(here, there)
    key = low.astype(np.uint64) << np.uint64(32) | high.astype(np.uint64)
    key = key << np.uint64(1) | (headers.transport == TCP).astype(np.uint64)
    _, flow = np.unique(key, return_inverse=True)
    flow = flow.astype(np.int64)
    side = np.full(count, -1, dtype=np.int64)
    packet_id: npt.NDArray[np.uint64] | None = None
    if capture.packet_id is not None:
        packet_id = capture.packet_id[headers.index]
        side = capture.interface[headers.index]
    flow = _renumber(_part_reused_ports(headers, flow, side))
    connections = int(flow.max()) + 1 if count else 0
    from_client, syn_seen = _directions(capture, headers, flow, packet_id=packet_id, connections=connections, here=here)
    begins = np.zeros(connections, dtype=np.bool_)
    begins[flow[(headers.transport == TCP) & (headers.flags & SYN > 0)]] = True
    direction = np.where(from_client, UP, DOWN)
    origin, view = np.arange(count), np.ones(count, dtype=np.bool_)
    if packet_id is not None:
        origin = _origins(packet_id, side)
        view = origin == np.arange(count)
    return Flows(flow, direction, side, packet_id, origin, view, connections, syn_seen, begins)


def _renumber(flow: Ints) -> Ints:
    """The same parts, numbered as they appear."""
    _, first, place = np.unique(flow, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return order[place]


def _part_reused_ports(headers: Headers, flow: Ints, side: Ints) -> Ints:
    opening = np.flatnonzero((headers.transport == TCP) & (headers.flags & (SYN | ACK) == SYN))
    pairs = np.unique(np.stack([flow[opening], headers.sequence[opening]], axis=1), axis=0)
    flows, times = np.unique(pairs[:, 0], return_counts=True)
    following = int(flow.max()) + 1 if len(flow) else 0
    result = flow.copy()
    for one in flows[times > 1].tolist():
        known: dict[int, int] = {}
        first = one
        for which in (-1, 0, 1):
            rows = np.flatnonzero((flow == one) & (side == which))
            syn = np.isin(rows, opening)
            starts: list[tuple[int, int]] = [(0, first)]
            for at in np.flatnonzero(syn).tolist():
                isn = int(headers.sequence[rows[at]])
                if isn not in known:
                    known[isn] = first if not known else following
                    following += 1 if len(known) > 1 else 0
                starts.append((at, known[isn]))
            for (at, number), (until, _) in zip(starts, [*starts[1:], (len(rows), 0)], strict=True):
                result[rows[at:until]] = number
    return result


def _first_octet(capture: CaptureFile, headers: Headers) -> Ints:
    inside = headers.payload_captured > 0
    at = np.where(inside, headers.payload_offset, 0)
    return np.where(inside, capture.data[at], 0).astype(np.int64)


def _directions(
    capture: CaptureFile,
    headers: Headers,
    flow: Ints,
    *,
    packet_id: npt.NDArray[np.uint64] | None,
    connections: int,
    here: Ints,
) -> tuple[Flags, Flags]:
    """Whether the client sent a packet: by the SYN, else by the side of the link, else by the server's lower port."""
    client = np.full(connections, -1, dtype=np.int64)
    syn = (headers.transport == TCP) & (headers.flags & SYN > 0)
    there = headers.destination << 16 | headers.destination_port
    answer = np.flatnonzero(syn & (headers.flags & ACK > 0))
    client[flow[answer]] = there[answer]
    opening = np.flatnonzero(syn & (headers.flags & ACK == 0))[::-1]
    client[flow[opening]] = here[opening]
    syn_seen = np.zeros(connections, dtype=np.bool_)
    syn_seen[flow[opening]] = True
    if packet_id is not None:
        from_a = packet_id >> np.uint64(63) == 0
        unknown = np.flatnonzero(client[flow] < 0)
        client[flow[unknown]] = np.where(from_a[unknown], here[unknown], there[unknown])
    # A client begins with an Initial packet (RFC 9000 17.2.2, RFC 9369 3.2), in 1,200 octets or more (RFC 9000 14.1).
    first = np.unique(flow, return_index=True)[1]
    initial = _first_octet(capture, headers)[first] & 0xE0 == 0xC0
    initial &= (headers.transport[first] != TCP) & (headers.payload[first] >= 1200) & (client[flow[first]] < 0)
    client[flow[first[initial]]] = here[first[initial]]
    # A client that moves keeps its server (RFC 9000 9).
    servers = np.unique(there[first[initial]])
    later = first[(headers.transport[first] != TCP) & (client[flow[first]] < 0)]
    to_server, from_server = np.isin(there[later], servers), np.isin(here[later], servers)
    client[flow[later]] = np.where(to_server & ~from_server, here[later], client[flow[later]])
    client[flow[later]] = np.where(from_server & ~to_server, there[later], client[flow[later]])
    rows = np.flatnonzero(client[flow] < 0)[::-1]
    # Whoever has the higher port is the client; of equal ports the first to speak.
    guess = np.where(headers.source_port >= headers.destination_port, here, there)
    client[flow[rows]] = guess[rows]
    return here == client[flow], syn_seen


def _origins(packet_id: npt.NDArray[np.uint64], side: Ints) -> Ints:
    """For each packet the place of its original at the sending side; its own place where that was not captured."""
    original = packet_id & _ORIGINAL
    sent = np.flatnonzero(side == (packet_id >> np.uint64(63)).astype(np.int64))
    sent = sent[packet_id[sent] == original[sent]]
    order = sent[np.argsort(original[sent], kind="stable")]
    own = np.arange(len(packet_id))
    if not len(order):
        return own
    at = np.minimum(np.searchsorted(original[order], original), len(order) - 1)
    return np.where(original[order][at] == original, order[at], own)
