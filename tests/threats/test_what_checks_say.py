"""A check that speaks up of something else switches no threat on."""

from __future__ import annotations

from collections import Counter

import pytest

from trifecta.conclude.explain.switched import Switchboard
from trifecta.design import plan
from trifecta.design.study_file import parse_study
from trifecta.threats import THREATS

RACE = "study: mine\nworkload: {kind: requests, requests: 10}\nfactors: {server: [caddy]}\n"
SHARED = [name for name, number in Counter(one.check for one in THREATS.values() if one.check).items() if number > 1]
# By check what it says of something else than any threat, or of one threat alone.
SPEAKS_UP = [
    ("parity", "warn", "the server's congestion control is reno, requested: cubic", {"congestion-control"}),
    ("parity", "warn", "load queries a name server over the path before every connection", {"names-over-the-path"}),
    ("parity", "warn", "curl does not verify the server's certificate, so its handshakes cost it less", {"unverified"}),
    ("parity", "warn", "the study asks for TLS version 1.2 over TCP and 1.3 over QUIC", {"tls-version"}),
    ("parity", "warn", "the study asks for quinn-proto without padding-cut", {"stock-quinn"}),
    ("parity", "fail", "TCP_NODELAY is False, requested: True", set()),
    ("protocol", "fail", "HTTP/2 was requested, but 9 of 9 requests used another protocol (9 h1)", {"alpn-mismatch"}),
    ("protocol", "fail", "HTTP/3 was requested, but no request was answered: 9 timeout", set()),
    ("errors", "warn", "2 of 400 requests failed: 2 connect_timeout; they count as slower than all others", set()),
    ("same_work", "fail", "every response should have 100 B, but there were 3 of 90 B", set()),
]


@pytest.mark.parametrize("check", SHARED)
def test_threats_that_share_a_check_are_told_apart_by_words_of_their_own(check: str) -> None:
    words = [one.evidence_words for one in THREATS.values() if one.check == check]
    assert all(words)
    assert not [(one, other) for one in words for other in words if one is not other and one in other]


@pytest.mark.parametrize(("check", "status", "evidence", "on"), SPEAKS_UP)
def test_what_a_check_says_switches_on_what_it_is_about(check: str, status: str, evidence: str, on: set[str]) -> None:
    study = parse_study(RACE, "mine.yaml")
    states = Switchboard(study).states(plan.cells(study)[0], {check: (status, evidence)})
    of_check = {one.id: one for one in states if THREATS[one.id].check == check}
    assert {name for name, one in of_check.items() if one.state == "on"} == on, of_check


def test_failures_tell_nothing_of_a_server_whose_timeouts_the_study_does_not_set() -> None:
    study = parse_study("study: mine\nworkload: {kind: page, page: light}\n", "mine.yaml")
    evidence = "1 of 3 visits failed: 1 timeout"
    for status, state in (("warn", "unknown"), ("pass", "off")):
        states = Switchboard(study).states(plan.cells(study)[0], {"errors": (status, evidence)})
        (told,) = [one for one in states if one.id == "server-timeouts"]
        assert told.state == state, told
        assert evidence in told.why
