"""Studies of pages elsewhere: what they may ask, what follows for pauses, and what no browser can do."""

import pytest

from trifecta.design import plan
from trifecta.design.errors import UserError
from trifecta.design.far import AS_IS, ELSEWHERE, is_host
from trifecta.design.manners import TO_ONES_OWN, TO_OTHERS
from trifecta.design.study_file import parse_study
from trifecta.design.workloads.far_page import FarPageWorkload

URL = "https://www.example.org/a?id=7"
TCP_AND_QUIC = "protocol: [h2, h3]"


def read(workload="", factors=TCP_AND_QUIC, more=""):
    text = f"study: page\nworkload: {{kind: far-page, url: '{URL}'{workload}}}\nfactors: {{{factors}}}\n{more}"
    return parse_study(text, "page.yaml")


def test_it_is_visits_that_leave_the_machine():
    study = read(", third_parties: fonts.b.example  CDN.c.example")
    workload = study.workload
    assert workload.family == "far-visits"
    assert workload.outside
    assert workload.visiting
    assert (workload.view, workload.discovery, workload.noun) == ("cold", "forced", "visits")
    assert workload.hosts_beside == ("fonts.b.example", "cdn.c.example")
    assert (workload.wires, workload.impaired_wires, workload.place) == ((), (), None)
    assert study.factors["client"] == ("chromium",)
    assert study.factors["connection"] == ("browser",)
    assert (study.factors["path"], study.factors["server"]) == ((AS_IS,), (ELSEWHERE,))
    assert plan.places(study) == set()


def test_it_reads_back_to_the_same():
    levels = f"{TCP_AND_QUIC}, client: [chromium, firefox], address: [IPv4, IPv6]"
    given = ", third_parties: a.example b.example, owned: true, visits: 3, warmup_visits: 0, filmstrip: false"
    study = read(given, levels, "metric: lcp_p50\n")
    assert parse_study(study.source, "again") == study
    assert "third_parties" not in read().source
    assert study.workload.turns("browser") == 3
    assert study.workload.manners == TO_ONES_OWN


@pytest.mark.parametrize(
    ("requests", "octets", "gap_s"), [(1, 0, 0.5), (60, 1_000_000, 30), (10, 10_000_000, 30), (0, 0, 0)]
)
def test_the_pause_between_visits_is_that_of_all_their_requests(requests, octets, gap_s):
    assert TO_OTHERS.gap_ns(octets, requests) == gap_s * 1_000_000_000


def test_looks_of_a_page_with_third_parties_are_more():
    assert FarPageWorkload(url=URL).look_turns < FarPageWorkload(url=URL, third_parties=("b.example",)).look_turns


@pytest.mark.parametrize(
    ("workload", "factors", "said"),
    [
        (", third_parties: b.example", "protocol: [h1, h2]", "no browser turns HTTP/2 off for one host alone"),
        (", third_parties: 'b.example, MAP'", TCP_AND_QUIC, "'b.example,' is not the name of a host"),
        (", pace: 3/s", TCP_AND_QUIC, "pace: 3/s is more than 2/s"),
        (", requests: 4", TCP_AND_QUIC, "requests"),
        (", view: warm", TCP_AND_QUIC, "is not a field of the workload 'far-page'"),
        (", discovery: alt-svc", TCP_AND_QUIC, "is not a field of the workload 'far-page'"),
        ("", f"{TCP_AND_QUIC}, connection: [new]", "no connection 'new'"),
    ],
)
def test_what_it_may_not_ask_is_said(workload, factors, said):
    with pytest.raises(UserError) as raised:
        read(workload, factors)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_without_a_url_nothing_is_visited():
    with pytest.raises(UserError, match=r"workload\.url: is missing"):
        parse_study("study: page\nworkload: {kind: far-page}\n", "page.yaml")


@pytest.mark.parametrize(
    ("name", "good"), [("a.example", True), ("_x.b-c", True), ("a b", False), ("a.-b", False), ("", False)]
)
def test_names_of_hosts(name, good):
    assert is_host(name) is good
