"""From the files of a browser's visits to columns of the trial and to what the checks look at."""

import pyarrow.parquet as pq

from tests.workloads.visit_files import MS, event, fetch, visit, watch, write
from trifecta.analysis.checks.visits import FetchResult
from trifecta.workloads.visits.aggregate import aggregate_visits


def test_medians_are_over_measured_visits_with_failures_at_infinity(tmp_path):
    rows = [
        visit(0, warmup=True, fcp_ns=9000 * MS),
        visit(1, fcp_ns=300 * MS),
        visit(2, fcp_ns=400 * MS),
        visit(3, fcp_ns=None, error="timeout"),
    ]
    columns = aggregate_visits(*write(tmp_path, rows)).columns
    assert columns["fcp_p50_ns"] == 400 * MS
    rows[2] |= {"error": "timeout"}
    assert aggregate_visits(*write(tmp_path, rows)).columns["fcp_p50_ns"] is None


def test_what_a_browser_does_not_tell_is_no_value(tmp_path):
    columns = aggregate_visits(
        *write(tmp_path, [visit(1, lcp_ns=None), visit(2, lcp_ns=None, error="timeout")])
    ).columns
    assert columns["lcp_p50_ns"] is None
    assert columns["rebuffer_mean_ns"] is None
    assert columns["frames_dropped_rate"] is None
    columns = aggregate_visits(*write(tmp_path, [visit(1, lcp_ns=None), visit(2, lcp_ns=7)])).columns
    assert columns["lcp_p50_ns"] == 7


def test_the_speed_index_is_that_of_the_visits_that_were_filmed(tmp_path):
    rows = [visit(0, warmup=True, speed_index_ns=500), visit(1, speed_index_ns=None), visit(2, speed_index_ns=None)]
    assert aggregate_visits(*write(tmp_path, rows)).columns["speed_index_p50_ns"] == 500
    rows[2]["speed_index_ns"] = 700
    assert aggregate_visits(*write(tmp_path, rows)).columns["speed_index_p50_ns"] == 700
    rows[2]["error"] = "timeout"
    assert aggregate_visits(*write(tmp_path, rows)).columns["speed_index_p50_ns"] == 500


def test_a_watch_gives_means_and_the_share_of_dropped_frames(tmp_path):
    rows = [watch(0), watch(1, rebuffer_ns=0, bitrate_bits_per_s=2e6, frames_dropped=0), watch(2, error="timeout")]
    columns = aggregate_visits(*write(tmp_path, rows)).columns
    assert columns["rebuffer_mean_ns"] == 500 * MS
    assert columns["bitrate_mean_bits_per_s"] == 1.6e6
    assert columns["frames_dropped_rate"] == 10 / 1090


def test_requests_are_counted_by_what_became_of_them(tmp_path):
    rows = [visit(0, warmup=True), visit(1), visit(2, error="timeout"), visit(3)]
    fetches = [
        fetch(0, 0, warmup=True, protocol="h1"),
        fetch(0, 2, protocol="h1"),
        fetch(0, 1),
        fetch(1, 1, from_cache=True, protocol=None, decoded_bytes=None),
        fetch(2, 1, missing=True, status=404),
        fetch(3, 1, error="reset", done_ns=None, protocol=None),
        fetch(4, 1, done_ns=None),
        fetch(5, 1, protocol="h2", url="https://cdn.light.lab/x"),
        fetch(6, 1, protocol=None),
        fetch(7, 1, url="https://www.light.lab/0"),
        fetch(0, 3, protocol="h2"),
    ]
    found = aggregate_visits(*write(tmp_path, rows, fetches)).visits
    assert (len(found.visits), len(found.loaded), found.warmup_visits) == (3, 2, 1)
    assert found.protocols == {"h3": 3, "h2": 2}
    assert found.examples["h2"] == ("https://cdn.light.lab/x", "https://www.light.lab/0")
    assert (found.fetches, found.from_cache, found.untold, found.unfinished) == (6, 1, 1, 1)
    assert found.missing == {"https://www.light.lab/2": 1}
    assert (found.failed, found.failed_classes) == ({"https://www.light.lab/3": 1}, {"reset": 1})
    first, failed, second = found.visits
    assert first.fetched["GET https://www.light.lab/0"] == FetchResult(2, 200, 2007)
    assert first.fetched["GET https://www.light.lab/1"] == FetchResult(1, 200, None)
    assert "GET https://www.light.lab/2" not in first.fetched
    assert (first.first_protocol, second.first_protocol) == ("h3", "h2")
    assert failed.fetched == {}


def test_requests_to_third_parties_are_counted_apart(tmp_path):
    theirs = {"third_party": True, "url": "https://fonts.b.lab/a.css"}
    fetches = [
        fetch(0, 1), fetch(1, 1, protocol="h2", **theirs), fetch(2, 1, protocol=None, **theirs),
        fetch(3, 1, protocol=None, from_cache=True, **theirs),
    ]  # fmt: skip
    files = write(tmp_path, [visit(1)], fetches)
    found = aggregate_visits(*files, third_parties=("fonts.b.lab",)).visits
    assert (found.protocols, found.untold, found.fetches) == ({"h3": 1}, 0, 3)
    assert list(found.examples) == ["h3"]
    assert found.third_parties == ("fonts.b.lab",)
    assert found.third_party_protocols == {"h2": 1, "none": 1}
    pq.write_table(pq.ParquetFile(files[1]).read().drop_columns(["third_party"]), files[1])  # of an earlier version
    assert aggregate_visits(*files).visits.third_party_protocols == {}


def test_an_answer_of_404_is_no_failure_of_the_path_and_one_of_503_is(tmp_path):
    # As Chromium's rows say it (with an error) and as Firefox's do (without).
    for error in ("status", None):
        fetches = [
            fetch(0, 1, error=error, status=404),
            fetch(1, 1, error=error, status=404, missing=True, url="https://www.light.lab/favicon.ico"),
            fetch(2, 1, error=error, status=503),
        ]
        found = aggregate_visits(*write(tmp_path, [visit(1)], fetches)).visits
        assert found.refused == {"https://www.light.lab/0": 1}
        assert found.missing == {"https://www.light.lab/favicon.ico": 1}
        assert (found.failed, found.failed_classes) == ({"https://www.light.lab/2": 1}, {"status": 1})
        assert found.visits[0].fetched["GET https://www.light.lab/0"].status == 404
        assert len(found.visits[0].fetched) == 1


def test_a_stall_that_did_not_end_and_the_segments(tmp_path):
    rows = [watch(0), watch(1)]
    played = [
        event(0, 1, "play"), event(0, 5, "stall"), event(0, 7, "resume"), event(0, 9, "sample"),
        event(1, 5, "stall"), event(1, 7, "resume"), event(1, 8, "stall"), event(1, 9, "sample"),
    ]  # fmt: skip
    fetches = [fetch(0, rung=0, segment=0), fetch(1, rung=2, segment=1), fetch(2)]
    found = aggregate_visits(*write(tmp_path, rows, fetches, played)).visits
    assert [each.stalled_at_end for each in found.visits] == [False, True]
    assert found.segments == {(0, 0): 1000, (2, 1): 1001}


def test_without_a_player_there_is_no_file_of_it(tmp_path):
    visits, fetches, playback = write(tmp_path, [visit(0)])
    playback.unlink()
    assert len(aggregate_visits(visits, fetches, playback).visits.visits) == 1
