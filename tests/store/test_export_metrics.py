"""OpenMetrics and OTLP: histograms hold every request once, cycles are traces, a dashboard asks for what is there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.report.synthetic import Shape, write_run
from tests.store import servers
from tests.store.test_spans import span
from trifecta.design import extras
from trifecta.design.errors import CannotError, UserError
from trifecta.store import schema, views
from trifecta.store.exports import export, grafana, otlp_metrics, send
from trifecta.store.exports.exporter import Source

SMALL = Shape(blocks=12, samples_per_trial=60, paths=("rough",), connections=("new",), servers=("origin",))
LINE = re.compile(r'([a-z0-9_]+)\{((?:[a-z0-9_]+="(?:\\.|[^"\\])*",?)+)\} (\S+) (\d+\.\d{3})')
LABEL = re.compile(r'([a-z0-9_]+)="((?:\\.|[^"\\])*)"')


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    made = write_run(tmp_path_factory.mktemp("made") / "run", SMALL)
    rows = [span("t00000", 0, "A", "B"), span("t00000", 1, "B", "C", error="timeout", returned_ns=None)]
    (made / "spans").mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema.SPANS.arrow()), made / "spans" / "t00000.parquet")
    return made


@pytest.fixture(scope="module")
def written(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("metrics") / "out"
    export("openmetrics", run, folder)
    return folder


@pytest.fixture(scope="module")
def lines(written):
    text = (written / "metrics.txt").read_text()
    assert text.endswith("# EOF\n")
    told = [line for line in text.splitlines() if not line.startswith("# ")]
    found = [LINE.fullmatch(line) for line in told]
    assert all(found)
    return [(match[1], dict(LABEL.findall(match[2])), float(match[3]), float(match[4])) for match in found]


def test_a_histogram_holds_every_request_that_ended_once(run, lines):
    with views.connect(run) as opened:
        (ended, total) = opened.execute(
            "SELECT count(done_ns), sum(done_ns - coalesce(intended_ns, started_ns)) / 1e9 FROM samples"
        ).fetchone()
        (above,) = opened.execute("SELECT count(*) FROM samples WHERE done_ns - started_ns <= 100000000").fetchone()
    name = grafana.REQUESTS
    assert sum(value for told, _, value, _ in lines if told == f"{name}_count") == ended
    assert sum(value for told, _, value, _ in lines if told == f"{name}_sum") == pytest.approx(total)
    buckets = [(labels, value) for told, labels, value, _ in lines if told == f"{name}_bucket"]
    assert sum(value for labels, value in buckets if labels["le"] == "+Inf") == ended
    assert sum(value for labels, value in buckets if labels["le"] == "0.1") == above
    assert 0 < above < ended
    counts = Counter((told, tuple(labels.items())) for told, labels, _, _ in lines)
    assert max(counts.values()) == 1, "a series has one point"


def test_metrics_of_trials_are_in_seconds_at_their_end(run, lines):
    with views.connect(run) as opened:
        expected = opened.execute(
            "SELECT trial, latency_p50_ns / 1e9, epoch_ms(rtrim(wall_started_utc, 'Z')::TIMESTAMP) / 1e3 "
            "+ (ended_ns - started_ns) / 1e9 FROM trials WHERE latency_p50_ns IS NOT NULL ORDER BY trial"
        ).fetchall()
    told = [(labels["trial"], value, time) for name, labels, value, time in lines
            if name == "trifecta_latency_p50_seconds"]  # fmt: skip
    assert [trial for trial, *_ in told] == [trial for trial, *_ in expected]
    for (_, value, time), (_, wanted, ended) in zip(told, expected, strict=True):
        assert value == pytest.approx(wanted)
        assert time == pytest.approx(ended, abs=0.001)


def test_families_are_announced_once_and_lie_together(written):
    families = [line.split()[2] for line in (written / "metrics.txt").read_text().splitlines() if "# TYPE" in line]
    assert len(families) == len(set(families)) > 5


def test_the_dashboard_asks_for_what_is_there(written, lines):
    document = json.loads((written / "dashboard.json").read_text())
    names = {name for name, *_ in lines}
    labels = {label for _, told, *_ in lines for label in told}
    expressions = [target["expr"] for panel in document["panels"] for target in panel["targets"]]
    asked = {name for text in expressions for name in re.findall(r"trifecta_\w+", text)}
    assert asked and asked <= names
    assert {label for text in expressions for label in re.findall(r"(\w+)=~", text)} <= labels
    variables = {one["name"] for one in document["templating"]["list"]}
    assert {name for text in expressions for name in re.findall(r"\$(\w+)", text)} <= variables
    ids = [panel["id"] for panel in document["panels"]]
    assert len(ids) == len(set(ids))
    places = [tuple(panel["gridPos"][side] for side in "xywh") for panel in document["panels"]]
    assert all(x + w <= 24 for x, _, w, _ in places)


GRAFANA = Path(__file__).parents[2] / ".cache" / "grafana" / "node_modules"  # where scripts/setup.sh long puts it
TYPES = "@grafana/schema/dist/esm/raw/dashboard/x/dashboard_types.gen"


@pytest.mark.long  # for its packages
@pytest.mark.parametrize(("x", "fits"), [(0, True), ("left", False)])
def test_the_dashboard_has_the_types_that_grafana_publishes(tmp_path, x, fits):
    compiler, node = GRAFANA / "typescript" / "bin" / "tsc", shutil.which("node")
    if node is None or not compiler.exists():
        pytest.skip("Grafana's schema is missing; run: scripts/setup.sh long (needs npm)")
    document = grafana.dashboard()
    document["panels"][0]["gridPos"]["x"] = x
    lines = [f'import type {{ Dashboard, Panel }} from "{GRAFANA / TYPES}";',
             f"export const whole: Dashboard = {json.dumps(document)};"]  # fmt: skip
    lines += [f"export const panel{n}: Panel = {json.dumps(one)};" for n, one in enumerate(document["panels"])]
    (tmp_path / "dashboard.ts").write_text("\n".join(lines))
    options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler"]
    done = subprocess.run([node, str(compiler), *options, str(tmp_path / "dashboard.ts")], capture_output=True,
                          text=True, check=False, timeout=120)  # fmt: skip
    assert (done.returncode == 0) == fits, done.stdout
    assert fits or "Type 'string' is not assignable to type 'number'" in done.stdout


@pytest.mark.parametrize(
    ("column", "named"),
    [
        ("latency_p50_ns", ("trifecta_latency_p50_seconds", 1e-9, "seconds")),
        ("client_cpu_ns_per_request", ("trifecta_client_cpu_per_request_seconds", 1e-9, "seconds")),
        ("requests_per_s", ("trifecta_requests_per_second", 1.0, "")),
        ("success_rate", ("trifecta_success_rate", 1.0, "")),
    ],
)
def test_names_say_base_units(column, named):
    assert grafana.exported_name(column) == named


def test_promtool_makes_blocks_of_it(written, tmp_path):
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is missing; run: apt-get install prometheus")
    done = subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", str(written / "metrics.txt"), str(tmp_path / "data")],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "data").iterdir())


@pytest.fixture
def collector():
    reason = f"opentelemetry is missing; run: {extras.remedy('exports')}"
    pytest.importorskip("opentelemetry.sdk.metrics", reason=reason)
    pytest.importorskip("opentelemetry.exporter.otlp.proto.common.metrics_encoder", reason=reason)
    with servers.recording(200) as one:
        yield one


def told(attributes):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


def metrics_of(collector):
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

    bodies = [body for path, _, body in collector.asked if path == "/v1/metrics"]
    return [
        metric
        for body in bodies
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]


def spans_of(collector):
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    return [
        (told(resource.resource.attributes)["service.name"], each)
        for path, _, body in collector.asked
        if path == "/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for each in scope.spans
    ]


def test_otlp_has_the_metric_of_the_conventions(run, collector, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=of-us")
    send(f"otlp://127.0.0.1:{collector.server_address[1]}", run)
    assert {headers["x-key"] for _, headers, _ in collector.asked} == {"of-us"}
    with views.connect(run) as opened:
        versions = dict(opened.execute("SELECT protocol, count(done_ns) FROM samples GROUP BY 1").fetchall())
        (every,) = opened.execute("SELECT count(*) FROM samples").fetchone()
    counts: Counter[str] = Counter()
    requests = 0
    for metric in metrics_of(collector):
        if metric.name == "http.client.request.duration":
            assert metric.unit == "s"
            for point in metric.histogram.data_points:
                attributes = told(point.attributes)
                assert attributes["http.request.method"] == "GET"
                assert sum(point.bucket_counts) == point.count
                assert point.start_time_unix_nano < point.time_unix_nano
                counts[attributes["network.protocol.version"]] += point.count
        else:
            requests += sum(point.as_int for point in metric.sum.data_points)
    assert counts == {otlp_metrics.VERSIONS[name]: count for name, count in versions.items()}
    assert requests == every > sum(counts.values()), "failed requests without an end are counted"


def test_otlp_has_a_cycle_as_a_trace_the_same_each_time(run, collector):
    place = f"otlp://127.0.0.1:{collector.server_address[1]}"
    send(place, run)
    first = spans_of(collector)
    collector.asked.clear()
    send(place, run)
    assert sorted(str(one) for one in spans_of(collector)) == sorted(str(one) for one in first)
    by_kind = {(service, one.kind): one for service, one in first}
    assert len(first) == len(by_kind) == 4
    root, at_b = by_kind["A", 3], by_kind["B", 2]  # client, server
    onward, at_c = by_kind["B", 3], by_kind["C", 2]
    assert root.parent_span_id == b""
    assert (at_b.parent_span_id, onward.parent_span_id) == (root.span_id, at_b.span_id)
    assert at_c.parent_span_id == onward.span_id
    assert len({one.trace_id for _, one in first}) == 1
    assert {told(one.attributes)["url.scheme"] for _, one in first} == {"https"}
    assert root.end_time_unix_nano - root.start_time_unix_nano == 1100
    assert (onward.status.code, root.status.code) == (2, 0)
    assert onward.end_time_unix_nano >= onward.start_time_unix_nano


def test_otlp_refused_or_away_is_one_line(run, collector):
    collector.status = 401
    with pytest.raises(CannotError, match=r"/v1/metrics refused with 401 .* set OTEL_EXPORTER_OTLP_HEADERS"):
        send(f"otlp://127.0.0.1:{collector.server_address[1]}", run)
    assert len(collector.asked) == 1, "nothing is tried twice"
    with pytest.raises(CannotError, match="no answer") as error:
        send(f"otlp://127.0.0.1:{servers.free_port()}", run)
    assert "\n" not in str(error.value)
    with pytest.raises(UserError, match="the URL has the form otlp://HOST:4318"):
        send("otlp://127.0.0.1?x=y", run)


def test_what_a_collector_leaves_out_is_no_success(run, collector):
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service

    partial = service.ExportMetricsPartialSuccess(rejected_data_points=3, error_message="too many series")
    collector.content = service.ExportMetricsServiceResponse(partial_success=partial).SerializeToString()
    with pytest.raises(CannotError, match=r"/v1/metrics refused 3 of a message \(too many series\)"):
        send(f"otlp://127.0.0.1:{collector.server_address[1]}", run)


WHERE = ("http.request.method", "url.scheme", "server.address", "server.port", "trifecta.server")


@pytest.mark.parametrize(
    ("url", "address", "port"),
    [
        (None, "origin", None),
        ("https://www.example.org/x", "www.example.org", 443),
        ("https://[2001:db8::1]:8443/x", "2001:db8::1", 8443),
    ],
)
def test_a_port_is_told_where_the_run_knows_it(tmp_path, url, address, port):
    """Of a server elsewhere the study's URL has it; of the lab's own servers none is kept."""
    made = write_run(tmp_path / "run", SMALL)
    if url is not None:
        (made / "study.yaml").write_text(f"study: far\nworkload: {{kind: far, requests: 4, url: '{url}'}}\n")
    with views.connect(made) as opened:
        points = list(otlp_metrics.points(Source(made, opened, tmp_path)))
    told = {tuple(point.attributes.get(name) for name in WHERE) for point in points}
    assert told == {("GET", "https", address, port, "origin")}


def test_each_origin_of_a_browser_is_a_point(tmp_path):
    made = write_run(tmp_path / "run", SMALL)
    from trifecta.store.visits import FETCHES

    origins = ["https://a.lab:443", "http://a.lab:80", "https://b.lab:443", "https://::1:8443", "https://a.lab:443"]
    rows = [
        dict.fromkeys(FETCHES.names) | {"trial": "t00000", "visit": 0, "fetch": n, "url": f"{origin}/x",
                                        "origin": origin.partition("://")[2], "started_ns": 0, "done_ns": 9}
        for n, origin in enumerate(origins)
    ]  # fmt: skip
    (made / "fetches").mkdir()
    pq.write_table(pa.Table.from_pylist(rows, FETCHES.arrow()), made / "fetches" / "t00000.parquet")
    with views.connect(made) as opened:
        points = list(otlp_metrics.points(Source(made, opened, tmp_path)))
    told = {tuple(point.attributes[name] for name in WHERE[1:4]): point.requests for point in points}
    assert told == {("https", "a.lab", 443): 2, ("http", "a.lab", 80): 1, ("https", "b.lab", 443): 1,
                    ("https", "::1", 8443): 1}  # fmt: skip


def test_of_a_browser_the_requests_of_its_visits_count(tmp_path):
    made = write_run(tmp_path / "run", SMALL)
    from trifecta.store.visits import FETCHES

    rows = [
        dict.fromkeys(FETCHES.names) | {"trial": "t00000", "visit": 0, "fetch": n, "method": "GET", "protocol": "h3",
                                        "url": f"https://shop.lab:8443/{n}",
                                        "origin": "shop.lab:8443", "status": 200,
                                         "started_ns": 0, "done_ns": done, "from_cache": cached}
        for n, (done, cached) in enumerate([(5_000_000, False), (5_000_001, False), (1, True), (20_000_000_000, False)])
    ]  # fmt: skip
    (made / "fetches").mkdir()
    pq.write_table(pa.Table.from_pylist(rows, FETCHES.arrow()), made / "fetches" / "t00000.parquet")
    with views.connect(made) as opened:
        (point,) = otlp_metrics.points(Source(made, opened, tmp_path))
    assert point.requests == point.durations == 3
    who = {name: point.attributes.get(name) for name in WHERE}
    assert who == {"http.request.method": "GET", "url.scheme": "https", "server.address": "shop.lab",
                   "server.port": 8443, "trifecta.server": "origin"}  # fmt: skip
    assert point.counts[:2] == (1, 1)
    assert point.counts[-1] == 1
    assert sum(point.counts) == 3
