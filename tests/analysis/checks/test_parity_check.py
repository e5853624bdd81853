"""What each arm used of the transports, as read back: the check parity sees another set-up and what was asked for."""

import dataclasses

import pytest

from tests.analysis.checks.sound import (
    LOAD,
    PLAIN,
    SERVER,
    TCP,
    evidence,
    facts,
    judge,
)
from trifecta.analysis.checks import TRIAL_CHECKS, is_valid
from trifecta.conclude.why.result import OTHER_WINDOWS
from trifecta.design import quinn
from trifecta.design.model import Cell, RequestsWorkload


def test_tls_1_2_against_1_3_fails():
    result = judge("parity", samples=facts(tls_versions={"1.2": 200}))
    assert result.status == "fail"
    assert "TLS version is 1.2, requested: 1.3" in result.evidence


def test_nagle_on_in_one_arm_fails_whichever_side_has_it():
    nagle = judge("parity", "h1", load=LOAD | {"quic": None, "tcp": TCP | {"nodelay": False}})
    assert nagle.status == "fail"
    assert "TCP_NODELAY is off, requested: on" in nagle.evidence
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
