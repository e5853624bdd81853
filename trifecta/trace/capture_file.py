"""Where the packets of a capture file are: pcap with all four magics, and pcapng (`pcapng`); never trusted."""

from __future__ import annotations

import mmap
import struct
from array import array
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from trifecta.design.errors import UserError
from trifecta.trace import pcapng
from trifecta.trace.pcapng import NO_ID, Ints, PacketIndex, octets_at

__all__ = ["CaptureFile", "Ints", "read_capture"]

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
    dropped: dict[int, int] = field(default_factory=dict)  # by interface, where whoever captured says how many
    notes: list[str] = field(default_factory=list)


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
    if head in _PCAP and len(view) >= 24:
        index = _read_pcap(view, *_PCAP[head])
    elif head == b"\n\r\r\n" and len(view) >= 28:
        index = pcapng.read(view)
    elif head[:2] == b"\x1f\x8b":
        raise UserError(f"{path}: is compressed; unpack it with gunzip first")
    else:
        what = "is empty" if not len(view) else "is neither pcap nor pcapng"
        raise UserError(f"{path}: {what}; write it with tcpdump -w, dumpcap, or trifecta run --capture")
    # Both sides of our link, joined by a number of ours. Other writers number packets otherwise, if at all.
    ids = index.packet_id
    ours = len(index.link_types) == 2 and len(ids) > 0 and not bool((ids == NO_ID).any())
    return CaptureFile(
        path,
        np.frombuffer(view, dtype=np.uint8),
        index.offset,
        index.captured,
        np.maximum(index.wire, index.captured),
        index.time_ns,
        index.interface,
        ids if ours else None,
        index.link_types,
        index.comments,
        bytes(index.secrets),
        index.dropped,
        index.notes,
    )


def _read_pcap(view: bytes | mmap.mmap, order: str, unit_ns: int) -> PacketIndex:
    index = PacketIndex()
    (link_type,) = struct.unpack_from(order + "I", view, 20)
    index.link_types.append(link_type & 0x03FFFFFF)  # the upper bits say whether there is an FCS, and how long
    unpack = struct.Struct(order + "IIII").unpack_from
    at, size, starts = 24, len(view), array("q")
    while at < size:
        number = len(starts) + 1
        if at + 16 > size:
            index.notes.append(f"the file is cut in packet {number}: what came after it is not known")
            break
        _, fraction, captured, _ = unpack(view, at)
        if captured > _MOST_OCTETS or fraction * unit_ns >= 2_000_000_000:
            index.notes.append(f"the file is damaged at packet {number} (octet {at}): nothing after it could be read")
            break
        if at + 16 + captured > size:
            index.notes.append(f"the file is cut in packet {number}: what came after it is not known")
            break
        starts.append(at)
        at += 16 + captured
    place = np.asarray(starts, dtype=np.int64)
    words = octets_at(view, place, 16).view(order + "u4").astype(np.int64)
    index.offset, index.captured, index.wire = place + 16, words[:, 2], words[:, 3]
    index.time_ns = words[:, 0] * 1_000_000_000 + words[:, 1] * unit_ns
    index.interface = np.zeros(len(place), dtype=np.int64)
    index.packet_id = np.full(len(place), NO_ID, dtype=np.uint64)
    return index
