"""Every check of a trial but that of the path: what passes, what fails, and what it says."""

import dataclasses

import pytest

from tests.analysis.checks.sound import (
    HOST,
    LINK,
    LOAD,
    LOSSY,
    PATH,
    SERVER,
    TRANSPORT,
    evidence,
    facts,
    judge,
)
from trifecta.analysis.checks import TRIAL_CHECKS, check_trial, is_valid
from trifecta.design import failures
from trifecta.design.model import PathSpec, RequestsWorkload


def test_a_sound_trial_passes_every_check():
    results = check_trial(evidence())
    assert [(r.check, r.status, r.evidence) for r in results if r.status != "pass"] == []
    of_others = {"same_page", "browser", "playback", "capture", "frames", "answers"}  # browsers, captures, elsewhere
    assert [r.check for r in results] == [name for name in TRIAL_CHECKS if name not in of_others]
    assert is_valid(results)
    assert all(r.evidence for r in results)


@pytest.mark.parametrize("arm", ["h1", "h2", "h3", "h2#aa"])
def test_every_arm_of_a_sound_block_passes_beside_its_siblings(arm):
    siblings = tuple(evidence(other) for other in ("h1", "h2", "h3", "h2#aa") if other != arm)
    assert is_valid(check_trial(evidence(arm, siblings=siblings)))


def test_nothing_measured_is_unknown_and_a_trial_without_result_is_not_valid():
    empty = dict.fromkeys(("samples", "load", "server", "probe", "machine", "transport", "facts", "link"))
    results = check_trial(evidence(path=PathSpec(name="clean"), **empty))
    assert {r.status for r in results if r.check != "errors"} == {"unknown"}
    assert not is_valid(results)


# --- protocol


def test_one_request_over_another_protocol_fails():
    result = judge("protocol", samples=facts(protocols={"h3": 199, "h1": 1}))
    assert result.status == "fail"
    assert "1 of 200 requests used another protocol (h3 199, h1 1)" in result.evidence


def test_a_server_that_does_not_offer_the_protocol_fails():
    nothing = facts(protocols={}, bytes_in={}, errors={"tls:alpn": 200})
    result = judge("protocol", samples=nothing)
    assert (result.status, result.value) == ("fail", 0.0)
    assert "no request was answered: the server does not agree to HTTP/3 (ALPN)" in result.evidence
    assert "(200 × tls:alpn)" in result.evidence and result.remedy.endswith("to offer HTTP/3 on this port")


@pytest.mark.parametrize(
    ("error", "said", "todo"),
    [
        ("content", "the octets of the content are wrong, at the right length (200 × content)", "bytes/N"),
        ("length", "the content is shorter or longer than requested (200 × length)", "serves the complete object"),
    ],
)
def test_wrong_octets_are_called_wrong_octets(error, said, todo):
    """And no sign of another protocol."""
    nothing = facts(protocols={}, bytes_in={}, errors={error: 200})
    result = judge("protocol", samples=nothing)
    assert result.status == "unknown" and "responses arrived, but none was correct" in result.evidence
    for name in ("errors", "same_work"):
        found = judge(name, samples=nothing)
        assert found.status == "fail" and said in found.evidence and todo in found.remedy, name


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("tls:certificate", "the server's certificate does not verify"),
        ("tls:alert", "does not accept the certificate, cipher or key exchange"),
        ("malformed:http1_over_http2", "HTTP/1.1 was answered although HTTP/2 had been negotiated"),
    ],
)
def test_what_went_wrong_is_a_sentence(error, said):
    result = judge("errors", samples=facts(errors={error: 200}))
    assert said in result.evidence and f"(200 × {error})" in result.evidence and result.remedy


# --- same work


def test_a_response_with_one_byte_missing_fails():
    assert judge("same_work", samples=facts(errors={"length": 3})).status == "fail"
    result = judge("same_work", samples=facts(bytes_in={1000: 199, 999: 1}))
    assert result.status == "fail"
    assert "1 of 999 B" in result.evidence


def test_fewer_requests_than_asked_for_fail_but_not_where_time_was_asked_for():
    assert judge("same_work", samples=facts(samples=100)).status == "fail"
    timed = RequestsWorkload(duration_ns=10**9)
    assert judge("same_work", samples=facts(samples=100), workload=timed).status == "pass"


def test_arms_with_other_responses_fail():
    other = evidence("h1", samples=facts(bytes_in={2000: 200}))
    assert judge("same_work", siblings=(other,)).status == "fail"
    nothing = evidence("h1", samples=facts(bytes_in={}, errors={"timeout": 200}))
    assert judge("same_work", siblings=(nothing,)).status == "pass"  # its own checks fail, not its neighbour's


def test_methods_without_content_expect_none():
    head = RequestsWorkload(method="HEAD", requests=100)
    assert judge("same_work", workload=head, samples=facts(bytes_in={0: 200})).status == "pass"
    assert judge("same_work", workload=head).status == "fail"


# --- errors


def test_failures_of_a_trial_that_does_not_count_are_not_said_to_count_as_slow():
    lost = judge("errors", samples=facts(errors={"reset": 10})).evidence
    assert lost.endswith("(10 × reset); they count as slower than all others")
    refused = judge("errors", samples=facts(errors={"status": 10}))
    assert refused.status == "warn"
    assert refused.evidence.endswith("(10 × status); the check same work leaves the trial out")
    assert judge("same_work", samples=facts(errors={"status": 10})).status == "fail"


def test_failures_warn_with_their_classes():
    result = judge("errors", samples=facts(errors={"timeout": 3, "reset": 1}))
    assert result.status == "warn"
    assert (
        "4 of 200 requests failed: connected, but no complete response arrived in time (3 × timeout); the peer"
        in result.evidence
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"trouble": "client exited with 101"}, "client exited with 101"),
        ({"load": None}, "left no result"),
        ({"load": LOAD | {"ended": "no_response"}}, "the client gave up without a single response after 200 requests"),
        ({"load": LOAD | {"ended": "total_timeout"}}, "total timeout"),
        ({"load": LOAD | {"ended": "signal"}}, "a signal ended the client"),
        ({"samples": facts(errors={"timeout": 200})}, "none of 200 requests succeeded"),
        ({"samples": facts(errors={"tls:certificate": 2})}, "failed in TLS"),
    ],
)
def test_a_trial_that_measured_nothing_fails(changes, said):
    result = judge("errors", **changes)
    assert result.status == "fail"
    assert said in result.evidence


def test_a_trial_that_failed_in_its_warmup_says_why():
    """A client that nobody answers gives up before anything is measured: the reason is in the warm-up alone."""
    refused = facts(samples=0, warmup_samples=20, warmup_errors={"tls:alert": 20}, errors={}, protocols={}, bytes_in={})
    gave_up = {"samples": refused, "load": LOAD | {"ended": "no_response"}}
    said = judge("errors", **gave_up)
    assert said.evidence.startswith("the client gave up without a single response after 20 requests of the warm-up")
    assert "aborted the TLS handshake" in said.evidence
    spoken = judge("protocol", **gave_up)
    assert spoken.status == "fail"
    assert spoken.evidence.startswith("HTTP/3 was requested, but no request was answered: the peer aborted")
    remedies = {said.remedy, spoken.remedy, judge("same_work", **gave_up).remedy}
    assert remedies == {failures.remedy({"tls:alert": 20})}
    cut_off = dataclasses.replace(refused, samples=9, errors={"interrupted": 9})
    assert "(20 × tls:alert)" in judge("errors", **gave_up | {"samples": cut_off}).evidence
    assert "interrupted" not in judge("protocol", **gave_up | {"samples": cut_off}).evidence
    assert "after 20 requests of the warm-up" in judge("errors", **gave_up | {"samples": cut_off}).evidence
    wrong = dataclasses.replace(
        refused, samples=50, errors={"length": 50}, warmup_samples=5, warmup_errors={"length": 5}
    )
    assert judge("errors", samples=wrong).evidence.endswith("than requested (50 × length)")
    answered = dataclasses.replace(refused, warmup_errors={"timeout": 3})
    assert judge("protocol", samples=answered).evidence.endswith("no request was made after the warm-up")


# --- gaps


@pytest.mark.parametrize(
    ("gap_ms", "measured_s", "status"), [(1, 0.1, "pass"), (19, 0.1, "pass"), (150, 60, "warn"), (150, 2, "fail")]
)
def test_a_client_that_stood_still_is_judged_by_the_time_measured(gap_ms, measured_s, status):
    load = LOAD | {"longest_gap_ns": gap_ms * 1_000_000, "measured_ns": int(measured_s * 1e9)}
    result = judge("gaps", load=load)
    assert result.status == status
    assert f"paused for at most {gap_ms} ms" in result.evidence


def test_a_client_with_a_share_of_a_core_may_stand_still():
    limited = RequestsWorkload(requests=220, warmup_requests=20, client_cpu=0.1)
    assert judge("gaps", workload=limited, load=LOAD | {"longest_gap_ns": 90_000_000}).status == "warn"


def test_a_client_that_does_not_tell_its_gaps_is_unknown():
    told = {name: value for name, value in LOAD.items() if name != "longest_gap_ns"}
    assert judge("gaps", load=told).status == "unknown"


# --- headroom


def test_a_client_or_link_at_its_limit_fails():
    assert judge("headroom", load=LOAD | {"busy_ratio": 0.95}).status == "fail"
    busy_link = judge("headroom", link=LINK | {"cpu_user_ns": 750_000_000})
    assert busy_link.status == "fail"
    assert "the link used 95 % of a core" in busy_link.evidence


def test_a_starved_client_fails_although_it_used_little_cpu():
    result = judge("headroom", load=LOAD | {"busy_ratio": 0.3, "run_delay_ns": 600_000_000})
    assert result.status == "fail"
    assert "the client waited for a core 60 % of the time" in result.evidence


def test_a_starved_server_is_a_warning_for_it_is_what_is_measured():
    waited = SERVER | {"run_delay_ns": 400_000_000, "wall_ns": 1_000_000_000}
    result = judge("headroom", server=waited)
    assert result.status == "warn"
    assert "the server waited for a core 40 % of the time" in result.evidence


def test_a_client_with_a_share_of_a_core_is_judged_by_that_share():
    given = LOAD | {"cpu_share": 0.1, "throttled_ns": 100_000_000}
    used = judge("headroom", load=given | {"busy_ratio": 0.095})
    assert (used.status, used.value) == ("fail", pytest.approx(0.95))
    assert "the client used 95 % of the 10 % of a core it was given" in used.evidence
    assert judge("headroom", load=given | {"busy_ratio": 0.05}).status == "pass"
    waited = judge("headroom", load=given | {"busy_ratio": 0.05, "throttled_ns": 300_000_000})
    assert waited.status == "fail"
    assert "the client waited for its share 30 % of the time" in waited.evidence


def test_a_server_that_has_no_core_left_is_a_warning_where_it_is_asked_for_a_rate():
    open_loop = RequestsWorkload(loop="open", rate_per_s=1000, requests=220)
    whole = SERVER | {"cpu_ns": 950_000_000, "wall_ns": 1_100_000_000}
    found = judge("headroom", workload=open_loop, server=whole)
    assert found.status == "warn"
    assert "the server used 95 % of its core" in found.evidence
    assert judge("headroom", server=whole).status == "pass"  # a closed loop takes what there is
    limited = judge("headroom", server=whole | {"cpu_ns": 95_000_000, "cpu_share": 0.1, "throttled_ns": 0})
    assert limited.status == "warn"
    assert "of the 10 % of a core it was given" in limited.evidence


def test_an_open_loop_must_keep_its_schedule():
    open_loop = RequestsWorkload(loop="open", rate_per_s=1000, requests=220)
    assert judge("headroom", workload=open_loop).status == "pass"
    late = LOAD | {"schedule_lag_ns": {"p99": 3_000_000}}
    assert judge("headroom", workload=open_loop, load=late).status == "fail"
    assert judge("headroom", workload=open_loop, load=late).remedy.endswith("give the client its own core")
    full = judge("headroom", workload=open_loop, load=late, samples=facts(in_flight_when_due=10.0))
    assert full.status == "fail" and full.evidence.endswith(
        "when the latest were due, all 10 that may be in flight were"
    )
    assert full.remedy == "allow more requests in flight (in_flight), or lower the rate"
    nine = judge("headroom", workload=open_loop, load=late, samples=facts(in_flight_when_due=9.0))
    assert nine.remedy.endswith("give the client its own core")
    assert judge("headroom", load=late).status == "pass"  # a closed loop has no schedule
    assert judge("headroom", workload=open_loop, load=LOAD | {"missed_slots": 10}).status == "fail"
    unmeasured = LOAD | {"schedule_lag_ns": None}
    assert judge("headroom", workload=open_loop, load=unmeasured).status == "unknown"


# --- drops


def test_a_full_receive_buffer_fails():
    assert judge("drops", load=LOAD | {"udp_receive_errors": 7}).status == "fail"
    overflow = dict(HOST) | {"counters": {"UdpRcvbufErrors": 12}}
    result = judge("drops", transport=TRANSPORT | {"server": overflow})
    assert result.status == "fail"
    assert "host server: UdpRcvbufErrors grew by 12" in result.evidence
    assert "rmem_max" in result.remedy


def test_backlogs_devices_and_listen_queues_fail_but_asked_for_corruption_does_not():
    assert judge("drops", transport=TRANSPORT | {"softnet_drops": 3}).status == "fail"
    device = dict(HOST) | {"devices": {"eth0": {"rx_drops": 1}}}
    assert "eth0 dropped 1 packet" in judge("drops", transport=TRANSPORT | {"client": device}).evidence
    assert "buffer overflowed: 1 datagram lost" in judge("drops", load=LOAD | {"udp_receive_errors": 1}).evidence
    assert "was full: 1 packet dropped" in judge("drops", transport=TRANSPORT | {"softnet_drops": 1}).evidence
    listen = dict(HOST) | {"counters": {"TcpExtListenDrops": 1}}
    assert judge("drops", transport=TRANSPORT | {"server": listen}).status == "fail"
    damaged = TRANSPORT | {"server": dict(HOST) | {"counters": {"UdpInErrors": 5}}}
    assert judge("drops", transport=damaged).status == "fail"
    corrupting = dataclasses.replace(PATH, forward=({"kind": "corrupt", "probability": 0.01}, *LOSSY))
    assert judge("drops", path=corrupting, transport=damaged).status == "pass"


# --- steady state, machine, clocks


def test_drift_warns_then_fails_and_a_warm_up_that_did_not_happen_warns():
    assert judge("steady_state", samples=facts(first_half_p50_ns=70e6)).status == "warn"
    assert judge("steady_state", samples=facts(first_half_p50_ns=150e6)).status == "fail"
    few = facts(samples=40, first_half_p50_ns=150e6)
    assert judge("steady_state", samples=few).status == "warn"
    assert judge("steady_state", samples=facts(warmup_samples=0)).status == "warn"
    assert judge("steady_state", samples=facts(first_half_p50_ns=None)).status == "unknown"


@pytest.mark.parametrize(
    ("loop", "in_flight", "order"), [("closed", 10, True), ("closed", 1, False), ("open", 10, False)]
)
def test_a_drift_that_can_be_an_order_of_connections_has_that_for_a_remedy(loop, in_flight, order):
    workload = RequestsWorkload(loop=loop, in_flight=in_flight, requests=100)
    remedy = judge("steady_state", workload=workload, samples=facts(first_half_p50_ns=150e6)).remedy
    assert remedy.startswith("make the warm-up or the trial longer")
    assert remedy.endswith("or allow fewer requests in flight") == order
