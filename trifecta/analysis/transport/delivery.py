"""When the octets of each stream arrived, and when they could be delivered.

Three waits part the time from arrival to delivery, each by what would have ended it:

* *own*: octets before it in its own stream had not arrived. Every reliable ordered stream has this wait.
* *record*: all of them had, but not the whole of the TLS records that hold them (RFC 8446, 5.2: a record is
  authenticated as a whole). QUIC has none: a packet arrives whole.
* *others*: all its records were there, but octets of other streams before it in the connection's order were missing
  (RFC 9293, 3.4; RFC 9114, 2). QUIC has none: its streams are ordered apart (RFC 9000, 2.2).

Compression of header fields can make streams wait for one another too (HPACK; QPACK: RFC 9204, 2.1.2): that is not in
packets and not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.transport.directions import Direction, directions, lacking
from trifecta.analysis.transport.pieces import Delivery
from trifecta.analysis.transport.quic_delivery import OverQuic, over_quic
from trifecta.analysis.transport.ranges import NEVER, Ints
from trifecta.analysis.transport.tcp_delivery import OverTcp, over_tcp
from trifecta.analysis.transport.tcp_offsets import Frames, overheads

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Passage:
    """What more than one metric is worked out from: computed once for a dissection.

    ``one_side``: some of its packets are of a capture of one side.
    """

    directions: dict[tuple[int, str], Direction]
    deliveries: list[Delivery]
    one_side: bool
    lacking: frozenset[int] = frozenset()  # connections whose packets are not all there: they are not among the others


def passage(packets: pa.Table, frames: pa.Table, connections: pa.Table, *, one_side: bool | None = None) -> Passage:
    """When packets passed the link, and when octets of streams could be delivered.

    ``one_side``: of the dissection of which these tables are a part; None: they are the whole.
    """
    all_directions, without = directions(packets), lacking(connections)
    if one_side is None:
        one_side = any(not direction.both_sides for direction in all_directions.values())
    all_directions = {
        key: direction for key, direction in all_directions.items() if direction.connection not in without
    }
    return Passage(all_directions, deliveries(frames, connections, all_directions), one_side, without)


def deliveries(
    frames: pa.Table, connections: pa.Table, all_directions: dict[tuple[int, str], Direction]
) -> list[Delivery]:
    """The deliveries of all connections and directions whose frames are known."""
    of, overhead = Frames(frames), overheads(connections)
    tcp, quic = [], []
    for (connection, name), direction in all_directions.items():
        if direction.transport == "udp":
            carried = of.quic(connection, name)
            if len(carried.number):
                quic.append(OverQuic(direction, carried))
        else:
            http = of.http(connection, name)
            if len(http.low):
                tcp.append(OverTcp(direction, http, of.records(connection, name), overhead.get(connection, -1)))
    by_direction = {(one.direction.connection, one.direction.name): one for one in (*over_tcp(tcp), *over_quic(quic))}
    return [by_direction[key] for key in all_directions if key in by_direction]


@dataclass(frozen=True, slots=True)
class Stack:
    """Streams one behind the other in one range of octets: offset x of stream i stands at base[i] + x."""

    names: Ints
    base: Ints
    lows: Ints
    ends: Ints
    start: Ints  # of each piece


def stacked(stream: Ints, offset: Ints, length: Ints) -> Stack | None:
    """Put pieces of many streams into one range; None if that is larger than any transfer: not decrypted rightly."""
    if len(stream) and (stream == stream[0]).all():
        names, rank = stream[:1], np.zeros(len(stream), dtype=np.int64)
    else:
        names, rank = np.unique(stream, return_inverse=True)
    ends, lows = np.zeros(len(names), dtype=np.int64), np.full(len(names), NEVER, dtype=np.int64)
    np.maximum.at(ends, rank, offset + length)
    np.minimum.at(lows, rank, offset)
    if float((ends - lows).astype(np.float64).sum()) >= NEVER:  # an offset has 62 bits (RFC 9000, 19.8)
        return None
    base = (ends - lows).cumsum() - (ends - lows) - lows
    return Stack(names, base, lows, ends, offset + base[rank])


def is_request(transport: str, protocol: str, stream: Ints) -> NDArray[np.bool_]:
    """Whether a stream carries a request.

    Of HTTP/2 the client's (odd: RFC 9113, 5.1.1), of HTTP/3 the client's bidirectional ones (RFC 9114, 6.1).
    """
    if protocol == "h1":
        return np.ones(len(stream), dtype=bool)
    mine: NDArray[np.bool_] = stream % 4 == 0 if transport == "udp" else stream % 2 == 1
    return mine
