"""What the checks say of a trial whose client is another program: less is known, and that is said."""

import dataclasses

import pytest

from tests.analysis.checks.sound import HOST, LOAD, TRANSPORT, evidence, facts
from trifecta.analysis.checks import TRIAL_CHECKS, check_trial, is_valid
from trifecta.design import plan

# The summary of the driver: what it cannot tell is null (docs/architecture.md, section 1.1).
DRIVEN = {
    "client": "curl", "declared": {}, "content_compared": True, "ended": "requests", "started_ns": 1_010,
    "ended_ns": 1_000_000_000, "wall_ns": 1_000_000_000, "busy_ratio": 0.6, "run_delay_ns": 10_000_000,
    "schedule_lag_ns": None, "missed_slots": None, "key_exchange": None, "tcp": None, "quic": None,
    "udp_receive_errors": None,
}  # fmt: skip


def foreign(arm="h3", **changes):
    """A sound trial of curl, which tells neither TLS version nor cipher."""
    told = {"samples": facts(protocols={arm[:2]: 200}, tls_versions={}, ciphers={}), "load": DRIVEN}
    own = evidence(arm, **(told | changes))
    cell = plan.cell_of(own.trial.cell.levels | {"client": "curl"})
    return dataclasses.replace(own, trial=dataclasses.replace(own.trial, cell=cell))


def judge(name, *args, **changes):
    (result,) = TRIAL_CHECKS[name].function(foreign(*args, **changes))
    return result


@pytest.mark.parametrize("arm", ["h1", "h2", "h3", "h2#aa"])
def test_a_sound_trial_is_valid_and_says_what_it_does_not_know(arm):
    siblings = tuple(foreign(other) for other in ("h1", "h2", "h3", "h2#aa") if other != arm)
    results = check_trial(foreign(arm, siblings=siblings))
    assert is_valid(results)
    assert [result.check for result in results if result.status != "pass"] == ["parity", "gaps"]


def test_parity_names_what_the_client_does_not_tell():
    result = judge("parity", "h2")
    assert result.status == "unknown"
    told = "TLS version, cipher suite, key exchange, the client's congestion control, TCP_NODELAY"
    assert f"curl does not report {told};" in result.evidence
    assert "TCP_NODELAY" not in judge("parity", "h3").evidence.split(";")[0]


def test_parity_fails_on_what_is_told_and_wrong():
    assert judge("parity", samples=facts(tls_versions={"TLSv1.2": 200})).status == "fail"
    assert judge("parity", load=DRIVEN | {"key_exchange": "X25519MLKEM768"}).status == "fail"


def test_a_client_that_verifies_nothing_is_named():
    result = judge("parity", load=DRIVEN | {"declared": {"certificate_verified": False}})
    assert result.status == "warn"
    assert "does not verify the server's certificate" in result.evidence


def test_what_a_client_s_start_takes_is_no_part_of_how_busy_it_was():
    told = {"busy_ratio": 0.95, "cpu_user_ns": 900_000_000, "cpu_system_ns": 100_000_000, "started_ns": 10**9}
    short = DRIVEN | told | {"ended_ns": 2 * 10**9, "start_cpu_ns": 700_000_000}
    result = judge("headroom", load=short)
    assert (result.status, result.value) == ("pass", pytest.approx(0.3))
    assert judge("headroom", load=short | {"start_cpu_ns": 50_000_000}).status == "warn"
    assert judge("headroom", load=short | {"start_cpu_ns": None}).value == pytest.approx(0.95)


def test_a_busy_client_is_a_result_not_a_fault():
    assert judge("headroom").status == "pass"
    result = judge("headroom", load=DRIVEN | {"busy_ratio": 0.97})
    assert (result.status, result.value) == ("warn", 0.97)
    assert "curl used 97 % of its core" in result.evidence
    waits = judge("headroom", load=DRIVEN | {"run_delay_ns": 500_000_000})
    assert waits.status == "warn"
    own = evidence(load=LOAD | {"busy_ratio": 0.97})
    assert TRIAL_CHECKS["headroom"].function(own)[0].status == "fail"


def test_headroom_says_when_the_client_ended_too_soon_to_tell():
    unknown = judge("headroom", load={k: v for k, v in DRIVEN.items() if k != "run_delay_ns"})
    assert unknown.status == "unknown"
    assert "ended too soon" in unknown.evidence


def test_drops_are_unknown_when_neither_client_nor_kernel_tells():
    assert judge("drops").status == "pass"  # the kernel of the client's host tells
    assert judge("drops", transport=None).status == "unknown"
    grown = HOST | {"counters": {"UdpRcvbufErrors": 3}}
    assert judge("drops", transport=TRANSPORT | {"client": grown}).status == "fail"


@pytest.mark.parametrize(("arm", "spoken"), [("h2", "h1"), ("h3", "h2")])
def test_a_client_that_speaks_another_protocol_fails(arm, spoken):
    result = judge("protocol", arm, samples=facts(protocols={spoken: 200}))
    assert result.status == "fail"
    assert "200 of 200 requests used another protocol" in result.evidence


def test_one_request_over_another_protocol_fails():
    assert judge("protocol", "h2", samples=facts(protocols={"h2": 199, "h1": 1})).status == "fail"


@pytest.mark.parametrize(("arm", "counter"), [("h3", "UdpOutDatagrams"), ("h2", "TcpOutSegs"), ("h1", "TcpOutSegs")])
def test_a_client_that_lies_is_found_out_by_the_kernel(arm, counter):
    def transport(count):
        return TRANSPORT | {"client": HOST | {"counters": {counter: count}}}

    assert judge("protocol", arm, transport=transport(400)).status == "pass"
    result = judge("protocol", arm, transport=transport(0))
    assert result.status == "fail"
    assert "curl reports" in result.evidence


def test_a_protocol_that_is_not_told_is_unknown():
    result = judge("protocol", samples=facts(protocols={}))
    assert result.status == "unknown"
    assert "does not report the protocol of 200 of 200 requests" in result.evidence
    assert judge("protocol", samples=facts(protocols={"h3": 150})).status == "unknown"
    assert judge("protocol", samples=facts(protocols={"h2": 150})).status == "fail"


def test_content_that_is_not_compared_is_unknown():
    result = judge("same_work", load=DRIVEN | {"content_compared": False})
    assert result.status == "unknown"
    assert "does not expose their content" in result.evidence
    wrong = judge("same_work", load=DRIVEN | {"content_compared": False}, samples=facts(bytes_in={999: 200}))
    assert wrong.status == "fail"


@pytest.mark.parametrize("error", ["client:missing", "client:crashed", "client:curl_26", "client:reused"])
def test_what_the_client_itself_got_wrong_excludes_the_trial(error):
    result = judge("errors", samples=facts(errors={error: 1}))
    assert result.status == "fail"
    assert "1 of 200 requests failed in the client itself" in result.evidence


def test_a_killed_client_excludes_the_trial():
    assert judge("errors", load=DRIVEN | {"ended": "crashed"}, samples=facts(errors={"timeout": 1})).status == "fail"
