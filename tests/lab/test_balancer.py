"""The load balancer: its rules, its host between client and server, and what the kernel refuses."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.lab.inside import run_inside
from trifecta.lab import balancer
from trifecta.lab.network import BALANCED_WIRE, WIRE, two_hosts

NFT = pytest.mark.skipif(shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin:/bin") is None, reason="nft is missing")


def test_what_comes_to_its_address_over_either_transport_goes_on_to_the_server() -> None:
    text = balancer.rules("10.77.1.2", "10.77.0.2")
    assert [line.strip() for line in text.splitlines() if "dnat" in line] == [
        'ip daddr 10.77.1.2 meta l4proto tcp counter name "tcp_flows" dnat to 10.77.0.2',
        'ip daddr 10.77.1.2 meta l4proto udp counter name "udp_flows" dnat to 10.77.0.2',
    ]
    assert "type nat hook prerouting priority -100; policy accept;" in text
    six = balancer.rules("fd77:1::2", "fd77::2").splitlines()
    assert six[0].startswith("table ip6 ")
    assert 'ip6 daddr fd77:1::2 meta l4proto udp counter name "udp_flows" dnat to fd77::2' in map(str.strip, six)


def test_it_stands_beside_the_plain_way_only_where_it_is_asked_for() -> None:
    assert (two_hosts().names, two_hosts().wires) == (("client", "server"), (WIRE,))
    lab = two_hosts(balanced=True)
    assert lab.names == ("client", "server", "balancer")
    assert lab.links == (WIRE, BALANCED_WIRE)
    assert [wire.name for wire in lab.wires if not wire.impaired] == ["balancer-server"]
    assert [lab.address(name) for name in lab.names] == ["10.77.0.1", "10.77.0.2", "10.77.1.2"]
    six = two_hosts(balanced=True, balanced_6=True)
    assert [six.address_6(name) for name in six.names] == ["fd77::1", "fd77::2", "fd77:1::2"]
    assert [six.address(name) for name in six.names] == [lab.address(name) for name in lab.names]
    assert (six.names, six.wires) == (lab.names, lab.wires)


@pytest.mark.lab
@NFT
@pytest.mark.parametrize(
    ("client", "balanced", "server"), [("10.77.1.1", "10.77.1.2", "10.77.0.2"), ("fd77:1::1", "fd77:1::2", "fd77::2")]
)
def test_flows_over_tcp_and_udp_pass_it_with_the_clients_address_and_are_counted(
    client: str, balanced: str, server: str
) -> None:
    done = run_inside(
        f"""
        BALANCER_ADDRESS, SERVER_ADDRESS = {balanced!r}, {server!r}
        """
        """
        import json, select, socket
        from trifecta.lab.balancer import SETTINGS, Balancer
        from trifecta.lab.network import BALANCED_WIRE, two_hosts
        family = socket.AF_INET6 if ":" in SERVER_ADDRESS else socket.AF_INET
        socket.setdefaulttimeout(5)
        def carry():
            # What the engine's link does, until nothing comes any more.
            while ready := select.select(ends, [], [], 0.05)[0]:
                for end in ready:
                    frame, (_, _, kind, *_) = end.recvfrom(65536)
                    if kind != socket.PACKET_OUTGOING:
                        ends[1 - ends.index(end)].send(frame)
        with two_hosts(balanced=True, balanced_6=family == socket.AF_INET6) as lab:
            made = Balancer(lab.host("balancer"), BALANCER_ADDRESS, SERVER_ADDRESS)
            set_to = {name: lab.host("balancer").read(f"/proc/sys/net/netfilter/{name}").strip() for name in SETTINGS}
            with lab.middle(BALANCED_WIRE).inside():
                ends = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for _ in range(2)]
            for end, device in zip(ends, lab.devices(BALANCED_WIRE)):
                end.setsockopt(263, 15, 1)  # PACKET_VNET_HDR: checksums are left to the last device
                end.bind((device, 3))
            with lab.host("server").inside():
                server = socket.socket(family, socket.SOCK_DGRAM)
                listener = socket.create_server((SERVER_ADDRESS, 8443), family=family)
            with lab.host("client").inside():
                client = socket.socket(family, socket.SOCK_DGRAM)
                connecting = socket.socket(family)
            server.bind((SERVER_ADDRESS, 8443))
            before = made.flows()
            for words in (b"there", b"again"):
                client.sendto(words, (BALANCER_ADDRESS, 8443))
                carry()
                got, source = server.recvfrom(16)
                server.sendto(got[::-1], source)
                carry()
            answers = [client.recvfrom(16) for _ in range(2)]
            connecting.setblocking(False)
            connecting.connect_ex((BALANCER_ADDRESS, 8443))
            carry()
            accepted = listener.accept()[1]
            print(json.dumps([before, made.flows(), source[0], accepted[0], set_to == SETTINGS,
                              [[words.decode(), *address[:2]] for words, address in answers],
                              connecting.getpeername()[:2]]))
        """
    )
    assert done.returncode == 0, done.stderr
    before, after, source, accepted, as_set, answers, peer = json.loads(done.stdout)
    assert (before, after) == ({"tcp": 0, "udp": 0}, {"tcp": 1, "udp": 1}), "flows, not packets"
    assert source == accepted == client
    assert as_set
    assert answers == [["ereht", balanced, 8443], ["niaga", balanced, 8443]]
    assert peer == [balanced, 8443]


@pytest.mark.lab
@NFT
def test_what_nft_refuses_is_one_clear_line() -> None:
    done = run_inside(
        """
        import json
        from trifecta.design.errors import CannotError
        from trifecta.lab import conntrack
        from trifecta.lab.balancer import Balancer
        from trifecta.lab.network import two_hosts
        said = []
        real = conntrack.shutil.which
        with two_hosts(balanced=True) as lab:
            for which in (lambda *_, **__: None, lambda *_, **__: real("false")):
                conntrack.shutil.which = which
                try:
                    Balancer(lab.host("balancer"), "10.77.1.2", "10.77.0.2")
                except CannotError as error:
                    said.append(str(error))
        print(json.dumps(said))
        """
    )
    assert done.returncode == 0, done.stderr
    missing, refused = json.loads(done.stdout)
    assert missing == "`nft` is missing; install nftables (apt-get install nftables)"
    assert refused.startswith("host balancer: the kernel refuses to translate addresses")
