"""Where the packets of a capture file are: pcap (all four magics), pcapng (draft-ietf-opsawg-pcapng); never trusted."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from trifecta.design.errors import UserError

Ints = npt.NDArray[np.int64]

_SECTION, _INTERFACE, _SIMPLE, _ENHANCED, _SECRETS = 0x0A0D0D0A, 1, 3, 6, 10
_TLS_KEY_LOG = 0x544C534B
_COMMENT, _PACKET_ID, _TIME_RESOLUTION, _TIME_OFFSET = 1, 5, 9, 14
_NO_ID = (1 << 64) - 1
_PCAP = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
_MOST_OCTETS = 1 << 24  # of one packet: super-frames are 64 kB


@dataclass(slots=True)
class CaptureFile:
    """The packets of a file, by position; the octets stay in the file."""

    path: Path
    data: npt.NDArray[np.uint8]
    offset: Ints
    captured: Ints
    wire: Ints
    time_ns: Ints
    interface: Ints
    packet_id: npt.NDArray[np.uint64] | None  # of a capture of our link
    link_types: list[int]  # by interface
    comments: dict[int, str]  # by packet, from 0
    secrets: bytes
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Found:
    offset: list[int] = field(default_factory=list)
    captured: list[int] = field(default_factory=list)
    wire: list[int] = field(default_factory=list)
    time_ns: list[int] = field(default_factory=list)
    interface: list[int] = field(default_factory=list)
    packet_id: list[int] = field(default_factory=list)
    link_types: list[int] = field(default_factory=list)
    clocks: list[tuple[int, int, int]] = field(default_factory=list)  # multiply, divide, add (ns)
    comments: dict[int, str] = field(default_factory=dict)
    secrets: bytearray = field(default_factory=bytearray)
    notes: list[str] = field(default_factory=list)

    def add(self, packet: tuple[int, int, int, int, int, int]) -> None:
        offset, captured, wire, time_ns, interface, identity = packet
        self.offset.append(offset)
        self.captured.append(captured)
        self.wire.append(wire)
        self.time_ns.append(time_ns)
        self.interface.append(interface)
        self.packet_id.append(identity)


def read_capture(path: Path) -> CaptureFile:
    """Find the packets. What is no capture is a UserError; one that is cut gives what is there and a note."""
    if path.is_dir():
        raise UserError(f"{path}: is a folder; name the capture files in it")
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            view: bytes | mmap.mmap = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}; name a pcap or pcapng file") from error
    head = bytes(view[:4])
    found = _Found()
    if head in _PCAP and len(view) >= 24:
        _read_pcap(view, found, *_PCAP[head])
    elif head == b"\n\r\r\n" and len(view) >= 28:
        _read_pcapng(view, found)
    elif head[:2] == b"\x1f\x8b":
        raise UserError(f"{path}: is compressed; unpack it with gunzip first")
    else:
        what = "is empty" if not len(view) else "is neither pcap nor pcapng"
        raise UserError(f"{path}: {what}; write it with tcpdump -w, dumpcap, or trifecta run --capture")

    def column(values: list[int]) -> Ints:
        return np.asarray(values, dtype=np.int64)

    # Both sides of our link, joined by a number of ours. Other writers number packets otherwise, if at all.
    ids = np.asarray(found.packet_id, dtype=np.uint64)
    ours = len(found.link_types) == 2 and len(ids) > 0 and not bool((ids == np.uint64(_NO_ID)).any())
    return CaptureFile(
        path,
        np.frombuffer(view, dtype=np.uint8),
        column(found.offset),
        column(found.captured),
        column(found.wire),
        column(found.time_ns),
        column(found.interface),
        ids if ours else None,
        found.link_types,
        found.comments,
        bytes(found.secrets),
        found.notes,
    )


def _read_pcap(view: bytes | mmap.mmap, found: _Found, order: str, unit_ns: int) -> None:
    (link_type,) = struct.unpack_from(order + "I", view, 20)
    found.link_types.append(link_type & 0x0FFFFFFF)  # the upper bits say how long the FCS is
    header = struct.Struct(order + "IIII")
    at, size = 24, len(view)
    while at < size:
        number = len(found.offset) + 1
        if at + 16 > size:
            found.notes.append(f"the file is cut in packet {number}: what came after it is not known")
            return
        seconds, fraction, captured, wire = header.unpack_from(view, at)
        if captured > _MOST_OCTETS or fraction * unit_ns >= 2_000_000_000:
            found.notes.append(f"the file is damaged at packet {number} (octet {at}): nothing after it could be read")
            return
        if at + 16 + captured > size:
            found.notes.append(f"the file is cut in packet {number}: what came after it is not known")
            return
        time_ns = seconds * 1_000_000_000 + fraction * unit_ns
        found.add((at + 16, captured, max(wire, captured), time_ns, 0, _NO_ID))
        at += 16 + captured


def _read_pcapng(view: bytes | mmap.mmap, found: _Found) -> None:  # noqa: PLR0912 - a call less for each packet
    at, size, order, first_interface = 0, len(view), "<", 0
    block, enhanced = struct.Struct("<II"), struct.Struct("<IIIII")
    while at < size:
        number = len(found.offset) + 1
        if at + 12 > size:
            found.notes.append(f"the file is cut in packet {number}: what came after it is not known")
            return
        if view[at : at + 4] == b"\n\r\r\n":
            magic = view[at + 8 : at + 12]
            order = "<" if magic == b"\x4d\x3c\x2b\x1a" else ">"
            block, enhanced = struct.Struct(order + "II"), struct.Struct(order + "IIIII")
            first_interface = len(found.link_types)
            if magic not in (b"\x4d\x3c\x2b\x1a", b"\x1a\x2b\x3c\x4d"):
                found.notes.append(f"the section at octet {at} is damaged: nothing after it could be read")
                return
        kind, total = block.unpack_from(view, at)
        if total < 12 or total % 4:
            found.notes.append(f"the file is damaged at packet {number} (octet {at}): nothing after it could be read")
            return
        end = at + total
        if end > size:
            found.notes.append(f"the file is cut in packet {number}: what came after it is not known")
            return
        body_end = end - 4
        if kind == _ENHANCED and total >= 32:
            interface, high, low, captured, wire = enhanced.unpack_from(view, at + 8)
            interface += first_interface
            padded = at + 28 + (captured + 3 & ~3)
            if padded > body_end or interface >= len(found.link_types):
                found.notes.append(
                    f"the file is damaged at packet {number} (octet {at}): nothing after it could be read"
                )
                return
            multiply, divide, add = found.clocks[interface]
            time_ns = (high << 32 | low) * multiply // divide + add
            if time_ns >= 1 << 63:
                found.notes.append(f"packet {number} has no time that can be (octet {at}): nothing after it was read")
                return
            identity = _NO_ID
            if padded < body_end:
                identity = _packet_options(view, padded, body_end, order, found)
            found.add((at + 28, captured, max(wire, captured), time_ns, interface, identity))
        elif kind == _INTERFACE and total >= 20:
            _interface(view, at, body_end, order, found)
        elif kind == _SECRETS and total >= 20:
            secrets_type, length = struct.unpack_from(order + "II", view, at + 8)
            if secrets_type == _TLS_KEY_LOG:
                found.secrets += bytes(view[at + 16 : min(at + 16 + length, body_end)]).rstrip(b"\n") + b"\n"
        elif kind == _SIMPLE:
            note = "some packets are in blocks without a time: they are left out"
            if note not in found.notes:
                found.notes.append(note)
        at = end


def _interface(view: bytes | mmap.mmap, at: int, end: int, order: str, found: _Found) -> None:
    """One interface: its link type and its clock."""
    (link_type,) = struct.unpack_from(order + "H", view, at + 8)
    multiply, divide, add = 1000, 1, 0  # microseconds, unless it says otherwise
    for code, value in _options(view, at + 16, end, order):
        if code == _TIME_RESOLUTION and len(value) == 1:
            power = value[0] & 0x7F
            if value[0] & 0x80:
                multiply, divide = 1_000_000_000, 1 << power
            elif power <= 9:
                multiply, divide = 10 ** (9 - power), 1
            else:
                multiply, divide = 1, 10 ** (power - 9)
        elif code == _TIME_OFFSET and len(value) == 8:
            add = int(struct.unpack(order + "q", value)[0]) * 1_000_000_000
    found.link_types.append(link_type)
    found.clocks.append((multiply, divide, add))


def _packet_options(view: bytes | mmap.mmap, at: int, end: int, order: str, found: _Found) -> int:
    identity = _NO_ID
    for code, value in _options(view, at, end, order):
        if code == _PACKET_ID and len(value) == 8:
            identity = int(struct.unpack(order + "Q", value)[0])
        elif code == _COMMENT:
            found.comments[len(found.offset)] = value.decode("utf-8", "replace")
    return identity


def _options(view: bytes | mmap.mmap, at: int, end: int, order: str) -> list[tuple[int, bytes]]:
    options = []
    while at + 4 <= end:
        code, length = struct.unpack_from(order + "HH", view, at)
        if code == 0 or at + 4 + length > end:
            break
        options.append((code, bytes(view[at + 4 : at + 4 + length])))
        at += 4 + (length + 3 & ~3)
    return options
