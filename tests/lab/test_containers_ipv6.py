"""Containers over IPv6 on a real Docker Engine: on the bridge with its own network of IPv6, and in the host's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.test_containers import inside, needs_docker
from trifecta.lab.containers.daemon import SUBNET_6

pytestmark = pytest.mark.lab


@needs_docker
@pytest.mark.parametrize("network", ["host", "bridge"])
def test_services_in_containers_are_asked_over_ipv6_from_processes_and_containers_of_both_hosts(
    network: str, tmp_path: Path
) -> None:
    found = inside(
        """
        with host_graph(["host1", "host2"], [Wire("host1", "host2")], congestion_control="reno") as lab, names(lab):
            made = make_certificates(folder / "pki", ["b.lab"], [])
            with (DockerEngine(lab, "host1", network, find_engine(), folder / "docker1", ipv6=True) as one,
                  DockerEngine(lab, "host2", network, find_engine(), folder / "docker2", ipv6=True) as two):
                with ContainerProcess(one, "origin", folder / "b.log", name="B", ports=[8443], aliases=["b.lab"],
                                      readable=[folder / "pki"]) as service:
                    at = "::" if network == "bridge" else lab.address_6("host1")
                    service.configure(replace(origin(made), address=at))
                    service.wait_ready(OriginReady, 20)
                    routes = subprocess.run(["nsenter", "--net", "--target", str(service.pid), "ip", "-6", "route"],
                                            capture_output=True, text=True, check=True).stdout.splitlines()
                    print(json.dumps([route.split() for route in routes]))
                    ask_from_everywhere(lab, one, two, made, ip="IPv6")
                    print(json.dumps(plain(service.finish(OriginSummary).requests)))
        """,
        str(tmp_path),
        network,
    )
    routes = found[0]
    assert isinstance(routes, list)
    if network == "bridge":
        own = [route for route in routes if route[0] in (SUBNET_6, "default")]
        assert sorted(route[0] for route in own) == ["default", SUBNET_6]
        assert [route[route.index("congctl") + 1] for route in own] == ["reno", "reno"]
    # Another container of that host is given the address behind the bridge, everybody else that of the host.
    inner = "fd79::2" if network == "bridge" else "fd78::1"
    addresses = ["fd78::1", "fd78::1", inner, "fd78::1"]
    asked = [[protocol, address, 20, 0, True] for protocol in ("h1", "h2", "h3") for address in addresses]
    assert found[1:13] == asked
    assert found[13] == {protocol: {"200": 80} for protocol in ("h1", "h2", "h3")}


@needs_docker
def test_a_bridge_has_ipv6_only_where_it_is_asked_for(tmp_path: Path) -> None:
    found = inside(
        """
        with host_graph(["host1", "host2"], [Wire("host1", "host2")]) as lab, names(lab):
            with (DockerEngine(lab, "host1", "bridge", find_engine(), folder / "docker1") as one,
                  DockerEngine(lab, "host2", "bridge", find_engine(), folder / "docker2", ipv6=True) as two):
                for docker in (one, two):
                    network = docker.client.inspect_network("lab")
                    print(json.dumps([network["EnableIPv6"], [each["Subnet"] for each in network["IPAM"]["Config"]]]))
        """,
        str(tmp_path),
        "bridge",
    )
    assert found == [[False, ["10.79.0.0/24"]], [True, ["10.79.0.0/24", "fd79::/64"]]]
