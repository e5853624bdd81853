"""Overhead: every octet on the wire belongs to one layer, and the parts add up to the whole.

Counted where packets left their sender, so what the link lost was sent too. A packet that only acknowledges, and one in
which nothing is new, is overhead as a whole, with its headers: it would not be there without acknowledgements or loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from trifecta.analysis.transport.columns import Connection
from trifecta.analysis.transport.group_by import first_of_each, pair_keys, repeated, sums_by
from trifecta.analysis.transport.octets import fresh_by_group, fresh_by_stream
from trifecta.analysis.transport.rows import NULL, Bools, Ints, Rows

PARTS = (
    "link",  # Ethernet, or what the capture has in its place
    "ip",
    "transport",  # headers of TCP or UDP
    "handshake",  # TLS records without HTTP in them; QUIC's CRYPTO frames
    "protection",  # record headers and tags; headers, packet numbers and tags of QUIC packets
    "padding",  # of QUIC
    "transport_frames",  # headers of STREAM frames, and all other frames of QUIC
    "http_framing",  # frame headers and control frames of HTTP/2 and HTTP/3, chunk sizes of HTTP/1.1
    "fields",  # field sections as encoded, with request and status lines
    "content",
    "acknowledgements",  # packets that do nothing else
    "retransmissions",  # packets without new octets, and octets that were sent before
    "unknown",  # not decrypted, or cut off
)
_HTTP = ("fields", "content", "http_framing")
_FIELDS = ("HEADERS", "CONTINUATION", "PUSH_PROMISE", "TRAILERS")
_TAG = 16  # RFC 9001, section 5.3
_PREFACE = 24  # RFC 9113, section 3.4
_RECORD = {"1.3": 22, "1.2": 29}  # header, nonce, content type and tag of the usual AEADs (RFC 8446, 5.2; RFC 5288, 3)
_KEY = 1 << 40


@dataclass(frozen=True, slots=True)
class Overhead:
    """Octets by part. ``ratio``: wire octets of both directions per octet of content; None without content."""

    connection: int
    wire_bytes: int
    content_bytes: int | None
    ratio: float | None
    up: dict[str, int]
    down: dict[str, int]
    notes: list[str]

    @property
    def parts(self) -> dict[str, int]:
        """Both directions."""
        return {name: self.up[name] + self.down[name] for name in PARTS}


def overhead(connection: Connection) -> Overhead:
    """The parts of one connection; in each direction they add up to its wire octets."""
    notes: list[str] = []
    count = _tcp if connection.tcp else _quic
    up, down = count(connection, True, notes), count(connection, False, notes)
    wire = sum(up.values()) + sum(down.values())
    content: int | None = up["content"] + down["content"]
    if not connection.row["decrypted"] and not content:
        notes.append("nothing was decrypted: what is in the payload is unknown")
        if not connection.tcp:
            notes.append("without keys acknowledgements and retransmissions of QUIC are not told from other packets")
        content = None
    return Overhead(
        connection.number, wire, content, wire / content if content else None, up, down, list(dict.fromkeys(notes))
    )


def _headers(rows: Rows, mask: Bools) -> dict[str, Ints]:
    """Link, IP and transport headers of the packets that a mask chooses."""
    ip, transport = np.maximum(0, rows["ip_header_bytes"]), np.maximum(0, rows["transport_header_bytes"])
    link = rows["wire_bytes"] - ip - transport - rows["payload_bytes"]
    return {"ip": ip * mask, "transport": transport * mask, "link": link * mask}


def _tcp(connection: Connection, up: bool, notes: list[str]) -> dict[str, int]:
    octets = connection.sent(up=up).sums("segments", _segments)
    parts = {name: octets.get(name, 0) for name in PARTS}
    _tls(connection, up, octets["new"], parts, notes)
    return parts


def _segments(rows: Rows) -> dict[str, Ints]:
    """Octets of each segment by part; ``new``: of its payload, not sent before."""
    payload, wire = rows["payload_bytes"], rows["wire_bytes"]
    new = rows.derived("new octets", _new_of_tcp)
    opening = rows["syn"] == 1
    retransmitted = (payload > 0) & (new == 0) | repeated(rows["connection"], opening)
    pure = (payload == 0) & (rows["ack"] == 1) & ~opening & (rows["fin"] != 1) & (rows["rst"] != 1)
    rest = ~retransmitted & ~pure
    return {
        "acknowledgements": wire * pure,
        "retransmissions": wire * retransmitted + (payload - new) * rest,
        "new": new * rest,
        **_headers(rows, rest),
    }


def _new_of_tcp(rows: Rows) -> Ints:
    new = np.zeros(len(rows), dtype=np.int64)
    data = ((rows["payload_bytes"] > 0) & (rows["sequence"] != NULL)).nonzero()[0]
    start = rows["sequence"][data]
    new[data] = fresh_by_group((rows["connection"][data],), start, start + rows["payload_bytes"][data])
    return new


def _tls(connection: Connection, up: bool, octets: int, parts: dict[str, int], notes: list[str]) -> None:
    """The octets that TCP carried, each once: TLS and the HTTP in it."""
    connection.frames.derived("holds http", _holds_http)
    records = connection.frames_of("tls", up=up).sums("overhead", _records)
    frames = connection.frames.pick(
        ("http over tcp", up), lambda of: of.is_in("layer", "h1", "h2") & (of["up"] == int(up))
    )
    http = frames.sums("overhead", _http)
    if records["count"] and http["unplaced"]:
        notes.append("where HTTP lies in TLS records is not known: the parts of the payload are unknown")
        http = dict.fromkeys(http, 0)
    for name in _HTTP:
        parts[name] += http[name]
    inside = http["all"]
    if connection.row["protocol"] == "h1":
        _chunks(connection, up, parts)
    if connection.row["protocol"] == "h2" and http["count"] and frames.least("offset") == _PREFACE:
        inside += _PREFACE
        parts["http_framing"] += _PREFACE
    if not records["count"]:  # HTTP in the clear, or unreadable
        _unattributed(octets - inside, parts, notes)
        return
    bare, protection = records["bare"], records["holding"] - inside
    if not http["count"]:
        # Only what is a handshake by its type is known as one (without keys and in TLS 1.3 the hellos).
        bare, protection = records["clear"], -inside
    elif connection.row["truncated"]:  # a frame that was cut off is not among the frames
        usual = records["with http"] * _RECORD.get(str(connection.row["tls_version"]), 0)
        protection = min(protection, usual)
    parts["handshake"] += bare
    parts["protection"] += protection
    _unattributed(octets - bare - protection - inside, parts, notes)


def _chunks(connection: Connection, up: bool, parts: dict[str, int]) -> None:
    """HTTP/1.1: what is behind a field section is content and the framing of its chunks (RFC 9112, section 7.1)."""
    name = "request_body_bytes" if up else "response_body_bytes"
    bodies = connection.messages.sums(name, lambda of: {"octets": of[name], "unknown": of[name] == NULL})
    if len(connection.messages) and not bodies["unknown"] and bodies["octets"] <= parts["content"]:
        parts["http_framing"] += parts["content"] - bodies["octets"]
        parts["content"] = bodies["octets"]


def _unattributed(octets: int, parts: dict[str, int], notes: list[str]) -> None:
    """What belongs nowhere; where more was dissected than sent, nothing of it can be trusted."""
    if octets < 0 or parts["protection"] < 0:
        notes.append("more octets were dissected than sent: the payload's parts are unknown")
        for name in ("handshake", "protection", "http_framing", "fields", "content"):
            octets += parts[name]
            parts[name] = 0
    parts["unknown"] += octets


def _holds_http(rows: Rows) -> Ints:
    """Records that hold a piece of a frame: frames are in order, so those before and after a record tell."""
    direction = rows["connection"] * 3 + rows["up"]  # up, down and not known
    record = rows.is_in("layer", "tls").nonzero()[0]
    http = rows.is_in("layer", "h1", "h2").nonzero()[0]
    starts, record_ends = pair_keys(
        (direction[http], rows["tcp_start"][http]), (direction[record], rows["tcp_end"][record])
    )
    ends, record_starts = pair_keys(
        (direction[http], rows["tcp_end"][http]), (direction[record], rows["tcp_start"][record])
    )
    begun, over = np.sort(starts).searchsorted(record_ends), np.sort(ends).searchsorted(record_starts, side="right")
    indices = np.zeros(len(rows), dtype=np.int64)
    indices[record] = begun > over
    return indices


def _records(rows: Rows) -> dict[str, Ints | Bools]:
    """Octets of records with HTTP in them, of those without, and of those that are none by their type."""
    octets, inside = rows["wire_length"], rows["holds http"] == 1
    clear = rows.is_in("type", "handshake", "change_cipher_spec", "alert")
    return {
        "count": np.ones(len(rows), dtype=np.bool_),
        "with http": inside,
        "holding": octets * inside,
        "bare": octets * ~inside,
        "clear": octets * clear,
    }


def _http(frames: Rows) -> dict[str, Ints | Bools]:
    """Octets of HTTP frames by part, and of all of them."""
    length, length_on_wire = frames["length"], np.maximum(frames["wire_length"], 0)
    fields, content = length * frames.is_in("type", *_FIELDS), length * frames.is_in("type", "DATA")
    return {
        "count": np.ones(len(frames), dtype=np.bool_),
        "unplaced": frames["tcp_start"] == NULL,
        "fields": fields,
        "content": content,
        "http_framing": length_on_wire - fields - content,
        "all": length_on_wire,
    }


def _quic(connection: Connection, up: bool, notes: list[str]) -> dict[str, int]:
    rows = connection.sent(up=up)
    if not len(rows):
        return dict.fromkeys(PARTS, 0)
    frames = connection.frames_of("quic", up=up)
    connection.carriers(frames, up=up)
    packets = rows.sums("datagrams", partial(_datagrams, frames.together))
    held = frames.sums("overhead", partial(_frames, rows.together))
    if packets["wrong"]:
        notes.append("frames longer than their packet: the parts of such packets are unknown")
    parts = {name: packets.get(name, 0) + held.get(name, 0) for name in PARTS}
    # All of unidirectional streams is framing: types, settings, QPACK (RFC 9114, 6.2). One that is seen again by
    # a loss is one frame.
    of = connection.frames_of("h3", up=up).pick("requests", lambda of: of["stream"] % 4 == 0)
    of = of.pick("once", lambda of: first_of_each(*(of[name] for name in ("connection", "stream", "offset"))))
    http = of.sums("overhead", _http)
    part = dict.fromkeys(PARTS, 0) | {name: http[name] for name in _HTTP}
    _unattributed(held["requests"] - http["all"], part, notes)
    return {name: parts[name] + part[name] for name in PARTS}


def _datagrams(frames: Rows, rows: Rows) -> dict[str, Ints | Bools]:
    """Octets of each datagram by part, but for those of frames whose size is known."""
    packet = frames["packet"]
    carries = frames.is_in("type", "STREAM", "CRYPTO")
    new, whole_frames = frames.derived("new octets", _new_of_quic), frames.derived("whole", _octets_on_wire)
    octets = sums_by(packet, len(rows), frames["length"] * carries)
    pure = rows["pure_ack"] == 1
    retransmitted = ~pure & (octets > 0) & (sums_by(packet, len(rows), new) == 0)
    rest = ~pure & ~retransmitted
    # Neither has a packet number or packet protection (RFC 9000, 17.2.1 and 17.2.5; RFC 9001, 5).
    unprotected = (rows["type_retry"] == 1) | (rows["type_version"] == 1)
    wire, payload = rows["wire_bytes"], rows["payload_bytes"]
    protection = rows["quic_header_bytes"] + _TAG * rows["quic_packets"]
    left = payload - protection - sums_by(packet, len(rows), whole_frames)
    known = rest & (rows["eliciting"] != NULL) & (rows["quic_header_bytes"] != NULL) & ~unprotected
    wrong = known & (left < 0)
    known &= ~wrong
    rows.add("parts known", known.astype(np.int64))
    # A packet is its headers, its tag and its frames: what is left is of frames whose size is not given.
    unsized = known & (sums_by(packet, len(rows), (frames["wire_length"] == NULL).astype(np.int64)) > 0)
    padded = known & ~unsized & (rows["padding"] == 1)
    return {
        "wrong": wrong,
        "acknowledgements": wire * pure,
        "retransmissions": wire * retransmitted,
        "protection": protection * known + payload * (rest & unprotected),
        "transport_frames": left * unsized,
        "padding": left * padded,
        "unknown": payload * (rest & ~known & ~unprotected) + left * (known & ~unsized & ~padded),
        **_headers(rows, rest),
    }


def _frames(rows: Rows, frames: Rows) -> dict[str, Ints]:
    """Octets of frames by part, of packets whose parts are known; of streams those of ``requests`` apart."""
    packet, new, length_on_wire = frames["packet"], frames["new octets"], frames["whole"]
    counted = (packet >= 0) & (rows["parts known"] == 1)[packet]
    stream, crypto = counted & frames.is_in("type", "STREAM"), counted & frames.is_in("type", "CRYPTO")
    padding = counted & frames.is_in("type", "PADDING")
    request = frames["stream"] % 4 == 0  # client-initiated, bidirectional (RFC 9000, section 2.1)
    length = frames["length"]
    return {
        "padding": length_on_wire * padding,
        "handshake": (length_on_wire - length + new) * crypto,
        "transport_frames": length_on_wire * (counted & ~padding & ~crypto & ~stream)
        + (length_on_wire - length) * stream,
        "retransmissions": (length - new) * (stream | crypto),
        "http_framing": new * (stream & ~request),
        "requests": new * (stream & request),
    }


def _octets_on_wire(frames: Rows) -> Ints:
    return np.maximum(frames["wire_length"], frames["length"])


def _new_of_quic(frames: Rows) -> Ints:
    crypto = frames.is_in("type", "CRYPTO")
    # CRYPTO has a stream of its own in each packet number space (RFC 9000, 19.6).
    key = np.where(crypto, _KEY + frames["packet_space"], frames["stream"])
    carries = ((frames.is_in("type", "STREAM") | crypto) & (frames["offset"] != NULL)).nonzero()[0]
    start = frames["offset"][carries]
    new = np.zeros(len(frames), dtype=np.int64)
    new[carries] = fresh_by_stream(
        frames["connection"][carries], key[carries], start, start + frames["length"][carries]
    )
    return new
