"""Services on hosts: what each is asked, what cannot be there, and whose clock a time is of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from trifecta.contract.common import EngineVersion
from trifecta.design import services
from trifecta.design.errors import CannotError
from trifecta.design.model import PathSpec, ServicesWorkload, Study
from trifecta.design.plan import block_trials, cells
from trifecta.design.study_file import parse_study
from trifecta.design.workloads.services import ChainWorkload
from trifecta.lab.certificates import Certificates
from trifecta.store import parquet, schema
from trifecta.workloads.executors import HOSTS, executor_of
from trifecta.workloads.hosts import services_supported
from trifecta.workloads.hosts.services_configs import name_hosts, placed_client, placed_origin
from trifecta.workloads.hosts.services_supported import placed_services_supported
from trifecta.workloads.services.configs import client_config, origin_config

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
    assert executor_of(placed()) is HOSTS["services"]


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
