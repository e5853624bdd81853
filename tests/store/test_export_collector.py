"""OTLP as OpenTelemetry's own collector takes it: every request that ended, and every span, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.report.synthetic import Shape, write_run
from tests.store import servers
from tests.store.test_spans import span
from trifecta.store import schema, views
from trifecta.store.exports import send

SMALL = Shape(blocks=4, samples_per_trial=60, paths=("rough",), connections=("new",), servers=("origin",))


def of_kind(lines: list[dict[str, Any]], kind: str, each: str) -> Iterator[dict[str, Any]]:
    """What lies in the scopes of the resources of this kind."""
    for line in lines:
        for resource in line.get(f"resource{kind}", []):
            for scope in resource[f"scope{kind}"]:
                yield from scope[each]


def test_the_collector_has_every_request_and_every_span(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", SMALL)
    calls = [span("t00000", 0, "A", "B"), span("t00000", 1, "B", "C")]
    (run / "spans").mkdir()
    pq.write_table(pa.Table.from_pylist(calls, schema=schema.SPANS.arrow()), run / "spans" / "t00000.parquet")
    with views.connect(run) as opened:
        ((ended, asked),) = opened.execute("SELECT count(done_ns), count(*) FROM samples").fetchall()
    with servers.recording(200) as recorder:
        recorder.content = b"{}"
        with servers.collector(tmp_path, f"http://127.0.0.1:{recorder.server_port}") as port:
            told = send(f"otlp://127.0.0.1:{port}", run)
    lines = [json.loads(body) for _, _, body in recorder.asked]

    metrics = list(of_kind(lines, "Metrics", "metrics"))
    assert {one["name"] for one in metrics} == {"http.client.request.duration", "trifecta.client.requests"}
    assert {one["unit"] for one in metrics if "histogram" in one} == {"s"}
    histograms = [point for one in metrics if "histogram" in one for point in one["histogram"]["dataPoints"]]
    assert sum(int(point["count"]) for point in histograms) == ended > 0
    assert sum(int(point["asInt"]) for one in metrics if "sum" in one for point in one["sum"]["dataPoints"]) == asked
    keys = {item["key"] for point in histograms for item in point["attributes"]}
    assert {"network.protocol.version", "http.request.method"} <= keys

    spans = list(of_kind(lines, "Spans", "spans"))
    assert len(spans) == len({one["spanId"] for one in spans}) == 4, "a client's and a server's of each call"
    assert len({one["traceId"] for one in spans}) == 1
    assert told[1].endswith(": 4 spans")
