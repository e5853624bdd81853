"""Sizes that a study gives apart for each protocol: read, written, met by a trial, refused where arms share one."""

import pytest

from trifecta.conclude.facts import RunFacts
from trifecta.design import plan
from trifecta.design.by_protocol import format_octets, largest, one_size, parse_octets
from trifecta.design.errors import UserError
from trifecta.design.quantity import QuantityError
from trifecta.design.study import chain, fan_in, requests, study
from trifecta.design.study_file import parse_study

APART = "128 B/1 kB/10 kB"
PROTOCOLS = ("h1", "h2", "h3")


@pytest.mark.parametrize(
    ("text", "octets", "again"),
    [
        (APART, (128, 1_000, 10_000), APART),
        (" 1 kB / 1000 B/ 2 kB", (1_000, 1_000, 2_000), "1 kB/1 kB/2 kB"),
        ("1 kB/1000 B/0.001 MB", 1_000, "1 kB"),
        ("10 kB", 10_000, "10 kB"),
        (0, 0, "0 B"),
    ],
)
def test_a_size_for_each_protocol_is_read_and_written(text, octets, again):
    assert parse_octets(text) == octets
    assert format_octets(octets) == again
    assert parse_octets(again) == octets


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("128 B/1 kB", "has 2 parts; give one size, or three for HTTP/1.1/2/3"),
        ("1 B/2 B/3 B/4 B", "has 4 parts"),
        ("128 B/1 kB/10", "'10' has no unit"),
        (APART.replace("1 kB", ""), "is not a size"),
    ],
)
def test_what_is_no_size_for_each_protocol_is_refused(text, said):
    with pytest.raises(QuantityError, match=said):
        parse_octets(text)


def test_a_size_that_differs_by_protocol_is_not_taken_for_one():
    assert (largest((128, 1_000, 10_000)), largest(5), one_size(5)) == (10_000, 5, 5)
    with pytest.raises(ValueError, match="128 B/1 kB/10 kB differs by protocol"):
        one_size((128, 1_000, 10_000))


@pytest.mark.parametrize(
    ("field", "one"),
    [
        ("response", study("r", workload=requests(requests=9), factors={"response": ["128 B", APART]})),
        ("response", study("f", workload=fan_in(requests=9), factors={"response": ["128 B", APART]})),
        ("request", study("c", workload=chain(requests=9), factors={"request": ["128 B", APART]})),
    ],
)
def test_each_protocol_meets_its_own(field, one):
    assert parse_study(one.source, "x.yaml") == one
    asked = [(at.protocol, plan.workload_for(one, at)) for at in plan.treatments(one)]
    met = [(protocol, getattr(work.for_protocol(protocol), f"{field}_bytes")) for protocol, work in asked]
    assert met == [*zip(PROTOCOLS, (128, 128, 128), strict=True), *zip(PROTOCOLS, (128, 1_000, 10_000), strict=True)]
    assert [work.sized_apart for _, work in asked] == [[]] * 3 + [[field]] * 3
    assert {work.for_protocol(protocol).sized_apart == [] for protocol, work in asked} == {True}
    others = [work.sized_for(protocol).for_protocol(protocol) for protocol, work in asked]
    assert others == [work.for_protocol(protocol) for protocol, work in asked]


def test_the_last_service_answers_with_what_the_protocol_has():
    apart = study("f", workload=fan_in(requests=1, response=APART)).workload
    assert [apart.for_protocol(one).graph.routes_of("B")[0].answer for one in PROTOCOLS] == [128, 1_000, 10_000]


def test_estimates_are_of_the_protocol_with_most():
    apart, large = (study("f", workload=fan_in(requests=5, response=size)).workload for size in (APART, "10 kB"))
    assert apart.octets == large.octets == 5 * 4 * 10_000


def test_a_report_says_what_was_asked_of_each():
    told = {"kind": "fan-in", "method": "GET", "clients": 4, "response_bytes": (128, 1_000, 10_000), "loop": "closed"}
    facts = RunFacts(folder=None, study={"workload": told, "factors": {}}, seed=1, argv=[])
    assert facts.workload_words().startswith("GET of 128 B/1 kB/10 kB by 4 clients at once")


@pytest.mark.parametrize(
    ("workload", "factors", "said"),
    [
        (requests(requests=9, response=APART), {"server": ["origin", "caddy"]}, "compare: protocol"),
        (fan_in(requests=9), {"server": ["services", "go-services"], "response": [APART]}, "are levels of server"),
        (chain(requests=9, request=APART), {"server": ["services", "go-services"]}, "request: differs by protocol"),
        (requests(requests=9, method="DELETE", response="0 B/0 B/1 B"), {}, "without content"),
        (requests(requests=9, request="0 B/0 B/1 B"), {}, "carries no content"),
        (requests(requests=9, response="1 B/1 B/11 GB"), {}, "more than 10 GB"),
        (requests(requests=9, response="1 B/2 B"), {}, "has 2 parts"),
    ],
)
def test_what_no_study_can_have_is_refused_in_one_line(workload, factors, said):
    compared = {"compare": "server"} if factors else {}
    with pytest.raises(UserError, match=said) as error:
        study("x", workload=workload, factors=factors, **compared)
    assert "\n" not in str(error.value)
