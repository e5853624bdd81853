"""What programs and places of a study over IPv6 are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trifecta.design import plan, services
from trifecta.design.model import Cell, PageWorkload, PathSpec, Trial
from trifecta.design.study import requests, study
from trifecta.design.workloads.services import ChainWorkload, FanInWorkload
from trifecta.lab.certificates import Certificates
from trifecta.workloads.hosts.supported import unset
from trifecta.workloads.services.configs import client_config, origin_config
from trifecta.workloads.services.places import Place, PlacesContext, key_of
from trifecta.workloads.visits.configs import options_for

CERTIFICATES = Certificates(Path("ca.pem"), Path("server.pem"), Path("server.key"))
VERSIONS = pytest.mark.parametrize("ip", [None, "IPv6"])


def place_of(workload: ChainWorkload) -> Place:
    graph = workload.graph
    return Place(key_of(graph, workload, linked=True), graph, workload, PlacesContext(Path("engine"), {}, Path("run")))


@VERSIONS
def test_services_and_their_client_resolve_names_for_it(ip: Any) -> None:
    workload = ChainWorkload(depth=3, ip=ip)
    graph = workload.graph
    service = origin_config(
        graph, "B", workload, services.protocols_of(graph, "h3", "h1"), connection="reused", address="fd78::2",
        certificates=CERTIFICATES,
    )  # fmt: skip
    assert service.relay is not None
    assert (service.relay.ip, service.relay.services["C"].address) == (ip, None)
    fan_in = FanInWorkload(clients=2, requests=20, ip=ip)
    client = client_config(
        Trial("t00001", 0, Cell("c", {"connection": "new"}), "h2", 0, 1), fan_in.graph, fan_in, PathSpec("clean"),
        certificates=CERTIFICATES, samples_file=Path("s"), spans_file=Path("p"), messages=None,
    )  # fmt: skip
    assert (client.ip, client.address) == (ip, None)


@pytest.mark.parametrize(
    ("ip", "own", "behind_a_bridge", "name_server"),
    [(None, "10.78.0.2", "0.0.0.0", "10.78.0.1:53"), ("IPv6", "fd78::2", "::", "[fd78::1]:53")],
)
def test_services_listen_and_names_are_asked_for_at_addresses_of_it(
    ip: Any, own: str, behind_a_bridge: str, name_server: str
) -> None:
    native = place_of(ChainWorkload(depth=3, hosts=3, ip=ip, names="path"))
    assert (native.listen_address("B"), native.address("B"), native.address_of("host2")) == (own, own, own)
    assert native.name_server() == name_server
    assert native._asked_from_outside() == {"host1": name_server.rpartition(":")[0].strip("[]")}
    # Both versions, whatever is asked for: which one counts is the program's to see to.
    assert native.names()["b.lab"] == ("10.78.0.2", "fd78::2")
    bridged = place_of(ChainWorkload(depth=3, hosts=3, ip=ip, place="docker-bridge"))
    assert bridged.listen_address("B") == behind_a_bridge
    assert bridged._asked_from_outside() == {f"host{number}": f"10.78.0.{number}" for number in (1, 2, 3)}


def test_places_and_servers_are_not_shared_by_both_versions() -> None:
    four, six = (ChainWorkload(depth=3, ip=ip) for ip in (None, "IPv6"))
    assert key_of(four.graph, four, linked=True) != key_of(six.graph, six, linked=True)
    asked = [options_for(PageWorkload(ip=ip), "h3", ()).ipv6 for ip in (None, "IPv6")]
    assert asked == [False, True]


def test_hosts_that_are_as_they_are_have_none_to_choose() -> None:
    given = study("s", workload=requests(requests=9), factors={"ip": ["IPv4", "IPv6"], "protocol": ["h2", "h3"]})
    refused = list(unset(given, plan.cells(given)))
    why = "'ip' is made by a lab on one machine, and hosts are as they are; leave it out"
    assert {(one.factor, one.reason) for one in refused} == {("ip", why)}
    assert {cell.levels["ip"] for one in refused for cell in one.cells} == {"IPv6"}
