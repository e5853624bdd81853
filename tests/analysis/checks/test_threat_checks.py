"""Checks that detect a threat: silent without it, heard with it."""

import dataclasses

from tests.analysis.checks.sound import HOST, LOAD, TRANSPORT, evidence, facts, judge, link
from tests.analysis.worlds import make_rows, one_cell_study
from trifecta.analysis.checks import RUN_CHECKS, TRIAL_CHECKS
from trifecta.analysis.checks.evidence import RunEvidence
from trifecta.design import plan
from trifecta.design.model import PathSpec, RequestsWorkload
from trifecta.design.workloads.services import ChainWorkload


def over_loopback(octets, packets):
    return {**TRANSPORT, "server": {**HOST, "loopback": {"rx_bytes": octets, "rx_packets": packets}}}


def test_frames_that_no_wire_has_warn():
    result = judge("frames", transport=over_loopback(3_200_000, 100))
    assert (result.status, result.value, result.limit) == ("warn", 32_000.0, 1514.0)
    assert (
        "host server: 100 frames over loopback, 32000 B each on average, where Ethernet carries at most 1514 B"
        in result.evidence
    )
    assert judge("frames", transport=over_loopback(100_000, 100)).status == "pass"
    for transport in (None, TRANSPORT, over_loopback(640_000, 10)):
        assert TRIAL_CHECKS["frames"].function(evidence(transport=transport)) == []


def handshakes(connection, connect_ns, tls_ns):
    study = one_cell_study()
    rows = make_rows(study, lambda cell, protocol: 30e6, 6)
    for row in rows:
        row |= {"connection": connection, "tls_p50_ns": tls_ns, "latency_p50_ns": 30e6}
        row["connect_p50_ns"] = None if row["arm"] == "h3" else connect_ns
    return RUN_CHECKS["handshakes"].function(RunEvidence(study, plan.cells(study), rows))


def test_handshakes_that_take_a_third_of_a_request_warn():
    (result,) = handshakes("new", 10e6, 10e6)
    assert (result.status, round(result.value, 2)) == ("warn", 0.67)
    assert "HTTP/2 67 %, HTTP/3 33 %" in result.evidence
    assert handshakes("new", 1e6, 2e6)[0].status == "pass"
    assert handshakes("reused", 10e6, 10e6) == []
    assert handshakes("new", None, None) == []


APART = RequestsWorkload(requests=220, response_bytes=1000, warmup_requests=20, congestion_control="bbr/cubic")


def test_a_study_that_gives_transports_other_settings_is_told_and_not_left_out():
    bbr = {"congestion_control": "bbr", "initial_window_bytes": 14_480, "nodelay": True}
    server = {"congestion_control": {"tcp": "bbr", "quic": "bbr"}, "tcp_nodelay": True}
    h2 = evidence("h2", workload=APART, load={**LOAD, "quic": None, "tcp": bbr}, server=server)
    result = judge("parity", "h3", workload=APART, siblings=(h2,))
    assert result.status == "warn"
    assert "the study asks for congestion control bbr over TCP and cubic over QUIC" in result.evidence
    (alone,) = TRIAL_CHECKS["parity"].function(h2)
    assert alone.status == "warn"


SIZES = RequestsWorkload(requests=220, response_bytes=(128, 1_000, 10_000), warmup_requests=20)


def test_a_study_that_gives_protocols_other_payloads_is_seen_in_every_arm():
    got = {"h2": 1_000, "h3": 10_000}
    h2, h3 = (evidence(arm, workload=SIZES, samples=facts(bytes_in={got[arm]: 200})) for arm in got)
    h2 = dataclasses.replace(h2, samples=facts(protocols={"h2": 200}, bytes_in={1_000: 200}))
    for one in (h2, dataclasses.replace(h3, siblings=(h2,))):
        (result,) = TRIAL_CHECKS["same_work"].function(one)
        assert (result.status, result.value, result.limit) == ("fail", 10_000.0, 128.0)
        said = "the study asks for a response of 128 B over HTTP/1.1, 1 kB over HTTP/2, 10 kB over HTTP/3"
        assert result.evidence == said, "and nothing else is wrong"


def test_a_payload_that_only_protocols_have_that_are_not_compared_is_no_matter():
    both = dataclasses.replace(SIZES, response_bytes=(128, 1_000, 1_000))
    study = evidence(workload=both).study
    alike = dataclasses.replace(study, factors={**study.factors, "protocol": ("h2", "h3")})
    one = dataclasses.replace(evidence("h3", workload=both, samples=facts(bytes_in={1_000: 200})), study=alike)
    assert [result.status for result in TRIAL_CHECKS["same_work"].function(one)] == ["pass"]


def test_services_that_are_asked_for_other_payloads_by_protocol_are_seen_as_well():
    work = ChainWorkload(requests=200, request_bytes=(128, 1_000, 10_000))
    (result,) = TRIAL_CHECKS["same_work"].function(evidence("h3", workload=work))
    assert result.status == "fail"
    assert "the study asks for a request of 128 B over HTTP/1.1" in result.evidence


def test_what_the_study_did_not_ask_for_still_fails():
    asked = dataclasses.replace(APART, congestion_control="cubic")
    h2 = evidence("h2", workload=asked)
    changed = {**LOAD, "quic": {**LOAD["quic"], "congestion_control": "bbr"}}
    assert judge("parity", "h3", workload=asked, siblings=(h2,), load=changed).status == "fail"
    cubic_over_tcp = evidence(
        "h3", workload=APART, load={**LOAD, "quic": {**LOAD["quic"], "congestion_control": "bbr"}}
    )
    (result,) = TRIAL_CHECKS["parity"].function(cubic_over_tcp)
    assert result.status == "fail"


def test_the_cipher_of_another_tls_version_is_another_matter():
    """Nothing but the study's own word lets arms differ."""
    apart = dataclasses.replace(APART, congestion_control="cubic", tls_version="1.2/1.3")
    ecdhe = facts(tls_versions={"1.2": 200}, ciphers={"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": 200})
    h2 = evidence("h2", workload=apart, samples=ecdhe)
    result = judge("parity", "h3", workload=apart, siblings=(h2,))
    assert result.status == "warn"
    assert "TLS version 1.2 over TCP and 1.3 over QUIC" in result.evidence
    other = facts(ciphers={"TLS_CHACHA20_POLY1305_SHA256": 200})
    assert judge("parity", "h3", siblings=(evidence("h2", samples=other),)).status == "fail"


def test_frames_that_leave_one_by_one_wait_for_each_other():
    wire = PathSpec("clean", frames="wire")
    waited = link(delay_given_ns={"p50": 300_000, "p99": 600_000, "max": 900_000}, lost=0)
    quiet = {**waited, "b_to_a": waited["a_to_b"]}
    assert judge("path", path=wire, link=quiet, probe=None).status == "pass"
    assert judge("path", path=dataclasses.replace(wire, frames="merged"), link=quiet, probe=None).status == "fail"
