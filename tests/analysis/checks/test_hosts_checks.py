"""Between hosts: what nobody asked for is no fault, and what nobody saw is unknown."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.analysis.checks import sound
from trifecta.analysis.checks import TRIAL_CHECKS, check_trial, is_valid
from trifecta.analysis.checks.evidence import Evidence
from trifecta.analysis.checks.path import was_delivered
from trifecta.design.machine import Machine
from trifecta.design.model import CheckResult, PathSpec

DIRECT = PathSpec(name="clean", as_is=True)
HOSTS = {"client": Machine("ssh://a"), "server": Machine("ssh://b")}
COUNTERS = {"counters": sound.HOST["counters"], "devices": {}, "loopback": {}}
UNSEEN: dict[str, Any] = {
    "cpus": None, "steal_share": None, "other_cpu_share": None, "resolution": 0.0, "pressure_share": {},
    "cpu_mhz": None,
}  # fmt: skip
PROBE = sound.PROBE | {"clock_offset_ns": -3_000_000_000, "clock_bound_ns": 25_000_000}
FAR = 7 * 86_400 * 10**9  # the client's machine runs for a week, the runner's for a second


def evidence(arm: str = "h3", **changes: Any) -> Evidence:
    load = sound.LOAD if arm == "h3" else sound.LOAD | {"quic": None, "tcp": sound.TCP}
    given = {
        "link": None,
        "machine": UNSEEN,
        "transport": {"client": COUNTERS, "server": COUNTERS},
        "probe": PROBE,
        "load": load | {"started_ns": FAR + 1_010, "ended_ns": FAR + 1_000_000_000},
    }
    made = sound.evidence(arm, path=DIRECT, **(given | changes))
    return dataclasses.replace(made, study=dataclasses.replace(made.study, hosts=HOSTS))


def result(name: str, of: Evidence) -> CheckResult:
    (found,) = TRIAL_CHECKS[name].function(of)
    return found


@pytest.mark.parametrize("arm", ["h1", "h2", "h3"])
def test_a_sound_trial_counts_and_says_what_nobody_saw(arm: str) -> None:
    results = check_trial(evidence(arm))
    assert is_valid(results), [one for one in results if one.status == "fail"]
    unknown = {one.check for one in results if one.status == "unknown"}
    assert unknown == {"path", "machine", "conntrack"}
    assert not [one for one in results if one.status == "warn"]


def test_the_path_is_told_as_the_probe_found_it() -> None:
    found = result("path", evidence())
    assert found.status == "unknown"
    assert "median RTT 50.1 ms, 2.00 % lost to the server, 2.00 % lost to the client" in found.evidence


@pytest.mark.parametrize(
    ("probe", "status", "said"),
    [
        ({"received": 0}, "unknown", "none of 200 probe packets came back"),
        ({"largest_payload_bytes": 1400}, "warn", "the largest UDP payload that passes is 1400 B"),
    ],
)
def test_a_network_that_does_not_let_the_probe_through_is_told(probe: dict[str, Any], status: str, said: str) -> None:
    found = result("path", evidence(probe=PROBE | probe))
    assert found.status == status
    assert said in found.evidence
    assert found.remedy
    assert was_delivered(DIRECT, evidence().workload, PROBE | probe), "there is nothing that another probe could mend"


def test_the_clock_is_the_clients_and_how_far_the_servers_is_apart_has_a_bound() -> None:
    found = result("clocks", evidence())
    assert found.status == "pass"
    assert found.evidence == (
        "all latencies are from the client's CLOCK_MONOTONIC; the server's clock is -3 s ahead, give or take 25 ms"
    )
    unprobed = result("clocks", evidence(probe=sound.PROBE))
    assert (unprobed.status, "is not known" in unprobed.evidence) == ("pass", True)


@pytest.mark.parametrize(("by_chrony_ns", "status"), [(-3_001_000_000, "pass"), (-3_500_000_000, "warn")])
def test_a_chronyd_that_contradicts_the_packets_warns_with_both_numbers(by_chrony_ns: int, status: str) -> None:
    told = {
        "clock_exchange_offset_ns": -3_000_000_000,
        "clock_exchange_bound_ns": 25_000_000,
        "clock_chrony_offset_ns": by_chrony_ns,
        "clock_chrony_bound_ns": 2_000_000,
    }
    found = result("clocks", evidence(probe=PROBE | told))
    assert found.status == status
    assert f"{by_chrony_ns / 1e9:.6f} s, give or take 2 ms" in found.evidence
    if status == "warn":
        assert "-3.000000 s, give or take 25 ms" in found.evidence
        assert "they contradict each other" in found.evidence
        assert found.remedy


@pytest.mark.parametrize("ended_ns", [FAR + 2_000_000_000, FAR - 5_000_000])
def test_a_clock_that_was_set_meanwhile_is_found(ended_ns: int) -> None:
    load = sound.LOAD | {"started_ns": FAR, "ended_ns": ended_ns}
    found = result("clocks", evidence(load=load))
    assert found.status == "fail"
    assert found.remedy


def test_a_request_waits_for_the_path_as_it_is_and_not_for_a_timer() -> None:
    counters = {**COUNTERS, "counters": sound.HOST["counters"] | {"TcpExtDelayedACKs": 500}}
    of = evidence("h2", transport={"client": counters, "server": COUNTERS})
    of.row["wait_p50_ns"] = 52_000_000  # the path's 50 ms
    assert result("delayed_ack", of).status == "pass"
    of.row["wait_p50_ns"] = 95_000_000
    assert result("delayed_ack", of).status == "warn"


def test_what_a_host_itself_loses_fails_and_damage_on_the_way_does_not() -> None:
    for name, status in (("UdpRcvbufErrors", "fail"), ("UdpInErrors", "pass")):
        counters = {**COUNTERS, "counters": sound.HOST["counters"] | {name: 2}}
        assert result("drops", evidence(transport={"client": counters, "server": COUNTERS})).status == status
    lost = result("drops", evidence(load=None, transport={}))
    assert (lost.status, lost.evidence) == ("unknown", "nothing for this check was measured in this trial")
    told = sound.LOAD | {"udp_receive_errors": 3}
    assert result("drops", evidence(load=told)).status == "fail"


def test_with_a_host_in_the_middle_the_path_is_judged_as_in_a_lab() -> None:
    between = sound.evidence("h3", transport={"client": COUNTERS, "server": COUNTERS})
    machines = {**HOSTS, "middle": Machine("ssh://c", devices=("eth1", "eth2"))}
    of = dataclasses.replace(between, study=dataclasses.replace(between.study, hosts=machines))
    assert result("path", of).status == result("path", sound.evidence("h3")).status == "pass"
    lost = dataclasses.replace(of, link=None)
    assert result("path", lost).status == "fail"
    damaged = {**COUNTERS, "counters": sound.HOST["counters"] | {"UdpInErrors": 2}}
    assert result("drops", dataclasses.replace(of, transport={"client": damaged, "server": COUNTERS})).status == "pass"


def test_among_services_the_way_that_was_probed_is_named() -> None:
    of = evidence(probe=PROBE | {"wire": "B-C"})
    assert "median RTT 50.1 ms on B-C, 2.00 % lost" in result("path", of).evidence
    assert result("clocks", of).evidence == (
        "all latencies are from the client's CLOCK_MONOTONIC; the clock of C's host is -3 s ahead of that of B's, "
        "give or take 25 ms"
    )


@pytest.mark.parametrize(("last", "known"), [("ssh://c", True), ("ssh://b", False)])
def test_frames_over_the_loopback_of_a_host_that_services_share_are_unknown(last: str, known: bool) -> None:
    services = {
        "A": {"host": "here", "client": True, "asked": {"B": "h3"}},
        "B": {"host": "ssh://b", "client": False, "asked": {"C": "h3"}},
        "C": {"host": last, "client": False, "asked": {}},
    }
    found = TRIAL_CHECKS["frames"].function(evidence(server=sound.SERVER | {"services": services}))
    assert [one.status for one in found] == ([] if known else ["unknown"])
