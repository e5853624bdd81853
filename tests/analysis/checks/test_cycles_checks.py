"""What the checks ask of services: the hops of every cycle, and the protocol of every call among them."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from tests.analysis.checks.sound import LOAD, PLAIN, SERVER, Facts, facts, judge
from trifecta.design.model import PathSpec
from trifecta.design.workloads.services import ChainWorkload, FanInWorkload

CHAIN = ChainWorkload(requests=200, depth=3, hosts=3)
SERVICES = MappingProxyType(
    {
        "A": {"asked": {"B": "h3"}},
        "B": {"asked": {"C": "h3"}, "protocols_spoken": {"h1": 0, "h2": 0, "h3": 220}},
        "C": {"asked": {}, "protocols_spoken": {"h3": 220}},
    }
)
CYCLES = MappingProxyType({"expected_hops": 2, "hops": {"2": 200}, "failures": {}})


def server(**changes):
    return dict(SERVER) | {"services": dict(SERVICES), "cycles": dict(CYCLES)} | changes


def judged(name, **changes):
    return judge(name, path=PLAIN, workload=CHAIN, **({"server": server()} | changes))


def test_cycles_with_all_their_hops_are_the_same_work_whatever_the_size_of_their_answers():
    assert judged("same_work", samples=facts(bytes_in={310: 150, 311: 50})).status == "pass"


@pytest.mark.parametrize("hops", [{"2": 199, "1": 1}, {"3": 200}])
def test_a_cycle_with_another_number_of_hops_is_other_work(hops):
    result = judged("same_work", server=server(cycles=dict(CYCLES) | {"hops": hops}))
    assert result.status == "fail"
    assert "every cycle should have 2 hops" in result.evidence


def test_a_hop_that_failed_is_a_failed_cycle_and_not_other_work():
    failed = facts(errors={"status": 3}, protocols={"h3": 197}, bytes_in={310: 197})
    assert (
        judged("same_work", samples=failed, server=server(cycles=dict(CYCLES) | {"hops": {"2": 197}})).status == "pass"
    )
    wrong = facts(errors={"content": 3}, protocols={"h3": 197})
    assert judged("same_work", samples=wrong).status == "fail"


def test_hops_that_were_not_recorded_are_unknown():
    assert judged("same_work", server=dict(SERVER)).status == "unknown"


def test_every_client_of_a_fan_in_is_to_make_its_requests():
    fan_in = FanInWorkload(method="GET", request_bytes=0, requests=50, clients=4, depth=2)
    one_hop = server(cycles={"expected_hops": 1, "hops": {"1": 200}, "failures": {}})
    assert judge("same_work", path=PLAIN, workload=fan_in, server=one_hop).status == "pass"
    short = judge(
        "same_work", path=PLAIN, workload=fan_in, server=one_hop, samples=Facts(samples=150, warmup_samples=0)
    )
    assert short.status == "fail"
    assert short.evidence == "the study asks for 200 requests, 150 were made"
    late = judge(
        "same_work", path=PLAIN, workload=fan_in, server=one_hop, samples=Facts(samples=150, warmup_samples=0),
        load=LOAD | {"ended": "total_timeout"},
    )  # fmt: skip
    assert late.evidence == "the study asks for 200 requests, 150 were made before its total timeout"


def test_a_call_within_over_another_protocol_fails():
    assert judged("protocol").status == "pass"
    stray = dict(SERVICES) | {"C": {"asked": {}, "protocols_spoken": {"h1": 7, "h3": 213}}}
    result = judged("protocol", server=server(services=stray))
    assert result.status == "fail"
    assert "C was called over h1 7" in result.evidence


def test_services_of_one_host_have_no_path_to_deliver():
    alone = ChainWorkload(requests=200, depth=3, hosts=1)
    nothing = judge("path", path=PathSpec("clean"), workload=alone, server=server(), link=None, probe=None)
    assert nothing.status == "pass"
    assert (
        judge("path", path=PathSpec("clean"), workload=CHAIN, server=server(), link=None, probe=None).status
        == "unknown"
    )


def test_clients_of_a_fan_in_may_take_their_whole_core_but_an_open_loop_may_not():
    busy = dict(LOAD) | {"busy_ratio": 0.99}
    fan_in = FanInWorkload(method="GET", request_bytes=0, requests=50, clients=4, depth=2)
    result = judge("headroom", path=PLAIN, workload=fan_in, load=busy)
    assert result.status == "warn"
    assert "clients that share a core" in result.remedy
    paced = FanInWorkload(method="GET", request_bytes=0, requests=50, loop="open", rate_per_s=10.0)
    assert judge("headroom", path=PLAIN, workload=paced, load=busy).status == "fail"
    assert judge("headroom", path=PLAIN, workload=CHAIN, load=busy).status == "fail"


def test_services_of_another_program_are_a_client_from_outside_and_their_switches_are_told():
    busy = dict(LOAD) | {"busy_ratio": 0.99}
    assert judge("headroom", path=PLAIN, workload=CHAIN, load=busy, program="go-services").status == "warn"
    sound = judge("parity", "h2", path=PLAIN, workload=CHAIN, program="go-services")
    assert sound.status == "pass"
    unverified = dict(LOAD) | {"declared": {"certificate_verified": False}}
    for changes, said in (
        ({"load": unverified}, "go-services does not verify the server's certificate"),
        ({"workload": replace(CHAIN, connection_leak=True)}, "does not close its connections over TCP"),
        ({"workload": replace(CHAIN, retries=True)}, "retries failed requests"),
        ({"workload": replace(CHAIN, write_timeout_ns=10**9)}, "cuts off responses over TCP"),
    ):
        result = judge("parity", **({"path": PLAIN, "workload": CHAIN, "program": "go-services"} | changes))
        assert result.status == "warn"
        assert said in result.evidence
