"""QUIC: packets of a datagram and their frames, out of tshark's flat lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trifecta.trace.values import numbers, texts, truths

FIELDS = (
    "quic.connection.number",
    "quic.header_form",
    "quic.long.packet_type",
    "quic.long.packet_type_v2",
    "quic.version",
    "quic.packet_length",
    "quic.length",
    "quic.dcil",
    "quic.dcid",
    "quic.scid",
    "quic.packet_number_length",
    "quic.packet_number",
    "quic.spin_bit",
    "quic.frame_type",
    "quic.padding_length",
    "quic.ack.largest_acknowledged",
    "quic.ack.ack_delay",
    "quic.ack.ack_range_count",
    "quic.ack.first_ack_range",
    "quic.ack.gap",
    "quic.ack.ack_range",
    "quic.ack.ect0_count",
    "quic.ack.ect1_count",
    "quic.ack.ecn_ce_count",
    "quic.rsts.stream_id",
    "quic.rsts.application_error_code",
    "quic.rsts.final_size",
    "quic.ss.stream_id",
    "quic.ss.application_error_code",
    "quic.crypto.offset",
    "quic.crypto.length",
    "quic.nt.length",
    "quic.stream.stream_id",
    "quic.stream.offset",
    "quic.stream.length",
    "quic.stream.fin",
    "quic.stream_data",
    "quic.md.maximum_data",
    "quic.msd.stream_id",
    "quic.msd.maximum_stream_data",
    "quic.ms.max_streams",
    "quic.sb.stream_data_limit",
    "quic.sdb.stream_id",
    "quic.sdb.stream_data_limit",
    "quic.sib.stream_limit",
    "quic.nci.sequence",
    "quic.nci.retire_prior_to",
    "quic.nci.connection_id.length",
    "quic.rci.sequence",
)
PACKET_TYPES = ("Initial", "0-RTT", "Handshake", "Retry")  # RFC 9000 17.2
_TYPES_V2 = ("Retry", "Initial", "0-RTT", "Handshake")  # RFC 9369 3.2
# Of packet numbers (RFC 9000 12.3).
SPACES = {"Initial": "initial", "Handshake": "handshake", "0-RTT": "application", "1-RTT": "application"}
# RFC 9000 12.4, RFC 9221 4 (DATAGRAM); the last two: draft-ietf-quic-ack-frequency.
TYPES = {
    0x00: "PADDING",
    0x01: "PING",
    0x02: "ACK",
    0x03: "ACK",
    0x04: "RESET_STREAM",
    0x05: "STOP_SENDING",
    0x06: "CRYPTO",
    0x07: "NEW_TOKEN",
    **dict.fromkeys(range(0x08, 0x10), "STREAM"),
    0x10: "MAX_DATA",
    0x11: "MAX_STREAM_DATA",
    0x12: "MAX_STREAMS",
    0x13: "MAX_STREAMS",
    0x14: "DATA_BLOCKED",
    0x15: "STREAM_DATA_BLOCKED",
    0x16: "STREAMS_BLOCKED",
    0x17: "STREAMS_BLOCKED",
    0x18: "NEW_CONNECTION_ID",
    0x19: "RETIRE_CONNECTION_ID",
    0x1A: "PATH_CHALLENGE",
    0x1B: "PATH_RESPONSE",
    0x1C: "CONNECTION_CLOSE",
    0x1D: "CONNECTION_CLOSE",
    0x1E: "HANDSHAKE_DONE",
    0x30: "DATAGRAM",
    0x31: "DATAGRAM",
    0xAC: "IMMEDIATE_ACK",
    0xAF: "ACK_FREQUENCY",
}
_TAG = 16  # RFC 9001 5.3
_SHORT = ("0", "False")  # of `header_form`: one packet, as versions write it
_OFFSET, _LENGTH = 4, 2  # bits of a STREAM frame's type (RFC 9000 19.8)


@dataclass(slots=True)
class Packet:
    """One QUIC packet of a datagram."""

    kind: str
    length: int
    number: int | None = None
    header: int | None = None

    @property
    def room(self) -> int | None:
        """Octets of its frames."""
        return None if self.header is None else self.length - self.header - _TAG


@dataclass(slots=True)
class Frame:
    """One frame; what it does not have is None."""

    kind: str
    wire: int | None = None
    stream: int | None = None
    offset: int | None = None
    length: int | None = None
    fin: bool | None = None
    value: int | None = None
    delay: int | None = None  # ACK delay as encoded
    ranges: list[tuple[int, int]] | None = None
    data: str = ""  # STREAM: hexadecimal
    packet: int | None = None  # place in the datagram


def varint(value: int) -> int:
    """Octets of a variable-length integer (RFC 9000 16), in the shortest way."""
    return 1 if value < 64 else 2 if value < 16384 else 4 if value < 1 << 30 else 8


def read_packets(row: dict[str, str]) -> list[Packet]:
    """The packets of a datagram. Empty where tshark's lists do not fit each other."""
    if row["quic.header_form"] in _SHORT and not (
        row["quic.version"] or row["quic.long.packet_type"] or row["quic.long.packet_type_v2"]
    ):
        return _read_short(row)
    forms = truths(row["quic.header_form"])
    lengths = numbers(row["quic.packet_length"])
    if not forms or len(lengths) != len(forms):
        return []
    kinds = [PACKET_TYPES[one & 3] for one in numbers(row["quic.long.packet_type"])]
    kinds = kinds or [_TYPES_V2[one & 3] for one in numbers(row["quic.long.packet_type_v2"])]
    versions = numbers(row["quic.version"])
    # RFC 9000 17.2.1: version 0, and no type.
    if not kinds and 0 in versions:
        kinds = ["Version Negotiation"]
    if len(kinds) != sum(forms):
        return []
    long = iter(kinds)
    packets = [Packet(next(long) if form else "1-RTT", length) for form, length in zip(forms, lengths, strict=True)]
    protected = [one for one in packets if one.kind in SPACES]
    packet_numbers, sizes = numbers(row["quic.packet_number"]), numbers(row["quic.packet_number_length"])
    # Without keys only Initial packets can be opened, whose keys are in the clear (RFC 9001 5.2).
    opened = protected if len(packet_numbers) == len(protected) else [one for one in protected if one.kind == "Initial"]
    if len(packet_numbers) != len(opened) or len(sizes) != len(packet_numbers):
        return packets
    rests = numbers(row["quic.length"])
    rest = dict(zip([id(one) for one in protected if one.kind != "1-RTT"], rests, strict=False))
    ids = texts(row["quic.dcid"])
    short_id = ids[-1] if len(ids) > sum(1 for one in numbers(row["quic.dcil"]) if one) else ""
    for one, value, bits in zip(opened, packet_numbers, sizes, strict=True):
        one.number, size = value, bits + 1  # as encoded (RFC 9000 17.2)
        if one.kind == "1-RTT":
            one.header = 1 + len(short_id) // 2 + size
        elif id(one) in rest:
            header = one.length - rest[id(one)] + size
            # The length is the sender's word (RFC 9000 17.2), and may be damaged.
            one.header = header if size < header <= one.length else None
    return packets


def _read_short(row: dict[str, str]) -> list[Packet]:
    """A datagram of one packet with a short header (RFC 9000 17.3.1): nearly all are."""
    lengths = numbers(row["quic.packet_length"])
    if len(lengths) != 1:
        return []
    packet = Packet("1-RTT", lengths[0])
    packet_numbers, sizes = numbers(row["quic.packet_number"]), numbers(row["quic.packet_number_length"])
    if len(packet_numbers) == len(sizes) == 1:
        ids = texts(row["quic.dcid"])
        packet.number = packet_numbers[0]
        packet.header = 2 + (len(ids[-1]) // 2 if ids else 0) + sizes[0]
    return [packet]


class _Lists:
    """The values of each field, taken one after the other."""

    def __init__(self, row: dict[str, str]) -> None:
        self._row = row
        self._left: dict[str, list[int]] = {}

    def has(self, name: str) -> bool:
        """Whether this field is there at all."""
        return bool(self._row[name])

    def take(self, name: str) -> int:
        """The next number of this field."""
        left = self._left.get(name)
        if left is None:
            left = self._left[name] = numbers(self._row[name])[::-1]
        if not left:
            raise LookupError(name)
        return left.pop()


def read_frames(row: dict[str, str], packets: list[Packet]) -> list[Frame] | None:
    """The frames of a datagram in their order, each with its packet where that is certain. None: lists do not fit."""
    kinds = numbers(row["quic.frame_type"])
    lists, frames = _Lists(row), []
    # tshark writes <MISSING> for data of no octets: a frame that has only the end of its stream.
    data = iter([one for one in texts(row["quic.stream_data"]) if not one.startswith("<")])
    fins = iter(truths(row["quic.stream.fin"]))
    try:
        for kind in kinds:
            frame = _stream(kind, lists, fins, data) if 8 <= kind <= 15 else _read(kind, lists)
            frames.append(frame)
    except LookupError:
        return None
    _part(frames, [one for one in packets if one.number is not None], packets)
    return frames


def _stream(kind: int, lists: _Lists, fins: Iterator[bool], data: Iterator[str]) -> Frame:
    stream = lists.take("quic.stream.stream_id")
    offset = lists.take("quic.stream.offset") if kind & _OFFSET else 0
    length = lists.take("quic.stream.length") if kind & _LENGTH else None
    octets = "" if length == 0 else next(data, "")
    size = len(octets) // 2 if octets else (length or 0)
    if length is not None and octets and size != length:
        raise LookupError("quic.stream_data")
    wire = 1 + varint(stream) + (varint(offset) if kind & _OFFSET else 0) + size
    wire += varint(size) if kind & _LENGTH else 0
    return Frame("STREAM", wire, stream, offset, size, next(fins, bool(kind & 1)), data=octets)


def _read(kind: int, lists: _Lists) -> Frame:  # noqa: PLR0911, PLR0912 - one case for each type of RFC 9000 19
    take, name = lists.take, TYPES.get(kind, f"0x{kind:02x}")
    if kind == 0x00:
        size = take("quic.padding_length")
        return Frame(name, size, length=size)
    if kind in (0x02, 0x03):
        return _ack(kind, lists)
    if kind == 0x04:
        stream, code, final = (
            take(f"quic.rsts.{one}") for one in ("stream_id", "application_error_code", "final_size")
        )
        return Frame(name, 1 + varint(stream) + varint(code) + varint(final), stream, value=final)
    if kind == 0x05:
        stream, code = take("quic.ss.stream_id"), take("quic.ss.application_error_code")
        return Frame(name, 1 + varint(stream) + varint(code), stream, value=code)
    if kind == 0x06:
        offset, size = take("quic.crypto.offset"), take("quic.crypto.length")
        return Frame(name, 1 + varint(offset) + varint(size) + size, offset=offset, length=size)
    if kind == 0x07:
        size = take("quic.nt.length")
        return Frame(name, 1 + varint(size) + size, length=size)
    if kind == 0x10:
        return _value(name, take("quic.md.maximum_data"))
    if kind == 0x11:
        stream, value = take("quic.msd.stream_id"), take("quic.msd.maximum_stream_data")
        return Frame(name, 1 + varint(stream) + varint(value), stream, value=value)
    if kind in (0x12, 0x13):
        return _value(name, take("quic.ms.max_streams"))
    if kind == 0x14:
        return _value(name, take("quic.sb.stream_data_limit"))
    if kind == 0x15:
        # One name for the limits of both frames in tshark 4.0.
        limit = "quic.sdb.stream_data_limit" if lists.has("quic.sdb.stream_data_limit") else "quic.sb.stream_data_limit"
        stream, value = take("quic.sdb.stream_id"), take(limit)
        return Frame(name, 1 + varint(stream) + varint(value), stream, value=value)
    if kind in (0x16, 0x17):
        return _value(name, take("quic.sib.stream_limit"))
    if kind == 0x18:
        sequence, retired = take("quic.nci.sequence"), take("quic.nci.retire_prior_to")
        size = take("quic.nci.connection_id.length")
        return Frame(name, 1 + varint(sequence) + varint(retired) + 1 + size + 16, value=sequence)
    if kind == 0x19:
        return _value(name, take("quic.rci.sequence"))
    # PATH_*: 8 octets. CONNECTION_CLOSE, DATAGRAM and what is not of RFC 9000: their size is not counted.
    return Frame(name, {0x01: 1, 0x1A: 9, 0x1B: 9, 0x1E: 1, 0xAC: 2}.get(kind))


def _value(name: str, value: int) -> Frame:
    return Frame(name, 1 + varint(value), value=value)


def _ack(kind: int, lists: _Lists) -> Frame:
    take = lists.take
    largest, delay = take("quic.ack.largest_acknowledged"), take("quic.ack.ack_delay")
    count, first = take("quic.ack.ack_range_count"), take("quic.ack.first_ack_range")
    wire = 1 + varint(largest) + varint(delay) + varint(count) + varint(first)
    low = largest - first
    ranges = [(low, largest)]
    for _ in range(count):
        gap, size = take("quic.ack.gap"), take("quic.ack.ack_range")
        wire += varint(gap) + varint(size)
        high = low - gap - 2  # RFC 9000 19.3.1
        low = high - size
        ranges.append((low, high))
    if low < 0:
        raise LookupError("quic.ack.ack_range")
    if kind == 3:
        wire += sum(varint(take(f"quic.ack.{one}")) for one in ("ect0_count", "ect1_count", "ecn_ce_count"))
    return Frame("ACK", wire, value=largest, delay=delay, ranges=ranges)


def _part(frames: list[Frame], opened: list[Packet], packets: list[Packet]) -> None:
    """Say of each frame in which packet it is: by the octets that the packets have for frames."""
    if len(opened) == 1:
        place, room = packets.index(opened[0]), opened[0].room
        left = None if room is None else room - sum(one.wire or 0 for one in frames)
        unknown = [one for one in frames if one.wire is None]
        if len(unknown) == 1 and left is not None and left > 0:
            unknown[0].wire, left = left, 0
        for one in frames:
            one.packet = place
            if left != 0:
                # Integers were not written in the shortest way, which they need not be (RFC 9000 16), or more than one
                # is not known.
                one.wire = None
        return
    at, result = 0, []
    for packet in opened:
        if packet.room is None:
            return
        left = packet.room
        while left > 0 and at < len(frames):
            size = frames[at].wire
            if size is None:
                # Of unknown size: only at the end of the last packet is it certain where it is.
                if packet is not opened[-1]:
                    return
                size = 0
            left -= size
            result.append(packets.index(packet))
            at += 1
        if left < 0 or (left > 0 and packet is not opened[-1]):
            return
    if at == len(frames):
        for one, place in zip(frames, result, strict=True):
            one.packet = place
