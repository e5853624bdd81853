"""The packets of a pcapng file (draft-ietf-opsawg-pcapng). One walk finds the blocks, the rest is of all at once."""

from __future__ import annotations

import mmap
import struct
from array import array
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
NO_ID = np.uint64((1 << 64) - 1)

_SECTION, _INTERFACE, _SIMPLE, _STATISTICS, _ENHANCED, _SECRETS = 0x0A0D0D0A, 1, 3, 5, 6, 10
_TLS_KEY_LOG = 0x544C534B
_COMMENT, _PACKET_ID, _TIME_RESOLUTION, _TIME_OFFSET = 1, 5, 9, 14
_INTERFACE_DROPPED, _SYSTEM_DROPPED = 5, 7  # isb_ifdrop, isb_osdrop (section 4.6)
_MOST = 1 << 63


def _none() -> Ints:
    return np.zeros(0, dtype=np.int64)


@dataclass(slots=True)
class PacketIndex:
    """The packets of a file, by position, and what is told of them all."""

    offset: Ints = field(default_factory=_none)
    captured: Ints = field(default_factory=_none)
    wire: Ints = field(default_factory=_none)
    time_ns: Ints = field(default_factory=_none)
    interface: Ints = field(default_factory=_none)
    packet_id: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    link_types: list[int] = field(default_factory=list)
    comments: dict[int, str] = field(default_factory=dict)
    dropped: dict[int, int] = field(default_factory=dict)  # packets, by interface, where the writer says how many
    secrets: bytearray = field(default_factory=bytearray)
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _BlockScan:
    """What one pass over the blocks gives. ``changes``: packets before, big-endian, first interface, interfaces."""

    starts: array[int] = field(default_factory=lambda: array("q"))
    changes: list[tuple[int, bool, int, int]] = field(default_factory=list)
    clocks: list[tuple[int, int, int]] = field(default_factory=list)  # multiply, divide, add (ns)


def octets_at(view: bytes | mmap.mmap, place: Ints, count: int) -> npt.NDArray[np.uint8]:
    """So many octets from each place on, a row each."""
    data = np.frombuffer(view, dtype=np.uint8)
    return np.ascontiguousarray(data[place[:, None] + np.arange(count)])


def read(view: bytes | mmap.mmap) -> PacketIndex:
    """All packets; of a damaged file those before the damage, and a note."""
    index = PacketIndex()
    wrong = _take(view, _walk(view, len(view), index), index)
    if wrong is not None:  # nothing after it counts, whatever it is
        index = PacketIndex()
        at, note = wrong
        _take(view, _walk(view, at, index), index)
        index.notes.append(note)
    return index


def _walk(view: bytes | mmap.mmap, size: int, index: PacketIndex) -> _BlockScan:
    walk, at, order, first_interface = _BlockScan(), 0, "<", 0
    unpack, starts = struct.Struct("<II").unpack_from, walk.starts
    while at < size:
        if at + 12 > size:
            index.notes.append(f"the file is cut in packet {len(starts) + 1}: what came after it is not known")
            break
        kind, total = unpack(view, at)
        if kind == _SECTION:  # the same octets in both orders
            magic = view[at + 8 : at + 12]
            if magic not in (b"\x4d\x3c\x2b\x1a", b"\x1a\x2b\x3c\x4d"):
                index.notes.append(f"the section at octet {at} is damaged: nothing after it could be read")
                break
            order = "<" if magic == b"\x4d\x3c\x2b\x1a" else ">"
            unpack = struct.Struct(order + "II").unpack_from
            kind, total = unpack(view, at)
            first_interface = len(index.link_types)
            walk.changes.append((len(starts), order == ">", first_interface, len(index.link_types)))
        if total < 12 or total % 4:
            what = f"the file is damaged at packet {len(starts) + 1} (octet {at}): nothing after it could be read"
            index.notes.append(what)
            break
        end = at + total
        if end > size:
            index.notes.append(f"the file is cut in packet {len(starts) + 1}: what came after it is not known")
            break
        if kind == _ENHANCED and total >= 32:
            starts.append(at)
        elif kind == _INTERFACE and total >= 20:
            walk.clocks.append(_interface(view, at, end - 4, order, index))
            walk.changes.append((len(starts), order == ">", first_interface, len(index.link_types)))
        else:
            _read_other(view, (kind, at, end - 4), order, first_interface, index)
        at = end
    return walk


def _interface(view: bytes | mmap.mmap, at: int, end: int, order: str, index: PacketIndex) -> tuple[int, int, int]:
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
    index.link_types.append(link_type)
    return multiply, divide, add


def _read_other(
    view: bytes | mmap.mmap, block: tuple[int, int, int], order: str, first_interface: int, index: PacketIndex
) -> None:
    """A block that is neither a packet nor an interface: its type, where it begins, where its last field does."""
    kind, at, end = block
    if kind == _SECRETS and end - at >= 16:
        secrets_type, length = struct.unpack_from(order + "II", view, at + 8)
        if secrets_type == _TLS_KEY_LOG:
            index.secrets += bytes(view[at + 16 : min(at + 16 + length, end)]).rstrip(b"\n") + b"\n"
    elif kind == _STATISTICS and end - at >= 20:
        interface = int(struct.unpack_from(order + "I", view, at + 8)[0]) + first_interface
        drop_counts = [
            int(struct.unpack(order + "Q", value)[0])
            for code, value in _options(view, at + 20, end, order)
            if code in (_INTERFACE_DROPPED, _SYSTEM_DROPPED) and len(value) == 8
        ]
        # Counts since the beginning: of several blocks of an interface the last one holds.
        if drop_counts and interface < len(index.link_types):
            index.dropped[interface] = sum(drop_counts)
    elif kind == _SIMPLE:
        note = "some packets are in blocks without a time: they are left out"
        if note not in index.notes:
            index.notes.append(note)


def _options(view: bytes | mmap.mmap, at: int, end: int, order: str) -> list[tuple[int, bytes]]:
    options = []
    while at + 4 <= end:
        code, length = struct.unpack_from(order + "HH", view, at)
        if code == 0 or at + 4 + length > end:
            break
        options.append((code, bytes(view[at + 4 : at + 4 + length])))
        at += 4 + (length + 3 & ~3)
    return options


def _take(view: bytes | mmap.mmap, walk: _BlockScan, index: PacketIndex) -> tuple[int, str] | None:
    """Read the headers of all packets. Where one of them cannot be: its octet, and what to say of it."""
    starts = np.asarray(walk.starts, dtype=np.int64)
    if not len(starts):
        return None
    begins = np.asarray([one[0] for one in walk.changes])
    times = np.diff(np.append(begins, len(starts)))
    of = np.repeat(np.arange(len(walk.changes)), times)
    big, first, interfaces = (np.asarray([one[n] for one in walk.changes])[of] for n in (1, 2, 3))
    words = _words(octets_at(view, starts, 28), "u4", big)
    interface, captured = words[:, 2] + first, words[:, 5]
    options, end = starts + 28 + (captured + 3 & ~3), starts + words[:, 1] - 4
    broken = (options > end) | (interface >= interfaces)
    sound = np.where(broken, 0, interface)
    time_ns, never = _times(words[:, 3].astype(np.uint64) << np.uint64(32) | words[:, 4].astype(np.uint64), sound, walk)
    wrong = np.flatnonzero(broken | never)
    if len(wrong):
        number = int(wrong[0])
        at = int(starts[number])
        if broken[number]:
            return at, f"the file is damaged at packet {number + 1} (octet {at}): nothing after it could be read"
        return at, f"packet {number + 1} has no time that can be (octet {at}): nothing after it was read"
    index.offset, index.captured, index.wire = starts + 28, captured, words[:, 6]
    index.time_ns, index.interface = time_ns, interface
    index.packet_id = _read_options(view, options, end, big, index)
    return None


def _words(octets: npt.NDArray[np.uint8], kind: str, big: npt.NDArray[np.bool_]) -> Ints:
    """Numbers in the order of octets of each row's section."""
    words = octets.view("<" + kind)
    if big.any():
        words = np.where(big[:, None], octets.view(">" + kind), words)
    return words.astype(np.int64)


def _times(raw: npt.NDArray[np.uint64], interface: Ints, walk: _BlockScan) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Times in ns by the clock of each interface; where they are none that 64 bits hold."""
    time_ns, never = np.zeros(len(raw), dtype=np.int64), np.zeros(len(raw), dtype=np.bool_)
    for which in np.unique(interface).tolist() if walk.clocks else []:
        multiply, divide, add = walk.clocks[which]
        mine = np.flatnonzero(interface == which)
        most = int(raw[mine].max())
        if most * multiply < _MOST and abs(add) < _MOST and most * multiply // divide + add < _MOST:
            times = raw[mine].astype(np.int64) * multiply
            time_ns[mine] = (times if divide == 1 else times // min(divide, _MOST - 1)) + add
        else:  # beyond 64 bits on the way
            exact_times = [one * multiply // divide + add for one in raw[mine].tolist()]
            never[mine] = [not -_MOST <= one < _MOST for one in exact_times]
            time_ns[mine] = [one if -_MOST <= one < _MOST else 0 for one in exact_times]
    return time_ns, never


def _read_options(
    view: bytes | mmap.mmap, at: Ints, end: Ints, big: npt.NDArray[np.bool_], index: PacketIndex
) -> npt.NDArray[np.uint64]:
    """The ids of all packets, and comments on some: option by option, of all packets at once."""
    identity = np.full(len(at), NO_ID, dtype=np.uint64)
    at, rows = at.copy(), np.flatnonzero(at + 4 <= end)
    while len(rows):
        head = _words(octets_at(view, at[rows], 4), "u2", big[rows])
        code, length, here = head[:, 0], head[:, 1], at[rows] + 4
        go = (code != 0) & (here + length <= end[rows])
        has_packet_id = go & (code == _PACKET_ID) & (length == 8)
        if has_packet_id.any():
            octets = octets_at(view, here[has_packet_id], 8)
            swap = big[rows[has_packet_id]]
            identity[rows[has_packet_id]] = np.where(swap, octets.view(">u8").ravel(), octets.view("<u8").ravel())
        for one in np.flatnonzero(go & (code == _COMMENT)).tolist():
            text = bytes(view[int(here[one]) : int(here[one] + length[one])])
            index.comments[int(rows[one])] = text.decode("utf-8", "replace")
        at[rows] = here + (length + 3 & ~3)
        rows = rows[go]
        rows = rows[at[rows] + 4 <= end[rows]]
    return identity
