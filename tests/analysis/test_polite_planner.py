"""The planner that stops where a server of others has been asked enough."""

import json

import pytest

from trifecta.analysis.planner import Decision, Planner, Stop
from trifecta.analysis.polite_planner import (
    PolitePlanner,
    look_requests,
    refusals,
    retry_after_ns,
    spent,
    trial_traffic,
)
from trifecta.design import plan
from trifecta.design.study_file import parse_study

TEXT = """study: far
workload: {kind: far, requests: 4, url: 'https://a.example/', address: 192.0.2.1, most_requests: 200}
factors: {connection: [new]}
"""
UTC = "2026-11-26T12:00:00+00:00"


def row(number=0, ended="requests", samples=4, octets=1000, retry_after=None, **more):
    fields = {} if retry_after is None else {"retry-after": {"values": {retry_after: 1}, "others": 0}}
    load = {
        "ended": ended,
        "samples": samples,
        "wire_bytes_in": octets,
        "wire_bytes_out": octets,
        "response_fields": fields,
    }
    return {"trial": f"t{number:05d}", "load_json": json.dumps(load), "wall_started_utc": UTC, **more}


class Always:
    """A planner that never has enough."""

    def __init__(self, cell):
        self.cell = cell

    def next(self, rows, elapsed_ns, judged=None):
        return Decision(self.cell, len(rows), "more")


def polite(text=TEXT):
    study = parse_study(text, "far.yaml")
    cells = plan.cells(study)
    return PolitePlanner(Always(cells[0]), study, cells)


def test_what_was_sent_counts_whatever_became_of_it():
    assert spent([row(), row(samples=1, ended="status"), {"load_json": None}]) == (5, 4000)


def test_no_block_begins_that_would_pass_the_cap_on_requests():
    planner = polite()  # a block is 16 requests, and three looks are 8 each
    assert isinstance(planner.next([row(n) for n in range(40)], 0), Decision)
    stop = planner.next([row(n) for n in range(46)], 0)
    assert isinstance(stop, Stop)
    assert stop.kind == "capped"
    assert "200 requests at most leave no room" in stop.reason


def test_the_caps_hold_for_all_places_together():
    text = TEXT.replace("connection: [new]", "connection: [new], vantage: [here, 'ssh://a', 'ssh://b']")
    study = parse_study(text, "far.yaml")
    cells = plan.cells(study)
    assert len(cells) == 3
    assert look_requests(trial_traffic(study, cells)) == 3 * look_requests(trial_traffic(study, cells[:1]))
    planner = polite(text)  # a block is 16 requests, and looks from three places are 72
    cell = [{"cell": cells[n % 3].key} for n in range(29)]
    assert isinstance(planner.next([row(n, **cell[n]) for n in range(28)], 0), Decision)
    assert isinstance(planner.next([row(n, **cell[n]) for n in range(29)], 0), Stop)


def test_no_block_begins_that_would_pass_the_cap_on_octets():
    planner = polite(TEXT.replace("most_requests: 200", "most_volume: 100 kB"))
    assert isinstance(planner.next([row(octets=4_000)], 0), Decision)
    stop = planner.next([row(octets=20_000)], 0)
    assert isinstance(stop, Stop)
    assert "100 kB at most" in stop.reason


def test_a_server_that_asks_three_times_for_patience_is_left_alone():
    away = [row(n, "status", retry_after="5") for n in range(3)]
    assert refusals(away[:2]) is None
    assert refusals([*away[:2], row()]) is None
    assert "3 trials in a row were answered 429 or 503" in refusals(away)
    assert polite().next(away, 0).kind == "refused"


def test_a_server_that_asks_for_an_hour_is_left_alone_at_once():
    assert "asks to slow down for 3600 s" in refusals([row(ended="status", retry_after="3600")])
    assert refusals([row(ended="status", retry_after="600")]) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7),
        ("Thu, 26 Nov 2026 12:00:30 GMT", 30),
        ("Thu, 26 Nov 2026 11:00:00 GMT", 0),
        ("soon", None),
        (None, None),
    ],
)
def test_retry_after(text, seconds):
    found = retry_after_ns(json.loads(row(retry_after=text)["load_json"]), UTC)
    assert found == (None if seconds is None else seconds * 1_000_000_000)


def test_it_wraps_the_planner_of_every_run():
    study = parse_study(TEXT, "far.yaml")
    cells = plan.cells(study)
    assert isinstance(PolitePlanner(Planner(study, cells), study, cells).next([], 0), Decision)


PAGE = """study: page
workload: {kind: far-page, url: 'https://a.example/', address: 192.0.2.1}
factors: {protocol: [h2, h3]}
"""


def visited(number=0, requests=90, octets=3_000_000):
    load = {"ended": "requests", "samples": 2, "requests_made": requests, "octets_about": octets}
    return {"trial": f"t{number:05d}", "load_json": json.dumps(load), "wall_started_utc": UTC}


def test_a_visit_is_as_many_requests_as_it_made():
    assert spent([visited(), visited(requests=60)]) == (150, 6_000_000)


def test_no_block_of_visits_begins_that_would_pass_the_cap_on_requests():
    # A trial is three visits of 30 requests; a block is three trials. Looks: 3 x 8, two visits, twice a robots.txt.
    planner = polite(PAGE)
    block, looks = 3 * 90, 24 + 60 + 12
    assert isinstance(planner.next([], 0), Decision)
    assert isinstance(planner.next([visited(n) for n in range(6)], 0), Decision)
    assert 6 * 90 + looks + block <= 1000 < 9 * 90 + looks + block
    stop = planner.next([visited(n) for n in range(9)], 0)
    assert isinstance(stop, Stop)
    assert stop.kind == "capped"
    assert "1,000 requests at most leave no room" in stop.reason


def test_the_largest_visit_counts_for_those_to_come():
    planner = polite(PAGE)
    assert isinstance(planner.next([visited(), visited(requests=300)], 0), Stop)


def test_looks_at_pages_with_third_parties_are_reserved_for():
    study = parse_study(PAGE, "page.yaml")
    beside = parse_study(PAGE.replace("192.0.2.1", "192.0.2.1, third_parties: b.example"), "page.yaml")
    few, many = (look_requests(trial_traffic(one, plan.cells(one)), 30) for one in (study, beside))
    assert (few, many) == (24 + 12 + 2 * 30, 24 + 12 + 4 * 30)
