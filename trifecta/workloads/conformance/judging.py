"""From what a client recorded of one request to pass or fail, with a reason in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from trifecta.design.conformance import ConformanceCase, ConformanceResult, Outcome, Role
from trifecta.design.model import PROTOCOL_NAMES

_METHOD_REFUSED = (405, 501)  # RFC 9110, 15.5.6 and 15.6.2: there, but not for this method
_WORDS = {
    "connect_refused": "nothing listens there",
    "connect_timeout": "no connection within {timeout:g} s",
    "connect_reset": "the connection was reset before it was secured",
    "unreachable": "the address cannot be reached",
    "tls:certificate": "its certificate does not verify",
    "tls:alpn": "it does not negotiate {protocol}",
    "tls:version": "it does not speak the TLS version asked for",
    "tls:alert": "it ended the TLS handshake with an alert",
    "tls:malformed": "what it sends is not TLS",
    "tls": "the TLS handshake failed",
    "quic:timeout": "no QUIC connection, or a silent one",
    "quic:transport": "the QUIC connection ended with an error",
    "quic:version": "it does not speak QUIC version 1",
    "reset": "the request or its connection was reset",
    "closed": "the connection was closed before the answer was whole",
    "timeout": "no whole answer within {timeout:g} s",
    "status": "it answered {status} where {expected_status} was expected",
    "length": "{octets} octets of content came where {expected} were expected",
    "content": "the content differs from what was asked for",
    "goaway": "it refused the request with GOAWAY",
    "malformed:http1": "what it sends is not HTTP/1.1",
    "malformed:http2": "what it sends is not HTTP/2",
    "malformed:http3": "what it sends is not HTTP/3",
    "protocol": "it was asked for {protocol} and spoke {spoken}",
    "no_row": "the client recorded nothing",
}


@dataclass(frozen=True)
class Finding:
    """What came of one attempt."""

    outcome: Outcome
    error: str | None = None
    reason: str = ""
    duration_ns: int | None = None


def read_rows(samples_file: Path) -> list[dict[str, Any]]:
    """The rows of a samples file, in order; none when there is no file."""
    if not samples_file.exists():
        return []
    rows: list[dict[str, Any]] = pq.ParquetFile(samples_file).read().to_pylist()
    return rows


def judge(rows: Sequence[Mapping[str, Any]], case: ConformanceCase, protocol: str) -> Finding:
    """Whether the rows of one request show the object whole, over the protocol asked for.

    The client has compared the octets already (``content``); protocol, status and length are looked at once more here,
    so that a client that does not look is not believed.
    """
    if not rows:
        return Finding("fail", "no_row", _WORDS["no_row"])
    row = next((row for row in rows if row["error"] is not None), rows[0])
    duration = row["done_ns"] - row["started_ns"] if row["done_ns"] is not None and row["error"] is None else None
    if row["status"] in _METHOD_REFUSED and case.method != "GET":
        return Finding("not_offered", None, f"answers {row['status']} to {case.method}", None)
    error = row["error"] or _contradiction(row, case, protocol)
    if error is None:
        return Finding("pass", None, "", duration)
    spoken = row["protocol"]
    words = _WORDS.get(error, _WORDS.get(error.split(":")[0], error)).format(
        timeout=case.timeout_ns / 1e9,
        protocol=PROTOCOL_NAMES[protocol],
        spoken=PROTOCOL_NAMES.get(spoken, "what the client does not tell") if spoken else "what the client cannot tell",
        status=row["status"],
        expected_status=200,
        octets=row["bytes_in"],
        expected=case.octets,
    )
    return Finding("fail", error, words, duration)


def _contradiction(row: Mapping[str, Any], case: ConformanceCase, protocol: str) -> str | None:
    """The class of what a row without an error still shows to be wrong."""
    if row["protocol"] != protocol:
        return "protocol"
    if row["status"] is not None and row["status"] != 200:
        return "status"
    return "length" if row["bytes_in"] != case.octets else None


def result_of(
    finding: Finding,
    case: ConformanceCase | None,
    protocol: str | None,
    *,
    depth: str,
    role: Role,
    name: str,
    version: str,
    peer: str,
    proxy: bool = False,
    evidence: str | None = None,
    capture: str = "",
) -> ConformanceResult:
    """The row of a finding; without a case it is about a protocol, without a protocol about the implementation."""
    return ConformanceResult(
        depth=depth,
        role=role,
        name=name,
        version=version,
        peer=peer,
        proxy=proxy,
        protocol=protocol,
        object=None if case is None else case.name,
        label="" if case is None else case.label,
        method=None if case is None else case.method,
        octets=None if case is None else case.octets,
        path=None if case is None else case.path.name,
        outcome=finding.outcome,
        error=finding.error,
        reason=finding.reason,
        duration_ns=finding.duration_ns,
        evidence=evidence,
        capture=capture,
    )
