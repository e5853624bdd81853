"""The network of a browser: every wire carries, the router forwards, any wire can be impaired, nothing leads out."""

from __future__ import annotations

import json
import textwrap

import pytest

from tests.lab.inside import run_inside
from trifecta.lab.access import PROBED_BY_CHROMIUM, WIRE_NAMES, access_links, ipv6_address_of, server_address

pytestmark = pytest.mark.lab

HELPERS = """
import errno, json, socket, threading, time
from pathlib import Path
from trifecta.lab.access import WIRE_NAMES, access_links, ipv6_address_of, server_address
from trifecta.contract.codec import plain
from trifecta.contract.impairments import Delay
from trifecta.contract.link import LinkConfig, LinkReady, LinkSummary
from trifecta.lab.engine import EngineProcess, find_engine

def link(network, wire, delay_ms=0):
    left, right = network.devices(wire)
    delay = [Delay(delay_ns=delay_ms * 1_000_000)] if delay_ms else []
    process = EngineProcess(find_engine(), "link", network.middle(wire), Path("/dev/null"))
    process.configure(LinkConfig(a_device=left, b_device=right, seed=1, a_to_b=delay, b_to_a=delay, realtime=False,
                                 spin_ns=0))
    process.wait_ready(LinkReady, 10)
    return process

def connect(network, a, b, number=0, port=443, six=False):
    "A connection from a to a server of b: its two ends and how long it took, or the name of the error."
    address = ipv6_address_of(server_address(b, number)) if six else server_address(b, number)
    family = socket.AF_INET6 if six else socket.AF_INET
    with network.host(b).inside():
        server = socket.create_server((address, port), family=family)
    with network.host(a).inside():
        client = socket.socket(family)
    client.settimeout(1)
    began = time.monotonic()
    try:
        client.connect((address, port))
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)
    took = time.monotonic() - began
    return client, server.accept()[0], took

def packets(network, host, device, column):
    "Received (1) or sent (9) packets of a device."
    rows = network.host(host).read("/proc/net/dev").splitlines()
    return int(next(row for row in rows if row.strip().startswith(device + ":")).split(":")[1].split()[column])
"""


def inside(code: str) -> object:
    done = run_inside(HELPERS + textwrap.dedent(code))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_client_reaches_every_server_through_the_router() -> None:
    found = inside(
        """
        with access_links(servers={"web": 3, "video": 2}) as network:
            time.sleep(0.5)
            before = [packets(network, "router", "to-client", 1), packets(network, "switch", "to-web", 9),
                      packets(network, "client", "to-router", 1)]
            open_ = [connect(network, "client", host, number) for host, number in
                     (("web", 0), ("web", 1), ("web", 2), ("video", 0), ("video", 1))]
            seen = [(ends[1].getsockname()[0], ends[1].getpeername()[0]) for ends in open_]
            after = [packets(network, "router", "to-client", 1), packets(network, "switch", "to-web", 9),
                     packets(network, "client", "to-router", 1)]
            # SYN and ACK of each of the five, nothing else; at the client the five answers.
            grown = [b - a for a, b in zip(before, after)]
            beside = connect(network, "video", "web", 0, 444)[1].getpeername()[0]
            print(json.dumps([seen, grown[0], grown[2], grown[1] >= 6, beside]))
        """
    )
    servers = ["192.168.2.2", "192.168.2.11", "192.168.2.12", "192.168.2.3", "192.168.2.101"]
    assert found == [[[server, "192.168.1.2"] for server in servers], 10, 5, True, "192.168.2.3"]


def test_ipv6_has_the_same_ways_where_it_is_asked_for() -> None:
    found = inside(
        """
        counts = {"web": 3, "video": 2, "thirdparty": 1}
        with access_links(["client-router"], counts, ipv6=True) as network, link(network, network.links[0], 15):
            asked = (("web", 0), ("web", 2), ("video", 0), ("video", 1), ("thirdparty", 0))
            open_ = [connect(network, "client", host, number, six=True) for host, number in asked]
            seen = [(ends[1].getsockname()[0], ends[1].getpeername()[0]) for ends in open_]
            slow = [ends[2] >= 0.03 for ends in open_]
            control = [ends[0].getsockopt(socket.IPPROTO_TCP, 13, 16).split(b"\\0")[0].decode() for ends in open_]
            near = connect(network, "video", "web", 0, 444, six=True)[1].getpeername()[0]
            four = connect(network, "client", "web", 0, 445)[1].getpeername()[0]
            forwards = [host.read("/proc/sys/net/ipv6/conf/all/forwarding").strip()
                        for host in network.hosts.values()]
            links = [row for host in network.hosts.values() for row in host.read("/proc/net/if_inet6").splitlines()
                     if row.startswith("fe80")]
            print(json.dumps([seen, slow, control, near, four, forwards, links]))
        """
    )
    servers = ["fd7a:2::2", "fd7a:2::12", "fd7a:2::3", "fd7a:2::101", "fd7a:2::4"]
    assert found == [
        [[server, "fd7a:1::2"] for server in servers], [True] * 5, ["cubic"] * 5, "fd7a:2::3", "192.168.1.2",
        ["0", "1", "0", "0", "0", "0"], [],
    ]  # fmt: skip
    assert ipv6_address_of("192.168.2.11") == "fd7a:2::11"


def test_over_ipv6_a_browser_finds_that_there_is_a_way_and_nothing_leads_out() -> None:
    """Chromium asks for no addresses of IPv6 where it cannot connect a UDP socket to that address."""
    found = inside(
        f"""
        probed = {PROBED_BY_CHROMIUM!r}
        with access_links(ipv6=True) as network:
            found = []
            for host, kind, address in (
                ("client", socket.SOCK_DGRAM, probed),
                ("client", socket.SOCK_DGRAM, "2001:db8::1"),
                ("web", socket.SOCK_DGRAM, probed),
                ("client", socket.SOCK_STREAM, probed),
            ):
                with network.host(host).inside():
                    out = socket.socket(socket.AF_INET6, kind)
                out.settimeout(2)
                try:
                    out.connect((address, 443))
                    found.append("connected")
                except OSError as error:
                    found.append(errno.errorcode.get(error.errno, type(error).__name__))
            print(json.dumps(found))
        """
    )
    assert isinstance(found, list)
    assert found[:3] == ["connected", "ENETUNREACH", "ENETUNREACH"]
    assert found[3] != "connected"


def test_third_parties_have_a_host_beside_the_others_where_there_are_some() -> None:
    found = inside(
        """
        with access_links(["switch-web"], {"web": 1, "thirdparty": 2}) as network:
            ends = [connect(network, "client", "thirdparty", number) for number in (0, 1)]
            seen = [(one[1].getsockname()[0], one[1].getpeername()[0]) for one in ends]
            print(json.dumps([seen, [wire.name for wire in network.links], list(network.hosts)]))
        """
    )
    hosts = ["client", "router", "switch", "web", "video", "thirdparty"]
    assert found == [[["192.168.2.4", "192.168.1.2"], ["192.168.2.181", "192.168.1.2"]], ["switch-web"], hosts]
    assert "thirdparty" not in access_links().names


def test_nothing_leads_out_and_only_the_router_forwards() -> None:
    found = inside(
        """
        with access_links() as network:
            found = {}
            for name, host in network.hosts.items():
                with host.inside():
                    out = socket.socket()
                out.settimeout(0.5)
                try:
                    out.connect(("203.0.113.1", 443))
                    found[name] = "connected"
                except OSError as error:
                    found[name] = errno.errorcode.get(error.errno, type(error).__name__)
            forwards = [host.read("/proc/sys/net/ipv4/ip_forward").strip() for host in network.hosts.values()]
            six = [len([row for row in host.read("/proc/net/if_inet6").splitlines() if not row.endswith(" lo")])
                   for host in network.hosts.values()]
            with network.host("client").inside():
                routes = open("/proc/thread-self/net/route").read().splitlines()[1:]
            default = [row for row in routes if row.split()[1] == "00000000"]
            print(json.dumps([found, forwards, six, default]))
        """
    )
    unreachable = dict.fromkeys(("client", "router", "switch", "web", "video"), "ENETUNREACH")
    assert found == [unreachable, ["0", "1", "0", "0", "0"], [0, 0, 0, 0, 0], []]


@pytest.mark.parametrize("name", WIRE_NAMES)
def test_an_impaired_wire_carries_only_through_its_link_and_delays_only_what_crosses_it(name: str) -> None:
    found = inside(
        f"""
        with access_links([{name!r}]) as network:
            (wire,) = network.links
            before = [connect(network, "client", host) for host in ("web", "video")]
            with link(network, wire, delay_ms=15) as process:
                after = [connect(network, "client", host, port=444) for host in ("web", "video")]
                summary = plain(process.finish(LinkSummary))
            delayed = [isinstance(ends, tuple) and ends[2] >= 0.03 for ends in after]
            there = [isinstance(ends, tuple) for ends in before]
            refused = [sum(summary[way]["refused"].values()) for way in ("a_to_b", "b_to_a")]
            print(json.dumps([there, delayed, refused]))
        """
    )
    crosses = [name != "switch-video", name != "switch-web"]
    assert found == [[not crossed for crossed in crosses], crosses, [0, 0]]


def test_all_wires_can_be_impaired_and_full_packets_pass() -> None:
    found = inside(
        """
        from contextlib import ExitStack
        with access_links(WIRE_NAMES) as network, ExitStack() as stack:
            for wire in network.links:
                stack.enter_context(link(network, wire))
            client, server, _ = connect(network, "client", "web")
            client.settimeout(30)
            server.settimeout(30)
            # Sent while it is read: how much two sockets hold unread is the kernel's choice.
            sending = threading.Thread(target=client.sendall, args=(b"x" * 300_000,))
            sending.start()
            received = 0
            while received < 300_000:
                received += len(server.recv(1 << 20))
            sending.join()
            sizes = []
            for size in (1472, 1473):
                with network.host("client").inside():
                    datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                datagram.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO
                try:
                    sizes.append(datagram.sendto(b"y" * size, (server_address("web"), 9)))
                except OSError as error:
                    sizes.append(errno.errorcode[error.errno])
            print(json.dumps([received, client.getsockopt(6, 2), sizes]))
        """
    )
    assert found == [300_000, 1448, [1472, "EMSGSIZE"]]


def test_congestion_control_holds_at_both_ends_and_can_be_changed() -> None:
    found = inside(
        """
        def control(end):
            return end.getsockopt(socket.IPPROTO_TCP, 13, 16).split(b"\\0")[0].decode()
        found = []
        with access_links(servers={"web": 2}, congestion_control="reno") as network:
            for name in ("reno", "cubic"):
                network.use_congestion_control(name)
                for host, number in (("web", 0), ("web", 1), ("video", 0)):
                    ends = connect(network, "client", host, number, 80 + len(found))
                    found.append([name, *(control(end) for end in ends[:2])])
        print(json.dumps(found))
        """
    )
    assert found == [[name, name, name] for name in ("reno", "cubic") for _ in range(3)]


def test_congestion_control_holds_on_the_loopback_of_either_version() -> None:
    found = inside(
        """
        found = []
        with access_links(servers={"web": 1}, ipv6=True, congestion_control="reno") as network:
            for name in ("reno", "cubic"):
                network.use_congestion_control(name)
                for host in ("client", "web"):
                    found.append([network.host(host).congestion_control(at) for at in ("127.0.0.2", "::1")])
        print(json.dumps(found))
        """
    )
    assert found == [[name, name] for name in ("reno", "cubic") for _ in range(2)]


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="no wire client-web"):
        access_links(["client-web"])
    with pytest.raises(ValueError, match="no server 80"):
        server_address("web", 80)
    with pytest.raises(ValueError, match="on web or video"):
        server_address("client")
    with pytest.raises(ValueError, match="not impaired"):
        network = access_links()
        network.devices(network.wires[0])
