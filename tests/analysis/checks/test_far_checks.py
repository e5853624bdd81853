"""Checks of trials at servers elsewhere: what one side sees, what it compares, and what it calls unseen."""

import dataclasses

import pytest

from tests.analysis.checks.sound import LOAD, TCP, Facts
from trifecta.analysis.checks import RUN_CHECKS, TRIAL_CHECKS, check_trial, is_valid
from trifecta.analysis.checks.evidence import Evidence, RunEvidence
from trifecta.design import plan
from trifecta.design.study_file import parse_study

STUDY = parse_study(
    "study: far\nworkload: {kind: far, requests: 4, url: 'https://a.example/'}\nfactors: {connection: [new, reused]}\n",
    "f",
)
MACHINE = {
    "cpus": 2,
    "steal_share": 0.0,
    "other_cpu_share": 0.01,
    "resolution": 0.01,
    "pressure_share": {},
    "cpu_mhz": [],
}
FIELDS = {"x-cache": {"HIT": 4}, "cf-ray": {"8f1e-FRA": 4}, "server": {"nginx": 4}, "via": {"1.1 a": 4}}


def fields(**changes):
    found = FIELDS | {name.replace("_", "-"): values for name, values in changes.items()}
    return {name: {"values": values, "others": 0} for name, values in found.items()}


def evidence(arm="h3", connection="new", siblings=(), load=None, samples=None, address="192.0.2.1", own=None):
    cell = next(one for one in plan.cells(STUDY) if one.levels["connection"] == connection)
    trial = next(one for one in plan.block_trials(STUDY, cell, 0, 0) if one.arm == arm)
    quic = {"congestion_control": "cubic", "initial_window_bytes": 14_720, "min_rtt_ns": 30_000_000, "lost_packets": 0}
    tcp = dict(TCP) | {"min_rtt_ns": 30_500_000, "retransmits": 0, "packet_threshold": 3, "paced": False}
    transports = {"quic": quic, "tcp": None} if arm == "h3" else {"quic": None, "tcp": tcp}
    measured = {"warmup_samples": 0, "samples": 4, "bytes_in": {1000: 4}, "statuses": {"200": 4}}
    handshakes = {} if connection == "reused" else {"full": 4}
    return Evidence(
        study=STUDY,
        trial=trial,
        row={"started_ns": 1_000, "ended_ns": 1_000_001_000, "latency_p50_ns": 52_000_000},
        samples=samples or Facts(protocols={trial.protocol: 4}, handshakes=handshakes, **measured),
        load=dict(LOAD) | transports | {"response_fields": own or fields()} | (load or {}),
        server={"name": "elsewhere", "url": "https://a.example/", "address": address, "cpu_ns": None},
        machine=MACHINE,
        transport={"softnet_drops": 0},
        facts={"clocksource": "tsc"},
        siblings=siblings,
    )


def judge(name, *args, **changes):
    (result,) = TRIAL_CHECKS[name].function(evidence(*args, **changes))
    return result


def test_a_sound_trial_counts_and_says_what_is_unseen():
    results = check_trial(evidence(siblings=(evidence("h2"), evidence("h1"))))
    assert is_valid(results), [(one.check, one.evidence) for one in results if one.status == "fail"]
    unseen = {one.check for one in results if one.status == "unknown" and one.evidence == "not observable from here"}
    assert unseen == {"reordering", "delayed_ack", "conntrack", "service"}
    assert [one.check for one in results if one.status == "warn"] == []


THERE = parse_study(
    "study: far\nworkload: {kind: far, requests: 4, url: 'https://a.example/', vantage: 'ssh://a'}\n"
    "factors: {connection: [new, reused]}\n",
    "f",
)
AHEAD_NS = 10**15


@pytest.mark.parametrize(("took_ns", "status"), [(900_000_000, "pass"), (1_500_000_000, "fail"), (-5_000_000, "fail")])
def test_a_vantage_point_has_a_clock_of_its_own(took_ns, status):
    load = {"started_ns": AHEAD_NS, "ended_ns": AHEAD_NS + took_ns}
    (found,) = TRIAL_CHECKS["clocks"].function(dataclasses.replace(evidence(load=load), study=THERE))
    assert found.status == status, found.evidence
    assert "the server's" not in found.evidence
    assert judge("clocks", load=load).status == "fail", "this machine has one clock"


def test_what_a_vantage_points_host_dropped_is_unseen():
    there = dataclasses.replace(evidence(load={"udp_receive_errors": 0}), study=THERE, transport={})
    (found,) = TRIAL_CHECKS["drops"].function(there)
    assert found.status == "pass"
    assert found.evidence == "the client's socket dropped no packet; drops of its host are not observable"


def test_the_path_is_what_the_arms_see_of_it():
    same = judge("path", siblings=(evidence("h2"),))
    assert same.status == "pass"
    assert same.evidence == "from here: minimum RTT 30 ms, 0 of our packets lost; the rest is not observable"
    far_off = evidence("h2", load={"tcp": dict(TCP) | {"min_rtt_ns": 60_000_000, "retransmits": 0}})
    apart = judge("path", siblings=(far_off,))
    assert apart.status == "warn"
    assert "minimum RTT 30 ms here, 60 ms in h2, to the same address" in apart.evidence
    elsewhere = dataclasses.replace(far_off, server={"address": "192.0.2.2"})
    assert judge("path", siblings=(elsewhere,)).status == "pass"
    assert judge("path", load={"quic": None}).evidence == "not observable from here"


@pytest.mark.parametrize(
    ("there", "status", "said"),
    [
        ({"cf_ray": {"8f1e-AMS": 4}}, "fail", "place FRA here, AMS in h2"),
        ({"x_cache": {"MISS": 4}}, "warn", "cache state HIT here, MISS in h2"),
        ({"via": {"1.1 b": 4}}, "warn", "proxies (Via) a here, b in h2"),
        ({"server": {"LiteSpeed": 4}}, "warn", "program (Server) nginx here, litespeed in h2"),
        ({"server_timing": {"cdn; desc=x": 4}}, "warn", "Server-Timing none here, cdn x in h2"),
        ({}, "pass", "place FRA; cache state HIT"),
    ],
)
def test_answers_are_alike_between_arms_or_it_is_said(there, status, said):
    result = judge("answers", siblings=(evidence("h2", own=fields(**there)),))
    assert result.status == status
    assert said in result.evidence


def test_a_cache_that_warms_up_within_a_trial_is_said():
    result = judge("answers", own=fields(x_cache={"MISS": 1, "HIT": 3}))
    assert (result.status, result.evidence) == ("warn", "the responses show several cache states (HIT 3, MISS 1)")


def test_a_connection_that_was_to_be_reused_must_have_been():
    opened = Facts(samples=4, warmup_samples=1, protocols={"h3": 4}, bytes_in={1000: 4}, handshakes={"full": 1})
    result = judge("answers", connection="reused", samples=opened)
    assert result.status == "fail"
    assert "1 of 4 measured requests opened a connection" in result.evidence
    assert judge("answers", connection="reused").status == "pass"


@pytest.mark.parametrize(("size", "status"), [(1000, "pass"), (1010, "pass"), (1100, "warn"), (2000, "fail")])
def test_arms_that_got_other_answers_did_other_work(size, status):
    other = evidence("h2", samples=Facts(samples=4, warmup_samples=0, protocols={"h2": 4}, bytes_in={size: 4}))
    assert judge("same_work", siblings=(other,)).status == status


def test_answers_may_change_within_an_arm():
    changing = Facts(samples=4, warmup_samples=0, protocols={"h3": 4}, bytes_in={1000: 2, 1004: 2})
    result = judge("same_work", samples=changing)
    assert (result.status, result.evidence) == ("pass", "all 4 responses had 1,000 to 1,004 B")


def test_a_server_that_asked_for_patience_is_not_measured():
    away = Facts(samples=1, warmup_samples=0, protocols={}, bytes_in={}, errors={"status": 1}, handshakes={})
    result = judge("errors", load={"ended": "status"}, samples=away)
    assert result.status == "fail"
    assert "the server asked to slow down (429 or 503)" in result.evidence


def test_other_certificates_of_a_stranger_are_said_and_excuse_nothing():
    chains = [{"certificates": 3, "octets": 4000, "connections": 4}]
    other = evidence("h2", load={"handshakes": {"chains": chains, "flights": {}}})
    result = judge("parity", siblings=(other,))
    assert result.status == "warn"
    assert "3 certificates of 4000 B" in result.evidence


def test_a_lost_first_packet_is_what_the_path_did():
    lost = dict(TCP) | {"initial_window_bytes": 1460, "mss_bytes": 1460, "retransmits": 1, "packet_threshold": 8}
    usual = evidence("h1", load={"tcp": dict(TCP) | {"packet_threshold": 8}})
    result = judge("parity", "h2", load={"tcp": lost}, siblings=(usual,))
    assert (result.status, "not observable" in result.evidence) == ("unknown", True), result


def test_the_clients_window_is_about_what_it_sends_and_is_warned_of():
    remembered = dict(TCP) | {"initial_window_bytes": 327_410, "packet_threshold": 3, "paced": False}
    result = judge("parity", siblings=(evidence("h2", load={"tcp": remembered}),))
    assert (result.status, result.value) == ("warn", 327_410 / 14_720)
    assert result.evidence == "initial congestion window 14720 B here, 327410 B in h2"
    assert judge("parity", siblings=(evidence("h2"),)).status == "unknown", "of the server's nobody knows"


def rows(*medians):
    return [
        {
            "cell": cell.key,
            "block": block,
            "arm": arm,
            "valid": True,
            "latency_p50_ns": took,
            "success_rate": 1.0,
            "samples": 4,
        }
        for cell in plan.cells(STUDY)[:1]
        for block, took in enumerate(medians)
        for arm in ("h2", "h2#aa")
    ]


def test_the_drift_of_the_hour_is_said():
    def drift(*medians):
        return RUN_CHECKS["drift"].function(RunEvidence(STUDY, plan.cells(STUDY), rows(*medians)))

    assert drift(30e6, 31e6) == []
    (steady,) = drift(30e6, 31e6, 32e6)
    assert steady.status == "pass"
    (moved,) = drift(30e6, 30e6, 36e6, 40e6, 45e6, 45e6)
    assert moved.status == "warn"
    said = "the baseline took 30 ms in the first third of the blocks and 45 ms in the last, 30 ms to 45 ms overall"
    assert moved.evidence == said
