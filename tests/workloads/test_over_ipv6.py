"""Studies over IPv6, run small: every family of workloads goes over it, by the counters of the kernel."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from tests.workloads import drive, drive_browsers
from tests.workloads.test_browsers import URLS, page, study
from tests.workloads.test_services import run
from trifecta.implementations.services.go_services import RECIPE
from trifecta.lab.containers import docker_state
from trifecta.store.run import RunDirectory

__all__ = ["page"]  # a fixture
pytestmark = pytest.mark.lab
NFT = pytest.mark.skipif(shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin:/bin") is None, reason="nft is missing")
EVERY = 16
ASKED = [
    "path=clean", "server=origin", "connection=new", "in_flight=2", "budget=2 min", "blocks.at_least=1",
    "blocks.at_most=1", "requests=12", "warmup=4 requests",
]  # fmt: skip
SHORT = ["path=normal", "connection=reused", "workload.requests=10", "workload.warmup=2 requests"]
JUDGED = {"parity", "protocol", "errors", "service"}
OTHER = "but all should be"  # of another version of IP than asked for, in the words of the check
UNSEEN = "the client's host counted no packet by IP version, requested: IPv6"


def transport(row: dict[str, Any], judged: Collection[str] = JUDGED) -> dict[str, Any]:
    """How much the counters of each host grew, of a trial without a failure that the version of IP could be at."""
    assert (row["error"], row["error_classes_json"]) == (None, "{}")
    found = {one["check"]: one for one in json.loads(row["checks_json"])}
    assert not [one for name, one in found.items() if one["status"] == "fail" and name in judged]
    assert OTHER not in found["parity"]["evidence"]
    grown: dict[str, Any] = json.loads(row["machine_json"])["transport"]
    return grown


def over_wires(host: dict[str, Any]) -> list[tuple[int, int]]:
    """Packets of IPv6 and of all kinds that came in over each wire of a host, but not from its containers."""
    wires = {name: one for name, one in host["devices"].items() if not name.startswith(("docker", "br-", "veth"))}
    return [(one["rx_ipv6_packets"], one["rx_packets"]) for one in wires.values() if one["rx_packets"]]


def all_are_of_ipv6(host: dict[str, Any]) -> bool:
    """Whether a host received something over its wires, and of that nearly everything was of IPv6."""
    found = over_wires(host)
    return bool(found) and all(six >= 0.95 * every for six, every in found)


def test_compared_requests_of_one_block_go_over_the_version_of_their_arm(tmp_path: Path) -> None:
    code, _, outcome, errors = drive.finish(tmp_path / "run", set=[*ASKED, "compare=ip", "ip=IPv4,IPv6"])
    assert code == 0, errors
    assert outcome["trials"] == 9
    seen = set()
    for row in RunDirectory.open(tmp_path / "run").rows():
        grown = transport(row)
        seen.add((row["arm"], row["protocol"]))
        for host in ("client", "server"):
            counters = grown[host]["counters"]
            sent = {"IPv4": counters["IpOutRequests"], "IPv6": counters["Ip6OutRequests"]}
            asked = row["arm"].removesuffix("#aa")
            # A new connection for every request: no fewer packets than requests. The other may have a group's report.
            assert sent.pop(asked) >= EVERY
            assert max(sent.values()) < EVERY
        assert all_are_of_ipv6(grown["client"]) == (row["arm"] == "IPv6")
    assert seen == {(arm, protocol) for arm in ("IPv4", "IPv6", "IPv4#aa") for protocol in ("h1", "h2", "h3")}


@NFT
def test_requests_pass_a_load_balancer_over_ipv6(tmp_path: Path) -> None:
    code, _, outcome, errors = drive.finish(tmp_path / "run", set=[*ASKED, "load_balancer=true", "ip=IPv6"])
    assert code == 0, errors
    assert outcome["trials"] == 4
    for row in RunDirectory.open(tmp_path / "run").rows():
        grown = transport(row)
        flows = json.loads(row["server_json"])["load_balancer"]
        assert {name for name, count in flows.items() if count} == {"udp" if row["protocol"] == "h3" else "tcp"}
        assert max(flows.values()) >= EVERY
        assert grown["client"]["counters"]["Ip6OutRequests"] >= EVERY
        assert all_are_of_ipv6(grown["client"])
        # From the client and from the server.
        assert [six >= EVERY for six, _ in over_wires(grown["balancer"])] == [True, True]


@pytest.mark.parametrize(
    ("name", "more", "hosts"),
    [
        ("chain", ["hosts=4"], ["host1", "host2", "host3", "host4"]),
        ("fan-in", ["clients=4"], ["host1", "host2"]),
        ("sba-registration", ["hosts=2", "workload.rate=20/s"], ["host1", "host2"]),
    ],
)
def test_services_call_each_other_over_ipv6(tmp_path: Path, name: str, more: list[str], hosts: list[str]) -> None:
    for row in run(tmp_path / "run", name, [*SHORT, "ip=IPv6", *more]):
        grown = transport(row)
        assert row["errors"] == 0
        assert [host for host in hosts if not all_are_of_ipv6(grown[host])] == []
        assert [host for host in hosts if grown[host]["counters"]["Ip6OutRequests"] < 10] == []


def test_services_of_one_host_do_so_too(tmp_path: Path) -> None:
    for row in run(tmp_path / "run", "chain", [*SHORT, "hosts=1", "depth=3", "ip=IPv4,IPv6", "protocol=h2,h3"]):
        loopback = transport(row)["host1"]["loopback"]
        asked = json.loads(row["factors_json"])["ip"]
        # Names are looked up at 127.0.0.53.
        share = loopback["rx_ipv6_packets"] / loopback["rx_packets"]
        assert share < 0.05 if asked == "IPv4" else share > 0.5


@pytest.mark.parametrize(
    ("hosts", "place"), [pytest.param(1, "bridge", marks=pytest.mark.long), (2, "bridge"), (2, "host")]
)
def test_services_in_containers_call_each_other_over_ipv6(tmp_path: Path, hosts: int, place: str) -> None:
    state = docker_state("bridge" if place == "bridge" else "host")
    if not state.usable:
        pytest.skip(state.reason)
    settings = [*SHORT, "ip=IPv6", f"hosts={hosts}", "depth=3", f"place=docker-{place}", "protocol=h2,h3"]
    for row in run(tmp_path / "run", "chain", settings):
        grown = transport(row)
        assert row["errors"] == 0
        if hosts == 2:
            assert all_are_of_ipv6(grown["host1"])
            assert all_are_of_ipv6(grown["host2"])
        else:  # the kernel does not look into what a bridge passes on
            parity = next(one for one in json.loads(row["checks_json"]) if one["check"] == "parity")
            assert (parity["status"], UNSEEN in parity["evidence"]) == ("unknown", True)


@pytest.mark.skipif(not RECIPE.installed(), reason=RECIPE.missing())
def test_the_program_of_go_does_so_too(tmp_path: Path) -> None:
    for row in run(tmp_path / "run", "chain", [*SHORT, "ip=IPv6", "server=go-services", "hosts=3"]):
        grown = transport(row)
        assert row["errors"] == 0
        assert [host for host in ("host1", "host2", "host3") if not all_are_of_ipv6(grown[host])] == []


def test_a_page_is_visited_over_ipv6(tmp_path: Path, page: Path) -> None:
    folder = tmp_path / "run"
    text = study(page, "near, far", "h1, h2, h3", more=", ip: IPv6")
    code, outcome, errors = drive_browsers.finish(folder, study=text, driver={"urls": URLS})
    assert code == 0, errors
    assert outcome["trials"] == 8
    for row in RunDirectory.open(folder).rows():
        grown = transport(row, {"errors"})
        assert json.loads(row["server_json"])["address"] == "fd7a:2::2"
        assert all_are_of_ipv6(grown["client"])
        assert all_are_of_ipv6(grown["web"])
        assert grown["client"]["counters"]["Ip6OutRequests"] >= 3 * len(URLS)
