"""The tables of a dissection as numpy columns.

Null is `NULL` (-1) in every column of integers, for nothing that is counted is negative; text is a code with its
labels, or a number that is worked out once for each different text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from trifecta.analysis.transport.rows import NULL, Ints, Rows
from trifecta.design.extras import LazyModule

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa, pc = LazyModule("pyarrow"), LazyModule("pyarrow.compute")

# RFC 9000 section 1.2: packets with other frames than these are ack-eliciting.
_NOT_ELICITING = {"ACK", "ACK_ECN", "PADDING", "CONNECTION_CLOSE"}
_PURE_ACK = {"ACK", "ACK_ECN", "PADDING"}
_PACKET_TEXT = ("side",)
_PACKET_NUMBERS = (
    "number", "time_ns", "connection", "wire_bytes", "ip_header_bytes", "transport_header_bytes", "payload_bytes",
    "sequence", "acknowledged", "window", "quic_header_bytes", "retransmission", "delay_ns",
)  # fmt: skip
_FRAME_NUMBERS = (
    "number", "time_ns", "connection", "stream", "offset", "length", "wire_length", "fin", "value", "ack_delay_ns",
    "packet_number", "tcp_start", "tcp_end",
)  # fmt: skip
_MESSAGE_NUMBERS = (
    "connection", "stream", "request", "status", "request_start_ns", "request_end_ns", "response_start_ns",
    "response_end_ns", "request_header_bytes", "response_header_bytes", "request_body_bytes", "response_body_bytes",
    "complete",
)  # fmt: skip


def packets(table: pa.Table) -> Rows:
    """The columns of packets that the analysis looks at."""
    rows = _numbers(table, _PACKET_NUMBERS, _PACKET_TEXT)
    columns = rows.all()
    # The highest bit of a packet_id is the direction: as a signed number the order is lost, the identity kept.
    columns["packet_id"] = _ints(pc.fill_null(table.column("packet_id"), pa.scalar(2**64 - 1, pa.uint64())))
    for name, meanings in _PACKET_MEANINGS.items():
        codes, values = _encoded(table, name)
        for column, meaning in meanings.items():
            columns[column] = _derived(codes, values, meaning)
    for name, words in (("hello_retry", "Hello Retry Request"), ("client_hello", "Client Hello")):
        matches = pc.match_substring(table.column("info"), words)
        columns[name] = _ints(pc.fill_null(matches, pa.scalar(False)).cast(pa.int64()))
    return Rows(columns, rows.labels)


def frames(table: pa.Table) -> Rows:
    """Those of frames."""
    rows = _numbers(table, _FRAME_NUMBERS, ("side", "layer", "type", "packet_space"))
    return Rows({**rows.all(), "up": _derived(*_encoded(table, "direction"), _is_up)}, rows.labels)


def messages(table: pa.Table) -> Rows:
    """Those of messages."""
    return _numbers(table, _MESSAGE_NUMBERS, ())


def _is_up(text: str) -> int:
    return {"up": 1, "down": 0}.get(text, NULL)


def _sack_right(text: str) -> int:
    """The highest octet that a SACK option tells of, exclusive."""
    return max((int(right) for _, right in json.loads(text)), default=NULL) if text else NULL


def _has(name: str, text: str) -> int:
    return int(name in text.split(","))


def _contains(part: str, text: str) -> int:
    return int(part in text)


def _names(text: str) -> set[str]:
    return {name for packet in text.split(";") for name in packet.split(",") if name}


def _numbers(table: pa.Table, numbers: tuple[str, ...], texts: tuple[str, ...]) -> Rows:
    columns = {
        name: _ints(pc.fill_null(table.column(name).cast(pa.int64()), pa.scalar(NULL, pa.int64()))) for name in numbers
    }
    labels: dict[str, dict[str, int]] = {}
    for name in texts:
        codes, values = _encoded(table, name)
        columns[name] = codes
        labels[name] = {text: code for code, text in enumerate(values) if text is not None}
    return Rows(columns, labels)


def _encoded(table: pa.Table, name: str) -> tuple[Ints, list[str | None]]:
    """A column of text as codes into its values; null is -1."""
    encoded: Any = table.column(name).combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return _ints(encoded.indices.cast(pa.int64()).fill_null(NULL)), encoded.dictionary.to_pylist()


def _derived(codes: Ints, values: list[str | None], meaning: Callable[[str], int]) -> Ints:
    """A number for each text of a column, worked out once for each different text; null stays null."""
    of_code = np.array([*(meaning(text or "") for text in values), NULL], dtype=np.int64)
    return of_code[codes]


# What the texts of packets come to, by column of the table.
_PACKET_MEANINGS: dict[str, dict[str, Callable[[str], int]]] = {
    "direction": {"up": _is_up},
    "flags": {flag.lower(): partial(_has, flag) for flag in ("SYN", "ACK", "FIN", "RST")},
    "sack": {"sack_right": _sack_right},
    "packet_type": {
        "quic_packets": lambda text: text.count(",") + 1,
        "type_initial": partial(_contains, "Initial"),
        "type_handshake": partial(_contains, "Handshake"),
        "type_retry": partial(_contains, "Retry"),
        "type_version": partial(_contains, "Version"),
    },
    "frames": {
        "eliciting": lambda text: int(bool(_names(text) - _NOT_ELICITING)),
        "pure_ack": lambda text: int(_names(text) <= _PURE_ACK and bool(_names(text) - {"PADDING"})),
        "padding": lambda text: int("PADDING" in _names(text)),
    },
    "acknowledged_ranges": {"ack_ranges": lambda text: text.count("[") - 1},
}


def _ints(column: Any) -> Ints:
    values = np.asarray(column)
    return cast(Ints, values.view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64, copy=False))
