"""Requests that wait for a delayed acknowledgement are named; acknowledgements that nobody waits for are not."""

import dataclasses

import pytest

from tests.analysis.checks.sound import HOST, LOAD, PLAIN, RTT_NS, TCP, TRANSPORT, evidence
from trifecta.analysis.checks import TRIAL_CHECKS, is_valid
from trifecta.design import plan
from trifecta.design.model import RequestsWorkload
from trifecta.design.workloads.services import ChainWorkload

IDLE = LOAD | {"quic": None, "tcp": TCP, "busy_ratio": 0.06}


def counted(delayed):
    return TRANSPORT | {"server": HOST | {"counters": {"TcpExtDelayedACKs": delayed}}}


def judge(arm="h2", delayed=218, wait_ns=RTT_NS + 41_000_000, transfer_ns=0, path=PLAIN, connection="reused", **more):
    row = {"started_ns": 1_000, "ended_ns": 1_000_001_000, "latency_p50_ns": 152_000_000, "wait_p50_ns": wait_ns}
    row |= {"transfer_p50_ns": transfer_ns}
    given = evidence(arm, path=path, transport=counted(delayed), load=IDLE, **more)
    cell = plan.cell_of(given.trial.cell.levels | {"connection": connection})
    given = dataclasses.replace(given, trial=dataclasses.replace(given.trial, cell=cell))
    return TRIAL_CHECKS["delayed_ack"].function(dataclasses.replace(given, row=row))


@pytest.mark.parametrize("arm", ["h1", "h2", "h2#aa"])
def test_a_wait_of_the_timer_for_every_request_warns_with_both_numbers(arm):
    (result,) = judge(arm)
    assert result.status == "warn"
    assert is_valid([result])  # it is what these programs do: named, not left out
    assert "218 acknowledgements for 220 requests" in result.evidence
    assert "41 ms longer than the path's RTT" in result.evidence
    assert "busy 6 % of the time" in result.evidence
    assert "TCP_NODELAY" in result.remedy


@pytest.mark.parametrize(
    "changes",
    [
        {"delayed": 12},  # a slow answer, without the timer
        {"wait_ns": RTT_NS + 2_000_000},  # the timer ran, but nobody waited for it
        {"wait_ns": None, "connection": "new"},  # handshakes are no wait
        {"workload": ChainWorkload(requests=200)},  # nor are several services' calls one round trip
        # What is asked takes longer than the timer on this path.
        {"path": dataclasses.replace(PLAIN, rate_bits_per_s=10**6)},
    ],
)
def test_only_the_timer_and_the_wait_together_say_so(changes):
    (result,) = judge(**changes)
    assert result.status == "pass"


def test_without_the_client_s_phases_the_whole_request_on_a_standing_connection_counts():
    (result,) = judge(wait_ns=None)
    assert result.status == "warn"
    assert "102 ms longer" in result.evidence


@pytest.mark.parametrize(("octets", "status"), [(100, "warn"), (14_480, "warn"), (1_000_000, "pass")])
def test_a_response_that_is_held_back_after_its_first_octet_counts_where_a_window_has_all_of_it(octets, status):
    """Hypercorn before 0.17 writes head and content apart, with Nagle on; long responses take round trips anyway."""
    workload = RequestsWorkload(requests=200, warmup_requests=20, response_bytes=octets)
    (result,) = judge(wait_ns=RTT_NS + 2_000_000, transfer_ns=40_000_000, workload=workload)
    assert result.status == status
    assert ("42 ms longer" in result.evidence) == (status == "warn")


def test_quic_has_no_nagle_and_what_was_not_counted_is_unknown():
    (result,) = judge("h3")
    assert result.status == "pass"
    given = evidence("h2", transport={"client": {"counters": {}}})
    (result,) = TRIAL_CHECKS["delayed_ack"].function(given)
    assert result.status == "unknown"
