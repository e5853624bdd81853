"""The network of services: who can talk to whom, what is pinned, and that nothing crosses by itself."""

from __future__ import annotations

import json

import pytest

from tests.lab.inside import run_inside
from trifecta.lab.host_graph import host_graph
from trifecta.lab.topology import Wire

pytestmark = pytest.mark.lab

HELPERS = """
import errno, json, socket, subprocess, sys, time
from trifecta.lab.host_graph import host_graph
from trifecta.lab.topology import Wire

def connect(topology, a, b, port, six=False):
    "What a connection from a to b comes to: its two ends, or the name of the error."
    family = socket.AF_INET6 if six else socket.AF_INET
    where = topology.address_6(b) if six else topology.address(b)
    with topology.host(b).inside():
        server = socket.create_server((where, port), family=family)
    with topology.host(a).inside():
        client = socket.socket(family)
    client.settimeout(0.5)
    try:
        client.connect((where, port))
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)
    return client, server.accept()[0]

def control(end):
    return end.getsockopt(socket.IPPROTO_TCP, 13, 16).split(b"\\0")[0].decode()
"""


def inside(code: str) -> object:
    import textwrap

    done = run_inside(HELPERS + textwrap.dedent(code))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_wired_hosts_talk_from_their_own_addresses_and_others_do_not() -> None:
    found = inside(
        """
        found = {}
        with host_graph(["host1", "host2", "host3"], [Wire("host1", "host2"), Wire("host2", "host3")]) as topology:
            for six in (False, True):
                for a, b in (("host1", "host2"), ("host3", "host2"), ("host2", "host2"), ("host1", "host3")):
                    ends = connect(topology, a, b, 80 + len(found), six)
                    found[f"{a} {b} {six}"] = ends if isinstance(ends, str) else ends[1].getpeername()[0]
        print(json.dumps(found))
        """
    )
    assert found == {
        "host1 host2 False": "10.78.0.1",
        "host3 host2 False": "10.78.0.3",
        "host2 host2 False": "10.78.0.2",
        "host1 host3 False": "ENETUNREACH",
        "host1 host2 True": "fd78::1",
        "host3 host2 True": "fd78::3",
        "host2 host2 True": "fd78::2",
        "host1 host3 True": "ENETUNREACH",
    }


def test_an_impaired_wire_carries_only_through_its_link() -> None:
    found = inside(
        """
        from pathlib import Path
        from trifecta.contract.codec import plain
        from trifecta.contract.link import LinkConfig, LinkReady, LinkSummary
        from trifecta.lab.engine import EngineProcess, find_engine
        wire = Wire("host1", "host2", impaired=True)
        with host_graph(["host1", "host2"], [wire]) as topology:
            before = connect(topology, "host1", "host2", 80)
            left, right = topology.devices(wire)
            config = LinkConfig(a_device=left, b_device=right, seed=1, realtime=False, spin_ns=0)
            with EngineProcess(find_engine(), "link", topology.middle(wire), Path("/dev/null")) as link:
                link.configure(config)
                link.wait_ready(LinkReady, 10)
                after = [isinstance(connect(topology, "host1", "host2", 81, six), tuple) for six in (False, True)]
                summary = plain(link.finish(LinkSummary))
        refused = [sum(summary[way]["refused"].values()) for way in ("a_to_b", "b_to_a")]
        print(json.dumps([before, after, summary["a_to_b"]["delivered"] > 0, refused]))
        """
    )
    assert found == ["TimeoutError", [True, True], True, [0, 0]]


def test_a_network_is_raised_when_packets_cross_every_wire_of_it() -> None:
    """The kernel opens a device some time after it was set up; here it never does, as the other end stays down."""
    found = inside(
        """
        from trifecta.design.errors import CannotError
        from trifecta.lab import topology
        ip_batch = topology.ip_batch
        found = []
        for kept_down in ("ra", "rb", "neither"):
            topology._RUNNING_TIMEOUT_S = 20 if kept_down == "neither" else 0.2
            topology.ip_batch = lambda lines, *rest: ip_batch(
                [line for line in lines if line != f"link set {kept_down} up"], *rest
            )
            try:
                with host_graph(["host1", "host2"], [Wire("host1", "host2", impaired=True)]):
                    found.append("raised")
            except CannotError as error:
                found.append(str(error))
        print(json.dumps(found))
        """
    )
    assert found == [
        "the kernel passes no packets over to-host2 of host1 in the lab",
        "the kernel passes no packets over to-host1 of host2 in the lab",
        "raised",
    ]


def test_nothing_crosses_a_plain_wire_by_itself() -> None:
    """Neighbours are permanent, and no ARP, neighbour discovery or multicast report is sent."""
    assert inside(
        """
        with host_graph(["host1", "host2"], [Wire("host1", "host2")]) as topology:
            def received():
                row = next(r for r in topology.host("host2").read("/proc/net/dev").splitlines() if "to-host1" in r)
                return int(row.split()[2])
            time.sleep(1.5)
            before = received()
            # A connection without data: SYN, and the ACK of its answer. Looking for a neighbour would be more.
            pairs = [connect(topology, "host1", "host2", 80, six) for six in (False, True)]
            time.sleep(0.2)
            print(json.dumps([before, received() - before]))
        """
    ) == [0, 4]


def test_congestion_control_holds_between_hosts_and_on_one_host_and_can_be_changed() -> None:
    found = inside(
        """
        found = []
        with host_graph(["host1", "host2"], [Wire("host1", "host2")], congestion_control="reno") as topology:
            for name in ("reno", "cubic"):
                topology.use_congestion_control(name)
                for six in (False, True):
                    for a in ("host1", "host2"):
                        ends = connect(topology, a, "host2", 80 + len(found), six)
                        found.append([name, *(control(end) for end in ends), ends[0].getsockopt(6, 2)])
        print(json.dumps(found))
        """
    )
    assert found == [[name, name, name, size] for name in ("reno", "cubic") for size in (1448, 1448, 1428, 1428)]


def test_settings_hold_in_every_namespace_and_one_host_needs_no_wire() -> None:
    found = inside(
        """
        with host_graph(["host1"], []) as topology:
            ends = connect(topology, "host1", "host1", 80)
            print(json.dumps([ends[1].getpeername()[0], topology.kernel.known["net.ipv4.tcp_tw_reuse"],
                              topology.host("host1").read("/proc/sys/net/ipv4/ip_forward")]))
        """
    )
    assert found == ["10.78.0.1", "1", "0\n"]


@pytest.mark.parametrize(
    ("hosts", "wires", "said"),
    [
        ([], [], "1 to 250 hosts"),
        (["a", "a"], [], "same name"),
        (["averylonghostname"], [], "not a host name"),
        (["a b"], [], "not a host name"),
        (["a"], [Wire("a", "a")], "does not join two hosts"),
        (["a", "b"], [Wire("a", "c")], "does not join two hosts"),
        (["a", "b"], [Wire("a", "b"), Wire("b", "a", impaired=True)], "two wires join"),
    ],
)
def test_what_is_no_graph_is_refused(hosts: list[str], wires: list[Wire], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        host_graph(hosts, wires)


def test_a_plain_wire_has_no_middle() -> None:
    with pytest.raises(ValueError, match="not impaired"):
        host_graph(["a", "b"], [Wire("a", "b")]).devices(Wire("a", "b"))
