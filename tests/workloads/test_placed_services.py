"""Services on hosts: what each is asked, what cannot be there, and whose clock a time is of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from trifecta.contract.common import EngineVersion
from trifecta.design import services
from trifecta.design.errors import CannotError
from trifecta.design.model import Machine, PathSpec, ServicesWorkload, Study
from trifecta.design.plan import block_trials, cells, treatments
from trifecta.design.study_file import parse_study
from trifecta.design.workloads.services import ChainWorkload
from trifecta.lab.certificates import Certificates
from trifecta.lab.machines import ConnectedMachine
from trifecta.store import parquet, schema
from trifecta.store.run import RunDirectory
from trifecta.workloads.executors import executor_of
from trifecta.workloads.hosts import services_executor, services_supported
from trifecta.workloads.hosts.services_configs import name_hosts, placed_client, placed_origin
from trifecta.workloads.hosts.services_session import PlacedSession
from trifecta.workloads.hosts.services_supported import placed_services_supported
from trifecta.workloads.services.configs import client_config, origin_config
from trifecta.workloads.session import SessionContext

FILES = Certificates(Path("ca.pem"), Path("own.pem"), Path("own.key"))
ADDRESSES = {"B": "192.0.2.2", "C": "192.0.2.3", "D": "2001:db8::4"}


def placed(factors: str = "", more: str = "") -> Study:
    text = f"""
    study: mine
    workload: {{kind: chain, depth: 3, requests: 20{more}}}
    factors: {{connection: [new]{factors}}}
    hosts: {{client: here, B: "ssh://b", C: "ssh://c"}}
    """
    return parse_study(text, "mine.yaml")


@pytest.fixture
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an engine, and without what speaks SSH."""
    version = EngineVersion(
        engine="1.2.3",
        rustls=None,
        quinn_proto=None,
        aws_lc_rs=None,
        parquet=None,
        architecture="",
        quic_adaptations=[],
    )
    monkeypatch.setattr(services_supported, "engine_versions", lambda _: version)
    monkeypatch.setattr(services_supported.extras, "load", lambda _: None)


def test_a_service_calls_the_next_at_its_address_and_by_its_name() -> None:
    workload = ChainWorkload(depth=4, requests=9)
    protocols = services.protocols_of(workload.graph, "h2", "same")
    given = origin_config(
        workload.graph, "B", workload, protocols, connection="new", address="192.0.2.2", certificates=FILES
    )
    relay = placed_origin(given, ADDRESSES).relay
    assert relay is not None
    assert [(one.name, one.address) for one in relay.services.values()] == [("c.lab", "192.0.2.3")]
    last = origin_config(
        workload.graph, "D", workload, protocols, connection="new", address="2001:db8::4", certificates=FILES
    )
    assert placed_origin(last, ADDRESSES) == last, "who calls nobody needs no address"


def test_the_client_calls_an_address_and_has_patience_with_a_network_that_nobody_knows() -> None:
    study = placed()
    workload = study.workload
    assert isinstance(workload, ServicesWorkload)
    trial = block_trials(study, cells(study)[0], 0, 0)[0]
    given = client_config(
        trial,
        workload.graph,
        workload,
        PathSpec("direct"),
        certificates=FILES,
        samples_file=Path("samples"),
        spans_file=Path("spans"),
        messages=None,
    )
    told = placed_client(given, workload.graph, workload, ADDRESSES["B"])
    assert (given.address, told.address, told.server_name, told.ip) == (None, "192.0.2.2", "b.lab", None)
    # 20 cycles of 2 calls, each of which may lose a packet, and their content at 1 Mbit/s.
    content_ns = (20 + workload.warmup_requests) * 2 * 128 * 8 * 1_000
    assert told.total_timeout_ns - given.total_timeout_ns == 20 * 2 * 400_000_000 + content_ns
    by_time = replace(workload, requests=0, duration_ns=10**9)
    assert placed_client(given, workload.graph, by_time, ADDRESSES["B"]).total_timeout_ns == given.total_timeout_ns


def test_hops_are_told_whose_clock_their_times_are_of(tmp_path: Path) -> None:
    file = tmp_path / "spans.parquet"
    row = {"trial": "t00000", "ordinal": 0, "caller": "A", "callee": "B", "started_ns": 5, "arrived_ns": 3}
    parquet.write([row, row | {"ordinal": 1, "caller": "B", "callee": "C"}], schema.SPANS, file)
    name_hosts(file, {"A": "here", "B": "ssh://b", "C": "ssh://b"})
    found = parquet.read(file)
    assert [(one["caller_host"], one["callee_host"]) for one in found] == [("here", "ssh://b"), ("ssh://b", "ssh://b")]
    assert [(one["caller"], one["started_ns"], one["arrived_ns"]) for one in found] == [("A", 5, 3), ("B", 5, 3)]
    assert list(found[0]) == schema.SPANS_OF_HOSTS.names


def test_a_study_of_services_with_hosts_is_run_by_them() -> None:
    assert executor_of(placed()) is services_executor.EXECUTOR


def test_what_no_host_can_have_is_left_out_with_the_reason(anywhere: None) -> None:
    study = placed(", server: [services, go-services], place: [native, docker-host], ip: [IPv4, IPv6]")
    found = placed_services_supported(study, Path("engine"), {"go-services": None})  # type: ignore[dict-item]
    assert found.servers == {"services": {"version": "1.2.3", "source": "part of Trifecta (engine/crates/origin)"}}
    said = {one["factor"]: one["reason"] for one in found.left_out}
    assert said["server"] == "only the engine's own programs are brought to a host; use server: services"
    assert said["place"] == "'place' is made by a lab on one machine, and hosts are as they are; leave it out"
    assert {cell.levels["server"] for cell in found.cells} == {"services"}
    assert {cell.levels["place"] for cell in found.cells} == {"native"}


def test_a_study_of_which_nothing_is_left_says_why(anywhere: None) -> None:
    with pytest.raises(CannotError, match="no cell of the study runs on its hosts: 'keylog' is made by a lab"):
        placed_services_supported(placed(more=", keylog: true"), Path("engine"), {})


class Standing:
    """A machine as a session sees it."""

    def __init__(self, at: str, address: str, peer: str) -> None:
        self.machine, self.address, self.peer = Machine(at), address, peer
        self.lost: str | None = None


def session_of(study: Study, folder: Path) -> PlacedSession:
    run = cast(RunDirectory, SimpleNamespace(path=folder))
    session = PlacedSession(SessionContext(Path("engine"), run, study, lambda: False))
    for number, at in enumerate(dict.fromkeys(machine.at for machine in study.hosts.values()), 1):
        here = at == "here"
        far = Standing(at, "" if here else f"192.0.2.{number}", "" if here else "192.0.2.99")
        session.machines._standing[at] = cast(ConnectedMachine, far)
    return session


def hosts_study(hosts: str, depth: str = "4") -> Study:
    return parse_study(f"study: m\nworkload: {{kind: chain, depth: {depth}, requests: 9}}\nhosts: {hosts}\n", "m.yaml")


def test_a_service_is_called_where_its_host_is_found(tmp_path: Path) -> None:
    study = hosts_study("{client: ssh://a, B: here, C: ssh://a, D: {at: ssh://d, address: 198.51.100.7}}")
    session = session_of(study, tmp_path)
    session._find_addresses([session.graph(treatments(study)[0])])
    # This machine where A's host sees it, A's where SSH found it, the last as the study says.
    assert session.addresses == {"B": "192.0.2.99", "C": "192.0.2.1", "D": "198.51.100.7"}


def test_a_service_here_that_is_called_from_here_alone_needs_no_network(tmp_path: Path) -> None:
    study = hosts_study("{client: here, B: here, C: ssh://c}", depth="3")
    session = session_of(study, tmp_path)
    session._find_addresses([session.graph(treatments(study)[0])])
    assert session.addresses["B"] == "127.0.0.1"


def test_an_address_that_nobody_knows_is_asked_for(tmp_path: Path) -> None:
    study = hosts_study("{client: ssh://a, B: here}", depth="2")
    session = session_of(study, tmp_path)
    cast(Standing, session.machines["ssh://a"]).peer = ""
    with pytest.raises(CannotError, match=r"hosts\.B: its IP address is not known; give it, as \{at:"):
        session._find_addresses([session.graph(treatments(study)[0])])


def test_the_paths_between_machines_are_those_of_calls_and_each_is_one(tmp_path: Path) -> None:
    one = hosts_study("{client: ssh://a, B: ssh://b, C: ssh://a, D: ssh://b}")
    session, at = session_of(one, tmp_path), treatments(one)[0]
    assert session.call_paths(at) == {("ssh://a", "ssh://b"): ("A", "B"), ("ssh://b", "ssh://a"): ("B", "C")}
    assert session.keys(at) == ("ssh://a", "ssh://b")
    alone = hosts_study("{client: ssh://a, B: ssh://a}", depth="2")
    session, at = session_of(alone, tmp_path), treatments(alone)[0]
    assert not session.call_paths(at)
    assert not session.probe_due(at, 0), "there is no network to probe"
    assert session.longest_rtt_ns(at) == 0


def test_a_machine_that_is_lost_is_named_and_stands_for_its_cells(tmp_path: Path) -> None:
    study = hosts_study("{client: here, B: ssh://b, C: ssh://c}", depth="3")
    session, at = session_of(study, tmp_path), treatments(study)[0]
    assert session.down(at.cell) is None
    cast(Standing, session.machines["ssh://c"]).lost = "it was closed"
    assert session.down(at.cell) == "host ssh://c is lost (it was closed)"
    session.fail("ssh://c", "refused")
    assert session.has_failed(at.cell) == "refused"
    assert session.failures() == [("hosts", "ssh://c", "refused")]
