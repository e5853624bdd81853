"""Overhead: every octet on the wire belongs to one layer, and the parts add up to the whole.

Counted where packets left their sender, so what the link lost was sent too. A packet that only acknowledges, and one in
which nothing is new, is overhead as a whole, with its headers: it would not be there without acknowledgements or loss.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trifecta.analysis.transport.columns import NULL, Connection
from trifecta.analysis.transport.octets import fresh_by_group, fresh_by_stream
from trifecta.analysis.transport.rows import Bools, Ints, Rows

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
_FIELDS = ("HEADERS", "CONTINUATION", "PUSH_PROMISE", "TRAILERS")
_TAG = 16  # RFC 9001, section 5.3
_PREFACE = 24  # RFC 9113, section 3.4
_RECORD = {"1.3": 22, "1.2": 29}  # header, nonce, content type and tag of the usual AEADs
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


def _headers(rows: Rows, mask: Bools, parts: dict[str, int]) -> None:
    """Link, IP and transport headers of the packets that a mask chooses."""
    ip, transport = np.maximum(0, rows["ip_header_bytes"]), np.maximum(0, rows["transport_header_bytes"])
    parts["ip"] += int(ip[mask].sum())
    parts["transport"] += int(transport[mask].sum())
    parts["link"] += int((rows["wire_bytes"] - ip - transport - rows["payload_bytes"])[mask].sum())


def _tcp(connection: Connection, up: bool, notes: list[str]) -> dict[str, int]:
    parts = dict.fromkeys(PARTS, 0)
    rows = connection.sent(up=up)
    payload, wire = rows["payload_bytes"], rows["wire_bytes"]
    new = rows.derived("new octets", _new_of_tcp)
    opening = rows["syn"] == 1
    again = (payload > 0) & (new == 0) | opening & (opening.cumsum() > 1)
    pure = (payload == 0) & (rows["ack"] == 1) & ~opening & (rows["fin"] != 1) & (rows["rst"] != 1)
    rest = ~again & ~pure
    parts["acknowledgements"] = int(wire[pure].sum())
    parts["retransmissions"] = int(wire[again].sum()) + int((payload - new)[rest].sum())
    _headers(rows, rest, parts)
    _tls(connection, up, int(new[rest].sum()), parts, notes)
    return parts


def _new_of_tcp(rows: Rows) -> Ints:
    new = np.zeros(len(rows), dtype=np.int64)
    data = ((rows["payload_bytes"] > 0) & (rows["sequence"] != NULL)).nonzero()[0]
    start = rows["sequence"][data]
    new[data] = fresh_by_group((rows["connection"][data],), start, start + rows["payload_bytes"][data])
    return new


def _tls(connection: Connection, up: bool, octets: int, parts: dict[str, int], notes: list[str]) -> None:
    """The octets that TCP carried, each once: TLS and the HTTP in it."""
    records = connection.frames_of("tls", up=up)
    frames = connection.frames.pick(
        ("http over tcp", up), lambda of: of.is_in("layer", "h1", "h2") & (of["up"] == int(up))
    )
    if len(records) and (frames["tcp_start"] == NULL).any():
        notes.append("where HTTP lies in TLS records is not known: the parts of the payload are unknown")
        frames = frames.where(slice(0, 0))
    http = _http(frames, parts)
    if connection.row["protocol"] == "h1":
        _chunks(connection, up, parts)
    if connection.row["protocol"] == "h2" and len(frames) and int(frames["offset"].min()) == _PREFACE:
        http += _PREFACE
        parts["http_framing"] += _PREFACE
    if not len(records):  # HTTP in the clear, or unreadable
        _rest(octets - http, parts, notes)
        return
    inside = _overlap(records, frames)
    bare, holding = int(records["wire_length"][~inside].sum()), int(records["wire_length"][inside].sum())
    if not len(frames):
        # Only what is a handshake by its type is known as one (without keys and in TLS 1.3 the hellos).
        clear = records.is_in("type", "handshake", "change_cipher_spec", "alert")
        bare = int(records["wire_length"][clear].sum())
        holding = 0
    protection = holding - http
    if connection.row["truncated"]:  # a frame that was cut off is not among the frames
        usual = int(inside.sum()) * _RECORD.get(str(connection.row["tls_version"]), 0)
        protection = min(protection, max(usual, 0)) if len(frames) else protection
    parts["handshake"] += bare
    parts["protection"] += protection
    _rest(octets - bare - protection - http, parts, notes)


def _chunks(connection: Connection, up: bool, parts: dict[str, int]) -> None:
    """HTTP/1.1: what is behind a field section is content and the framing of its chunks (RFC 9112, section 7.1)."""
    bodies = connection.messages["request_body_bytes" if up else "response_body_bytes"]
    if len(bodies) and (bodies != NULL).all() and (content := int(bodies.sum())) <= parts["content"]:
        parts["http_framing"] += parts["content"] - content
        parts["content"] = content


def _rest(octets: int, parts: dict[str, int], notes: list[str]) -> None:
    """What belongs nowhere; where more was dissected than sent, nothing of it can be trusted."""
    if octets < 0 or parts["protection"] < 0:
        notes.append("more octets were dissected than sent: the payload's parts are unknown")
        for name in ("handshake", "protection", "http_framing", "fields", "content"):
            octets += parts[name]
            parts[name] = 0
    parts["unknown"] += octets


def _overlap(records: Rows, frames: Rows) -> Bools:
    """Records that hold a piece of a frame: frames are in order, so those before and after a record tell."""
    if not len(frames):
        return np.zeros(len(records), dtype=np.bool_)
    begun = np.sort(frames["tcp_start"]).searchsorted(records["tcp_end"])
    over = np.sort(frames["tcp_end"]).searchsorted(records["tcp_start"], side="right")
    inside: Bools = begun > over
    return inside


def _http(frames: Rows, parts: dict[str, int]) -> int:
    """HTTP frames by part; gives their octets."""
    if not len(frames):
        return 0
    length, whole = frames["length"], np.maximum(frames["wire_length"], 0)
    fields = int(length[frames.is_in("type", *_FIELDS)].sum())
    content = int(length[frames.is_in("type", "DATA")].sum())
    total = int(whole.sum())
    parts["fields"] += fields
    parts["content"] += content
    parts["http_framing"] += total - fields - content
    return total


def _quic(connection: Connection, up: bool, notes: list[str]) -> dict[str, int]:
    parts = dict.fromkeys(PARTS, 0)
    rows = connection.sent(up=up)
    if not len(rows):
        return parts
    frames = connection.frames_of("quic", up=up)
    stream, crypto = frames.is_in("type", "STREAM"), frames.is_in("type", "CRYPTO")
    new, whole = frames.derived("new octets", _new_of_quic), frames.derived("whole", _whole)
    packet = _packet_of(rows, frames)
    octets = _by_packet(rows, packet, np.where(stream | crypto, frames["length"], 0))
    fresh_octets = _by_packet(rows, packet, new)
    pure = rows["pure_ack"] == 1
    again = ~pure & (octets > 0) & (fresh_octets == 0)
    rest = ~pure & ~again
    parts["acknowledgements"] = int(rows["wire_bytes"][pure].sum())
    parts["retransmissions"] = int(rows["wire_bytes"][again].sum())
    _headers(rows, rest, parts)
    unprotected = (rows["type_retry"] == 1) | (rows["type_version"] == 1)
    protection = rows["quic_header_bytes"] + _TAG * rows["quic_packets"]
    left = rows["payload_bytes"] - protection - _by_packet(rows, packet, whole)
    known = rest & (rows["eliciting"] != NULL) & (rows["quic_header_bytes"] != NULL) & ~unprotected
    wrong = known & (left < 0)
    if wrong.any():
        notes.append("frames longer than their packet: the parts of such packets are unknown")
        known &= ~wrong
    parts["protection"] += int(protection[known].sum()) + int(rows["payload_bytes"][rest & unprotected].sum())
    parts["unknown"] += int(rows["payload_bytes"][rest & ~known & ~unprotected].sum())
    # A packet is its headers, its tag and its frames: what is left is of frames whose size is not given.
    unsized = known & (_by_packet(rows, packet, (frames["wire_length"] == NULL).astype(np.int64)) > 0)
    parts["transport_frames"] += int(left[unsized].sum())
    left = np.where(unsized, 0, left)
    padded = known & (rows["padding"] == 1)
    parts["padding"] += int(left[padded].sum())
    parts["unknown"] += int(left[known & ~padded].sum())
    counted = (packet >= 0) & known[packet]
    padding = frames.is_in("type", "PADDING")
    parts["padding"] += int(whole[counted & padding].sum())
    parts["handshake"] += int((whole - frames["length"] + new)[counted & crypto].sum())
    parts["transport_frames"] += int(whole[counted & ~padding & ~crypto & ~stream].sum())
    parts["transport_frames"] += int((whole - frames["length"])[counted & stream].sum())
    parts["retransmissions"] += int((frames["length"] - new)[counted & (stream | crypto)].sum())
    _h3(connection, up, frames["stream"][counted & stream], new[counted & stream], parts=parts, notes=notes)
    return parts


def _whole(frames: Rows) -> Ints:
    return np.maximum(frames["wire_length"], frames["length"])


def _new_of_quic(frames: Rows) -> Ints:
    crypto = frames.is_in("type", "CRYPTO")
    # CRYPTO has a stream of its own in each packet number space.
    key = np.where(crypto, _KEY + frames["packet_space"], frames["stream"])
    carries = ((frames.is_in("type", "STREAM") | crypto) & (frames["offset"] != NULL)).nonzero()[0]
    start = frames["offset"][carries]
    new = np.zeros(len(frames), dtype=np.int64)
    new[carries] = fresh_by_stream(
        frames["connection"][carries], key[carries], start, start + frames["length"][carries]
    )
    return new


def _h3(connection: Connection, up: bool, stream: Ints, new: Ints, *, parts: dict[str, int], notes: list[str]) -> None:
    """The octets of streams, each once. All of unidirectional streams is framing: types, settings, QPACK."""
    request = stream % 4 == 0  # client-initiated, bidirectional (RFC 9000, section 2.1)
    parts["http_framing"] += int(new[~request].sum())
    frames = connection.frames_of("h3", up=up).pick("requests", lambda of: of["stream"] % 4 == 0)
    if len(frames):  # one that is seen again by a loss is still one frame
        order = np.lexsort((frames["offset"], frames["stream"]))
        frames = frames.where(order)
        same = (np.diff(frames["stream"]) == 0) & (np.diff(frames["offset"]) == 0)
        frames = frames.where(np.concatenate(([True], ~same)))
    octets = int(new[request].sum())
    part = dict.fromkeys(PARTS, 0)
    _rest(octets - _http(frames, part), part, notes)
    for name, value in part.items():
        parts[name] += value


def _packet_of(rows: Rows, frames: Rows) -> Ints:
    """The row of the packet that holds each frame; -1: it is not among these."""
    if not len(rows):
        return np.full(len(frames), NULL, dtype=np.int64)
    number, wanted = rows["number"], frames["number"]
    if (number[1:] >= number[:-1]).all():
        at = np.minimum(number.searchsorted(wanted), len(number) - 1)
    else:
        order = number.argsort(kind="stable")
        at = order[np.minimum(number[order].searchsorted(wanted), len(order) - 1)]
    return np.where(number[at] == wanted, at, NULL)


def _by_packet(rows: Rows, packet: Ints, values: Ints) -> Ints:
    known = packet >= 0
    if not known.all():
        packet, values = packet[known], values[known]
    total: Ints = np.bincount(packet, weights=values, minlength=len(rows)).astype(np.int64)
    return total
