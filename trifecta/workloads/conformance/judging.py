"""From what a client recorded of one request to pass or fail, with a reason in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from trifecta.contract.sample import SampleRow
from trifecta.design import failures
from trifecta.design.conformance import ConformanceCase, ConformanceResult, Outcome, Role
from trifecta.design.model import PROTOCOL_NAMES
from trifecta.store import parquet

_METHOD_REFUSED = (405, 501)  # RFC 9110, 15.5.6 and 15.6.2: there, but not for this method
# What one request can tell in numbers; all others are as in `trifecta.design.failures`.
_WORDS = {
    "connect_timeout": "no connection within {timeout:g} s",
    "timeout": "no complete response within {timeout:g} s",
    "status": "it answered {status} where {expected_status} was expected",
    "length": "{octets} octets of content arrived where {expected} were expected",
    "protocol": "{protocol} was requested, but it used {spoken}",
}


@dataclass(frozen=True)
class Finding:
    """What came of one attempt."""

    outcome: Outcome
    error: str | None = None
    reason: str = ""
    duration_ns: int | None = None


def read_rows(samples_file: Path) -> list[SampleRow]:
    """The rows of a samples file, in order; none when there is no file."""
    if not samples_file.exists():
        return []
    return cast(list[SampleRow], parquet.read(samples_file))


def judge(rows: Sequence[SampleRow], case: ConformanceCase, protocol: str) -> Finding:
    """Whether the rows of one request show the object whole, over the protocol asked for.

    The client has compared the octets already (``content``); protocol, status and length are looked at once more here,
    so that a client that does not look is not believed.
    """
    if not rows:
        return Finding("fail", "no_row", failures.failure("no_row").said)
    row = next((row for row in rows if row["error"] is not None), rows[0])
    duration = row["done_ns"] - row["started_ns"] if row["done_ns"] is not None and row["error"] is None else None
    if row["status"] in _METHOD_REFUSED and case.method != "GET":
        return Finding("not_offered", None, f"answers {row['status']} to {case.method}", None)
    error = row["error"] or _contradiction(row, case, protocol)
    if error is None:
        return Finding("pass", None, "", duration)
    spoken = row["protocol"]
    words = _WORDS.get(error, failures.failure(error).said).format(
        timeout=case.timeout_ns / 1e9,
        protocol=PROTOCOL_NAMES[protocol],
        spoken=PROTOCOL_NAMES.get(spoken, "what the client does not report")
        if spoken
        else "what the client cannot tell",
        status=row["status"],
        expected_status=case.status,
        octets=row["bytes_in"],
        expected=case.content,
    )
    return Finding("fail", error, words, duration)


def _contradiction(row: SampleRow, case: ConformanceCase, protocol: str) -> str | None:
    """The class of what a row without an error still shows to be wrong."""
    if row["protocol"] != protocol:
        return "protocol"
    if row["status"] is not None and row["status"] != case.status:
        return "status"
    return "length" if row["bytes_in"] != case.content else None


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
