"""HTTP/2 without TLS: with prior knowledge (RFC 9113, 3.3), or after an upgrade of HTTP/1.1 (RFC 7540, 3.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from trifecta.trace import http1
from trifecta.trace.rows import Message
from trifecta.trace.segments import Stream

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"  # RFC 9113, 3.4
_SWITCHED, _HEAD_ENDS = b"HTTP/1.1 101 ", b"\r\n\r\n"
_FAR = 1 << 16  # octets in which an upgrade is looked for


def prior_knowledge(data: npt.NDArray[np.uint8], stream: Stream) -> bool:
    """Whether a client begins with the preface of HTTP/2."""
    return bool(len(stream.start)) and stream.octets(data, int(stream.start[0]), len(PREFACE)) == PREFACE


def begins(data: npt.NDArray[np.uint8], stream: Stream, direction: int) -> int:
    """The TCP octet with which HTTP/2 begins: the client's preface, or what is behind the server's 101."""
    first = int(stream.start[0])
    octets = stream.octets(data, first, min(_FAR, stream.length))
    if direction == 0:
        return first + max(octets.find(PREFACE), 0)
    switched = octets.find(_SWITCHED) if octets[:5] == b"HTTP/" else -1
    end = octets.find(_HEAD_ENDS, switched) if switched >= 0 else -1
    return first if end < 0 else first + end + len(_HEAD_ENDS)


def name_upgraded(
    messages: Sequence[Message], requests: Sequence[http1.DissectedMessage], stream: Stream, until: int
) -> list[str]:
    """The request that asked for the upgrade is that of stream 1 (RFC 7540, 3.2); its octets end at ``until``."""
    if not requests:
        return []
    one, first = requests[-1], next((each for each in messages if each.stream == 1), None)
    if first is not None:
        half = first.halves[0]
        first.method, first.path, first.authority = one.method, one.path, one.authority
        half.ended, half.begins = True, len(requests) == 1
        half.header_bytes, half.body_bytes = one.head, one.content_length or 0
        half.ranges = [(int(stream.start[0]) if half.begins else until - 1, until)]
    before = len(requests) - 1
    return [f"{before} requests of HTTP/1.1 came before the upgrade to HTTP/2: they are left out"] if before else []
