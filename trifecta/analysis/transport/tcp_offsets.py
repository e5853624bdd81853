"""Where octets of HTTP stand in the sequence of TCP, record by record, for the frames of a whole dissection at once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.transport.directions import DOWN, UP, equals, integer_column, texts
from trifecta.analysis.transport.ranges import Ints, each_cell

if TYPE_CHECKING:
    import pyarrow as pa

RECORD_HEADER = 5  # RFC 8446, 5.1
_WITH_NONCE = (RECORD_HEADER + 8 + 16, RECORD_HEADER + 8 + 8)
_NO_DATA = ("handshake", "change_cipher_spec", "alert")  # types of records without HTTP
_NONE = slice(0, 0)


def _nowhere() -> Ints:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Spans:
    """Octets of streams in the order of a connection, one row per span. `record` counts TLS records, -1: none."""

    stream: Ints
    start: Ints
    end: Ints
    record: Ints
    octets: Ints
    direction: Ints  # which of the directions that were looked at together


@dataclass(frozen=True, slots=True)
class Records:
    """TLS records in the octets [start, end) of TCP, each once and in order."""

    start: Ints
    end: Ints
    direction: Ints = field(default_factory=_nowhere)  # which of the directions, where those of several stand together

    def moved(self, shift: Ints) -> Records:
        """Each direction's by so much."""
        return Records(self.start + shift[self.direction], self.end + shift[self.direction], self.direction)


@dataclass(frozen=True, slots=True)
class HttpFrames:
    """Frames in the order of the plaintext; [low, high) are the TCP octets of their records."""

    low: Ints
    high: Ints
    size: Ints
    offset: Ints
    stream: Ints
    direction: Ints = field(default_factory=_nowhere)

    def moved(self, shift: Ints) -> HttpFrames:
        """Each direction's TCP octets by so much."""
        return replace(self, low=self.low + shift[self.direction], high=self.high + shift[self.direction])


@dataclass(frozen=True, slots=True)
class StreamFrames:
    """STREAM frames of QUIC with octets, in the order of the table. `number` is that of their packet."""

    number: Ints
    stream: Ints
    offset: Ints
    length: Ints


class Frames:
    """The frames that carry octets of streams, cut by connection and direction."""

    def __init__(self, frames: pa.Table) -> None:
        connection, up = integer_column(frames, "connection"), equals(frames, "direction", UP)
        self._mine = (connection >= 0) & (up | equals(frames, "direction", DOWN))
        self._key = connection * 2 + up
        self._read_http(frames)
        self._read_records(frames)
        self._read_quic(frames)

    def _read_http(self, frames: pa.Table) -> None:
        h1 = equals(frames, "layer", "h1")
        low, high, offset = (integer_column(frames, name) for name in ("tcp_start", "tcp_end", "offset"))
        size = integer_column(frames, "wire_length", 0)
        size = np.where(size > 0, size, integer_column(frames, "length", 0))
        rows = (self._mine & (h1 | equals(frames, "layer", "h2"))).nonzero()[0]
        rows = rows[np.lexsort((offset[rows], self._key[rows]))]
        ordinal = _ordinals((h1 & equals(frames, "type", "HEADERS"))[rows], self._key[rows])
        # HTTP/1.1 has no streams: the ordinal of the message in its direction stands for one.
        stream = np.where(h1[rows], ordinal, integer_column(frames, "stream")[rows])
        known = (low[rows] >= 0) & (high[rows] > low[rows]) & (size[rows] > 0)
        rows = rows[known]
        self._http = (low[rows], high[rows], size[rows], offset[rows], stream[known])
        self._http_cuts = cuts(self._key[rows])

    def _read_records(self, frames: pa.Table) -> None:
        start, end = integer_column(frames, "tcp_start"), integer_column(frames, "tcp_end")
        # Tickets and key updates may come at any time (RFC 8446, 4.6): octets of the connection, but none of HTTP.
        other = np.any([equals(frames, "type", kind) for kind in _NO_DATA], axis=0)
        rows = (self._mine & equals(frames, "layer", "tls") & ~other & (start >= 0)).nonzero()[0]
        rows = rows[np.lexsort((end[rows], start[rows], self._key[rows]))]
        new = np.ones(len(rows), dtype=np.bool_)
        new[1:] = np.any([one[rows[1:]] != one[rows[:-1]] for one in (self._key, start, end)], axis=0)
        rows = rows[new]
        self._records = (start[rows], end[rows])
        self._record_cuts = cuts(self._key[rows])

    def _read_quic(self, frames: pa.Table) -> None:
        stream, length = integer_column(frames, "stream"), integer_column(frames, "length", 0)
        carries = equals(frames, "layer", "quic") & equals(frames, "type", "STREAM")
        rows = (self._mine & carries & (length > 0) & (stream >= 0)).nonzero()[0]
        rows = rows[self._key[rows].argsort(kind="stable")]
        self._quic = (
            integer_column(frames, "number")[rows],
            stream[rows],
            integer_column(frames, "offset", 0)[rows],
            length[rows],
        )
        self._quic_cuts = cuts(self._key[rows])

    def http(self, connection: int, direction: str) -> HttpFrames:
        """Those of HTTP/1.1 and HTTP/2 whose TCP octets are known."""
        cut = self._http_cuts.get(connection * 2 + (direction == UP), _NONE)
        return HttpFrames(*(column[cut] for column in self._http))

    def records(self, connection: int, direction: str) -> Records:
        """TLS records."""
        cut = self._record_cuts.get(connection * 2 + (direction == UP), _NONE)
        return Records(*(column[cut] for column in self._records))

    def quic(self, connection: int, direction: str) -> StreamFrames:
        """STREAM frames."""
        cut = self._quic_cuts.get(connection * 2 + (direction == UP), _NONE)
        return StreamFrames(*(column[cut] for column in self._quic))


def cuts(keys: Ints) -> dict[int, slice]:
    """The rows of each key, which stand together."""
    known, starts = np.unique(keys, return_index=True)
    bounds = [*starts.tolist(), len(keys)]
    return {key: slice(bounds[at], bounds[at + 1]) for at, key in enumerate(known.tolist())}


def _ordinals(heads: NDArray[np.bool_], keys: Ints) -> Ints:
    """How many of these rows of the same key stand before each, itself counted, less one; at least 0."""
    if not len(heads):
        return np.zeros(0, dtype=np.int64)
    count: Ints = heads.cumsum()
    first = np.append(True, keys[1:] != keys[:-1]).nonzero()[0]
    before = np.repeat(count[first] - heads[first], np.diff(np.append(first, len(keys))))
    ordinals: Ints = np.maximum(count - before - 1, 0)
    return ordinals


def overheads(connections: pa.Table) -> dict[int, int]:
    """Octets of an encrypted record that are not plaintext, by connection.

    TLS 1.3: header, content type and tag (RFC 8446, 5.2). TLS 1.2: AES-GCM and CCM have an explicit nonce of 8 octets
    (RFC 5288, 3), ChaCha20-Poly1305 has none (RFC 7905, 2). Other suites of TLS 1.2 are not known here.
    """
    by_connection = {}
    versions, ciphers = texts(connections, "tls_version"), texts(connections, "cipher")
    for row, connection in enumerate(integer_column(connections, "connection")):
        if versions[row] == "1.3":
            by_connection[int(connection)] = RECORD_HEADER + 1 + (8 if "CCM_8" in ciphers[row] else 16)
        elif versions[row] == "1.2" and "CHACHA20" in ciphers[row]:
            by_connection[int(connection)] = RECORD_HEADER + 16
        elif versions[row] == "1.2" and ("GCM" in ciphers[row] or "CCM" in ciphers[row]):
            by_connection[int(connection)] = RECORD_HEADER + 8 + (8 if "CCM_8" in ciphers[row] else 16)
    return by_connection


def place(frames: HttpFrames, records: Records, overhead: Ints) -> tuple[Spans, NDArray[np.bool_]]:
    """The octets of each frame in the sequence of TCP, record by record; by direction whether they really are there.

    ``overhead``: by direction, octets of a record that are not plaintext, -1 where that is not known.
    """
    first, after = records.start.searchsorted(frames.low), records.start.searchsorted(frames.high)
    at_record = np.zeros(len(frames.low), dtype=np.bool_)
    if len(records.start):
        inside = np.minimum(first, len(records.start) - 1)
        at_record = (records.start[inside] == frames.low) & (records.direction[inside] == frames.direction)
    sealed = np.bincount(frames.direction[~at_record], minlength=len(overhead)) == 0
    # No TLS, or its records are not known: the range is the frame's own, exact without TLS.
    bare = (~sealed[frames.direction]).nonzero()[0]
    parts: list[tuple[Ints, ...]] = [
        (bare, frames.low[bare], frames.high[bare], np.full(len(bare), -1, dtype=np.int64), frames.size[bare])
    ]
    fits = sealed & (overhead >= 0)
    if fits.any():
        placed, fits = _placed(frames, records, overhead, fits)
        parts.append(placed)
    several = (sealed & ~fits)[frames.direction].nonzero()[0]
    counts = (after - first)[several]
    frame, record = several.repeat(counts), each_cell(first[several], counts)[1]
    # All but one octet a record stand with the last one: how many they are matters for means over octets only.
    octets = np.ones(len(frame), dtype=np.int64)
    octets[counts.cumsum() - 1] = np.maximum(frames.size[several] - counts + 1, 1)
    parts.append((frame, records.start[record], records.end[record], record, octets))
    frame, start, end, record, octets = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = frame.argsort(kind="stable")
    frame = frame[order]
    spans = Spans(frames.stream[frame], start[order], end[order], record[order], octets[order], frames.direction[frame])
    return spans, ~sealed | fits


def _placed(
    frames: HttpFrames, records: Records, overhead: Ints, some: NDArray[np.bool_]
) -> tuple[tuple[Ints, ...], NDArray[np.bool_]]:
    """The octets of the frames of some directions where they are in the records: frame, start, end, record and octets.

    And for which directions that does not contradict the ranges of the frames: only of these are they given.
    """
    mine = some[frames.direction].nonzero()[0]
    used = np.zeros(len(records.start) + 1, dtype=np.int64)
    np.add.at(used, records.start.searchsorted(frames.low[mine]), 1)
    np.add.at(used, records.start.searchsorted(frames.high[mine]), -1)
    used_records = (used.cumsum()[:-1] > 0).nonzero()[0]
    starts, ends, direction = (column[used_records] for column in (records.start, records.end, records.direction))
    text = ends - starts - overhead[direction]
    fits = np.bincount(direction[text <= 0], minlength=len(some)) == 0
    # The plaintext of all directions one behind the other; of each the first record that is used has its octet 0 (where
    # the capture is whole: else what follows finds it out).
    end = np.maximum(text, 0).cumsum()
    begin = end - np.maximum(text, 0)
    zero, size = np.zeros(len(some), dtype=np.int64), np.zeros(len(some), dtype=np.int64)
    zero[direction[::-1]], size[direction] = begin[::-1], end  # of equal places the last one counts
    size -= zero
    of, offset = frames.direction[mine], frames.offset[mine]
    last = offset + frames.size[mine]
    first = begin.searchsorted(zero[of] + np.clip(offset, 0, size[of] - 1), side="right") - 1
    after = begin.searchsorted(zero[of] + np.clip(last - 1, 0, size[of] - 1), side="right") - 1
    apart = (offset < 0) | (last > size[of]) | (starts[first] != frames.low[mine]) | (ends[after] != frames.high[mine])
    fits &= np.bincount(of[apart], minlength=len(some)) == 0
    there = fits[of].nonzero()[0]
    mine, of, offset, last, first = mine[there], of[there], offset[there], last[there], first[there]
    frame, at = each_cell(first, after[there] - first + 1)
    begin, end = begin - zero[direction], end - zero[direction]
    # Header (and nonce) in front, tag (and content type) behind: RFC 8446, 5.2.
    front = starts[at] + RECORD_HEADER + 8 * np.isin(overhead[direction[at]], _WITH_NONCE) - begin[at]
    start = np.maximum(offset[frame], begin[at]) + front
    stop = np.minimum(last[frame], end[at]) + front
    return (mine[frame], start, stop, used_records[at], stop - start), fits
