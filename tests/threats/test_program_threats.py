"""Threats that are programs: a client that speaks another protocol, writes in pieces, or has no core left."""

import pytest

from trifecta.design import plan
from trifecta.design.errors import UserError
from trifecta.design.study_file import parse_study
from trifecta.threats import switches

PLAIN = "study: mine\nworkload: {requests: 10}\n"
GO = PLAIN + "factors: {client: [go-client, load]}\n"
SERVICES = "study: mine\nworkload: {kind: chain, requests: 10}\n"


def read(text, on=(), off=()):
    return parse_study(text, "mine.yaml", change=switches(on, off))


def test_alpn_mismatch_takes_the_go_client_s_place_or_makes_it_the_client():
    assert read(GO, on=["alpn-mismatch"]).factors["client"] == ("go-client-own-tls", "load")
    assert read(PLAIN, on=["alpn-mismatch"]).factors["client"] == ("go-client-own-tls",)
    mismatched = GO.replace("go-client", "go-client-own-tls")
    assert read(mismatched, off=["alpn-mismatch"]).factors["client"] == ("go-client", "load")
    both = GO.replace(", load", ", go-client-own-tls")
    assert read(both, off=["alpn-mismatch"]).factors["client"] == ("go-client",)


@pytest.mark.parametrize(
    ("text", "on", "off", "said"),
    [
        (PLAIN, [], ["alpn-mismatch"], "no client 'go-client-own-tls'"),
        (GO.replace("go-client, load", "curl"), ["alpn-mismatch"], [], "no client 'go-client'"),
        (
            SERVICES,
            ["client-language"],
            [],
            "only the workload 'requests' has a choice of clients, and this is 'chain'",
        ),
        (SERVICES, ["cpu-bound"], [], "workload 'requests'"),
    ],
)
def test_what_has_no_such_client_is_refused_in_one_line(text, on, off, said):
    with pytest.raises(UserError, match=said) as error:
        read(text, on, off)
    assert "\n" not in str(error.value)


def test_nagle_and_the_programs_in_python_are_switched_on_both_ways():
    workload = plan.workload_for
    on, off = (read(PLAIN, **{way: ["delayed-ack"]}) for way in ("on", "off"))
    assert [workload(study, plan.treatments(study)[0]).tcp_nodelay for study in (on, off)] == [False, True]
    python, own = (read(PLAIN, **{way: ["cpu-bound"]}) for way in ("on", "off"))
    assert (python.factors["server"], python.factors["client"]) == (("hypercorn",), ("python-client",))
    assert (own.factors["server"], own.factors["client"]) == (("origin",), ("load",))


def test_another_client_asks_the_same_server_for_the_same():
    served = PLAIN + "factors: {server: [hypercorn], client: [load, curl]}\n"
    for way, client in (("on", "python-client"), ("off", "load")):
        study = read(served, **{way: ["client-language"]})
        assert (study.factors["server"], study.factors["client"]) == (("hypercorn",), (client,))


def test_a_program_without_a_whole_core_gets_it_back():
    starved = PLAIN.replace("requests: 10", "requests: 10, server_cpu: 25 %") + "factors: {client_cpu: [none, 10 %]}\n"
    given = read(starved, off=["cpu-bound"])
    workloads = [plan.workload_for(given, one) for one in plan.treatments(given) if one.protocol == "h2"]
    assert [(one.client_cpu, one.server_cpu) for one in workloads] == [(None, None)]
