"""Whether a trial went over the version of IP that was asked for, and over the transport of its protocol."""

import pytest

from tests.analysis.checks.sound import HOST, LOAD, PLAIN, SERVER, TCP, TRANSPORT, evidence, judge
from trifecta.analysis.checks import over_ip
from trifecta.analysis.checks.evidence import nothing_sent
from trifecta.design.workloads.requests import RequestsWorkload
from trifecta.design.workloads.services import ChainWorkload

SIZES = {"requests": 220, "response_bytes": 1000, "warmup_requests": 20}
IPV4, IPV6 = (RequestsWorkload(**SIZES, ip=ip) for ip in (None, "IPv6"))
CHAIN = ChainWorkload(requests=220, warmup_requests=20, depth=3, hosts=1, ip="IPv6")


def received(every: int, six: int | None, name: str = "eth0") -> dict:
    """A host that received so many packets over a device, of which so many were of IPv6; None: that is not counted."""
    own = {"rx_packets": every} | ({} if six is None else {"rx_ipv6_packets": six})
    return HOST | {"devices": {name: own}}


def judged(workload, host, name="client", server=SERVER):
    transport = {name: host, "softnet_drops": 0}
    return over_ip.findings(evidence(path=PLAIN, workload=workload, transport=transport, server=server))


@pytest.mark.parametrize(
    ("workload", "six", "status", "said"),
    [
        (IPV6, 1000, "pass", "1000 of 1000 packets that the client's host received were IPv6"),
        (IPV6, 950, "pass", "950 of 1000 packets that the client's host received were IPv6"),
        (IPV6, 949, "fail", "949 of 1000 packets that the client's host received were IPv6, but all should be"),
        (IPV6, 0, "fail", "0 of 1000 packets that the client's host received were IPv6, but all should be"),
        (IPV4, 0, "pass", "1000 of 1000 packets that the client's host received were IPv4"),
        (IPV4, 51, "fail", "949 of 1000 packets that the client's host received were IPv4, but all should be"),
        (IPV6, None, "unknown", "the client's host counted no packet by IP version, requested: IPv6"),
    ],
)
def test_packets_are_of_the_version_that_was_asked_for(workload, six, status, said):
    (found,) = judged(workload, received(1000, six))
    assert (found.status, found.text) == (status, said)
    result = judge("parity", path=PLAIN, workload=workload, transport=TRANSPORT | {"client": received(1000, six)})
    assert (result.status, said in result.evidence) == (status, True)


def test_runs_from_before_stay_what_they_were():
    assert judged(IPV4, received(1000, None)) == []
    assert judged(IPV4, dict(HOST)) == []
    assert judged(RequestsWorkload(**SIZES), received(0, 0)) == []


def test_what_containers_of_the_host_are_sent_does_not_count():
    both = HOST | {"devices": received(100, 100)["devices"] | received(900, 0, "docker0")["devices"]}
    assert [one.status for one in judged(IPV6, both)] == ["pass"]


@pytest.mark.parametrize(("place", "status"), [("native", "pass"), ("docker-bridge", "unknown")])
def test_services_of_one_host_are_judged_by_its_loopback_but_not_behind_a_bridge(place, status):
    host = HOST | {"devices": {}, "loopback": {"rx_packets": 1000, "rx_ipv6_packets": 600}}
    server = SERVER | {"services": {"A": {"host": "host1", "client": True}, "B": {"host": "host1", "client": False}}}
    workload = ChainWorkload(requests=220, warmup_requests=20, depth=3, hosts=1, ip="IPv6", place=place)
    (found,) = judged(workload, host, "host1", server)
    assert found.status == status
    less = host | {"loopback": {"rx_packets": 1000, "rx_ipv6_packets": 400}}
    (found,) = judged(workload, less, "host1", server)
    assert found.status == ("fail" if place == "native" else "unknown")


def test_all_hosts_of_clients_count():
    server = SERVER | {"services": {"A": {"host": "host1 and host3", "client": True}}}
    transport = {"host1": received(100, 100), "host2": received(900, 0), "host3": received(100, 0), "softnet_drops": 0}
    found = over_ip.findings(evidence(path=PLAIN, workload=CHAIN, transport=transport, server=server))
    assert [(one.status, one.value) for one in found] == [("fail", 0.5)]


@pytest.mark.parametrize(
    ("arm", "counters", "nothing"),
    [
        ("h3", {"UdpOutDatagrams": 0, "Udp6OutDatagrams": 9}, False),
        ("h3", {"UdpOutDatagrams": 9, "Udp6OutDatagrams": 0}, False),
        ("h3", {"UdpOutDatagrams": 0, "Udp6OutDatagrams": 0}, True),
        ("h3", {"UdpOutDatagrams": 0}, True),
        ("h3", {"TcpOutSegs": 0}, False),
        ("h2", {"TcpOutSegs": 0, "Udp6OutDatagrams": 9}, True),
        ("h2", {"TcpOutSegs": 9}, False),
    ],
)
def test_udp_is_counted_for_each_version_of_ip(arm, counters, nothing):
    transport = {"client": HOST | {"counters": counters}, "softnet_drops": 0}
    load = LOAD if arm == "h3" else LOAD | {"quic": None, "tcp": TCP}
    assert nothing_sent(evidence(arm, path=PLAIN, load=load, transport=transport)) is nothing
