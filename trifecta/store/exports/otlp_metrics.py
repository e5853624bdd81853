"""Requests as OpenTelemetry's metric of HTTP clients.

https://opentelemetry.io/docs/specs/semconv/http/http-metrics/#metric-httpclientrequestduration
"""
# Statements are put together from constants of this module and conditions of `tables.parts`.
# ruff: noqa: S608

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trifecta import __version__
from trifecta.contract.origins import origin_of
from trifecta.design.errors import UserError
from trifecta.design.extras import LazyModule
from trifecta.store.exports import request_target, tables
from trifecta.store.exports.exporter import Source
from trifecta.store.exports.tables import Identity

sdk: Any = LazyModule("opentelemetry.sdk.metrics.export")
resources: Any = LazyModule("opentelemetry.sdk.resources")
instrumentation: Any = LazyModule("opentelemetry.sdk.util.instrumentation")

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""Upper ends of the buckets, as the conventions advise."""
VERSIONS = {"h1": "1.1", "h2": "2", "h3": "3"}
_ROWS = 1_000_000
_SENT = "AND NOT coalesce(s.from_cache, false) AND starts_with(s.url, 'http')"
"""Of what a browser fetches: what lies in the page itself (data:, blob:) is asked of nobody."""
_OF_TRIAL = ("trial", "cell", "arm", "path", "connection", "server")


@dataclass(frozen=True)
class Point:
    """The requests of a trial that ended alike."""

    attributes: dict[str, str | int | bool]
    began_ns: int
    ended_ns: int
    requests: int
    durations: int
    """How many of the requests have one."""
    sum_s: float
    least_s: float | None
    most_s: float | None
    counts: tuple[int, ...]
    """By bucket, the last one above all bounds."""


def buckets() -> list[str]:
    """Counts in SQL of durations ``d`` in s: up to each bound, and above the one before, then above all."""
    ends = [0.0, *BOUNDS_S]
    counts = [f"count(*) FILTER (d > {low} AND d <= {high})" for low, high in zip(ends, BOUNDS_S, strict=False)]
    counts[0] = f"count(*) FILTER (d <= {BOUNDS_S[0]})"
    return [*counts, f"count(*) FILTER (d > {BOUNDS_S[-1]})"]


def points(source: Source) -> Iterator[Point]:
    """All of a run, part by part; UserError where trials do not say when they began."""
    requests = tables.filled(source.connection, "fetches") or tables.filled(source.connection, "samples")
    if requests is None:
        return
    target = request_target.of(source.path)
    began, alike = "coalesce(s.intended_ns, s.started_ns)", "s.trial, s.protocol, s.status, s.error, s.warmup"
    method, scheme, origin, sent = target.method_of_trial, "'https'", "NULL", ""
    if requests.name == "fetches":
        began, method, sent = "s.started_ns", f"coalesce(s.method, {method})", _SENT
        scheme, origin = "split_part(s.url, ':', 1)", "s.origin"
        alike += f", s.method, {scheme}, {origin}"
    for where in tables.parts(source.connection, requests, _ROWS):
        rows = f"SELECT *, (done_ns - {began}) / 1e9 AS d FROM (SELECT * FROM {requests.name} WHERE {where}) AS s"
        cursor = source.connection.execute(
            f"SELECT {', '.join(f'any_value(t.{name})' for name in _OF_TRIAL)}, any_value({origin}), "
            f"any_value({target.url_of_trial}), any_value({scheme}), any_value({method}), "
            f"any_value({tables.WALL}), any_value(t.ended_ns - t.started_ns), any_value(s.protocol), "
            "any_value(s.status), any_value(s.error), any_value(s.warmup), count(*), count(d), "
            f"coalesce(sum(d), 0), min(d), max(d), {', '.join(buckets())} FROM ({rows}) AS s "
            f"JOIN trials AS t ON t.trial = s.trial WHERE true {sent} "
            f"GROUP BY {alike} ORDER BY {alike}"
        )
        for row in cursor.fetchall():
            yield _point(row)


def _point(row: Sequence[Any]) -> Point:
    names, (origin, url, scheme, method, *rest) = row[: len(_OF_TRIAL)], row[len(_OF_TRIAL) :]
    began, took, protocol, status, error, warmup, requests, durations, total, least, most, *counts = rest
    if began is None:
        raise UserError(f"trial {names[0]} does not say when it began (wall_started_utc); export csv instead")
    of_trial = dict(zip(_OF_TRIAL, names, strict=True))
    if origin is None:
        origin = origin_of(url) if url else ""
    host, _, port = origin.rpartition(":")
    columns = {
        "http.request.method": method,
        "url.scheme": scheme,
        "network.protocol.name": "http",
        "network.protocol.version": VERSIONS.get(protocol),
        "http.response.status_code": status,
        "error.type": error,
        "server.address": host or of_trial["server"],
        "server.port": int(port) if host else None,
        "trifecta.warmup": bool(warmup),
        **{f"trifecta.{name}": value for name, value in of_trial.items()},
    }
    attributes = {name: value for name, value in columns.items() if value is not None}
    return Point(attributes, began, began + (took or 0), requests, durations, total, least, most, tuple(counts))


def data(some: Sequence[Point], run: Identity) -> Any:
    """Points as the SDK's data of metrics."""
    cumulative = sdk.AggregationTemporality.CUMULATIVE
    histograms = [
        sdk.HistogramDataPoint(
            attributes=one.attributes,
            start_time_unix_nano=one.began_ns,
            time_unix_nano=one.ended_ns,
            count=one.durations,
            sum=one.sum_s,
            bucket_counts=one.counts,
            explicit_bounds=BOUNDS_S,
            min=one.least_s,
            max=one.most_s,
        )
        for one in some
        if one.durations
    ]
    counts = [
        sdk.NumberDataPoint(
            attributes=one.attributes,
            start_time_unix_nano=one.began_ns,
            time_unix_nano=one.ended_ns,
            value=one.requests,
        )
        for one in some
    ]
    every = [
        sdk.Metric(
            "trifecta.client.requests",
            "Requests that began",
            "{request}",
            sdk.Sum(data_points=counts, aggregation_temporality=cumulative, is_monotonic=True),
        )
    ]
    if histograms:
        every.append(
            sdk.Metric(
                "http.client.request.duration",
                "Duration of HTTP client requests",
                "s",
                sdk.Histogram(data_points=histograms, aggregation_temporality=cumulative),
            )
        )
    scope = sdk.ScopeMetrics(scope=of_us(), metrics=every, schema_url="")
    return sdk.MetricsData(
        resource_metrics=[sdk.ResourceMetrics(resource=of_run(run, "client"), scope_metrics=[scope], schema_url="")]
    )


@functools.cache
def of_run(run: Identity, service: str) -> Any:
    """What a service of a run is called; nothing of the machine that exports."""
    return resources.Resource({"service.name": service, "trifecta.study": run.study, "trifecta.run": run.run})


@functools.cache
def of_us() -> Any:
    """What made the points and spans."""
    return instrumentation.InstrumentationScope("trifecta", __version__)
