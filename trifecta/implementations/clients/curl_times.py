"""What curl's times mean, as a sample row (curl(1), --write-out; docs/clients.md).

All are relative to the start of a transfer; the wall clock when the line was written, which is at once after the end,
places them. Over HTTP/3 ``time_connect`` is not the end of a TCP handshake and ``time_posttransfer`` lies after the
request was sent, so both are left out there.
"""

from __future__ import annotations

from trifecta.contract.errors import ErrorClass, of_client
from trifecta.implementations.client import Job, Output, Row
from trifecta.implementations.clients.content import monotonic_ns, span_ns

_SPOKEN = {"1.1": "h1", "2": "h2", "3": "h3"}
# libcurl-errors(3)
_ERRORS: dict[int, ErrorClass] = {
    7: "connect_refused", 16: "reset", 18: "closed", 28: "timeout", 35: "tls", 52: "closed", 55: "reset", 56: "reset",
    60: "tls:certificate", 92: "reset", 95: "quic", 96: "quic",
}  # fmt: skip


def row(job: Job, output: Output, report: dict[str, str]) -> Row:
    """The row of a transfer from the line about it."""
    new = job.connection_mode == "new"
    total_ns = span_ns(report["total"])
    begin_ns = monotonic_ns(span_ns(report["now"]), output) - total_ns

    def at(name: str) -> int | None:
        """When something happened; curl writes 0 for what did not."""
        after_ns = span_ns(report[name])
        return begin_ns + after_ns if after_ns else None

    opened = report["connects"] != "0"
    # A transfer that waits for the connection that another one opens has not begun; one that opens its own begins when
    # the name was looked up. The time in the queue is a sum over every waiting, so it can be too long.
    waited_ns = (
        span_ns(report["lookup"]) if opened else min(span_ns(report["queue"]), span_ns(report["sent"]) or total_ns)
    )
    left_queue_ns = begin_ns + min(waited_ns, total_ns)
    secured_ns = at("secured") if opened else None
    error = _error(report, secured_ns, new=new, opened=opened)
    done_ns = None if error else begin_ns + total_ns
    over_tcp = job.protocol != "h3"
    return {
        "connection": int(report["connection"]) if report["connection"] != "-1" else None,
        # As with the engine, a request on a connection that is kept begins when that is open.
        "started_ns": left_queue_ns if new or secured_ns is None else secured_ns,
        "connect_start_ns": left_queue_ns if opened else None,
        "tcp_connected_ns": at("connect") if opened and over_tcp else None,
        "secured_ns": secured_ns,
        "request_sent_ns": at("sent") if over_tcp else None,
        "first_byte_ns": at("first_byte"),
        "done_ns": done_ns,
        "protocol": _SPOKEN.get(report["version"]),
        "zero_rtt": False,
        "status": int(report["status"]) or None,
        "bytes_out": int(report["bytes_out"]),
        "bytes_in": int(report["bytes_in"]),
        "error": error,
    }


def _error(report: dict[str, str], secured_ns: int | None, *, new: bool, opened: bool) -> ErrorClass | None:
    """The error class; a new connection that was asked for and not made is one too."""
    code = int(report["exit"])
    if code == 0:
        return "client:reused" if new and not opened else None
    if (
        code == 28
        and secured_ns is None
        and (opened or new or report["status"] == "000")
        and report["sent"] == "0.000000"
    ):
        return "connect_timeout"
    return _ERRORS.get(code) or of_client(f"curl_{code}")
