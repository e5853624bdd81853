"""OpenTelemetry by OTLP over HTTP

## Writes
`http.client.request.duration` in s: for each trial a histogram per `network.protocol.version`, status and class of
error, of browsers also per method and origin, the warm-up apart; `trifecta.client.requests`, which counts those too
that never ended; and of services each cycle as a trace: a client's and a server's span a call. Of browsers the requests
of their visits that went out. Ids of spans and times of points are made of the run: a store that tells points and spans
apart by them has each once, however often it is exported.

## For
Collectors, Jaeger, Tempo, Prometheus (which takes OTLP), and the vendors.

## Needs
The extra `exports`.

`otlp://HOST:4318`, `otlps://` over TLS. Credentials: OTEL_EXPORTER_OTLP_HEADERS (`name=value,...`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import urlsplit

from trifecta.design.errors import CannotError, UserError
from trifecta.design.extras import LazyModule
from trifecta.store.exports import error_messages, otlp_metrics, otlp_traces, tables
from trifecta.store.exports.exporter import Source
from trifecta.store.exports.http_post import Poster

metrics_encoder: Any = LazyModule("opentelemetry.exporter.otlp.proto.common.metrics_encoder")
trace_encoder: Any = LazyModule("opentelemetry.exporter.otlp.proto.common.trace_encoder")
headers: Any = LazyModule("opentelemetry.util.re")
metrics_service: Any = LazyModule("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
trace_service: Any = LazyModule("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
protobuf: Any = LazyModule("google.protobuf.message")

SCHEMES = ("otlp", "otlps")
_PORT = 4318
_POINTS = 500  # a message
_SPANS = 2_000
One = TypeVar("One")


def send(source: Source, url: str) -> list[str]:
    """Metrics, then traces, over one connection; a line of each."""
    parted = urlsplit(url)
    if not parted.hostname or parted.query or parted.username is not None:
        raise UserError(f"--to {parted.scheme}://: the URL has the form {parted.scheme}://HOST:{_PORT}")
    given = headers.parse_env_headers(os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", ""), liberal=True)
    fields = {**given, "Content-Type": "application/x-protobuf"}
    where, base = error_messages.place(url), parted.path.rstrip("/")
    run = tables.identity(source.path)
    poster = Poster(where, parted.hostname, parted.port or _PORT, parted.scheme == "otlps", fields)
    points = spans = 0
    try:
        for some in _by(otlp_metrics.points(source), _POINTS):
            _post(poster, f"{base}/v1/metrics", metrics_encoder.encode_metrics(otlp_metrics.data(some, run)))
            points += len(some)
        for some in _by(otlp_traces.spans(source, run), _SPANS):
            _post(poster, f"{base}/v1/traces", trace_encoder.encode_spans(some))
            spans += len(some)
    finally:
        poster.close()
    return [f"{where}: {points} histograms, study={run.study}, run={run.run}", f"{where}: {spans} spans"]


def _post(poster: Poster, path: str, message: Any) -> None:
    answer = poster.post(path, message.SerializeToString())
    if answer.status == 200:
        _refuse_partial(poster.where, path, answer.content)
    else:
        remedy = "set OTEL_EXPORTER_OTLP_HEADERS" if answer.status in (401, 403) else "is it an OTLP/HTTP receiver?"
        raise CannotError(f"{poster.where}: {path} refused with {answer.status} ({answer.message}); {remedy}")


def _refuse_partial(where: str, path: str, content: bytes) -> None:
    """CannotError where a receiver took a part only; one that answers with something else says nothing of it."""
    metrics, traces = metrics_service.ExportMetricsServiceResponse, trace_service.ExportTraceServiceResponse
    try:
        partial = (metrics if path.endswith("/metrics") else traces).FromString(content).partial_success
    except protobuf.DecodeError:
        return
    left_out = getattr(partial, "rejected_data_points", 0) or getattr(partial, "rejected_spans", 0)
    if left_out:
        raise CannotError(
            f"{where}: {path} refused {left_out} of a message ({error_messages.line(partial.error_message)})"
        )


def _by(many: Iterable[One], most: int) -> Iterator[list[One]]:
    every = iter(many)
    while some := list(islice(every, most)):
        yield some
