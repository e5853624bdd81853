"""Every check of a trial but that of the path: what passes, what fails, and what it says."""

import dataclasses

import pytest

from tests.analysis.checks.sound import (
    HOST,
    LINK,
    LOAD,
    LOSSY,
    PATH,
    PLAIN,
    SERVER,
    TCP,
    TRANSPORT,
    evidence,
    facts,
    judge,
)
from trifecta.analysis.checks import TRIAL_CHECKS, check_trial, is_valid
from trifecta.conclude.why.result import OTHER_WINDOWS
from trifecta.design import quinn
from trifecta.design.model import Cell, PathSpec, RequestsWorkload


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
    assert "(tls:alpn 200)" in result.evidence and result.remedy.endswith("to offer HTTP/3 on this port")


@pytest.mark.parametrize(
    ("error", "said", "todo"),
    [
        ("content", "the octets of the content are wrong, at the right length (content 200)", "bytes/N"),
        ("length", "the content is shorter or longer than requested (length 200)", "serves the complete object"),
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
    assert said in result.evidence and f"({error} 200)" in result.evidence and result.remedy


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


def test_failures_warn_with_their_classes():
    result = judge("errors", samples=facts(errors={"timeout": 3, "reset": 1}))
    assert result.status == "warn"
    assert (
        "4 of 200 requests failed: connected, but no complete response arrived in time (timeout 3); the peer"
        in result.evidence
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"trouble": "client exited with 101"}, "client exited with 101"),
        ({"load": None}, "left no result"),
        ({"load": LOAD | {"ended": "no_response"}}, "no request was ever answered"),
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


# --- parity


def test_tls_1_2_against_1_3_fails():
    result = judge("parity", samples=facts(tls_versions={"1.2": 200}))
    assert result.status == "fail"
    assert "TLS version is 1.2, requested: 1.3" in result.evidence


def test_nagle_on_in_one_arm_fails_whichever_side_has_it():
    nagle = judge("parity", "h1", load=LOAD | {"quic": None, "tcp": TCP | {"nodelay": False}})
    assert nagle.status == "fail"
    assert "TCP_NODELAY is False, requested: True" in nagle.evidence
    assert judge("parity", "h2", server=SERVER | {"tcp_nodelay": False}).status == "fail"
    assert judge("parity", "h3", server=SERVER | {"tcp_nodelay": False}).status == "pass"  # QUIC has no Nagle


@pytest.mark.parametrize(
    "changes",
    [
        {"load": LOAD | {"key_exchange": "X25519MLKEM768"}},
        {"load": LOAD | {"quic": {"congestion_control": "bbr"}}},
        {"samples": facts(ciphers={"TLS_AES_128_GCM_SHA256": 199, "TLS_AES_256_GCM_SHA384": 1})},
        {"load": LOAD | {"quic": {"initial_window_bytes": 40_000, "congestion_control": "cubic"}}},
    ],
)
def test_an_arm_with_another_set_up_than_its_siblings_fails(changes):
    assert judge("parity", siblings=(evidence("h1"),), **changes).status == "fail"


def test_windows_that_differ_are_told_in_words_that_a_search_for_causes_knows():
    load = LOAD | {"quic": {"initial_window_bytes": 40_000, "congestion_control": "cubic"}}
    evidence_ = judge("parity", siblings=(evidence("h1"),), load=load).evidence
    assert f"parity: {evidence_}".startswith(OTHER_WINDOWS)


def test_a_lost_syn_leaves_tcp_one_segment_and_is_no_fault_of_the_trial():
    lost = {"quic": None, "tcp": TCP | {"initial_window_bytes": 1448, "mss_bytes": 1448, "retransmits": 1}}
    unlucky = LOAD | lost
    assert judge("parity", "h2", load=unlucky, siblings=(evidence("h3"),)).status == "pass"
    assert judge("parity", "h3", siblings=(evidence("h2", load=unlucky),)).status == "pass"
    clean = {"path": PLAIN, "load": unlucky}
    assert judge("parity", "h2", siblings=(evidence("h3", path=PLAIN),), **clean).status == "fail"
    asked = LOAD | {"quic": None, "tcp": lost["tcp"] | {"retransmits": 0}}
    assert judge("parity", "h2", load=asked, siblings=(evidence("h3"),)).status == "fail"


def test_the_hop_behind_a_proxy_is_to_have_the_congestion_control_of_the_trial():
    proxy = {"congestion_control": "cubic", "backend_congestion_control": "reno"}
    result = judge("parity", server=proxy)
    assert result.status == "warn"
    assert "connections to its backend have congestion control reno, requested: cubic" in result.evidence
    assert judge("parity", server=proxy | {"backend_congestion_control": "cubic"}).status == "pass"


SESSIONS = RequestsWorkload(requests=220, response_bytes=1000, warmup_requests=20, resumption=True)
EARLY = dataclasses.replace(SESSIONS, zero_rtt=True)


@pytest.mark.parametrize(
    ("workload", "handshakes", "status", "words"),
    [
        (SESSIONS, {"full": 10, "resumed": 190}, "pass", "session resumption taken"),
        (SESSIONS, {"full": 200}, "fail", "session resumption is refused, requested: taken"),
        (EARLY, {"full": 10, "early": 190}, "pass", "early data taken"),
        (EARLY, {"full": 10, "resumed": 190}, "fail", "early data is refused, requested: taken"),
    ],
)
def test_a_server_takes_sessions_and_early_data_where_they_are_asked_for(workload, handshakes, status, words):
    result = judge("parity", "h2", workload=workload, samples=facts(handshakes=handshakes))
    assert result.status == status
    assert words in result.evidence


def test_sessions_are_no_matter_where_none_could_be_resumed():
    few = facts(handshakes={"full": 8}, warmup_samples=0)
    assert judge("parity", "h2", workload=SESSIONS, samples=few).status == "pass"
    sound = evidence("h2", workload=SESSIONS)
    reused = dataclasses.replace(sound.trial, cell=Cell("reused", {"connection": "reused", "path": "clean"}))
    (result,) = TRIAL_CHECKS["parity"].function(dataclasses.replace(sound, trial=reused))
    assert result.status == "pass"


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("TLS13_AES_128_GCM_SHA256", "pass"),  # rustls
        ("AES_128_GCM", "pass"),  # Chromium's DevTools
        ("AES_256_GCM", "fail"),
        ("TLS_CHACHA20_POLY1305_SHA256", "fail"),
    ],
)
def test_names_of_libraries_for_the_same_cipher_are_equal(name, status):
    other = facts(ciphers={name: 200}, tls_versions={"TLSv1.3": 200})
    assert judge("parity", samples=other, siblings=(evidence("h1"),)).status == status


def test_a_server_that_knows_another_congestion_control_only_is_named_and_not_left_out():
    result = judge("parity", "h3", server={"congestion_control": {"tcp": "cubic", "quic": "reno"}})
    assert result.status == "warn"
    assert "the server's congestion control is reno, requested: cubic" in result.evidence
    assert is_valid([result])
    assert judge("parity", "h1", server={"congestion_control": {"tcp": "cubic", "quic": "reno"}}).status == "pass"


def test_a_server_that_always_turns_nagle_off_is_named_and_not_left_out():
    held = RequestsWorkload(requests=220, warmup_requests=20, tcp_nodelay=False)
    result = judge("parity", "h2", workload=held, load=LOAD | {"quic": None, "tcp": TCP | {"nodelay": False}})
    assert result.status == "warn"
    assert "the server's TCP_NODELAY is True, requested: False" in result.evidence
    asked = {"quic": None, "tcp": None, "declared": {"tcp_nodelay": True}}  # a client that says what it did
    assert judge("parity", "h2", workload=held, load=LOAD | asked).status == "fail"


def test_a_server_that_does_not_say_its_congestion_control_is_unknown():
    result = judge("parity", server={"tcp_nodelay": True})
    assert result.status == "unknown"
    assert "congestion control for this protocol is not known" in result.evidence
    assert is_valid([result])


def shown(certificates, octets, flights):
    """Handshakes with such a chain, in so many flights of the server."""
    chains = [{"certificates": certificates, "octets": octets, "connections": 200}]
    return {"handshakes": {"chains": chains, "flights": {str(flights): 199, str(flights + 1): 1}}}


def test_a_longer_chain_over_one_protocol_fails_and_says_what_it_cost():
    sibling = evidence("h2")
    result = judge("parity", "h3", load=LOAD | shown(8, 4160, 2), siblings=(sibling,), path=PLAIN)
    assert result.status == "fail"
    told = "8 certificates of 4160 B in 2 flights here and 1 certificate of 520 B in 1 flight in h2"
    assert f"the server sends {told}" in result.evidence
    assert judge("parity", "h3", siblings=(sibling,), path=PLAIN).status == "pass"
    assert "certificate chain: 1 certificate of 520 B" in judge("parity", "h3").evidence


def test_a_round_trip_that_one_chain_costs_over_quic_is_named_and_not_left_out():
    long = evidence("h2", path=PLAIN, load=LOAD | {"quic": None, "tcp": TCP} | shown(8, 4160, 1))
    result = judge("parity", "h3", load=LOAD | shown(8, 4160, 2), siblings=(long,), path=PLAIN)
    assert result.status == "warn"
    assert "handshakes took 2 server flights here and 1 in h2" in result.evidence
    assert judge("parity", "h3", load=LOAD | shown(8, 4160, 2), siblings=(long,)).status == "pass"  # the path loses


def test_resumed_sessions_have_no_chain_to_compare():
    resumed = LOAD | {"handshakes": {"chains": [], "flights": {}}}
    assert judge("parity", load=resumed, siblings=(evidence("h2"),)).status == "pass"


# --- parity: the QUIC library


def adapted(*names):
    return LOAD | {"quic": {**LOAD["quic"], "adaptations": list(names)}}


def test_a_quic_library_adapted_otherwise_than_asked_fails_and_stock_is_warned_of():
    assert judge("parity", load=adapted(*quinn.ADAPTATIONS)).status == "pass"
    wrong = judge("parity", load=adapted())
    assert wrong.status == "fail"
    assert "quinn-proto has the adaptations none, requested: window-validation, " in wrong.evidence
    stock = RequestsWorkload(requests=220, warmup_requests=20, quinn="stock")
    assert judge("parity", workload=stock, load=adapted(*quinn.ADAPTATIONS)).status == "fail"
    result = judge("parity", workload=stock, load=adapted())
    assert result.status == "warn"
    assert "the study asks for quinn-proto without window-validation, padding-cut, " in result.evidence
    assert judge("parity", "h2", workload=stock).status == "pass"


# --- parity: switches of the transports


def tuned(transport, **settings):
    return LOAD | {"tuning": settings} | ({"quic": {**LOAD["quic"], **transport}} if transport else {})


def test_what_is_set_of_the_transports_is_what_was_asked_for():
    small = RequestsWorkload(requests=220, warmup_requests=20, initial_window="2")
    two = {"initial_window_bytes": 2 * 1452 + 1, "mtu_bytes": 1452}
    result = judge("parity", workload=small, load=tuned(two, initial_window_packets=2))
    assert result.status == "pass"
    assert judge("parity", workload=small, load=tuned(two)).status == "fail"
    wrong = judge("parity", load=tuned({}, initial_window_packets=2))
    assert "the client's transport settings are initial_window_packets 2, requested: nothing" in wrong.evidence
    ten = judge("parity", workload=small, load=tuned({"mtu_bytes": 1452}, initial_window_packets=2))
    assert ten.status == "fail"
    assert "the initial congestion window has 10 packets, requested: 2" in ten.evidence


def test_initial_windows_of_tcp_are_counted_in_its_segments_and_compared_where_asked_alike():
    small = RequestsWorkload(requests=220, warmup_requests=20, initial_window="2/10")
    tcp = {"quic": None, "tuning": {"initial_window_packets": 2}}
    two = {**TCP, "initial_window_bytes": 2896, "mss_bytes": 1448}
    sibling = evidence("h3", workload=small, load=tuned({"mtu_bytes": 1452}, initial_window_packets=10))
    result = judge("parity", "h2", workload=small, load=LOAD | tcp | {"tcp": two}, siblings=(sibling,))
    assert result.status == "warn"
    assert "the study asks for initial window 2 over TCP and 10 over QUIC" in result.evidence
    route = judge("parity", "h2", workload=small, load=LOAD | tcp | {"tcp": {**TCP, "mss_bytes": 1448}})
    assert "the initial congestion window has 10 packets, requested: 2" in route.evidence


def test_a_client_that_waits_before_tls_is_told_of_over_tcp():
    waiting = RequestsWorkload(requests=220, warmup_requests=20, tls_wait="222 ms")
    told = {"quic": None, "tcp": TCP, "tuning": {"tls_wait_ns": 222_000_000}}
    result = judge("parity", "h2", workload=waiting, load=LOAD | told)
    assert result.status == "warn"
    assert "the study makes the client wait 222 ms before TLS over TCP, but not over QUIC" in result.evidence
    assert judge("parity", "h3", workload=waiting, load=tuned({}, tls_wait_ns=222_000_000)).status == "pass"
    assert judge("parity", "h2", workload=waiting, load=LOAD | {"quic": None, "tcp": TCP}).status == "fail"


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
    assert "the link used 95% of a core" in busy_link.evidence


def test_a_starved_client_fails_although_it_used_little_cpu():
    result = judge("headroom", load=LOAD | {"busy_ratio": 0.3, "run_delay_ns": 600_000_000})
    assert result.status == "fail"
    assert "the client waited for a core 60% of the time" in result.evidence


def test_a_starved_server_is_a_warning_for_it_is_what_is_measured():
    waited = SERVER | {"run_delay_ns": 400_000_000, "wall_ns": 1_000_000_000}
    result = judge("headroom", server=waited)
    assert result.status == "warn"
    assert "the server waited for a core 40% of the time" in result.evidence


def test_a_client_with_a_share_of_a_core_is_judged_by_that_share():
    given = LOAD | {"cpu_share": 0.1, "throttled_ns": 100_000_000}
    used = judge("headroom", load=given | {"busy_ratio": 0.095})
    assert (used.status, used.value) == ("fail", pytest.approx(0.95))
    assert "the client used 95% of the 10% of a core it was given" in used.evidence
    assert judge("headroom", load=given | {"busy_ratio": 0.05}).status == "pass"
    waited = judge("headroom", load=given | {"busy_ratio": 0.05, "throttled_ns": 300_000_000})
    assert waited.status == "fail"
    assert "the client waited for its share 30% of the time" in waited.evidence


def test_a_server_that_has_no_core_left_is_a_warning_where_it_is_asked_for_a_rate():
    open_loop = RequestsWorkload(loop="open", rate_per_s=1000, requests=220)
    whole = SERVER | {"cpu_ns": 950_000_000, "wall_ns": 1_100_000_000}
    found = judge("headroom", workload=open_loop, server=whole)
    assert found.status == "warn"
    assert "the server used 95% of its core" in found.evidence
    assert judge("headroom", server=whole).status == "pass"  # a closed loop takes what there is
    limited = judge("headroom", server=whole | {"cpu_ns": 95_000_000, "cpu_share": 0.1, "throttled_ns": 0})
    assert limited.status == "warn"
    assert "of the 10% of a core it was given" in limited.evidence


def test_an_open_loop_must_keep_its_schedule():
    open_loop = RequestsWorkload(loop="open", rate_per_s=1000, requests=220)
    assert judge("headroom", workload=open_loop).status == "pass"
    late = LOAD | {"schedule_lag_ns": {"p99": 3_000_000}}
    assert judge("headroom", workload=open_loop, load=late).status == "fail"
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
    assert judge("drops", transport=TRANSPORT | {"client": device}).status == "fail"
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
