"""InfluxDB's line protocol, in a file

## Writes
`points.lp`, a line a point, times in ns of the wall clock. Measurements, tags and fields are Telegraf's where it has
them: `http_response`, a point a request (`method`, `result`, `result_code`, `response_time` in s); `procstat` and
`net`, a point a reading of a program and of a host's devices. `trifecta_trial` has a trial's metrics. Every point has
`study`, `run`, `trial`, `cell` and `arm` as tags; `slot` distinguishes requests that began in one ns. Telegraf's `host`
is left out: a run does not keep it.

## For
`influx -import`, `influx write`, Telegraf's file input, VictoriaMetrics, QuestDB.
"""
# Statements are put together from names of columns and constants of this module.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb

from trifecta.design.metrics import METRICS
from trifecta.store import parquet
from trifecta.store.exports import request_target, tables
from trifecta.store.exports.exporter import Source
from trifecta.store.exports.tables import Table

ROWS = 100_000  # of a table at a time: some 50 MB of text
_BATCH = 5_000  # lines: what InfluxDB's documentation asks for

# A trial's clocks were read together when it began, the wall's to a millisecond.
_OFFSET = f"{tables.WALL} - t.started_ns"
_OF_TRIAL = ("trial", "cell", "arm", "path", "connection", "server", "client")
# Tags that every point has, and the columns of `begun` with their text.
_BEGUN = {name: f"{name}_tag" for name in ("study", "run", *_OF_TRIAL)}
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
# Parted by trial alone the rows stay in the order of time, which a server would else put them in.
_SLOT = """row_number() OVER (PARTITION BY trial ORDER BY started_ns, request, connection, done_ns)
  - rank() OVER (PARTITION BY trial ORDER BY started_ns)"""
_CPU = """100.0 * (cpu_ns - lag(cpu_ns) OVER readings) / nullif(time_ns - lag(time_ns) OVER readings, 0)"""


def gather(source: Source, folder: Path) -> list[Path]:
    """One file."""
    path = folder / "points.lp"
    with path.open("wb") as file:
        for piece in pieces(source):
            for batch in batches(source.connection, piece):
                file.write(batch)
    return [path]


def pieces(source: Source) -> Iterator[str]:
    """Statements that give all points of a run as lines; UserError where trials do not say when they began.

    The tags of a trial become text once, in a table of the connection, and not again for each of its points.
    """
    connection, run = source.connection, tables.identity(source.path)
    tables.refuse_untimed(connection)
    tags = {"study": parquet.quoted(run.study), "run": parquet.quoted(run.run)}
    tags |= {name: f"t.{name}" for name in _OF_TRIAL} | {"method": request_target.of(source.path).method_of_trial}
    written = _tags({name: _escaped(value) for name, value in tags.items()})
    texts = ", ".join(f"{text} AS {name}_tag" for name, text in written.items())
    connection.execute(f"CREATE TABLE begun AS SELECT t.trial, {_OFFSET} AS ahead_ns, {texts} FROM trials AS t")
    if (trials := tables.filled(connection, "trials")) is not None:
        yield _trials(trials)
    if (samples := tables.filled(connection, "samples")) is not None:
        for where in tables.parts(connection, samples, ROWS, split_by="started_ns"):
            yield _requests(where)
    if (resources := tables.filled(connection, "resources")) is not None:
        for where in tables.parts(connection, resources, ROWS):
            yield _programs(where)
            yield _devices(where)


def batches(connection: duckdb.DuckDBPyConnection, piece: str) -> Iterator[bytes]:
    """The points of a piece, some thousand lines at a time."""
    cursor = connection.execute(piece)
    while rows := cursor.fetchmany(_BATCH):
        yield "".join(f"{line}\n" for (line,) in rows).encode()


def _trials(table: Table) -> str:
    known = [name for name in (*METRICS, "samples", "errors") if name in table.names]
    types = dict(table.columns)
    fields = [
        _real(name, f"t.{name}") if tables.portable_type(types[name]) == "DOUBLE" else _integer_field(name, f"t.{name}")
        for name in dict.fromkeys(known)
    ]
    fields += [_truth("valid", "coalesce(t.valid, false)"), _integer_field("block", "t.block")]
    tags = _BEGUN | _tags({"protocol": _escaped("t.protocol")})
    return _lines("trifecta_trial", "trials AS t", tags, fields, "t.started_ns") + " ORDER BY trial"


def _requests(where: str) -> str:
    own = {"protocol": _escaped("s.protocol"), "result": "s.result", "status_code": "s.status", "slot": "s.slot"}
    tags = {**_BEGUN, "method": "method_tag", **_tags(own)}
    fields = [
        _integer_field("request", "s.request"),
        _integer_field("result_code", _CODE),
        _real("response_time", "s.latency_ns / 1e9"),
        _integer_field("http_response_code", "s.status"),
        _integer_field("content_length", "s.bytes_in"),
        *(_integer_field(name, f"s.{name}") for name in _PHASES),
        _truth("warmup", "s.warmup"),
        _text("error", "s.error"),
    ]
    rows = f"(SELECT *, {_RESULT} AS result, {_SLOT} AS slot FROM samples AS s WHERE {where}) AS s"
    return _lines("http_response", rows, tags, fields, "s.started_ns")


def _programs(where: str) -> str:
    fields = [
        _integer_field("cpu_time_ns", "r.cpu_ns"),
        _real("cpu_usage", "r.usage"),
        _integer_field("memory_rss", "r.rss_bytes"),
        _integer_field("num_threads", "r.threads"),
        _integer_field("voluntary_context_switches", "r.voluntary_switches"),
        _integer_field("involuntary_context_switches", "r.involuntary_switches"),
        _integer_field("run_delay_ns", "r.run_delay_ns"),
    ]
    rows = _readings(f"{where} AND process NOT LIKE 'host %' AND cpu_ns IS NOT NULL")
    return _lines("procstat", rows, _BEGUN | _tags({"process_name": _escaped("r.process")}), fields, "r.time_ns")


def _devices(where: str) -> str:
    fields = [
        _integer_field("bytes_recv", "r.received_bytes"),
        _integer_field("packets_recv", "r.received_packets"),
        _integer_field("bytes_sent", "r.sent_bytes"),
        _integer_field("packets_sent", "r.sent_packets"),
    ]
    rows = _readings(f"{where} AND received_bytes IS NOT NULL")
    return _lines("net", rows, _BEGUN | _tags({"interface": _escaped("r.process")}), fields, "r.time_ns")


def _readings(where: str) -> str:
    rows = f"SELECT *, {_CPU} AS usage FROM resources WHERE {where}"
    return f"({rows} WINDOW readings AS (PARTITION BY trial, process ORDER BY time_ns)) AS r"


def _lines(measurement: str, rows: str, tags: Mapping[str, str], fields: list[str], time: str) -> str:
    """Of rows that have a trial."""
    line = _line(measurement, tags, fields, f"{time} + ahead_ns")
    return f"SELECT {line} AS line FROM {rows} JOIN begun USING (trial)"


def _line(measurement: str, tags: Mapping[str, str], fields: list[str], time: str) -> str:
    # By name, as InfluxDB keeps them: else it sorts them for every point.
    listed_tags = ", ".join(tags[name] for name in sorted(tags))
    # Without a time there is no line: a server would give it its own, another one each time.
    return f"concat('{measurement}', {listed_tags}, ' ', concat_ws(',', {', '.join(fields)}), ' ') || ({time})::VARCHAR"


def _tags(values: Mapping[str, str]) -> dict[str, str]:
    """By name the text of a tag whose value is escaped; an empty text where the value is null."""
    return {name: f"coalesce(',{name}=' || {value}, '')" for name, value in values.items()}


def _escaped(value: str) -> str:
    """A tag's value, without a backslash at its end, which would escape what follows; null where it is empty."""
    text = f"replace(({value})::VARCHAR, chr(10), ' ')"
    for character in (",", "=", " "):
        text = f"replace({text}, '{character}', '\\{character}')"
    return f"nullif(rtrim({text}, '\\'), '')"


def _integer_field(name: str, value: str) -> str:
    return f"'{name}=' || ({value})::BIGINT::VARCHAR || 'i'"


def _real(name: str, value: str) -> str:
    return f"CASE WHEN isfinite(({value})::DOUBLE) THEN '{name}=' || ({value})::DOUBLE::VARCHAR END"


def _truth(name: str, value: str) -> str:
    return f"'{name}=' || CASE WHEN {value} THEN 'true' ELSE 'false' END"


def _text(name: str, value: str) -> str:
    escaped = f"replace(replace({value}, '\\', '\\\\'), '\"', '\\\"')"
    return f"'{name}=\"' || {escaped} || '\"'"
