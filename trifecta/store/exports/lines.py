"""InfluxDB's line protocol, in a file

## Writes
`points.lp`, a line a point, times in ns of the wall clock. Measurements, tags and fields are Telegraf's where it has
them: `http_response`, a point a request (`method`, `result`, `result_code`, `response_time` in s); `procstat` and
`net`, a point a reading of a program and of a host's devices. `trifecta_trial` has a trial's metrics. Every point has
`study`, `run`, `trial`, `cell` and `arm` as tags; `slot` tells requests apart that began in one ns. Telegraf's `host`
is left out: a run does not keep it.

## For
`influx -import`, `influx write`, Telegraf's file input, VictoriaMetrics, QuestDB.
"""
# Statements are put together from names of columns and constants of this module.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb

from trifecta.design.metrics import METRICS
from trifecta.store import parquet
from trifecta.store.exports import requested, tables
from trifecta.store.exports.exporter import Source
from trifecta.store.exports.tables import Table

ROWS = 200_000  # of a table at a time: some 100 MB of text
_BATCH = 5_000  # lines: what InfluxDB's documentation asks for

# A trial's clocks were read together when it began, the wall's to a millisecond.
_OFFSET = f"{tables.WALL} - t.started_ns"
_TRIAL_TAGS = (("trial", "t.trial"), ("cell", "t.cell"), ("arm", "t.arm"), ("path", "t.path"),
               ("connection", "t.connection"), ("server", "t.server"), ("client", "t.client"))  # fmt: skip
# What Telegraf does not know it calls connection_failed, or body_read_error once the head of the answer was there.
_RESULT = """CASE WHEN s.error IS NULL THEN 'success'
  WHEN s.error IN ('content', 'length') THEN 'response_string_mismatch'
  WHEN s.error = 'status' THEN 'response_status_code_mismatch'
  WHEN s.error IN ('timeout', 'connect_timeout', 'quic:timeout') THEN 'timeout'
  WHEN s.error IN ('client:name', 'browser:name', 'client:curl_6') THEN 'dns_error'
  WHEN s.status > 0 THEN 'body_read_error' ELSE 'connection_failed' END"""
_CODES = ("success", "response_string_mismatch", "body_read_error", "connection_failed", "timeout", "dns_error",
          "response_status_code_mismatch")  # fmt: skip
_CODE = f"list_position([{', '.join(parquet.quoted(result) for result in _CODES)}], s.result) - 1"
_PHASES = ("latency_ns", "ttfb_ns", "connect_ns", "tls_ns", "wait_ns", "transfer_ns")
_SLOT = "row_number() OVER (PARTITION BY trial, started_ns ORDER BY request, connection, done_ns) - 1"
_CPU = """100.0 * (cpu_ns - lag(cpu_ns) OVER readings) / nullif(time_ns - lag(time_ns) OVER readings, 0)"""


def gather(source: Source, folder: Path) -> list[Path]:
    """One file."""
    path = folder / "points.lp"
    with path.open("wb") as file:
        for batch in batches(source):
            file.write(batch)
    return [path]


def batches(source: Source) -> Iterator[bytes]:
    """All points of a run, some thousand lines at a time; UserError where trials do not say when they began."""
    connection, run = source.connection, tables.identity(source.path)
    tables.refuse_untimed(connection)
    tags = (("study", parquet.quoted(run.study)), ("run", parquet.quoted(run.run)), *_TRIAL_TAGS)
    if (trials := tables.filled(connection, "trials")) is not None:
        yield from _fetched(connection, _trials(trials, tags))
    if (samples := tables.filled(connection, "samples")) is not None:
        of_requests = (*tags, ("method", requested.of(source.path).method_of_trial))
        for where in tables.parts(connection, samples, ROWS, split_by="started_ns"):
            yield from _fetched(connection, _requests(where, of_requests))
    if (resources := tables.filled(connection, "resources")) is not None:
        for where in tables.parts(connection, resources, ROWS):
            yield from _fetched(connection, _programs(where, tags))
            yield from _fetched(connection, _devices(where, tags))


Tags = tuple[tuple[str, str], ...]


def _trials(table: Table, tags: Tags) -> str:
    known = [name for name in (*METRICS, "samples", "errors") if name in table.names]
    types = dict(table.columns)
    fields = [
        _real(name, f"t.{name}") if tables.portable_type(types[name]) == "DOUBLE" else _whole(name, f"t.{name}")
        for name in dict.fromkeys(known)
    ]
    fields += [_truth("valid", "coalesce(t.valid, false)"), _whole("block", "t.block")]
    line = _line("trifecta_trial", (*tags, ("protocol", "t.protocol")), fields, f"t.started_ns + {_OFFSET}")
    return f"SELECT {line} FROM trials AS t ORDER BY t.trial"


def _requests(where: str, tags: Tags) -> str:
    of_request = (("protocol", "s.protocol"), ("result", "s.result"), ("status_code", "s.status::VARCHAR"),
                  ("slot", "s.slot::VARCHAR"))  # fmt: skip
    fields = [
        _whole("request", "s.request"),
        _whole("result_code", _CODE),
        _real("response_time", "s.latency_ns / 1e9"),
        _whole("http_response_code", "s.status"),
        _whole("content_length", "s.bytes_in"),
        *(_whole(name, f"s.{name}") for name in _PHASES),
        _truth("warmup", "s.warmup"),
        _text("error", "s.error"),
    ]
    line = _line("http_response", (*tags, *of_request), fields, f"s.started_ns + {_OFFSET}")
    rows = f"SELECT *, {_RESULT} AS result, {_SLOT} AS slot FROM samples AS s WHERE {where}"
    return f"SELECT {line} FROM ({rows}) AS s JOIN trials AS t ON t.trial = s.trial"


def _programs(where: str, tags: Tags) -> str:
    fields = [
        _whole("cpu_time_ns", "r.cpu_ns"),
        _real("cpu_usage", "r.usage"),
        _whole("memory_rss", "r.rss_bytes"),
        _whole("num_threads", "r.threads"),
        _whole("voluntary_context_switches", "r.voluntary_switches"),
        _whole("involuntary_context_switches", "r.involuntary_switches"),
        _whole("run_delay_ns", "r.run_delay_ns"),
    ]
    line = _line("procstat", (*tags, ("process_name", "r.process")), fields, f"r.time_ns + {_OFFSET}")
    return _readings(line, f"{where} AND process NOT LIKE 'host %' AND cpu_ns IS NOT NULL")


def _devices(where: str, tags: Tags) -> str:
    fields = [
        _whole("bytes_recv", "r.received_bytes"),
        _whole("packets_recv", "r.received_packets"),
        _whole("bytes_sent", "r.sent_bytes"),
        _whole("packets_sent", "r.sent_packets"),
    ]
    line = _line("net", (*tags, ("interface", "r.process")), fields, f"r.time_ns + {_OFFSET}")
    return _readings(line, f"{where} AND received_bytes IS NOT NULL")


def _readings(line: str, where: str) -> str:
    rows = f"SELECT *, {_CPU} AS usage FROM resources WHERE {where}"
    rows += " WINDOW readings AS (PARTITION BY trial, process ORDER BY time_ns)"
    return f"SELECT {line} FROM ({rows}) AS r JOIN trials AS t ON t.trial = r.trial"


def _line(measurement: str, tags: Tags, fields: list[str], time: str) -> str:
    # By name, as InfluxDB keeps them: else it sorts them for every point.
    told = "".join(f" || coalesce(',{name}=' || {_escaped(value)}, '')" for name, value in sorted(tags))
    return f"'{measurement}'{told} || ' ' || concat_ws(',', {', '.join(fields)}) || ' ' || ({time})::VARCHAR AS line"


def _escaped(value: str) -> str:
    """A tag's value, without a backslash at its end, which would escape what follows; null where it is empty."""
    text = f"replace(({value})::VARCHAR, chr(10), ' ')"
    for character in (",", "=", " "):
        text = f"replace({text}, '{character}', '\\{character}')"
    return f"nullif(rtrim({text}, '\\'), '')"


def _whole(name: str, value: str) -> str:
    return f"'{name}=' || ({value})::BIGINT::VARCHAR || 'i'"


def _real(name: str, value: str) -> str:
    return f"CASE WHEN isfinite(({value})::DOUBLE) THEN '{name}=' || ({value})::DOUBLE::VARCHAR END"


def _truth(name: str, value: str) -> str:
    return f"'{name}=' || CASE WHEN {value} THEN 'true' ELSE 'false' END"


def _text(name: str, value: str) -> str:
    escaped = f"replace(replace({value}, '\\', '\\\\'), '\"', '\\\"')"
    return f"'{name}=\"' || {escaped} || '\"'"


def _fetched(connection: duckdb.DuckDBPyConnection, select: str) -> Iterator[bytes]:
    found = connection.execute(select)
    while rows := found.fetchmany(_BATCH):
        yield "".join(f"{line}\n" for (line,) in rows).encode()
