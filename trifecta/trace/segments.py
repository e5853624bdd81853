"""TCP: numbers that do not wrap, what was sent again, and the octets of a direction in their order."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trifecta.trace.capture_file import CaptureFile, Ints
from trifecta.trace.flows import Flows
from trifecta.trace.headers import ACK, FIN, RST, SYN, TCP, Headers

UNKNOWN = -1
_OPTION_SCALE, _OPTION_SACK = 3, 5


@dataclass(slots=True)
class Numbers:
    """An entry a packet; -1: unknown or not TCP."""

    sequence: Ints
    acknowledged: Ints
    window: Ints
    retransmission: Ints  # 1, 0, -1
    sack: dict[int, str]


@dataclass(slots=True)
class Stream:
    """The octets of one direction as they were sent: pieces in order, without overlap and without a hole."""

    start: Ints
    end: Ints
    offset: Ints  # in the file
    row: Ints
    hole: int | None  # the first octet that is missing, where something came after it

    @property
    def length(self) -> int:
        """How many octets there are."""
        return int(self.end[-1] - self.start[0]) if len(self.start) else 0

    def piece(self, octet: int) -> int:
        """The place of the piece that has this octet."""
        return int(np.searchsorted(self.end, octet, side="right"))

    def octets(self, data: npt.NDArray[np.uint8], first: int, count: int) -> bytes:
        """Octets from ``first``, fewer where the stream ends."""
        content, at = b"", self.piece(first)
        while len(content) < count and at < len(self.start):
            skip = first + len(content) - int(self.start[at])
            take = min(count - len(content), int(self.end[at] - self.start[at]) - skip)
            begin = int(self.offset[at]) + skip
            content += data[begin : begin + take].tobytes()
            at += 1
        return content


class Coverage:
    """Which octets have been seen."""

    __slots__ = ("end", "later")

    def __init__(self, start: int = 0) -> None:
        self.end = start
        self.later: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> int:
        """See the octets [start, end); how many of them are new."""
        if start <= self.end and not self.later:
            new = max(0, end - max(start, self.end))
            self.end = max(self.end, end)
            return new
        start = max(start, self.end)
        if end <= start:
            return 0
        new, merged = end - start, []
        for low, high in self.later:
            new -= max(0, min(high, end) - max(low, start))
            if high < start or low > end:
                merged.append((low, high))
            else:
                start, end = min(low, start), max(high, end)
        if start <= self.end:
            self.end = end
        else:
            merged.append((start, end))
            merged.sort()
        self.later = merged
        return new


def number_segments(capture: CaptureFile, headers: Headers, flows: Flows) -> Numbers:
    """Relative numbers of all TCP packets (RFC 9293 3.4; windows: RFC 7323 2.3)."""
    count = len(headers.index)
    unknown = [np.full(count, UNKNOWN, dtype=np.int64) for _ in range(4)]
    numbers = Numbers(unknown[0], unknown[1], unknown[2], unknown[3], {})
    tcp = np.flatnonzero(headers.transport == TCP)
    if not len(tcp):
        return numbers
    group = flows.connection[tcp] * 2 + flows.direction[tcp]
    order = np.argsort(group, kind="stable")
    edges = np.flatnonzero(np.diff(group[order])) + 1
    parts = {int(group[rows[0]]): tcp[rows] for rows in np.split(order, edges)}
    initial: dict[int, int] = {}
    for key, rows in parts.items():
        unwrapped = _unwrap(headers.sequence[rows])
        syn = np.flatnonzero(headers.flags[rows] & SYN)
        base = int(unwrapped[syn[0]]) if len(syn) else int(unwrapped.min()) - 1
        if not len(syn) and bool(flows.begins[key >> 1]):
            base += _before(headers, parts.get(key ^ 1), base + 1)
        initial[key] = base & 0xFFFFFFFF
        numbers.sequence[rows] = unwrapped - base
    scale = _scales(capture, headers, flows, tcp)
    for key, rows in parts.items():
        have = rows[headers.flags[rows] & ACK > 0]
        if len(have) and key ^ 1 in initial:
            raw = _unwrap(headers.acknowledged[have])
            first = (int(raw[0]) - initial[key ^ 1] + (1 << 31)) % (1 << 32) - (1 << 31)
            numbers.acknowledged[have] = np.maximum(raw - raw[0] + first, 0)
        opened = bool(flows.syn_seen[key >> 1]) and key in scale and key ^ 1 in scale
        if opened:
            # RFC 7323 2.2: a window in a segment with SYN is not scaled.
            plain = (headers.flags[rows] & SYN) > 0
            numbers.window[rows] = np.where(plain, headers.window[rows], headers.window[rows] << scale[key])
        for side in (-1, 0, 1):
            _find_retransmissions(headers, numbers, rows[flows.side[rows] == side])
    copied = flows.origin != np.arange(count)
    numbers.retransmission[copied] = numbers.retransmission[flows.origin[copied]]
    return numbers


def _before(headers: Headers, back: Ints | None, first: int) -> int:
    """How far before ``first`` (0 or less) the octets begin that the other end acknowledged first: after a lost SYN."""
    if back is None:
        return 0
    acknowledging = back[headers.flags[back] & (ACK | RST) == ACK]
    if not len(acknowledging):
        return 0
    step = (int(headers.acknowledged[acknowledging[0]]) - first + (1 << 31)) % (1 << 32) - (1 << 31)
    return min(step, 0)


def _unwrap(values: Ints) -> Ints:
    """Without the wrapping at 2**32 (RFC 9293 3.4)."""
    steps = np.diff(values)
    steps = (steps + (1 << 31)) % (1 << 32) - (1 << 31)
    result: Ints = values[0] + np.concatenate([[0], np.cumsum(steps)]).astype(np.int64)
    return result


def _find_retransmissions(headers: Headers, numbers: Numbers, rows: Ints) -> None:
    """Sent again: octets (or SYN, FIN) that were seen before. Octets that fill a hole: late or again, not known.

    SYN and FIN take a number each (RFC 9293 3.4).
    """
    flags = headers.flags[rows]
    numbers.retransmission[rows] = 0
    length = headers.payload[rows] + ((flags & SYN) > 0) + ((flags & FIN) > 0)
    rows, length = rows[length > 0], length[length > 0]
    if not len(rows):
        return
    start = numbers.sequence[rows]
    end = start + length
    before = np.concatenate([[start[0]], np.maximum.accumulate(end)[:-1]])
    if bool((start >= before).all()):
        return
    coverage = Coverage(int(start.min()))
    for place in range(len(rows)):
        first, last = int(start[place]), int(end[place])
        new = coverage.add(first, last)
        if first < before[place]:
            numbers.retransmission[rows[place]] = UNKNOWN if new == last - first else 1


def _scales(capture: CaptureFile, headers: Headers, flows: Flows, tcp: Ints) -> dict[int, int]:
    """The window scale of each direction, by connection * 2 + direction (0 where there is no such option).

    RFC 7323: more than 14 counts as 14 (2.3), and without the option of both ends no window is scaled (2.2).
    """
    scales: dict[int, int | None] = {}
    for row in tcp[headers.flags[tcp] & SYN > 0]:
        key = int(flows.connection[row] * 2 + flows.direction[row])
        options = dict(_options(capture, headers, int(row)))
        value = options.get(_OPTION_SCALE)
        scales[key] = min(value[0], 14) if value else None
    shifts = {}
    for key, value_or_none in scales.items():
        both = value_or_none is not None and scales.get(key ^ 1) is not None
        shifts[key] = (value_or_none or 0) if both else 0
    return shifts


def read_sacks(capture: CaptureFile, headers: Headers, numbers: Numbers) -> None:
    """The ranges of SACK options (RFC 2018), relative as the sequence numbers of the other direction."""
    rows = np.flatnonzero((headers.transport == TCP) & (headers.transport_header >= 30) & (headers.flags & SYN == 0))
    for row in rows[_have_option(capture, headers, rows, _OPTION_SACK)].tolist():
        base = int(headers.acknowledged[row]) - int(numbers.acknowledged[row])
        for kind, value in _options(capture, headers, row):
            if kind == _OPTION_SACK and numbers.acknowledged[row] >= 0:
                edges = [int.from_bytes(value[at : at + 4]) - base for at in range(0, len(value) - 3, 4)]
                near = int(numbers.acknowledged[row])
                edges = [near + (edge - near + (1 << 31)) % (1 << 32) - (1 << 31) for edge in edges]
                numbers.sack[row] = json.dumps([edges[at : at + 2] for at in range(0, len(edges) - 1, 2)])


def _have_option(capture: CaptureFile, headers: Headers, rows: Ints, wanted: int) -> npt.NDArray[np.bool_]:
    """Whether packets have an option of this kind: all are read side by side, option by option (RFC 9293 3.1)."""
    index, end = headers.index[rows], headers.payload_offset[rows]
    at, last = end - headers.transport_header[rows] + 20, len(capture.data) - 1
    end = np.minimum(end, capture.offset[index] + capture.captured[index])
    have = np.zeros(len(rows), dtype=np.bool_)
    left = np.flatnonzero(at < end)
    while len(left):
        kind = capture.data[at[left]]
        length = capture.data[np.minimum(at[left] + 1, last)].astype(np.int64)
        single = kind == 1
        good = single | ((kind != 0) & (length >= 2) & (at[left] + length <= end[left]))
        have[left[good & (kind == wanted)]] = True
        at[left] += np.where(single, 1, length)
        left = left[good]
        left = left[at[left] < end[left]]
    return have


def _options(capture: CaptureFile, headers: Headers, row: int) -> list[tuple[int, bytes]]:
    """Kind and value of each option up to the end of the list, 0; 1 does nothing (RFC 9293 3.1)."""
    end = int(headers.payload_offset[row])
    at = end - int(headers.transport_header[row]) + 20
    limit = int(capture.offset[headers.index[row]] + capture.captured[headers.index[row]])
    raw, options, at = capture.data[at : min(end, limit)].tobytes(), [], 0
    while at < len(raw) and raw[at] != 0:
        if raw[at] == 1:
            at += 1
            continue
        length = raw[at + 1] if at + 1 < len(raw) else 0
        if length < 2 or at + length > len(raw):
            break
        options.append((raw[at], raw[at + 2 : at + length]))
        at += length
    return options


def assemble(headers: Headers, numbers: Numbers, rows: Ints, *, from_start: bool) -> Stream:
    """The octets of the data packets ``rows`` (of one direction, in the order of the file)."""
    rows = rows[headers.payload_captured[rows] > 0]
    # The SYN takes number 0, so data begins at 1 where there is none in the SYN itself (RFC 7413).
    start = numbers.sequence[rows] + ((headers.flags[rows] & SYN) > 0)
    end = start + headers.payload_captured[rows]
    order = np.argsort(start, kind="stable")
    rows, start, end = rows[order], start[order], end[order]
    offset = headers.payload_offset[rows]
    if not len(rows):
        return Stream(start, end, offset, rows, None)
    first = 1 if from_start else int(start[0])
    before = np.concatenate([[first], np.maximum(np.maximum.accumulate(end)[:-1], first)])
    holes = np.flatnonzero(start > before)
    hole = int(before[holes[0]]) if len(holes) else None
    keep = end > before
    if len(holes):
        keep[holes[0] :] = False
    trim = np.maximum(before - start, 0)
    return Stream((start + trim)[keep], end[keep], (offset + trim)[keep], rows[keep], hole)
