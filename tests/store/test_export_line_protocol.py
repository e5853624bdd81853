"""InfluxDB's line protocol: a point a request and reading, named as Telegraf's; and a real server that holds it."""

from __future__ import annotations

import json
import re
import urllib.parse
import urllib.request

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.report.synthetic import Shape, write_run
from tests.store import servers
from trifecta.design.errors import CannotError, UserError
from trifecta.store import schema, views
from trifecta.store.exports import export, influxdb, line_protocol, send

SMALL = Shape(blocks=4, samples_per_trial=40, paths=("rough",), connections=("new",), servers=("origin",))
POINT = re.compile(rb'([a-z_]+)((?:,[a-z_]+=(?:\\.|[^\\, =])+)+) ((?:[a-z0-9_]+=(?:"[^"]*"|[^", ]+),?)+) (\d{19})')


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    made = write_run(tmp_path_factory.mktemp("made") / "run", SMALL)
    trial = "t00000"
    with views.connect(made) as opened:
        (began,) = opened.execute("SELECT started_ns FROM trials WHERE trial = 't00000'").fetchone()
    rows = [
        {"trial": trial, "time_ns": began + n * 100_000_000, "process": process, "cpu_ns": cpu, "rss_bytes": rss,
         "threads": 2, "received_bytes": octets, "received_packets": 1, "sent_bytes": 5, "sent_packets": 1}
        for n in range(3)
        for process, cpu, rss, octets in (("client", n * 50_000_000, 4096, None), ("host host1", None, None, n))
    ]  # fmt: skip
    full = [dict.fromkeys(schema.RESOURCES.names) | row for row in rows]
    pq.write_table(pa.Table.from_pylist(full, schema.RESOURCES.arrow()), made / "resources" / f"{trial}.parquet")
    return made


@pytest.fixture(scope="module")
def points(run, tmp_path_factory):
    (path,) = export("lines", run, tmp_path_factory.mktemp("lines") / "out")
    found = [POINT.fullmatch(line) for line in path.read_bytes().splitlines()]
    assert all(found), [line for line in path.read_bytes().splitlines() if not POINT.fullmatch(line)][:1]
    return [match.groups() for match in found]


def test_every_request_is_a_point_of_its_own(run, points):
    with views.connect(run) as opened:
        (expected,) = opened.execute("SELECT count(*) FROM samples").fetchone()
    of_requests = [(tags, time) for name, tags, _, time in points if name == b"http_response"]
    assert len(of_requests) == len(set(of_requests)) == expected


def test_tags_stand_by_name_as_influxdb_keeps_them(points):
    for _, tags, _, _ in points:
        names = re.findall(rb",([a-z_]+)=", tags)
        assert names == sorted(names)


@pytest.mark.parametrize(
    ("host", "packed"),
    [
        ("127.0.0.1", False),
        ("127.1.2.3", False),
        ("[::1]", False),
        ("localhost", False),
        ("db.lab", True),
        ("10.0.0.1", True),
    ],
)
def test_points_are_packed_for_a_network_only(host, packed):
    assert influxdb.of_url(f"influxdb://{host}/measured").poster.packed is packed


def test_requests_of_one_moment_are_told_apart(tmp_path):
    made = write_run(tmp_path / "run", SMALL)
    path = made / "samples" / "t00000.parquet"
    table = pq.read_table(path)
    began = pa.array([table["started_ns"][0].as_py()] * len(table), pa.int64())
    pq.write_table(table.set_column(table.schema.get_field_index("started_ns"), "started_ns", began), path)
    (written,) = export("lines", made, tmp_path / "out")
    of_trial = [line.split(b" ") for line in written.read_bytes().splitlines() if b",trial=t00000" in line]
    of_requests = {(one[0], one[-1]) for one in of_trial if one[0].startswith(b"http_response")}
    assert len(of_requests) == len(table)


def test_a_point_says_what_the_sample_does(run, points):
    with views.connect(run) as opened:
        rows = opened.execute(
            "SELECT s.latency_ns, s.error, epoch_ms(rtrim(wall_started_utc, 'Z')::TIMESTAMP) * 1000000 "
            "+ s.started_ns - t.started_ns FROM samples s JOIN trials t USING (trial) WHERE s.trial = 't00001'"
        ).fetchall()
    expected = sorted(((str(time), latency, error) for latency, error, time in rows), key=str)
    told = []
    for name, tags, fields, time in points:
        if name == b"http_response" and b",trial=t00001" in tags:
            latency = re.search(rb"latency_ns=(\d+)i", fields)
            error = re.search(rb'error="([^"]*)"', fields)
            assert (b",result=success," in tags) == (error is None)
            assert b",cell=path\\=rough\\,connection\\=new\\,server\\=origin," in tags
            told.append((time.decode(), int(latency[1]) if latency else None, error[1].decode() if error else None))
    assert sorted(told, key=str) == expected


# The numbers are Telegraf's (plugins/inputs/http_response, setResult).
@pytest.mark.parametrize(
    ("error", "status", "result", "code"),
    [
        (None, 200, "success", 0), ("content", 200, "response_string_mismatch", 1),
        ("length", 200, "response_string_mismatch", 1), ("closed", 200, "body_read_error", 2),
        ("closed", None, "connection_failed", 3),
        ("connect_refused", None, "connection_failed", 3), ("tls:alpn", None, "connection_failed", 3),
        ("timeout", 200, "timeout", 4), ("connect_timeout", None, "timeout", 4), ("quic:timeout", None, "timeout", 4),
        ("client:name", None, "dns_error", 5), ("status", 404, "response_status_code_mismatch", 6),
    ],
)  # fmt: skip
def test_how_a_request_ended_is_said_as_telegraf_does(tmp_path, error, status, result, code):
    made = write_run(tmp_path / "run", SMALL)
    path = made / "samples" / "t00000.parquet"
    row = pq.read_table(path).to_pylist()[0] | {"error": error, "status": status}
    pq.write_table(pa.Table.from_pylist([row], schema.SAMPLES.arrow()), path)
    (written,) = export("lines", made, tmp_path / "out")
    (line,) = [line for line in written.read_text().splitlines() if re.match("http_response,.*,trial=t00000", line)]
    assert re.search(f",method=GET,.*,protocol={row['protocol']},result={result},", line)
    assert f" request={row['request']}i,result_code={code}i," in line
    assert (f',error="{error}"' in line) == (error is not None)


@pytest.mark.parametrize(
    ("text", "levels", "method"),
    [
        ("study: one\nworkload: {kind: requests, requests: 9}", {"method": "PUT"}, "PUT"),
        ("study: one\nworkload: {kind: requests, requests: 9, method: HEAD}", {}, "HEAD"),
        ("study: one\nworkload: {kind: sba-registration, requests: 9}", {}, "POST"),
        ("study: one\nworkload: {kind: one of tomorrow}", {}, None),
    ],
)
def test_the_method_is_that_of_the_trial(tmp_path, text, levels, method):
    made = write_run(tmp_path / "run", SMALL)
    (made / "study.yaml").write_text(text)
    path = made / "trials" / "t00000.parquet"
    row = pq.read_table(path).to_pylist()[0]
    row["factors_json"] = json.dumps(json.loads(row["factors_json"]) | levels)
    pq.write_table(pa.Table.from_pylist([row], schema.TRIALS.arrow()), path)
    (written,) = export("lines", made, tmp_path / "out")
    told = [line for line in written.read_text().splitlines() if re.match("http_response,.*,trial=t00000", line)]
    assert told
    assert {match[1] if (match := re.search(",method=([A-Z]+),", line)) else None for line in told} == {method}


def test_readings_have_the_names_of_telegraf(points):
    programs = [(tags, fields) for name, tags, fields, _ in points if name == b"procstat"]
    assert len(programs) == 3
    assert all(b"process_name=client" in tags and b"memory_rss=4096i" in fields for tags, fields in programs)
    usage = [float(re.search(rb"cpu_usage=([0-9.]+)", fields)[1]) for _, fields in programs if b"cpu_usage" in fields]
    assert usage == [50.0, 50.0]
    devices = sorted(fields for name, _, fields, _ in points if name == b"net")
    assert [re.search(rb"bytes_recv=(\d)i", fields)[1] for fields in devices] == [b"0", b"1", b"2"]


def _tags(**values: str) -> dict[str, str]:
    return line_protocol._tags({name: line_protocol._escaped(value) for name, value in values.items()})


def test_special_characters_are_escaped():
    with duckdb.connect() as made:
        tags = _tags(then="'c'", tag="'a\\b\\'")
        line = line_protocol._line("m", tags, ["'n=1i'"], "5")
        assert made.execute(f"SELECT {line}").fetchone() == ("m,tag=a\\b,then=c n=1i 5",)
        value = "'a,b=c d\n\"e'"
        fields = [line_protocol._text("f", value), line_protocol._integer_field("n", "1")]
        line = line_protocol._line("m", _tags(tag=value, none="''"), fields, "5")
        assert made.execute(f"SELECT {line}").fetchone() == ('m,tag=a\\,b\\=c\\ d\\ "e f="a,b=c d\n\\"e",n=1i 5',)


@pytest.fixture
def server():
    with servers.recording(204) as one:
        yield one


def test_both_interfaces_are_spoken(run, points, server, monkeypatch):
    port = server.server_address[1]
    monkeypatch.setenv("INFLUX_USERNAME", "me")
    monkeypatch.setenv("INFLUX_PASSWORD", "hidden")
    monkeypatch.setenv("INFLUX_TOKEN", "token")
    (told,) = send(f"influxdb://127.0.0.1:{port}/measured", run)
    assert f"{len(points)} points" in told
    assert sum(body.count(b"\n") for _, _, body in server.asked) == len(points)
    asked = {(path, header["authorization"]) for path, header, _ in server.asked}
    assert asked == {("/write?db=measured&precision=ns", "Basic bWU6aGlkZGVu")}
    server.asked.clear()
    send(f"influxdb://127.0.0.1:{port}/lab/measured", run)
    path, header, _ = server.asked[0]
    assert (path, header["authorization"]) == ("/api/v2/write?org=lab&bucket=measured&precision=ns", "Token token")


def test_a_server_that_refuses_or_is_away_is_one_line_without_the_token(run, server, monkeypatch):
    port = server.server_address[1]
    monkeypatch.setenv("INFLUX_TOKEN", "very-hidden")
    server.status = 401
    server.content = json.dumps({"message": "unauthorized: very-hidden"}).encode()
    with pytest.raises(CannotError, match=r"refused with 401 \(unauthorized: \.\.\.\)") as error:
        send(f"influxdb://127.0.0.1:{port}/lab/measured", run)
    assert "\n" not in str(error.value)
    with pytest.raises(CannotError, match="no answer"):
        send(f"influxdb://127.0.0.1:{servers.free_port()}/measured", run)
    monkeypatch.delenv("INFLUX_TOKEN")
    with pytest.raises(UserError, match="INFLUX_TOKEN is not set"):
        send(f"influxdb://127.0.0.1:{port}/lab/measured", run)


def test_a_real_influxdb_holds_each_point_once(run, points, tmp_path):
    with servers.influxdb(tmp_path) as port:
        place = f"influxdb://127.0.0.1:{port}/measured"
        with pytest.raises(CannotError, match="make the database"):
            send(place, run)

        def ask(query):
            form = urllib.parse.urlencode({"q": query, "db": "measured"}).encode()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/query", form) as answer:
                return json.load(answer)["results"][0]

        ask("CREATE DATABASE measured")
        for _ in range(2):
            send(place, run)
        (series,) = ask("SELECT count(request) FROM http_response")["series"]
        assert series["values"][0][1] == sum(name == b"http_response" for name, *_ in points)
        (series,) = ask("SELECT count(memory_rss) FROM procstat WHERE process_name = 'client'")["series"]
        assert series["values"][0][1] == 3
