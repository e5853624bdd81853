"""Checks of services: every link and host is judged by name, a service that dies or errs in silence fails."""

import dataclasses

import pytest

from tests.analysis.checks.sound import (
    DIRECTION,
    HOST,
    LINK,
    LOAD,
    LOSSY,
    PATH,
    PLAIN,
    PROBE,
    SERVER,
    TRANSPORT,
    evidence,
    facts,
    judge,
)
from trifecta.analysis.checks import check_trial, is_valid
from trifecta.design.workloads.services import ChainWorkload

FOUR_HOSTS = ChainWorkload(requests=220, warmup_requests=20, depth=4, hosts=4)
WIRES = ("host1-host2", "host2-host3", "host3-host4")
UNTOUCHED = DIRECTION | {"lost": 0, "delay_given_ns": {"p50": 30_000, "p99": 50_000, "max": 90_000}}
PLAIN_LINK = LINK | {"a_to_b": UNTOUCHED, "b_to_a": UNTOUCHED}


def links(**changes):
    """Three sound links, but for the changes by name with underscores."""
    found = {wire: dict(LINK) for wire in WIRES}
    for name, change in changes.items():
        found[name.replace("_", "-")] = dict(LINK) | change
    return {"links": found}


def service(**changes):
    summary = {"errors": {}, "udp_receive_drops": 0}
    sound = {"host": "host2", "asked": {}, "client": False, "running": True, "ended": None, "summary": summary}
    return sound | changes


def services(**changes):
    client = {"host": "host1", "asked": {}, "client": True}
    return SERVER | {"services": {"A": client, "B": service(), "C": service(host="host3"), **changes}}


def test_a_sound_trial_of_services_passes():
    probe = PROBE | {"wire": "host1-host2"}
    sound = evidence(workload=FOUR_HOSTS, link=links(), server=services(), probe=probe)
    results = {result.check: result for result in check_trial(sound)}
    for name in ("path", "headroom", "drops", "conntrack", "service"):
        assert (results[name].status, results[name].remedy) == ("pass", ""), results[name]
    assert "3 links delivered what was requested" in results["path"].evidence
    assert "2 of 2 services ran to the end without an error" in results["service"].evidence


# --- path and headroom


def test_one_bad_link_of_three_is_named():
    result = judge("path", workload=FOUR_HOSTS, link=links(host2_host3={"b_to_a": DIRECTION | {"lost": 900}}))
    assert result.status == "fail"
    assert "host2-host3 to host2: lost 900 of 10000 packets" in result.evidence
    assert "host1" not in result.evidence


def test_the_worst_links_are_named_first_and_the_rest_counted():
    slow = {name: DIRECTION | {"lateness_ns": {"p99": 20_000_000}} for name in ("a_to_b", "b_to_a")}
    slower = {name: DIRECTION | {"lateness_ns": {"p99": 90_000_000}} for name in ("a_to_b", "b_to_a")}
    given = links(host1_host2=slow, host2_host3=slow, host3_host4=slower)
    result = judge("path", workload=FOUR_HOSTS, link=given, probe=None)
    assert result.status == "fail"
    assert result.evidence.startswith("host3-host4 to host4: 99 % of packets left within 90 ms")
    assert result.evidence.endswith("and 3 more")


def test_an_impaired_wire_without_a_link_fails():
    two = {"links": dict.fromkeys(WIRES[:2], LINK)}
    result = judge("path", workload=FOUR_HOSTS, link=two)
    assert result.status == "fail"
    assert "had no link on wire host3-host4" in result.evidence
    assert judge("path", workload=FOUR_HOSTS, link=None).status == "fail"


def test_a_wire_that_the_path_does_not_lie_on_must_not_be_impaired():
    far = dataclasses.replace(FOUR_HOSTS, impaired="A-B")
    near = {"links": {"host1-host2": LINK, "host2-host3": PLAIN_LINK}}
    assert judge("path", workload=far, link=near, probe=None).status == "pass"
    result = judge("path", workload=far, link=links(), probe=None)
    assert result.status == "fail"
    assert "host2-host3 to host3: lost 200 of 10000 packets (2.00 %), requested 0 %" in result.evidence
    probed = {"links": {"host2-host3": PROBE | {"loss_forward": 0.0, "loss_backward": 0.0}}}
    result = judge("path", workload=far, link=near, probe=probed)
    assert "probe host2-host3: median RTT 50.1 ms, requested 0 ns" in result.evidence


def test_one_host_without_a_wire_has_no_path_to_judge():
    clean = dataclasses.replace(PLAIN, rtt_ns=0, forward=(), backward=())
    one = dataclasses.replace(FOUR_HOSTS, hosts=1)
    assert judge("path", path=clean, workload=one, link=None, probe=None).status == "pass"


def test_every_link_and_service_needs_headroom():
    busy = links(host3_host4={"cpu_user_ns": 950_000_000})
    result = judge("headroom", workload=FOUR_HOSTS, link=busy, server=services())
    assert result.status == "fail"
    assert "the link host3-host4 used 115 % of a core" in result.evidence
    starved = services(C=service(run_delay_ns=400_000_000, wall_ns=1_000_000_000))
    result = judge("headroom", workload=FOUR_HOSTS, link=links(), server=starved)
    assert result.status == "warn"
    assert "service C waited for a core 40 % of the time" in result.evidence


# --- drops and conntrack


def test_drops_of_any_host_and_service_are_found():
    full = dict(HOST) | {"counters": {"Udp6RcvbufErrors": 4}}
    result = judge("drops", transport={"host1": dict(HOST), "host3": full, "softnet_drops": 0})
    assert result.status == "fail"
    assert "host host3: Udp6RcvbufErrors grew by 4" in result.evidence
    lost = services(C=service(summary={"errors": {}, "udp_receive_drops": 9}))
    result = judge("drops", server=lost)
    assert result.status == "fail"
    assert "service C's UDP receive buffer overflowed: 9 datagrams" in result.evidence
    damaged = TRANSPORT | {"host2": dict(HOST) | {"counters": {"Udp6InErrors": 5}}}
    assert judge("drops", transport=damaged).status == "fail"
    corrupting = dataclasses.replace(PATH, forward=({"kind": "corrupt", "probability": 0.01}, *LOSSY))
    assert judge("drops", path=corrupting, transport=damaged).status == "pass"
    # a socket cannot tell damaged datagrams from those it had no room for; the host's counters can
    assert judge("drops", path=corrupting, server=lost, load=LOAD | {"udp_receive_errors": 2}).status == "pass"
    overflown = TRANSPORT | {"host2": dict(HOST) | {"counters": {"UdpRcvbufErrors": 1}}}
    assert judge("drops", path=corrupting, server=lost, transport=overflown).status == "fail"
    assert judge("drops", path=corrupting, server=lost, transport=None).status == "fail"


def table(**changes):
    return {"host2": dict(HOST) | {"conntrack": dict(HOST["conntrack"]) | changes}, "softnet_drops": 0}


def test_what_a_full_table_refused_on_its_way_out_is_no_drop_of_the_host():
    """Netfilter's refusal counts as a datagram that the host discarded: `IpOutDiscards` grows with it."""

    def grown(discards, **changes):
        host = table(**changes)
        return host | {"host2": host["host2"] | {"counters": discards}}

    assert judge("drops", transport=grown({"IpOutDiscards": 1, "Ip6OutDiscards": 2}, refused=3)).status == "pass"
    assert judge("drops", transport=grown({"IpOutDiscards": 3}, drop=3)).status == "pass"
    more = judge("drops", transport=grown({"IpOutDiscards": 1, "Ip6OutDiscards": 4}, refused=3))
    assert more.status == "fail" and "Ip6OutDiscards grew by 2" in more.evidence
    assert judge("drops", transport=grown({"IpOutDiscards": 1})).status == "fail"
    assert judge("drops", transport=grown({"UdpRcvbufErrors": 1}, refused=3)).status == "fail"


def test_a_full_table_of_connections_fails_with_its_numbers_and_remedy():
    result = judge("conntrack", transport=table(drop=37, entries=262_144))
    assert result.status == "fail"
    assert result.value == 37
    assert "host host2: its full connection table dropped 37 packets of new connections" in result.evidence
    assert "262144 connections in it, the kernel's maximum is 262144" in result.evidence
    assert "nf_conntrack_max" in result.remedy
    assert "NOTRACK" in result.remedy
    result = judge("conntrack", transport=table(refused=3, limit=8, entries=8))
    assert result.status == "warn"  # a size that the study asked for
    assert "the lab's limit 8" in result.evidence


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, "pass"),
        ({"entries": 250_000}, "warn"),
        ({"early_drop": 2}, "warn"),
        ({"insert_failed": 1}, "warn"),
        ({"limit": 8, "entries": 8}, "pass"),
        ({"entries": 5, "max": 0}, "pass"),  # 0: as many as there is memory for
        ({"entries": 5, "max": None}, "pass"),
    ],
)
def test_a_table_with_room_passes_and_a_nearly_full_one_warns(changes, status):
    assert judge("conntrack", transport=table(**changes)).status == status


def test_a_kernel_that_tracks_nothing_passes_and_nothing_read_is_unknown():
    nothing = dict(HOST) | {"conntrack": None}
    result = judge("conntrack", transport={"host2": nothing})
    assert (result.status, result.evidence) == ("pass", "host host2 tracks no connections")
    result = judge("conntrack", transport={"host1": nothing, "host2": dict(HOST), **table(limit=8, entries=3)})
    assert "host host2: no packet met a full connection table (3 connections in it" in result.evidence
    result = judge("conntrack", transport={"host1": nothing, "host2": dict(HOST), "host3": nothing})
    assert result.evidence == "3 of 3 hosts track no connections"
    earlier = {"host2": {"counters": {}, "devices": {}}}
    assert judge("conntrack", transport=earlier).status == "unknown"


# --- service


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"ended": "killed by signal 9", "summary": None}, "service C on host2 died: killed by signal 9"),
        ({"running": False}, "service C on host2 was not running at the end"),
        ({"summary": None}, "service C on host2 ended without its final report"),
        (
            {"summary": {"errors": {"malformed:http2": 2}}},
            "service C on host2 counted 2 errors, the client 0: what arrived is not HTTP/2",
        ),
    ],
)
def test_a_service_that_died_or_erred_in_silence_fails_and_excludes(changes, text):
    result = judge("service", server=services(C=service(**changes)))
    assert result.status == "fail"
    assert text in result.evidence
    assert "service B" not in result.evidence
    assert not is_valid([result])


def test_errors_that_the_rows_show_are_no_secret():
    met = services(C=service(summary={"errors": {"tls:alert": 3}}))
    assert judge("service", server=met, samples=facts(errors={"status": 3})).status == "pass"
    assert judge("service", server=met, load=LOAD | {"errors": 3}).status == "pass"
    assert judge("service", server=met, load=LOAD | {"errors": 2}).status == "fail"


def test_ends_of_connections_are_told_not_held_against_the_trial():
    result = judge("service", server=services(B=service(summary={"errors": {"idle_timeout": 4}})))
    assert result.status == "warn"
    assert "service B on host2 saw 4 connections end badly" in result.evidence


def test_one_error_and_one_connection_are_counted_as_one():
    met = services(C=service(summary={"errors": {"tls:alert": 1}}))
    assert "counted 1 error, the client 0" in judge("service", server=met).evidence
    met = services(B=service(summary={"errors": {"idle_timeout": 2}}))
    said = judge("service", server=met, samples=facts(errors={"status": 1})).evidence
    assert "saw 2 connections end badly (idle_timeout 2), the client counted 1 failure" in said
    met = services(B=service(summary={"errors": {"idle_timeout": 1}}))
    assert "saw 1 connection end badly" in judge("service", server=met).evidence


def test_one_server_without_services_passes():
    assert judge("service").status == "pass"
