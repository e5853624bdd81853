"""How a watch gets into the rows of its visit."""

from __future__ import annotations

from typing import Any

from trifecta.implementations.browsers.records import Played, VisitRecord, apply_played
from trifecta.implementations.visit import Fetch, Visit

SECOND = 1_000_000_000
URL = "https://video.lab/on-demand/0-240p/"


def _record(*fetches: Fetch) -> VisitRecord:
    return VisitRecord(0, False, Visit(0, load_ns=5, ttfb_ns=3), list(fetches))


def _fetch(name: str, **more: Any) -> Fetch:
    return Fetch(URL + name, SECOND, kind="xhr", **more)


def test_segments_are_named_and_the_players_page_is_not_timed():
    record = _record(_fetch("00000.m4s"), _fetch("index.m3u8"))
    segments = {f"{URL}00000.m4s": (0, 7, 3 * SECOND)}
    apply_played(record, Played(visit={"startup_ns": 4, "error": None}, started_ns=9, segments=segments))
    first, second = record.fetches
    assert (first.kind, first.rung, first.segment, first.media_ns) == ("media", 0, 7, 3 * SECOND)
    assert (second.kind, second.rung) == ("xhr", None)
    assert (record.visit.started_ns, record.visit.startup_ns) == (9, 4)
    assert record.visit.load_ns is None
    assert record.visit.ttfb_ns is None


def test_what_the_end_of_the_watch_cut_off_did_not_fail():
    ended = Played(visit={"watched_ns": 10 * SECOND}, started_ns=SECOND)
    cut = _fetch("a", error="browser:cancelled", done_ns=11 * SECOND + 1)
    given_up = _fetch("b", error="browser:cancelled", done_ns=5 * SECOND)
    failed = _fetch("c", error="quic:transport", done_ns=11 * SECOND + 1)
    record = _record(cut, given_up, failed)
    apply_played(record, ended)
    assert [each.error for each in record.fetches] == [None, "browser:cancelled", "quic:transport"]
    assert cut.done_ns is None
    assert record.visit.failed_requests == 2


def test_the_error_of_a_watch_is_that_of_the_request_it_needed():
    for failing, wanted in (("index.m3u8", "tls:certificate"), ("other", "video:network")):
        record = _record(_fetch(failing, error="tls:certificate"))
        apply_played(record, Played(error="video:network", failed_url=f"{URL}index.m3u8"))
        assert record.visit.error == wanted
