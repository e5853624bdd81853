"""The connections of a capture that run over UDP: QUIC packets, frames, HTTP/3."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from trifecta.trace import http3, quic, tls, tshark, values
from trifecta.trace.missing_packets import UNKNOWN, PacketNumbers
from trifecta.trace.rows import DIRECTIONS, Facts, Part, Trace
from trifecta.trace.tshark_input import UdpFeed

_PARAMETERS = (
    "initial_max_data",
    "initial_max_stream_data_bidi_local",
    "initial_max_stream_data_bidi_remote",
    "initial_max_stream_data_uni",
    "initial_max_streams_bidi",
    "initial_max_streams_uni",
    "max_idle_timeout",
    "max_udp_payload_size",
    "ack_delay_exponent",
    "max_ack_delay",
    "active_connection_id_limit",
)
_FIELDS = (
    "frame.number",
    *quic.FIELDS,
    *(one for one in tls.FIELDS if not one.startswith("tls.record")),
    *(f"tls.quic.parameter.{one}" for one in _PARAMETERS),
    "gquic.version",
    tshark.INFO,
)
# What a datagram looks like comes before what its ports are for: a client's may be PROFINET's (34962) or TZSP's.
_OPTIONS = ("--disable-protocol", "http3", "-o", "udp.try_heuristic_first:TRUE")
_HANDSHAKE_EXPONENT = 3  # RFC 9000 18.2


class _Connection:
    def __init__(self, part: Part) -> None:
        self.session = tls.Session()
        self.http3 = http3.Connection(part.frames)
        self.parameters: dict[str, dict[str, int]] = {}
        self.version: str | None = None
        self.numbers = PacketNumbers()
        self.opened = False
        self.closed = 0  # protected packets that could not be opened
        self.answered = False  # the server sent a Handshake packet: its ServerHello came before
        self.client_hello = False
        self.zero_rtt = False
        self.early: list[tuple[int, int]] = []  # frames whose delay waits for the exponent: place, encoded
        self.flow = -1
        self.directions: list[int] = []

    def see(self, direction: int, packets: list[quic.Packet], row: dict[str, str]) -> None:
        """The packets of a datagram; none: they could not be distinguished."""
        if not packets:
            self.numbers.unread[direction] += max(1, len(values.texts(row["quic.header_form"])))
        for packet in packets:
            if packet.number is not None:
                self.numbers.see(direction, quic.SPACES[packet.kind], packet.number)
            elif packet.kind in quic.SPACES:
                self.numbers.unread[direction] += 1
            if packet.kind in ("1-RTT", "Handshake", "0-RTT"):
                self.opened |= packet.number is not None and packet.kind == "1-RTT"
                self.closed += packet.number is None
            self.answered |= direction == 1 and packet.kind == "Handshake"

    def exponent(self, direction: int) -> int | None:
        """How ACK delays of this direction are scaled; None while its parameters are not known."""
        mine = self.parameters.get(DIRECTIONS[direction])
        return None if mine is None else mine.get("ack_delay_exponent", _HANDSHAKE_EXPONENT)


def dissect_udp(trace: Trace, connections: list[int], keys: bytes) -> Part:
    """Frames, messages and facts of the QUIC connections among these."""
    part = Part()
    flows, headers = trace.flows, trace.headers
    mine = np.isin(flows.connection, connections) & flows.view & (headers.payload > 0)
    rows = np.flatnonzero(mine)
    by_number: dict[int, _Connection] = {}
    google: dict[str, set[int]] = {}
    owner: list[int] = []  # QUIC connection by frame row
    directions = flows.direction
    for line in tshark.dissect(UdpFeed(trace.capture, headers, rows).packets(), _FIELDS, keys, _OPTIONS):
        row = dict(zip(_FIELDS, line, strict=True))
        number = values.numbers(row["frame.number"])
        if not number or number[0] > len(rows):
            continue
        at = int(rows[number[0] - 1])
        numbers = values.numbers(row["quic.connection.number"])
        if not row["quic.header_form"] or not numbers:
            part.info[at] = row[tshark.INFO]
            if row["gquic.version"]:
                google.setdefault(row["gquic.version"], set()).add(int(flows.connection[at]))
            continue
        one = by_number.get(numbers[0])
        if one is None:
            one = by_number[numbers[0]] = _Connection(part)
            one.flow = int(flows.connection[at])
        part.quic.append((numbers[0], *_learn(part, one, at, int(directions[at]), row)))
        owner += [numbers[0]] * (len(part.frames.row) - len(owner))
    part.frames.connection = owner
    for version, of in sorted(google.items()):
        count = "1 connection is" if len(of) == 1 else f"{len(of)} connections are"
        part.notes.append(f"{count} Google's QUIC from before RFC 9000 ({version}): that is not read here")
    for key, one in by_number.items():
        _finish(part, key, one)
    return part


def _learn(part: Part, connection: _Connection, at: int, direction: int, row: dict[str, str]) -> tuple[Any, ...]:
    """Take what tshark says of a datagram; its columns of the packets."""
    packets = quic.read_packets(row)
    frames = quic.read_frames(row, packets) if packets else []
    if frames is None or not packets:
        part.notes.append("some QUIC packets have frames that could not be distinguished: their rows have no frames")
        frames = []
    if row["tls.handshake.type"]:
        connection.session.learn(direction, row)
        _parameters(connection, direction, row)
        connection.client_hello |= 1 in values.numbers(row["tls.handshake.type"])
    connection.zero_rtt |= any(packet.kind == "0-RTT" for packet in packets)
    if row["quic.version"] and connection.version is None:
        version = next((value for value in values.numbers(row["quic.version"]) if value), None)
        # RFC 9000 15, RFC 9369 3.1.
        connection.version = None if version is None else {1: "1", 0x6B3343CF: "2"}.get(version, f"0x{version:08x}")
    connection.see(direction, packets, row)
    part.rows.append(at)
    part.info[at] = row[tshark.INFO]
    for frame in frames:
        packet_of = packets[frame.packet] if frame.packet is not None else None
        space = quic.SPACES.get(packet_of.kind) if packet_of is not None else None
        place = part.frames.add(
            at,
            direction,
            layer="quic",
            type=frame.kind,
            stream=frame.stream,
            offset=frame.offset,
            length=frame.length if frame.length is None or frame.length < 1 << 32 else None,
            wire_length=frame.wire,
            fin=frame.fin,
            value=frame.value,
            packet_number=packet_of.number if packet_of is not None else None,
            packet_space=space,
        )
        if frame.delay is not None and space is not None:
            exponent = _HANDSHAKE_EXPONENT if space != "application" else connection.exponent(direction)
            if exponent is None:
                connection.early.append((place, frame.delay))
                connection.directions.append(direction)
            elif frame.delay << exponent < 1 << 50:
                # In microseconds by a power of two (RFC 9000 19.3).
                part.frames.ack_delay_ns[place] = (frame.delay << exponent) * 1000
        if frame.ranges and space is not None:
            connection.numbers.acknowledge(direction, space, frame.ranges)
        if frame.kind == "STREAM" and frame.stream is not None:
            piece = (frame.offset or 0, frame.length or 0, frame.data, bool(frame.fin))
            connection.http3.add(at, direction, frame.stream, piece)
    return _columns(row, packets, frames)


def _columns(row: dict[str, str], packets: list[quic.Packet], frames: list[quic.Frame]) -> tuple[Any, ...]:
    """As in `rows.QUIC_COLUMNS`."""
    forms = ["short" if packet.kind == "1-RTT" else "long" for packet in packets]
    sizes = [packet.header for packet in packets]
    known_sizes = [size for size in sizes if size is not None]
    known = [packet.number for packet in packets]
    numbers = ",".join(["" if number is None else str(number) for number in known])
    streams = [str(frame.stream) for frame in frames if frame.kind == "STREAM"]
    ranges = [list(one) for frame in frames if frame.ranges for one in frame.ranges]
    spin = values.truths(row["quic.spin_bit"])
    return (
        _distinct(forms),
        ",".join([packet.kind for packet in packets]) or None,
        numbers if len(known) > known.count(None) else None,
        _distinct(values.texts(row["quic.dcid"])),
        _distinct(values.texts(row["quic.scid"])),
        sum(known_sizes) if known_sizes and len(known_sizes) == len(sizes) else None,
        _names(frames) or None,
        _distinct(streams),
        json.dumps(ranges) if ranges else None,
        spin[-1] if spin else None,
    )


def _distinct(words: list[str]) -> str | None:
    """Each word once, in their order; None without any."""
    return ",".join(dict.fromkeys(words)) or None if len(words) > 1 else words[0] or None if words else None


def _names(frames: list[quic.Frame]) -> str:
    text, before = "", None
    for frame in frames:
        text += ("" if not text else "," if frame.packet == before else ";") + frame.kind
        before = frame.packet
    return text


def _parameters(connection: _Connection, direction: int, row: dict[str, str]) -> None:
    parameters: dict[str, int] = {}
    for name in _PARAMETERS:
        field_values = values.numbers(row[f"tls.quic.parameter.{name}"])
        if field_values:
            parameters[name] = field_values[0]
    if parameters and DIRECTIONS[direction] not in connection.parameters:
        connection.parameters[DIRECTIONS[direction]] = parameters


def _finish(part: Part, key: int, connection: _Connection) -> None:
    for (place, delay), direction in zip(connection.early, connection.directions, strict=True):
        exponent = connection.exponent(direction)
        if exponent is not None and delay << exponent < 1 << 50:
            part.frames.ack_delay_ns[place] = (delay << exponent) * 1000
    session = connection.session
    if session.alpn is None and len(session.offered) == 1 and session.cipher is not None:
        session.alpn = session.offered[0]  # QUIC goes on with an offered protocol or not at all (RFC 9001 8.1)
    facts: Any = Facts(
        None,
        session.version or ("1.3" if connection.version is not None else None),  # RFC 9001: always
        session.cipher_text,
        session.alpn,
        session.resumed,
        connection.zero_rtt,
        session.key_exchange,
        connection.version,
        decrypted=connection.opened,
        secured=True,
        transport_parameters=json.dumps(connection.parameters) if connection.parameters else None,
        server_name=session.server_name,
        alpn_offered=session.offers,
    )
    if not connection.client_hello or (connection.answered and session.cipher is None):
        facts.missing.add("start")
        # What only has short headers is left over of a connection that began before the capture.
        if connection.version is not None:
            hello = "ServerHello" if connection.client_hello else "ClientHello"
            part.connection_notes.append(
                (key, f"its {hello} is not in the capture: nothing that is encrypted after it is known")
            )
    if connection.closed and not connection.opened:
        facts.missing.add("keys")
    elif connection.closed:
        facts.missing.add("octets")
        part.connection_notes.append(
            (key, f"{connection.closed} QUIC packets could not be opened: their frames are not known")
        )
    messages = connection.http3.finish()
    _missing(part, key, connection, facts)
    if connection.http3.is_http3 or (session.alpn or "").startswith("h3"):
        facts.protocol = "h3"
        for message in messages:
            message.connection = key
        part.messages += messages
    part.connection_notes += [(key, note) for note in sorted(connection.http3.notes)]
    part.facts[key] = facts


def _missing(part: Part, key: int, connection: _Connection, facts: Facts) -> None:
    """Say what is not in the capture: packets that the other end got, octets of streams before others."""
    up, down = connection.numbers.missing(0), connection.numbers.missing(1)
    if up or down:
        facts.missing |= {"packets", "octets"}
        which = f"{up + down} QUIC packets that were acknowledged are not in the capture ({up} up, {down} down)"
        part.connection_notes.append((key, f"{which}: {UNKNOWN}"))
    octets, streams = connection.http3.holes()
    if octets:
        facts.missing.add("octets")
        of = "1 stream" if streams == 1 else f"{streams} streams"
        which = f"{octets} octets of {of} are missing before others"
        part.connection_notes.append((key, f"{which}: how long its messages are and when they ended is not known"))
