"""Cycles of services as OpenTelemetry's traces: of each call the client's span, and the server's below it."""
# Statements are put together from constants of this module and conditions of `tables.parts`.
# ruff: noqa: S608

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from trifecta.design.errors import UserError
from trifecta.design.extras import LazyModule
from trifecta.store.exports import tables
from trifecta.store.exports.exporter import Source
from trifecta.store.exports.otlp_metrics import of_run, of_us
from trifecta.store.exports.tables import Identity

sdk: Any = LazyModule("opentelemetry.sdk.trace")
api: Any = LazyModule("opentelemetry.trace")
status: Any = LazyModule("opentelemetry.trace.status")

_ROWS = 100_000
_COLUMNS = (
    "trial", "request", "ordinal", "depth", "caller", "callee", "method", "path", "started_ns", "arrived_ns",
    "replied_ns", "returned_ns", "status", "error",
)  # fmt: skip


def spans(source: Source, run: Identity) -> Iterator[Any]:
    """The spans of every call, cycle by cycle; UserError where trials do not say when they began."""
    calls = tables.filled(source.connection, "spans")
    if calls is None:
        return
    columns = ", ".join(f"s.{name}" for name in _COLUMNS)
    for where in tables.parts(source.connection, calls, _ROWS):
        cursor = source.connection.execute(
            f"SELECT {columns}, {tables.WALL} - t.started_ns FROM (SELECT * FROM spans WHERE {where}) AS s "
            "JOIN trials AS t ON t.trial = s.trial ORDER BY s.trial, s.request, s.ordinal"
        )
        cycle: tuple[str, int] | None = None
        servers: dict[int, Any] = {}  # by depth, of the call that was last there
        while rows := cursor.fetchmany(_ROWS):
            for *values, offset in rows:
                call = dict(zip(_COLUMNS, values, strict=True))
                if offset is None:
                    raise UserError(f"trial {call['trial']} does not say when it began (wall_started_utc)")
                if cycle != (call["trial"], call["request"]):
                    cycle, servers = (call["trial"], call["request"]), {}
                yield from _of_call(call, offset, run, servers)


def _of_call(call: Mapping[str, Any], offset: int, run: Identity, servers: dict[int, Any]) -> Iterator[Any]:
    trace = _number(16, run.run, call["trial"], call["request"])
    client = _context(trace, _number(8, run.run, call["trial"], call["request"], call["ordinal"], "client"))
    columns = {
        "http.request.method": call["method"],
        "url.scheme": "https",
        "url.path": call["path"],
        "http.response.status_code": call["status"],
        "error.type": call["error"],
        "trifecta.trial": call["trial"],
        "trifecta.request": call["request"],
    }
    attributes = {name: value for name, value in columns.items() if value is not None}
    last = max(value for name in ("started_ns", "arrived_ns", "replied_ns", "returned_ns") if (value := call[name]))
    failed = status.Status(status.StatusCode.ERROR if call["error"] else status.StatusCode.UNSET)
    yield sdk.ReadableSpan(
        name=call["method"] or "HTTP",
        context=client,
        parent=servers.get(call["depth"] - 1),
        resource=of_run(run, call["caller"]),
        attributes={**attributes, **({"server.address": call["callee"]} if call["callee"] else {})},
        kind=api.SpanKind.CLIENT,
        status=failed,
        start_time=call["started_ns"] + offset,
        end_time=(call["returned_ns"] or last) + offset,
        instrumentation_scope=of_us(),
    )
    servers.pop(call["depth"], None)
    if call["arrived_ns"] is None or call["callee"] is None:
        return
    server = _context(trace, _number(8, run.run, call["trial"], call["request"], call["ordinal"], "server"))
    servers[call["depth"]] = server
    yield sdk.ReadableSpan(
        name=call["method"] or "HTTP",
        context=server,
        parent=client,
        resource=of_run(run, call["callee"]),
        attributes=attributes,
        kind=api.SpanKind.SERVER,
        status=failed,
        start_time=call["arrived_ns"] + offset,
        end_time=(call["replied_ns"] or max(last, call["arrived_ns"])) + offset,
        instrumentation_scope=of_us(),
    )


def _context(trace: int, span: int) -> Any:
    return api.SpanContext(trace_id=trace, span_id=span, is_remote=False, trace_flags=api.TraceFlags(1))


def _number(octets: int, *of: object) -> int:
    """An id that is the same whenever the same is exported; never zero, which is none."""
    digest = hashlib.sha256("\0".join(str(one) for one in of).encode()).digest()
    return int.from_bytes(digest[:octets], "big") or 1
