"""Connection set-up: what passed until the first request and response octet, against the least that is needed.

The least number of round trips to the first octet of a response: `trifecta.analysis.round_trips`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from trifecta.analysis.round_trips import setup_round_trips
from trifecta.analysis.transport.columns import Connection
from trifecta.analysis.transport.directions import LACKS
from trifecta.analysis.transport.group_by import first_of_each
from trifecta.analysis.transport.rows import NULL, Bools, Ints, Rows, count

AMPLIFICATION = 3  # RFC 9000, section 8.1


@dataclass(frozen=True, slots=True)
class Passed:
    """What had passed at the client, both directions, up to and including the packet with an octet."""

    time_ns: int
    round_trips: int | None
    packets_up: int
    packets_down: int
    wire_bytes_up: int
    wire_bytes_down: int


@dataclass(frozen=True, slots=True)
class Cost:
    """Something that cost round trips beyond the least."""

    name: str  # retry, version_negotiation, hello_retry_request, amplification_limit, lost_handshake_packets
    times: int


@dataclass(frozen=True, slots=True)
class Setup:
    """The set-up of one connection. ``ratio``: time to the first response octet over ``bound`` round trips."""

    connection: int
    protocol: str | None
    bound: int | None  # round trips to the first response octet that the protocol needs at least
    rtt_ns: int | None
    to_request: Passed | None
    to_response: Passed | None
    ratio: float | None
    costs: list[Cost]
    notes: list[str]


def setup(connection: Connection) -> Setup:
    """Of a connection of any protocol; what cannot be known is None, and a note says why."""
    return connection.keep("setup", lambda: _setup(connection))


def _setup(connection: Connection) -> Setup:
    notes: list[str] = []
    rows = connection.at_client()
    if not connection.starts or not len(rows):
        notes.append("the start of the connection is not in the capture: its set-up is unknown")
        return _unknown(connection, notes)
    if connection.lacks_packets:
        return _unknown(connection, [LACKS.format(connection.number)])
    start = int(rows["time_ns"][0])
    limited = _amplification(connection, notes)
    carriers = _flights(connection, rows, limited, notes)
    rtt, of_handshake = _path_rtt(connection, rows)
    bound = _bound(connection, rows, notes)
    request, response = (
        _first_message(connection.messages, "request_start_ns"),
        _first_message(connection.messages, "response_start_ns"),
    )
    if request is None:
        notes.append("no request could be read: round trips, packets and octets until it are unknown")
    to_request = _passed(rows, start, request, _round_trips(carriers, request))
    # The response answers the request: one round trip more than had passed when it was sent.
    round_trips = None if to_request is None or to_request.round_trips is None else to_request.round_trips + 1
    to_response = _passed(rows, start, response, round_trips)
    if of_handshake:
        notes.append("the round trip is that of the handshake, with the time that the server took to answer")
    ratio = to_response.time_ns / (bound * rtt) if to_response and bound and rtt else None
    costs = _costs(connection, rows, len(limited))
    return Setup(
        connection.number, connection.row["protocol"], bound, rtt, to_request, to_response, ratio, costs, notes
    )


def _unknown(connection: Connection, notes: list[str]) -> Setup:
    return Setup(connection.number, connection.row["protocol"], None, None, None, None, None, [], notes)


def _first_message(messages: Rows, name: str) -> int | None:
    return messages.pick((name, "known"), lambda of: of[name] != NULL).least(name)


def _bound(connection: Connection, rows: Rows, notes: list[str]) -> int | None:
    row = connection.row
    early = bool(row["zero_rtt"])
    if not connection.tcp:
        return 1 + setup_round_trips(quic=True, early=early)
    # TCP Fast Open (RFC 7413): data in the SYN saves the round trip.
    opening = rows.pick("client's syn", lambda of: (of["syn"] == 1) & (of["up"] == 1))
    saved = 1 if len(opening.pick("with data", lambda of: of["payload_bytes"] > 0)) else 0
    version = row["tls_version"]
    if version is None:
        if len(connection.frames_of("tls")) or row["protocol"] is None:
            notes.append("the version of TLS is unknown, and so is the least number of round trips")
            return None
        return 2 - saved  # without TLS
    resumed = bool(row["resumed"])
    return 1 + setup_round_trips(quic=False, tls_version=str(version), resumed=resumed, early=early) - saved


def _path_rtt(connection: Connection, rows: Rows) -> tuple[int | None, bool]:
    """The least there and back of the link, or else (True) the handshake's first answer after the last try before."""
    if connection.both_sides:
        there, back = (
            connection.sent(up=up).pick("delayed", lambda of: of["delay_ns"] != NULL).least("delay_ns")
            for up in (True, False)
        )
        if there is not None and back is not None:
            return there + back, False
    opening = rows["syn"] == 1 if connection.tcp else rows["type_initial"] == 1
    up, down = rows["time_ns"][opening & (rows["up"] == 1)], rows["time_ns"][opening & (rows["up"] == 0)]
    if not len(up) or not len(down):
        return None, False
    before = up[up <= down[0]]
    return (int(down[0] - before[-1]), True) if len(before) else (None, False)


def _flights(connection: Connection, rows: Rows, released_ns: Ints, notes: list[str]) -> Rows | None:
    """Packets at the client that carry the set-up on. None: nobody can know.

    TCP: SYN and data. QUIC: ack-eliciting packets, and what released a server that was held by the limit of RFC 9000,
    section 8.1.
    """
    if connection.tcp:
        return rows.pick("carries", lambda of: (of["payload_bytes"] > 0) | (of["syn"] == 1))
    if len(rows.pick("unreadable handshake", _unreadable)):
        notes.append("without keys an acknowledgement and a flight look alike in QUIC: round trips are not counted")
        return None
    if len(released_ns):
        return rows.where(_eliciting(rows) | np.isin(rows["time_ns"], released_ns))
    return rows.pick("carries", _eliciting)


def _eliciting(rows: Rows) -> Bools:
    carries: Bools = (rows["eliciting"] == 1) | (rows["type_retry"] == 1) | (rows["type_version"] == 1)
    return carries


def _unreadable(rows: Rows) -> Bools:
    sealed: Bools = (rows["eliciting"] == NULL) & ~_eliciting(rows) & (rows["type_handshake"] == 1)
    return sealed


def _round_trips(carriers: Rows | None, until_ns: int | None) -> int | None:
    """Times that the client got something after it had sent something, up to the first octet of the request."""
    if carriers is None or until_ns is None:
        return None
    upto = slice(0, int(carriers["time_ns"].searchsorted(until_ns, side="right")))
    times, ups = carriers["time_ns"][upto].tolist(), carriers["up"][upto].tolist()
    # Of one moment: what it got made it send. 0-RTT: nothing has been answered when the request leaves.
    ordered = sorted((at, up) for at, up in zip(times, ups, strict=True) if up in (0, 1))
    return sum((before, after) == (1, 0) for (_, before), (_, after) in pairwise(ordered))


def _passed(rows: Rows, start: int, until_ns: int | None, round_trips: int | None) -> Passed | None:
    if until_ns is None:
        return None
    upto = slice(0, int(rows["time_ns"].searchsorted(until_ns, side="right")))
    up, wire = rows["up"][upto], rows["wire_bytes"][upto]
    sent, received = up == 1, up == 0
    octets_up, octets_down = int(wire[sent].sum()), int(wire[received].sum())
    return Passed(until_ns - start, round_trips, count(sent), count(received), octets_up, octets_down)


def _amplification(connection: Connection, notes: list[str]) -> Ints:
    """Times at the client of the datagrams that released a server held by three times what it had received.

    A datagram of the server was held if, together with all before it, it is more than three times what had arrived
    when the one before it left. The limit ends with the first Handshake packet of the client (RFC 9000, 8.1), and a
    Retry takes it away: its token validates the address (8.1.2).
    """
    rows = connection.at_server()
    if connection.tcp or len(rows.pick("retry", lambda of: of["type_retry"] == 1)):
        return rows["time_ns"][:0]
    valid = ((rows["up"] == 1) & (rows["type_handshake"] == 1)).nonzero()[0]
    rows = rows.where(slice(0, int(valid[0]) if len(valid) else len(rows)))
    received = sent = 0
    allowed_before = 0  # when the datagram before left
    last: int | None = None
    released: list[int] = []
    for is_up, size, at, number in zip(
        rows["up"].tolist(),
        rows["payload_bytes"].tolist(),
        rows["time_ns"].tolist(),
        rows["packet_id"].tolist(),
        strict=True,
    ):
        if is_up == 1:
            received += size
            last = at if not connection.both_sides else number
        elif is_up == 0:
            sent += size
            if (
                allowed_before
                and sent > allowed_before
                and received * AMPLIFICATION > allowed_before
                and last is not None
            ):
                released.append(last)
            allowed_before = received * AMPLIFICATION
    if not released:
        return rows["time_ns"][:0]
    if not connection.both_sides:
        notes.append("the amplification limit was judged by the order at the only side")
        return np.unique(np.array(released, dtype=np.int64))
    client = connection.sent(up=True)
    return np.unique(client["time_ns"][np.isin(client["packet_id"], np.array(released, dtype=np.int64))])


def _costs(connection: Connection, rows: Rows, limited: int) -> list[Cost]:
    times_by_name = {
        "retry": len(rows.pick("retry", lambda of: of["type_retry"] == 1)),
        "version_negotiation": len(rows.pick("version", lambda of: (of["type_version"] == 1) & (of["up"] == 0))),
        "hello_retry_request": _hello_retries(connection, rows),
        "amplification_limit": limited,
        "lost_handshake_packets": _repeated_handshake(connection),
    }
    return [Cost(name, times) for name, times in times_by_name.items() if times]


def _hello_retries(connection: Connection, rows: Rows) -> int:
    """A second ClientHello after the server's first answer (RFC 8446, section 2.1)."""
    if connection.tcp:
        counts = rows.sums("hellos", _hellos)
        return int(counts["retries"] > 0 or counts["hellos"] > 1)
    crypto = connection.frames_of("quic")
    crypto = crypto.pick("initial crypto", lambda of: of.is_in("type", "CRYPTO") & of.is_in("packet_space", "initial"))
    up, down = crypto.pick("up", lambda of: of["up"] == 1), crypto.pick("down", lambda of: of["up"] == 0)
    if not len(up) or not len(down):
        return 0
    # What has been sent before is sent again by a loss; only new octets are a second ClientHello. Its sender's side
    # has seen the server's answer when it goes out.
    answered = connection.came(down, up=False)
    answered = answered[answered != NULL]
    if not len(answered):
        return 0
    before = up["time_ns"] < answered.min()
    known = int((up["offset"] + up["length"])[before].max(initial=0))
    return int(((up["offset"] + up["length"])[~before] > known).any())


def _repeated_handshake(connection: Connection) -> int:
    """Packets of the handshake that were sent again: SYN and data before the request, or CRYPTO octets."""
    request = _first_message(connection.messages, "request_start_ns")
    if connection.tcp:
        repeated = 0
        for up in (True, False):
            sent = connection.sent(up=up)
            syn = len(sent.pick("syn", lambda of: of["syn"] == 1))
            same = sent.pick("again but syn", lambda of: (of["retransmission"] == 1) & (of["syn"] != 1))["time_ns"]
            repeated += max(0, syn - 1) + count(same <= (request if request is not None else -1))
        return repeated
    crypto = connection.frames_of("quic").pick("crypto", lambda of: of.is_in("type", "CRYPTO"))
    return crypto.sums("again", _repeated_crypto)["frames"]


def _hellos(rows: Rows) -> dict[str, Bools]:
    hellos = (rows["client_hello"] == 1) & (rows["retransmission"] != 1) & (rows["up"] == 1)
    return {"hellos": hellos, "retries": rows["hello_retry"] == 1}


def _repeated_crypto(frames: Rows) -> dict[str, Bools]:
    """Frames with the same octets as one before, of the same direction and packet number space."""
    repeated = ~first_of_each(*(frames[name] for name in ("connection", "up", "packet_space", "offset", "length")))
    return {"frames": repeated & (frames["up"] != NULL) & frames.is_in("packet_space", "initial", "handshake")}
