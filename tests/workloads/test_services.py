"""Studies of services, run for real and small: every hop is there, what fails is counted, and nothing is left."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.lab.ended import command
from tests.workloads import drive
from tests.workloads.test_failures import wait_until
from trifecta.contract.origin import RouteConfig
from trifecta.design import services
from trifecta.design.errors import CannotError
from trifecta.design.model import Cell, PathSpec, Trial
from trifecta.design.study import path
from trifecta.design.workloads.services import ChainWorkload, FanInWorkload, RegistrationWorkload
from trifecta.lab import containers
from trifecta.lab.certificates import Certificates
from trifecta.lab.containers import DockerState, Network, docker_state
from trifecta.lab.engine import find_engine
from trifecta.store.run import RunDirectory
from trifecta.store.views import connect
from trifecta.studies import load
from trifecta.workloads.services.configs import client_config, origin_config, pool_of, total_timeout_ns
from trifecta.workloads.services.supported import services_supported

pytestmark = pytest.mark.lab
ONE_BLOCK = ["budget=2 min", "blocks.at_least=1", "blocks.at_most=1"]
SHORT = ["workload.request_timeout=1 s", "workload.connect_timeout=1 s"]
# Hops whose times, and those of the hop that they led to, are not in the order in which they came about.
OUT_OF_ORDER = (
    "SELECT count(*) FROM spans AS s JOIN spans AS n ON n.trial = s.trial AND n.request = s.request"
    " AND n.depth = s.depth + 1 WHERE NOT (s.started_ns < s.arrived_ns AND s.arrived_ns <= n.started_ns"
    " AND n.returned_ns <= s.replied_ns AND s.replied_ns < s.returned_ns)"
)
CERTIFICATES = Certificates(Path("ca.pem"), Path("server.pem"), Path("server.key"))


def run(folder: Path, study: str, settings: list[str], **request: Any) -> list[dict[str, Any]]:
    """Run a bundled study with changes; the rows of its trials."""
    code, _, _, errors = drive.finish(folder, study=study, set=[*ONE_BLOCK, *settings], **request)
    assert code == 0, errors
    found = RunDirectory.open(folder).rows()
    assert found
    return found


def ask(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    return connect(folder).execute(sql).fetchall()


def test_a_chain_has_every_hop_of_every_cycle_in_order_on_one_clock(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    settings = ["path=normal", "connection=new,reused", "workload.requests=20", "workload.warmup=2 requests"]
    rows = run(folder, "chain", settings)
    assert [row["errors"] for row in rows] == [0] * 8
    hops = ask(folder, "SELECT trial, caller, callee, count(*) FROM spans GROUP BY ALL ORDER BY ALL")
    assert [hop[1:] for hop in hops] == [("A", "B", 22), ("B", "C", 22), ("C", "D", 22)] * 8
    assert ask(folder, OUT_OF_ORDER) == [(0,)]
    spoken = {row["arm"]: json.loads(row["server_json"])["services"] for row in rows}
    for arm, by_name in spoken.items():
        for name in "BCD":
            assert by_name[name]["protocols_spoken"][arm.removesuffix("#aa")] == 22
            assert by_name[name]["host"] == f"host{'ABCD'.index(name) + 1}"
            assert by_name[name]["cpu_ns"] > 0
    assert {json.loads(row["server_json"])["cycles"]["hops"].get("3") for row in rows} == {20}


def test_the_path_lies_on_every_wire_or_on_one(tmp_path: Path) -> None:
    far = ["paths={near-far: {delay: 10 ms}}", "path=near-far", "connection=reused", "workload.requests=4"]
    settings = [*far, "workload.warmup=1 requests", "protocol=HTTP/2", "impaired=all,B-C"]
    rows = run(tmp_path / "run", "chain", settings)
    took = {json.loads(row["factors_json"])["impaired"]: row["latency_p50_ns"] for row in rows}
    assert took["all"] >= 60_000_000
    assert 20_000_000 <= took["B-C"] < 60_000_000
    links = {json.loads(row["factors_json"])["impaired"]: set(json.loads(row["link_json"])["links"]) for row in rows}
    assert links == {"all": {"host1-host2", "host2-host3", "host3-host4"}, "B-C": {"host2-host3"}}
    slow = ask(
        tmp_path / "run",
        "SELECT caller FROM spans JOIN trials USING (trial) WHERE factors_json LIKE '%B-C%'"
        " GROUP BY caller HAVING min(arrived_ns - spans.started_ns) > 9000000",
    )
    assert {caller for (caller,) in slow} == {"B"}


@pytest.mark.parametrize("methods", [("DELETE", "GET", "HEAD"), ("PATCH", "POST", "PUT")])
def test_every_method_goes_through_a_chain(tmp_path: Path, methods: tuple[str, ...]) -> None:
    settings = ["path=normal", "connection=reused", "hosts=1", "depth=3", "method=" + ",".join(methods)]
    if "GET" in methods:
        settings.append("request=0 B")
    rows = run(tmp_path / "run", "chain", [*settings, "workload.requests=5", "workload.warmup=0 requests"])
    assert [row["errors"] for row in rows] == [0] * 4 * len(methods)
    hops = ask(
        tmp_path / "run",
        "SELECT DISTINCT factors_json ->> 'method' AS asked, caller, callee, method, status FROM spans "
        "JOIN trials USING (trial) ORDER BY ALL",
    )
    assert hops == [(method, *hop, method, 200) for method in methods for hop in (("A", "B"), ("B", "C"))]


def test_protocols_can_be_mixed_along_a_chain(tmp_path: Path) -> None:
    settings = ["path=normal", "connection=reused", "hosts=1", "protocol=HTTP/3", "inside=HTTP/1.1+HTTP/2"]
    rows = run(tmp_path / "run", "chain", [*settings, "baseline=HTTP/3", "workload.requests=10"])
    by_name = json.loads(rows[0]["server_json"])["services"]
    spoken = {name: [p for p, count in by_name[name]["protocols_spoken"].items() if count] for name in "BCD"}
    assert spoken == {"B": ["h3"], "C": ["h1"], "D": ["h2"]}


def test_clients_of_a_fan_in_each_make_their_requests(tmp_path: Path) -> None:
    settings = ["connection=new,reused", "clients=50", "workload.requests=4"]
    rows = run(tmp_path / "run", "fan-in", settings)
    assert [(row["samples"], row["errors"]) for row in rows] == [(200, 0)] * 8
    counted = ask(
        tmp_path / "run",
        "SELECT trial, count(DISTINCT client), min(n), max(n) FROM"
        " (SELECT trial, client, count(*) AS n FROM samples GROUP BY ALL) GROUP BY trial",
    )
    assert {row[1:] for row in counted} == {(50, 4, 4)}


@pytest.mark.parametrize(
    ("study", "field", "octets"),
    [("fan-in", "response", "bytes_in"), ("chain", "request", "bytes_out")],
)
def test_a_payload_can_be_another_over_each_protocol(tmp_path: Path, study: str, field: str, octets: str) -> None:
    settings = ["path=normal", "connection=new", "hosts=1", f"{field}=128 B/1 kB/10 kB", "workload.requests=3"]
    if study == "fan-in":
        settings.append("clients=2")
    rows = run(tmp_path / "run", study, [*settings, "workload.warmup=0 requests"])
    found = ask(
        tmp_path / "run", f"SELECT protocol, min({octets}), max({octets}) FROM samples GROUP BY ALL ORDER BY ALL"
    )
    for (protocol, least, most), size in zip(found, (128, 1_000, 10_000), strict=True):
        assert size <= least <= most < size + 700, protocol  # around it is the message
    (failed,) = {one["evidence"] for row in rows for one in _failed(row) if one["check"] == "same_work"}
    assert f"the study asks for a {field} of 128 B over HTTP/1.1, 1 kB over HTTP/2, 10 kB over HTTP/3" in failed
    assert {row["valid"] for row in rows} == {False}


def _failed(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in json.loads(row["checks_json"]) if one["status"] == "fail"]


def test_a_registration_makes_all_of_its_calls(tmp_path: Path) -> None:
    settings = ["hosts=2", "workload.requests=10", "workload.warmup=2 requests", "workload.rate=20/s"]
    rows = run(tmp_path / "run", "sba-registration", settings)
    assert [row["errors"] for row in rows] == [0] * 3
    graph = RegistrationWorkload().graph
    expected = [(caller, call.to, call.method, call.path, depth) for caller, call, depth in graph.walk()]
    seen = ask(
        tmp_path / "run",
        "SELECT DISTINCT ordinal, caller, callee, method, path, depth FROM spans ORDER BY ordinal, caller",
    )
    assert [row[1:] for row in seen] == expected


def test_a_hop_that_hangs_is_counted_with_its_class_and_nobody_tries_again(tmp_path: Path) -> None:
    settings = ["path=normal", "connection=new", "hosts=1", "workload.requests=2", "workload.warmup=0 requests"]
    faults = {"services": {"D": {"faults": {"stall": True}}}}
    rows = run(tmp_path / "run", "chain", [*settings, *SHORT, "protocol=HTTP/2"], faults=faults)
    assert {row["success_rate"] for row in rows} == {0.0}
    failures = [json.loads(row["server_json"])["cycles"]["failures"] for row in rows]
    assert all(set(failure["C-D"]) == {"timeout"} for failure in failures)
    asked = ask(tmp_path / "run", "SELECT trial, count(*) FROM spans WHERE callee = 'D' GROUP BY trial")
    assert {count for _, count in asked} == {2}


def test_a_service_that_dies_fails_its_trial_by_name_and_the_next_has_new_ones(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    settings = [*ONE_BLOCK, *SHORT, "path=normal", "connection=reused", "hosts=1", "protocol=HTTP/2", "loop=open"]
    settings += ["rate=50/s", "in_flight=100", "workload.requests=100", "workload.warmup=0 requests"]
    process = drive.start(folder, study="chain", set=settings)
    killed = _kill_a_service(process, folder)
    out, errors = process.communicate(timeout=120)
    assert process.returncode in (0, 1), errors + out
    rows = RunDirectory.open(folder).rows()
    assert len(rows) == 2
    hit = [row for row in rows if row["error"]]
    assert len(hit) == 1
    assert "service" in hit[0]["error"]
    assert "died: was killed by signal 9" in hit[0]["error"]
    assert hit[0]["success_rate"] < 1
    assert not hit[0]["valid"]
    facts = json.loads(hit[0]["server_json"])["services"]
    assert [name for name, one in facts.items() if one.get("running") is False] == [killed]
    assert [row["success_rate"] for row in rows if not row["error"]] == [1.0]


def _kill_a_service(process: Any, folder: Path) -> str:
    """Kill a service in the middle of a trial; which it was is in its configuration's log."""
    for line in process.stdout:
        if json.loads(line)[0] == "trial_started":
            break
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        own = psutil.Process(process.pid).children(recursive=True)
        origins = [p for p in own if "origin" in command(p)]
        if len(origins) == 3 and (folder / "samples").exists() and any((folder / "spans").glob(".tmp-*")):
            origins.sort(key=lambda p: p.pid)
            origins[0].kill()
            return "D"  # the last of the chain is started first
        time.sleep(0.01)
    raise AssertionError("the services did not come up")


def test_messages_of_the_user_are_sent_in_turn(tmp_path: Path) -> None:
    folder = tmp_path / "messages"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.json").write_text(json.dumps({"order": number, "lines": ["x" * 100] * number}))
    settings = ["path=normal", "connection=reused", "hosts=1", "workload.requests=6", f"workload.messages={folder}"]
    rows = run(tmp_path / "run", "chain", [*settings, "workload.warmup=0 requests"])
    assert [row["errors"] for row in rows] == [0] * 4
    sizes = ask(tmp_path / "run", "SELECT count(DISTINCT bytes_out) FROM samples GROUP BY trial")
    assert {count for (count,) in sizes} == {3}


def test_nothing_of_a_run_is_left(tmp_path: Path) -> None:
    mark = {"TRIFECTA_TEST_MARK": str(tmp_path)}  # inherited by all that the run starts
    run(tmp_path / "run", "chain", ["path=normal", "connection=reused", "workload.requests=5"], environment=mark)
    assert wait_until(lambda: not [one for one in psutil.process_iter() if _marked(one, str(tmp_path))])


def _marked(process: psutil.Process, mark: str) -> bool:
    with suppress(psutil.Error):
        return process.environ().get("TRIFECTA_TEST_MARK") == mark
    return False


def test_a_service_knows_where_to_call_and_in_what() -> None:
    workload = ChainWorkload(depth=3, in_flight=7)
    graph = workload.graph
    protocols = services.protocols_of(graph, "h3", "h1")
    config = origin_config(
        graph, "B", workload, protocols, connection="reused", address="10.78.0.2", certificates=CERTIFICATES
    )
    assert config.port == 8444
    assert config.relay.routes["/chain"].calls[0].to == "C"
    assert config.relay.services["C"].protocol == "h1"
    assert config.relay.services["C"].name == "c.lab"
    last = origin_config(
        graph, "C", workload, protocols, connection="reused", address="10.78.0.2", certificates=CERTIFICATES
    )
    assert last.relay.services == {}
    assert last.relay.routes == {"/chain": RouteConfig()}


def test_a_pool_has_room_for_every_cycle_in_flight() -> None:
    for in_flight in (1, 50, 1000):
        for protocol in ("h1", "h2", "h3"):
            connections, streams = pool_of(ChainWorkload(in_flight=in_flight), protocol, "reused")
            assert connections * streams >= min(in_flight, 400)


def test_the_client_counts_for_each_client_of_a_fan_in() -> None:
    workload = FanInWorkload(method="GET", clients=5, connections=5, streams=1, requests=20)
    trial = Trial("t00001", 0, Cell("c", {"connection": "new"}), "h2", 0, 1)
    graph = workload.graph
    config = client_config(
        trial,
        graph,
        workload,
        PathSpec("clean"),
        certificates=CERTIFICATES,
        samples_file=Path("s"),
        spans_file=Path("p"),
        messages=None,
    )
    assert (config.requests, config.requests_per_client, config.connections) == (0, 20, 5)
    assert config.message is None
    assert config.server_name == "b.lab"


def test_a_trial_of_a_long_chain_is_given_up_only_after_its_cycles_had_time() -> None:
    lag = PathSpec("lag", rtt_ns=100_000_000, loss=0.01, missing=0.02, forward=({"kind": "loss"},))
    workload = ChainWorkload(depth=10, requests=100)
    graph = workload.graph
    # Nine hops, three round trips each to set up and ask over TCP and TLS.
    assert total_timeout_ns(graph, workload, lag, 100) > 100 * 9 * 3 * lag.rtt_ns
    narrow = path("narrow", rtt="10 ms", rate="1 Mbit/s").spec()
    long = ChainWorkload(depth=3, hosts=3, requests=100, response_bytes=100_000)
    # Two wires, each of which carries the answer.
    assert total_timeout_ns(long.graph, long, narrow, 100) > 2 * 100 * 100_000 * 8 * 1000


@pytest.mark.parametrize(
    ("hosts", "network"), [(1, "bridge"), pytest.param(2, "bridge", marks=pytest.mark.long), (2, "host")]
)
def test_services_run_in_containers_as_they_do_natively(tmp_path: Path, hosts: int, network: Network) -> None:
    state = docker_state(network)
    if not state.usable:
        pytest.skip(state.reason)
    settings = ["path=normal", "connection=new,reused", f"hosts={hosts}", "depth=3", f"place=docker-{network}"]
    settings.append("protocol=h2,h3")
    rows = run(tmp_path / "run", "chain", [*settings, "workload.requests=10", "workload.warmup=2 requests"])
    assert [(row["errors"], row["error"]) for row in rows] == [(0, None)] * 6
    hops = ask(tmp_path / "run", "SELECT trial, caller, callee, count(*) FROM spans GROUP BY ALL ORDER BY ALL")
    assert [hop[1:] for hop in hops] == [("A", "B", 12), ("B", "C", 12)] * 6
    memory = ask(
        tmp_path / "run",
        "SELECT process, min(cgroup_memory_bytes) FROM resources WHERE process IN ('A', 'B', 'C') GROUP BY 1",
    )
    assert len(memory) == 3
    assert all(octets > 0 for _, octets in memory)


def test_a_place_that_is_not_there_is_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = DockerState(None, "dockerd is not installed", "sudo apt-get install -y docker.io")
    monkeypatch.setattr(containers, "docker_state", lambda network: missing)
    both = load("chain", ["place=native,docker-bridge", "path=normal", "budget=none"])
    here = services_supported(both, find_engine())
    assert {cell.levels["place"] for cell in here.cells} == {"native"}
    reason = "dockerd is not installed; sudo apt-get install -y docker.io"
    assert here.left_out == [{"factor": "place", "level": "docker-bridge", "reason": reason}]
    with pytest.raises(CannotError, match="no place of the study can be used here: dockerd is not installed"):
        services_supported(load("chain", ["place=docker-bridge", "path=normal", "budget=none"]), find_engine())
