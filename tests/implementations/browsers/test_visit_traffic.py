"""What visits took of servers elsewhere: what was sent is counted, and what somebody said of patience is kept."""

from __future__ import annotations

import itertools

from tests.implementations.browsers.driving import FAKE, Driver, config, rows
from trifecta.implementations.browsers import visit_traffic
from trifecta.implementations.browsers.records import VisitRecord
from trifecta.implementations.visit import Fetch, Visit


def got(number, **changes):
    given = {"status": 200, "connection": 0, "wire_bytes": 5_000, "done_ns": 1, "from_cache": False}
    return Fetch(f"https://www.a.lab/{number}", 0, **(given | changes))


def test_what_never_left_is_not_counted():
    fetches = [
        got(0, kind="document"),
        got(1, wire_bytes=None, body_bytes=700),
        got(2, wire_bytes=None, connection=1, decoded_bytes=None, error="timeout"),
        got(3, from_cache=True),
        got(4, error="browser:name", connection=None, status=None),
        got(5, error="browser:blocked", connection=None, status=None),
    ]
    assert [fetch.url[-1] for fetch in visit_traffic.sent_fetches(fetches)] == ["0", "1", "2"]
    around = 3 * visit_traffic.REQUEST_BYTES + 2 * visit_traffic.CONNECTION_BYTES
    assert visit_traffic.octets(fetches) == 5_000 + 700 + 0 + around
    assert not visit_traffic.refused(fetches)


def test_fields_are_those_of_documents_and_of_who_asks_for_patience():
    page = got(0, kind="document", response_headers=[("CF-Ray", "1-FRA"), ("set-cookie", "a=b")])
    image = got(1, response_headers=[("cf-ray", "2-AMS"), ("retry-after", "9")])
    away = got(2, status=503, response_headers=[("Retry-After", "7"), ("server", "x")])
    visits = [VisitRecord(0, True, Visit(0), [page, image]), VisitRecord(1, False, Visit(0), [page, away])]
    found = visit_traffic.fields(visits)
    assert {name: one.values for name, one in found.items()} == {"cf-ray": {"1-FRA": 2}, "retry-after": {"7": 1}}
    assert [one.others for one in found.values()] == [0, 0]
    assert [visit_traffic.refused(record.fetches) for record in visits] == [False, True]


def test_of_very_many_values_the_rest_is_counted():
    told = [got(n, kind="document", response_headers=[("age", str(n))]) for n in range(70)]
    pages = [VisitRecord(n, False, Visit(0), [fetch]) for n, fetch in enumerate(told)]
    (age,) = visit_traffic.fields(pages).values()
    assert (len(age.values), age.others) == (64, 6)


FAR = {"least_gap_ns": 400_000_000, "agent": "trifecta/1"}


def visited(tmp_path, page="well", **changes):
    """A trial of the fake browser at a page elsewhere: its summary, and when its visits began."""
    there = {"www.fake.lab": "192.0.2.1"}
    given = {"url": f"https://www.fake.lab/{page}", "addresses": there, "elsewhere": FAR, "ca_file": None}
    driver = Driver(FAKE, "fake", config(tmp_path, **given, **changes))
    summary = driver.hear("summary")
    assert driver.end() == 0
    return summary, [row["started_ns"] for row in rows(tmp_path, "visits")]


def test_visits_keep_their_distance_and_the_driver_says_what_they_took(tmp_path):
    summary, began = visited(tmp_path)
    assert len(began) == 3
    # Within what it takes to open a tab, which lies between the start that is paced and the one that is told.
    assert all(later - earlier > FAR["least_gap_ns"] - 50_000_000 for earlier, later in itertools.pairwise(began))
    # Of each visit of the fake browser: a document of 110 octets, and one without an answer, on two connections.
    assert summary["requests_made"] == 6
    assert summary["octets_about"] == 3 * (110 + 2 * visit_traffic.REQUEST_BYTES + 2 * visit_traffic.CONNECTION_BYTES)
    assert summary["ended"] == "requests"


def test_in_a_lab_nothing_of_it_is_said_and_nobody_waits(tmp_path):
    driver = Driver(FAKE, "fake", config(tmp_path))
    summary = driver.hear("summary")
    assert driver.end() == 0
    assert not {"requests_made", "octets_about", "response_fields"} & summary.keys()


def test_after_a_429_nothing_more_is_visited(tmp_path):
    summary, began = visited(tmp_path, page="busy")
    assert (summary["ended"], summary["requests_made"]) == ("status", 2)
    assert summary["response_fields"]["retry-after"] == {"values": {"7": 1}, "others": 0}
    made = rows(tmp_path, "visits")
    assert [row["error"] for row in made] == [None, "status", "status"]
    assert len(began) == 3
