"""Studies of services whose program is Go's: hops and rows as of the engine's own, and what its switches do."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.lab.ended import command
from tests.workloads import drive
from tests.workloads.test_failures import MARK, marked, wait_until
from tests.workloads.test_services import ONE_BLOCK, OUT_OF_ORDER, ask
from tests.workloads.test_services import run as run_services
from trifecta.implementations.services.go_services import RECIPE, RECIPE_2019
from trifecta.lab.host_graph import addresses_of
from trifecta.store.run import RunDirectory

pytestmark = [pytest.mark.lab, pytest.mark.skipif(not RECIPE.installed(), reason=RECIPE.missing())]
of_2019 = pytest.mark.skipif(not RECIPE_2019.installed(), reason=RECIPE_2019.missing())
BOTH = pytest.mark.parametrize("program", ["go-services", pytest.param("go-services-2019", marks=of_2019)])
SMALL = ["path=normal", "hosts=2", "workload.requests=10", "workload.warmup=1 requests"]


def run(folder: Path, study: str, settings: list[str], **request: Any) -> list[dict[str, Any]]:
    """Run a bundled study with Go's program and changes; the rows of its trials."""
    return run_services(folder, study, ["server=go-services", *settings], **request)


def checks(row: dict[str, Any]) -> dict[str, Any]:
    return {one["check"]: one for one in json.loads(row["checks_json"])}


@BOTH
def test_a_chain_has_every_hop_of_every_cycle_in_order_on_one_clock(tmp_path: Path, program: str) -> None:
    folder = tmp_path / "run"
    rows = run(
        folder, "chain", [*SMALL, f"server={program}", "hosts=4", "connection=new,reused", "workload.requests=20"]
    )
    assert [row["errors"] for row in rows] == [0] * 8
    hops = ask(folder, "SELECT trial, caller, callee, count(*) FROM spans GROUP BY ALL ORDER BY ALL")
    assert [hop[1:] for hop in hops] == [("A", "B", 21), ("B", "C", 21), ("C", "D", 21)] * 8
    assert ask(folder, OUT_OF_ORDER) == [(0,)]
    secured = ask(
        folder,
        "SELECT trials.connection, count(secured_ns) FROM spans JOIN trials USING (trial)"
        " WHERE NOT warmup AND depth > 0 GROUP BY ALL ORDER BY ALL",
    )
    assert secured == [("new", 4 * 2 * 20), ("reused", 0)]
    for row in rows:
        by_name = json.loads(row["server_json"])["services"]
        arm = row["arm"].removesuffix("#aa")
        for name in "BCD":
            assert by_name[name]["protocols_spoken"] == {"h1": 0, "h2": 0, "h3": 0} | {arm: 21}
            assert by_name[name]["cpu_ns"] > 0
        assert json.loads(row["server_json"])["cycles"]["hops"] == {"3": 20}
        found = checks(row)
        assert found["protocol"]["status"] == "pass"
        assert found["same_work"]["status"] == "pass"
        assert found["service"]["status"] == "pass"
    spoken = ask(
        folder, "SELECT DISTINCT arm, samples.protocol, tls_version FROM samples JOIN trials USING (trial) ORDER BY ALL"
    )
    expected = [("h1", "h1"), ("h2", "h2"), ("h2#aa", "h2"), ("h3", "h3")]
    assert spoken == [(arm, protocol, "1.3") for arm, protocol in expected]


@pytest.mark.parametrize("methods", [("DELETE", "GET", "HEAD"), ("PATCH", "POST", "PUT")])
def test_every_method_goes_through_a_chain(tmp_path: Path, methods: tuple[str, ...]) -> None:
    settings = [*SMALL, "connection=reused", "hosts=1", "depth=3", "method=" + ",".join(methods)]
    if "GET" in methods:
        settings.append("request=0 B")
    rows = run(tmp_path / "run", "chain", settings)
    assert [row["errors"] for row in rows] == [0] * 4 * len(methods)
    hops = ask(
        tmp_path / "run",
        "SELECT DISTINCT factors_json ->> 'method' AS asked, caller, callee, method, status FROM spans "
        "JOIN trials USING (trial) ORDER BY ALL",
    )
    assert hops == [(method, *hop, method, 200) for method in methods for hop in (("A", "B"), ("B", "C"))]


@BOTH
def test_clients_of_a_fan_in_each_make_their_requests(tmp_path: Path, program: str) -> None:
    rows = run(
        tmp_path / "run", "fan-in", [f"server={program}", "connection=new,reused", "clients=20", "workload.requests=4"]
    )
    assert [(row["samples"], row["errors"]) for row in rows] == [(80, 0)] * 8
    counted = ask(
        tmp_path / "run",
        "SELECT trial, count(DISTINCT client), min(n), max(n), min(connections), max(connections) FROM (SELECT trial,"
        " client, count(*) AS n, count(DISTINCT connection) AS connections FROM samples GROUP BY ALL) GROUP BY trial",
    )
    assert {row[1:4] for row in counted} == {(20, 4, 4)}
    assert {row[4:] for row in counted} == {(1, 1), (4, 4)}


@BOTH
def test_clients_are_processes_of_their_own_on_one_host_or_two(tmp_path: Path, program: str) -> None:
    """What is kept is what one process would have left; the wire of the second host has the path, too."""
    folder = tmp_path / "run"
    settings = [
        f"server={program}", "paths={far: {rtt: 20 ms}}", "path=far", "hosts=2", "clients=5", "protocol=HTTP/2,HTTP/3",
        "connection=new,reused", "client_processes=one,each,3", "workload.requests=4", "workload.warmup=1 requests",
    ]  # fmt: skip
    rows = run(folder, "fan-in", settings)
    assert [(row["samples"], row["errors"], row["error"]) for row in rows] == [(20, 0, None)] * 3 * 2 * 3
    counted = ask(
        folder,
        "SELECT trial, count(DISTINCT client), max(client), count(DISTINCT request), max(request), count(*) FROM"
        " samples GROUP BY trial",
    )
    assert {row[1:] for row in counted} == {(5, 4, 25, 24, 25)}
    connections = ask(
        folder,
        "SELECT DISTINCT trials.connection, count(DISTINCT s.connection) OVER (PARTITION BY trial) FROM samples AS s"
        " JOIN trials USING (trial) ORDER BY ALL",
    )
    assert connections == [("new", 25), ("reused", 5)]
    own = ask(
        folder,
        "SELECT DISTINCT count(*) FROM samples JOIN trials USING (trial) WHERE NOT warmup AND"
        " factors_json ->> 'client_processes' != 'one' GROUP BY trial, samples.client",
    )
    assert own == [(4,)]
    assert ask(folder, "SELECT count(*) FROM spans AS p JOIN samples AS s USING (trial, request, client)") == [(450,)]
    near = ask(folder, "SELECT client, min(secured_ns - connect_start_ns) / 1e6 FROM samples GROUP BY client")
    assert len(near) == 5
    assert min(took for _, took in near) > 19
    for row in rows:
        processes = json.loads(row["factors_json"])["client_processes"]
        load, server = json.loads(row["load_json"]), json.loads(row["server_json"])
        assert load["clients"]["begun"] == 5
        assert load["clients"]["last_begun_ns"] - load["clients"]["first_begun_ns"] < 50_000_000
        assert load["connections_opened"] == (25 if row["connection"] == "new" else 5)
        assert set(json.loads(row["link_json"])["links"]) == {"host1-host2", *(["host3-host2"] * (processes == "3"))}
        assert server["services"]["A"]["host"] == ("host1 and host3" if processes == "3" else "host1")
        found = checks(row)
        assert {found[name]["status"] for name in ("protocol", "same_work", "service", "errors")} == {"pass"}
    memory = dict(
        ask(
            folder,
            "SELECT factors_json ->> 'client_processes', median(rss_bytes) FROM resources JOIN trials USING (trial)"
            " WHERE process = 'A' GROUP BY ALL",
        )
    )
    assert min(memory["each"], memory["3"]) > 2 * memory["one"]
    assert not list(folder.glob("s*/*.jsonl"))


def test_a_client_that_is_killed_fails_its_trial_by_name_and_no_other(tmp_path: Path) -> None:
    folder, mark = tmp_path / "run", uuid.uuid4().hex
    settings = [
        "server=go-services", "protocol=HTTP/2", "connection=new", "path=normal", "clients=4", "client_processes=each",
        "think_time=100 ms", "workload.requests=30",
    ]  # fmt: skip
    process = drive.start(folder, {MARK: mark}, study="fan-in", set=[*ONE_BLOCK, *settings])
    assert wait_until(lambda: _kill_a_client_at_work(mark), timeout_s=60)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    first, second = RunDirectory.open(folder).rows()
    assert "service A-2: was killed by signal 9" in first["error"]
    assert (first["valid"], first["samples"]) == (False, 0)
    assert (second["error"], second["samples"], second["errors"]) == (None, 120, 0)
    assert not [file for file in folder.glob("s*/*") if first["trial"] in file.name]


def _kill_a_client_at_work(mark: str) -> bool:
    """Kill the third of four clients; False while they are not at work yet.

    A client reads about 20 times to start and 7 times a request: its reads count its work on any machine, its CPU time
    does not.
    """
    clients = [one for one in marked(mark) if "load" in command(one) and one.io_counters().read_count > 60]
    if len(clients) < 4:
        return False
    sorted(clients, key=lambda one: one.pid)[2].kill()
    return True


def test_it_is_compared_with_the_engines_own(tmp_path: Path) -> None:
    settings = [*SMALL, "connection=reused", "protocol=HTTP/2", "compare=server", "server=services,go-services"]
    rows = run(tmp_path / "run", "chain", [*settings, "baseline=services"])
    assert sorted((row["arm"], row["errors"]) for row in rows) == [
        ("go-services", 0),
        ("services", 0),
        ("services#aa", 0),
    ]


def test_a_hop_that_is_not_there_fails_the_cycle_with_its_class_and_nobody_tries_again(tmp_path: Path) -> None:
    settings = [*SMALL, "connection=new", "depth=3", "protocol=HTTP/1.1,HTTP/2", "workload.warmup=0 requests"]
    rows = run(tmp_path / "run", "chain", settings, faults={"services": {"C": {"port": 9}}})
    assert [json.loads(row["error_classes_json"]) for row in rows] == [{"status": 10}] * 3
    found = ask(tmp_path / "run", "SELECT caller, callee, status, error, count(*) FROM spans GROUP BY ALL ORDER BY ALL")
    assert found == [("A", "B", 502, "status", 30), ("B", "C", None, "connect_refused", 30)]


SWITCHED = [*SMALL, "connection=new", "protocol=HTTP/2,HTTP/3", "depth=3"]


def test_tls_can_be_another_over_tcp_than_over_quic(tmp_path: Path) -> None:
    rows = run(tmp_path / "run", "chain", [*SWITCHED, "tls_version=1.2/1.3", "conformance=off"])
    spoken = ask(tmp_path / "run", "SELECT DISTINCT samples.protocol, tls_version FROM samples ORDER BY ALL")
    assert spoken == [("h2", "1.2"), ("h3", "1.3")]
    assert {row["errors"] for row in rows} == {0}
    assert "asks for TLS version 1.2 over TCP and 1.3 over QUIC" in checks(rows[0])["parity"]["evidence"]


def test_another_protocol_than_meant_is_spoken_at_every_hop_and_found(tmp_path: Path) -> None:
    rows = run(tmp_path / "run", "chain", [*SWITCHED, "alpn_mismatch=true"])
    for row in rows:
        meant, spoken = row["protocol"], {"h2": "h1"}.get(row["protocol"], row["protocol"])
        by_name = json.loads(row["server_json"])["services"]
        assert [by_name[name]["protocols_spoken"][spoken] for name in "BC"] == [11, 11]
        assert checks(row)["protocol"]["status"] == ("pass" if meant == spoken else "fail")


@pytest.mark.parametrize(
    ("switch", "said"),
    [
        ("unverified", "go-services does not verify the server's certificate"),
        ("connection_leak", "go-services does not close its connections over TCP"),
        ("retries", "go-services retries failed requests"),
    ],
)
def test_a_switch_that_is_on_is_warned_of(tmp_path: Path, switch: str, said: str) -> None:
    rows = run(tmp_path / "run", "chain", [*SWITCHED, f"{switch}=false,true"])
    for row in rows:
        on = json.loads(row["factors_json"])[switch]
        found = checks(row)["parity"]
        assert (said in found["evidence"]) == on
        assert found["status"] != "fail"
        assert row["errors"] == 0
    closed = [
        json.loads(row["load_json"])["tcp"] is not None
        for row in rows
        if row["protocol"] == "h2" and json.loads(row["factors_json"])[switch]
    ]
    assert set(closed) == {switch != "connection_leak"}


def test_a_certificate_for_another_name_is_refused_unless_nothing_is_verified(tmp_path: Path) -> None:
    faults = {"load": {"*": {"server_name": "nobody.lab", "address": addresses_of(1)[0]}}}
    settings = [*SWITCHED, "hosts=1", "unverified=false,true", "workload.warmup=0 requests"]
    rows = run(tmp_path / "run", "chain", settings, faults=faults)
    failed = {(json.loads(row["factors_json"])["unverified"], row["error_classes_json"]) for row in rows}
    assert {one for one, _ in failed} == {False, True}
    assert all(("tls:certificate" in classes) != unverified for unverified, classes in failed)


def test_an_answer_that_takes_longer_than_the_limit_fails_over_tcp_alone(tmp_path: Path) -> None:
    """B waits 120 ms for C's answer, three round trips of a new connection over TCP, and has 100 ms for its own."""
    far = ["paths={far: {rtt: 40 ms}}", "path=far", "hosts=3", "protocol=HTTP/1.1,HTTP/2,HTTP/3"]
    rows = run(tmp_path / "run", "chain", [*SWITCHED, *far, "write_timeout=none,100 ms", "workload.requests=4"])
    failed = {(json.loads(row["factors_json"])["write_timeout"], row["protocol"]): row["errors"] for row in rows}
    assert failed == {
        ("none", "h1"): 0, ("none", "h2"): 0, ("none", "h3"): 0,
        ("100 ms", "h1"): 4, ("100 ms", "h2"): 4, ("100 ms", "h3"): 0,
    }  # fmt: skip
    limited = [row for row in rows if json.loads(row["factors_json"])["write_timeout"] != "none"]
    assert {"cuts off responses over TCP" in checks(row)["parity"]["evidence"] for row in limited} == {True}


@pytest.mark.long
def test_retries_take_time_and_hide_the_failure(tmp_path: Path) -> None:
    """Nobody listens where C should: ten attempts of B, with 51.1 s between them, are more than a client waits."""
    settings = [*SWITCHED, "protocol=HTTP/2", "retries=true", "workload.requests=1", "workload.warmup=0 requests"]
    patience = ["workload.request_timeout=1 s", "workload.connect_timeout=1 s"]
    rows = run(tmp_path / "run", "chain", [*settings, *patience], faults={"load": {"*": {"port": 9}}}, grace_s=90)
    assert [json.loads(row["load_json"])["declared"]["retried"] for row in rows] == [9, 9]
    took = ask(tmp_path / "run", "SELECT min(connect_start_ns - started_ns) / 1e9 FROM samples")
    assert 51 < took[0][0] < 60


def test_a_client_thinks_between_its_requests_as_long_as_its_protocol_says(tmp_path: Path) -> None:
    rows = run(tmp_path / "run", "chain", [*SWITCHED, "think_time=10 ms/20 ms/40 ms"])
    assert {row["errors"] for row in rows} == {0}
    gaps = ask(
        tmp_path / "run",
        "SELECT protocol, min(gap) / 1e6 FROM (SELECT protocol, started_ns - lag(done_ns) OVER (PARTITION BY trial"
        " ORDER BY request) AS gap FROM samples) GROUP BY ALL ORDER BY ALL",
    )
    assert [protocol for protocol, _ in gaps] == ["h2", "h3"]
    assert 20 <= gaps[0][1] < 40 <= gaps[1][1] < 80


@BOTH
def test_names_can_be_asked_for_over_the_path_before_every_connection(tmp_path: Path, program: str) -> None:
    """A's name server is on its own host; B's question takes a round trip of its wire, C's one of a wire for that."""
    far = ["paths={far: {rtt: 20 ms}}", "path=far", "hosts=4", "connection=new", "protocol=HTTP/2,HTTP/3"]
    settings = [*far, f"server={program}", "names=local,path", "workload.requests=5", "workload.warmup=0 requests"]
    rows = run(tmp_path / "run", "chain", settings)
    assert {row["errors"] for row in rows} == {0}
    took = ask(
        tmp_path / "run",
        "SELECT caller, factors_json ->> 'names' AS names, count(*), min(arrived_ns - s.started_ns) / 1e6"
        " FROM spans AS s JOIN trials USING (trial) GROUP BY ALL ORDER BY ALL",
    )
    assert [(caller, names, count) for caller, names, count, _ in took] == [
        (caller, names, 15) for caller in "ABC" for names in ("local", "path")
    ]
    more = {caller: took[place + 1][3] - took[place][3] for place, (caller, *_) in enumerate(took) if place % 2 == 0}
    assert more["A"] < 10
    assert min(more["B"], more["C"]) > 15
    wires = {row["arm"]: set(json.loads(row["link_json"])["links"]) for row in rows if "names=path" in row["cell"]}
    assert {frozenset(one) for one in wires.values()} == {
        frozenset({"host1-host2", "host2-host3", "host3-host4", "host1-host3"})
    }
    said = "queries a name server over the path before every connection"
    assert all((said in checks(row)["parity"]["evidence"]) == ("names=path" in row["cell"]) for row in rows)


def test_a_name_that_is_not_there_fails_the_cycle_with_its_class(tmp_path: Path) -> None:
    faults = {"load": {"*": {"server_name": "nobody.lab", "address": addresses_of(1)[0]}}}
    settings = ["path=normal", "hosts=2", "connection=new", "protocol=HTTP/2,HTTP/3", "names=path", "unverified=true"]
    rows = run(
        tmp_path / "run", "chain", [*settings, "workload.requests=3", "workload.warmup=0 requests"], faults=faults
    )
    assert [json.loads(row["error_classes_json"]) for row in rows] == [{"client:name": 3}] * 3
    assert ask(tmp_path / "run", "SELECT count(*) FROM samples WHERE connect_start_ns IS NOT NULL") == [(0,)]


@of_2019
def test_http_3_of_2019_takes_a_round_trip_more_to_begin(tmp_path: Path) -> None:
    """Its server answers a client that has no token with a Retry (draft-ietf-quic-transport-22, 8.1.1)."""
    far = ["paths={far: {rtt: 40 ms}}", "path=far", "connection=new", "hosts=2", "depth=2", "protocol=HTTP/2,HTTP/3"]
    programs = ["server=go-services,go-services-2019", "workload.requests=4", "workload.warmup=0 requests"]
    run(tmp_path / "run", "chain", [*far, *programs])
    took = ask(
        tmp_path / "run",
        "SELECT server, samples.protocol, round(median(secured_ns - connect_start_ns) / 40e6)::INT FROM samples"
        " JOIN trials USING (trial) GROUP BY ALL ORDER BY ALL",
    )
    today, before = ("go-services", "go-services-2019")
    assert took == [(today, "h2", 2), (today, "h3", 1), (before, "h2", 2), (before, "h3", 2)]
