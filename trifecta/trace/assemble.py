"""From what a link wrote to what a run keeps: a pcapng file that Wireshark opens decrypted and that tells the truth.

The link writes packets as it meets them (docs/architecture.md, 1.3). Kept are the same blocks in the order of time,
with the TLS keys in front (a Decryption Secrets Block; QUIC has the same labels, RFC 9001 section 4.1) and a comment at
each packet that the link lost, held up for good, changed or copied: its log knows what a capture can only guess. Last
come the link's statistics, which say how many packets a slow disk left out.
Format: draft-ietf-opsawg-pcapng. One key log serves both directions of a connection, so the client's is enough.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SECTION_HEADER, _INTERFACE_DESCRIPTION, _ENHANCED_PACKET, _DECRYPTION_SECRETS = 0x0A0D0D0A, 1, 6, 10
_INTERFACE_STATISTICS = 5
_TLS_KEY_LOG = 0x544C534B
_COMMENT, _PACKET_ID_HEADER = 1, 5 | 8 << 16  # epb_packetid is option 5 with 8 octets
_COPY_BITS = 0x7FFF << 48
_TAIL_BYTES = 8  # end of options, and the length of the block again
_SMALLEST_BLOCK = 12
_SMALLEST_PACKET = 32
_KEY_LINE = re.compile(rb"[A-Z0-9_]{1,64} [0-9a-fA-F]{1,128} [0-9a-fA-F]{1,256}")
_SAID = {
    "lost": "lost: the link dropped this packet by chance or by its schedule; it never left",
    "queue_dropped": "queue_dropped: the queue before the bottleneck was full or had stood too long; it never left",
    "memory_dropped": "memory_dropped: the link had no memory left for this packet; this is no impairment",
    "send_error": "send_error: the kernel refused this packet on its way out; this is no impairment",
    "corrupted": "corrupted: the link flipped one bit of this packet",
    "duplicate": "duplicate: the link sent this packet more than once",
    "under_way": "under_way: the link ended before this packet left",
}
_AT_BOTH_SIDES = ("corrupted", "duplicate")


@dataclass(frozen=True)
class Assembled:
    """What is in a capture that was put together."""

    packets: int
    comments: int
    keys: int
    """Lines of the key logs; 0: nothing in it can be decrypted."""
    whole: bool
    """Whether the link's file ends where a block ends; else the link died while it wrote."""


class NotOfLink(ValueError):
    """The file is not what a link writes."""


def assemble(source: Path, out: Path, *, keys: Iterable[Path] = (), log: Path | None = None) -> Assembled:
    """Put the link's file ``source`` together with key logs and the link's log. ``out`` is readable to its owner only.

    Files of keys that are not there have no keys. NotOfLink for a file that no link has written.
    """
    lines = key_lines(keys)
    with source.open("rb") as file, _private(out) as written:
        if os.fstat(file.fileno()).st_size == 0:
            raise NotOfLink(f"{source} is empty")
        view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        head_end, starts, packets_end, end = _blocks(view)
        written.write(view[:head_end])
        if lines:
            written.write(_secrets(lines))
        index = _Index(view[:packets_end], starts)
        comments = index.comments(_touched(log, index.not_left()))
        for part in index.in_order_of_time(view, comments):
            written.write(part)
        written.write(view[packets_end:end])
        return Assembled(len(starts), len(comments), len(lines), end == len(view))


def key_lines(files: Iterable[Path]) -> list[bytes]:
    """The lines of key logs (NSS key log format, RFC 9850), each once; what is no such line is left out."""
    keys: dict[bytes, None] = {}
    for file in files:
        if file.exists():
            keys.update(dict.fromkeys(line for line in file.read_bytes().split(b"\n") if _KEY_LINE.fullmatch(line)))
    return list(keys)


def _private(path: Path) -> BinaryIO:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    return os.fdopen(descriptor, "wb", buffering=1 << 20)


def _secrets(lines: Iterable[bytes]) -> bytes:
    """A Decryption Secrets Block."""
    content = b"".join(line + b"\n" for line in lines)
    body = struct.pack("=II", _TLS_KEY_LOG, len(content)) + content + bytes(-len(content) % 4)
    return _block(_DECRYPTION_SECRETS, body)


def _block(kind: int, body: bytes) -> bytes:
    total = 12 + len(body)
    return struct.pack("=II", kind, total) + body + struct.pack("=I", total)


def _blocks(view: memoryview) -> tuple[int, array[int], int, int]:
    """Where the packets begin, the place of each, where they end, and where the last whole block ends."""
    unpack = struct.Struct("=II").unpack_from
    size, at, head_end, packets_end = len(view), 0, 0, 0
    starts = array("Q")
    add = starts.append
    while at + _SMALLEST_BLOCK <= size:
        kind, total = unpack(view, at)
        if total < (_SMALLEST_PACKET if kind == _ENHANCED_PACKET else _SMALLEST_BLOCK) or total % 4:
            raise NotOfLink(f"a block of {total} octets at octet {at}")
        if at + total > size:
            break
        if kind == _ENHANCED_PACKET and at and not packets_end:
            add(at)
        elif kind == _INTERFACE_STATISTICS and head_end:
            packets_end = packets_end or at
            if unpack(view, at + total - 8)[1] != total:
                raise NotOfLink(f"a block at octet {at} that ends otherwise than it began")
        elif starts or packets_end or kind != (_INTERFACE_DESCRIPTION if at else _SECTION_HEADER):
            raise NotOfLink(f"a block of type {kind} at octet {at}")
        else:
            head_end = at + total
            if unpack(view, head_end - 8)[1] != total:
                raise NotOfLink(f"a block at octet {at} that ends otherwise than it began")
        at += total
    if not head_end:
        raise NotOfLink("no section header")
    return head_end, starts, packets_end or at, at


def _touched(log: Path | None, not_left: NDArray[np.uint64]) -> Mapping[int, list[str]]:
    """What the link did to packets besides delivering them, by epb_packetid; ``not_left``: did not leave, it seems.

    Of these the ones that the log does not name at all were under way when the link ended.
    """
    if log is None or not log.exists():
        return {}
    import numpy as np

    from trifecta.store import parquet

    fates_by_packet: dict[int, list[str]] = {}
    logged = parquet.read_arrays(log, ["direction", "ordinal"])
    direction, ordinal = (np.asarray(logged[name]).astype(np.uint64) for name in ("direction", "ordinal"))
    named = np.isin(not_left, direction << np.uint64(63) | ordinal)
    touched = f"SELECT direction, ordinal, fate FROM {parquet.scan([log])} WHERE fate <> 'delivered'"  # noqa: S608
    for row in parquet.select(touched):
        fates = fates_by_packet.setdefault(row["direction"] << 63 | row["ordinal"], [])
        if row["fate"] not in fates:
            fates.append(row["fate"])
    return fates_by_packet | {identity: ["under_way"] for identity in not_left[~named].tolist()}


class _Index:
    """Times and names of all packets, as arrays."""

    def __init__(self, view: memoryview, starts: array[int]) -> None:
        """``view`` ends with the last whole block; blocks begin at octets that four divides."""
        import numpy as np

        end, words = len(view), np.frombuffer(view, dtype=np.uint32)
        self._starts: NDArray[np.int64] = np.frombuffer(starts, dtype=np.uint64).astype(np.int64)
        self._ends = np.append(self._starts[1:], end) if len(starts) else self._starts
        at = self._starts // 4
        if not bool(np.all(words[self._ends // 4 - 1] == self._ends - self._starts)):
            raise NotOfLink("a packet's block that ends otherwise than it began")
        self._times = words[at + 3].astype(np.uint64) << 32 | words[at + 4]
        # After the octets of the packet: its flags (8 octets), then its id.
        identity = at + 7 + -(-words[at + 5].astype(np.int64) // 4) + 2
        if len(starts) and not bool(np.all(identity + 3 < self._ends // 4)):
            raise NotOfLink("a packet that is longer than its block")
        if not bool(np.all(words[identity] == _PACKET_ID_HEADER)):
            raise NotOfLink("a packet without an id")
        self._ids = words[identity + 1].astype(np.uint64) | words[identity + 2].astype(np.uint64) << 32
        self._sides = words[at + 2]

    def not_left(self) -> NDArray[np.uint64]:
        """The ids of packets that were seen where they came from and not on the other side."""
        import numpy as np

        originals = self._ids & np.uint64(~_COPY_BITS & (1 << 64) - 1)
        left = self._sides != self._ids >> np.uint64(63)
        return np.setdiff1d(originals[~left], originals[left])

    def comments(self, touched: Mapping[int, list[str]]) -> dict[int, str]:
        """What to say of packets, by their place in the file."""
        import numpy as np

        if not touched:
            return {}
        originals = self._ids & np.uint64(~_COPY_BITS & (1 << 64) - 1)
        comments_by_number: dict[int, str] = {}
        for number in np.flatnonzero(np.isin(originals, np.array(list(touched), dtype=np.uint64))).tolist():
            left = int(self._sides[number]) != int(self._ids[number]) >> 63
            fates = [fate for fate in touched[int(originals[number])] if not left or fate in _AT_BOTH_SIDES]
            if fates:
                comments_by_number[number] = "; ".join(_SAID.get(fate, fate) for fate in fates)
        return comments_by_number

    def in_order_of_time(self, view: memoryview, comments: Mapping[int, str]) -> Iterator[bytes | memoryview]:
        """The blocks; neighbours that are in order already come in one piece."""
        import numpy as np

        order = np.argsort(self._times, kind="stable")
        if not len(order):
            return
        commented = np.zeros(len(order), dtype=bool)
        commented[list(comments)] = True
        breaks = np.flatnonzero((np.diff(order) != 1) | commented[order[1:]] | commented[order[:-1]]) + 1
        firsts = order[np.concatenate(([0], breaks))].tolist()
        lasts = order[np.concatenate((breaks, [len(order)])) - 1].tolist()
        starts, ends = self._starts, self._ends
        for first, last in zip(firsts, lasts, strict=True):
            part = view[int(starts[first]) : int(ends[last])]
            yield _with_comment(part, comments[first]) if first in comments else part


def _with_comment(block: memoryview, comment: str) -> bytes:
    text = comment.encode()
    option = struct.pack("=HH", _COMMENT, len(text)) + text + bytes(-len(text) % 4)
    return _block(_ENHANCED_PACKET, bytes(block[8:-_TAIL_BYTES]) + option + bytes(4))
