"""What the checks say of a trial of a browser: what passes, warns, fails and is not known."""

import dataclasses

import pytest

from tests.analysis.checks import sound
from tests.analysis.checks.sound_visits import (
    BARE,
    GOT,
    MS,
    PAGE,
    SEGMENTS,
    VIDEO,
    evidence,
    judge,
    page,
    seen,
    watch,
    watched,
)
from trifecta.analysis.checks import check_trial, is_valid
from trifecta.analysis.checks.same_page import difference
from trifecta.analysis.checks.visits import FetchResult

ARMS = ("h1", "h2", "h3", "h2#aa")


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("workload", [PAGE, VIDEO], ids=["page", "video"])
def test_a_sound_trial_is_valid_and_says_what_it_does_not_know(arm, workload):
    siblings = tuple(evidence(other, workload) for other in ARMS if other != arm)
    results = check_trial(evidence(arm, workload, siblings=siblings))
    assert [(r.check, r.status, r.evidence) for r in results if r.status not in ("pass", "unknown")] == []
    assert [r.check for r in results if r.status == "unknown"] == ["parity"]
    assert is_valid(results)


def test_without_a_browser_its_checks_have_nothing_to_say():
    assert not {"same_page", "browser", "playback"} & {result.check for result in check_trial(sound.evidence())}


def test_nothing_measured_is_unknown():
    for name, workload in (("protocol", PAGE), ("same_page", PAGE), ("playback", VIDEO)):
        assert judge(name, workload=workload, visits=None).status == "unknown"
    nothing = {"visits": None, "load": None, "server": None}
    assert judge("browser", **nothing).status == "unknown"


# protocol


def test_one_request_over_another_protocol_fails_and_is_named():
    stray = seen("h3", protocols={"h3": 7, "h1": 1}, examples={"h3": (), "h1": ("https://cdn.light.lab/b.png",)})
    result = judge("protocol", visits=stray)
    assert result.status == "fail"
    assert "1 of 8 requests" in result.evidence
    assert "https://cdn.light.lab/b.png" in result.evidence


def test_a_browser_that_does_not_tell_the_protocol():
    assert judge("protocol", visits=seen("h3", untold=2)).status == "unknown"
    assert judge("protocol", visits=seen("h3", protocols={}, untold=8)).status == "unknown"
    assert judge("protocol", visits=seen("h3", protocols={})).status == "fail"


def test_a_host_that_sent_no_datagram_did_not_speak_http3():
    silent = {"client": {"counters": {"UdpOutDatagrams": 0}}}
    assert judge("protocol", transport=silent).status == "fail"
    assert judge("protocol", "h2", transport=silent).status == "pass"


def test_http3_found_by_alt_svc():
    discovering = dataclasses.replace(PAGE, discovery="alt-svc")
    found = seen("h3", page(1, first_protocol="h2"), page(2, first_protocol="h2"), protocols={"h2": 3, "h3": 5})
    result = judge("protocol", workload=discovering, visits=found)
    assert (result.status, result.value) == ("pass", 5 / 8)
    never = seen("h2", protocols={"h2": 8})
    assert "never discovered" in judge("protocol", workload=discovering, visits=never).evidence
    at_once = seen("h3", page(1, first_protocol="h2"), page(2))
    result = judge("protocol", workload=discovering, visits=at_once)
    assert result.status == "fail"
    assert "visits [2]" in result.evidence
    warm = dataclasses.replace(discovering, view="warm")
    assert judge("protocol", workload=warm, visits=at_once).status == "pass"
    assert judge("protocol", "h2", workload=discovering, visits=found).status == "fail"  # TCP arms are forced


THIRD = {"third_parties": ("fonts.b.lab",)}


@pytest.mark.parametrize("protocol", ["h1", "h2", "h3"])
def test_third_parties_speak_http2_whatever_the_page_does(protocol):
    result = judge("protocol", protocol, visits=seen(protocol, **THIRD, third_party_protocols={"h2": 2}))
    assert result.status == "pass"
    assert "all 2 requests to the page's third parties (fonts.b.lab) used HTTP/2" in result.evidence
    assert "all 8 requests with a reported protocol" in result.evidence
    for spoken, words in (
        ({"h1": 2}, "2 of 2 requests to"),
        ({"h2": 1, "none": 1}, "1 of 2 requests to"),
        ({}, "no r"),
    ):
        result = judge("protocol", protocol, visits=seen(protocol, **THIRD, third_party_protocols=spoken))
        assert result.status == "fail"
        assert result.evidence.startswith(words)


def test_of_a_repeated_view_the_cache_may_have_all_of_third_parties():
    repeated = dataclasses.replace(PAGE, view="repeat")
    assert judge("protocol", workload=repeated, visits=seen("h3", **THIRD)).status == "pass"
    discovering = dataclasses.replace(PAGE, discovery="alt-svc")
    found = seen("h3", page(1, first_protocol="h2"), protocols={"h2": 3, "h3": 5}, **THIRD)
    assert judge("protocol", workload=discovering, visits=found).status == "fail"


# same_page


def test_what_came_from_third_parties_is_said():
    got = GOT | {"GET https://fonts.b.lab/a.css": FetchResult(1, 200, 500)}
    result = judge("same_page", visits=seen("h3", page(1, fetched=got), page(2, fetched=got), **THIRD))
    assert (result.status, result.value) == ("pass", 5)
    assert "the same 5 requests (1 of them to third parties) for 169500 B" in result.evidence


def of_study(requests):
    """A page of so many requests, as one of the loads of the published study."""
    return {f"GET https://www.heavy.lab/{number}": FetchResult(1, 200, 60_000) for number in range(requests)}


def test_the_published_study_would_have_failed():
    siblings = (evidence("h1", visits=seen("h1", page(1, fetched=of_study(134)))),)
    result = judge("same_page", visits=seen("h3", page(1, fetched=of_study(120))), siblings=siblings)
    assert result.status == "fail"
    assert (result.value, result.limit) == (120, 134)
    assert "lacks 14 of 134 requests" in result.evidence
    assert "https://www.heavy.lab/120" in result.evidence
    assert "and 11 more" in result.evidence


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"GET https://www.light.lab/": FetchResult(1, 200, 40_001)}, "40001 B, not 40000 B"),
        ({"GET https://www.light.lab/": FetchResult(1, 203, 40_000)}, "status 203, not 200"),
        ({"GET https://cdn.light.lab/b.png": FetchResult(1, 200, 60_000)}, "1 times, not 2"),
        ({"GET https://www.light.lab/new": FetchResult(1, 200, 1)}, "has 1 more (GET https://www.light.lab/new)"),
    ],
)
def test_visits_of_one_trial_that_differ_fail(changed, words):
    result = judge("same_page", visits=seen("h3", page(1), page(2, fetched=GOT | changed)))
    assert result.status == "fail"
    assert words in result.evidence


def test_octets_that_are_not_told_are_not_compared():
    silent = {url: FetchResult(got.times, got.status, None) for url, got in GOT.items()}
    assert difference(silent, GOT) == ""
    assert judge("same_page", visits=seen("h3", page(1, fetched=silent))).status == "unknown"


def test_an_arm_without_a_visit_that_loaded_is_no_reference():
    siblings = (evidence("h1", visits=seen("h1", page(1, error="timeout", fetched={}))),)
    assert judge("same_page", siblings=siblings).status == "pass"
    assert judge("same_page", visits=seen("h3", page(1, error="timeout"))).status == "unknown"


def test_answers_of_404_are_told_and_do_not_make_a_trial_useless():
    result = judge("same_page", visits=seen("h3", refused={"https://www.light.lab/old.png": 2}))
    assert result.status == "warn"
    assert "2 requests were answered with a status of 400 or more (https://www.light.lab/old.png" in result.evidence


def test_one_request_is_counted_as_one():
    one = {"https://www.light.lab/old.png": 1}
    assert "1 request was answered with a status" in judge("same_page", visits=seen("h3", refused=one)).evidence
    said = judge("same_page", visits=seen("h3", missing=one)).evidence
    assert "has no answer to 1 request (https://www.light.lab/old.png); it is not compared" in said


def test_requests_that_failed_fail_and_those_without_an_answer_warn():
    failed = seen("h3", failed={"https://cdn.light.lab/b.png": 1}, failed_classes={"reset": 1})
    result = judge("same_page", visits=failed)
    assert result.status == "fail"
    assert "1 request failed in visits that loaded (reset 1: https://cdn.light.lab/b.png" in result.evidence
    missing = seen("h3", missing={"https://www.light.lab/?random=1": 1, "https://www.light.lab/?random=2": 1})
    result = judge("same_page", visits=missing)
    assert (result.status, result.value) == ("warn", 2)
    assert judge("same_page", visits=seen("h3", unfinished=1)).status == "warn"


def test_a_cold_visit_takes_nothing_from_the_cache_and_a_repeated_one_does():
    cached = seen("h3", from_cache=2)
    assert judge("same_page", visits=cached).status == "fail"
    assert judge("same_page", workload=dataclasses.replace(PAGE, view="warm"), visits=cached).status == "fail"
    repeated = dataclasses.replace(PAGE, view="repeat")
    assert judge("same_page", workload=repeated, visits=cached).status == "pass"
    assert judge("same_page", workload=repeated).status == "warn"


def test_a_player_may_fetch_other_rungs_in_another_arm():
    other = watched("h1", watch(fetched=of_study(5)))
    siblings = (evidence("h1", VIDEO, visits=other),)
    assert judge("same_page", workload=VIDEO, siblings=siblings).status == "pass"
    assert judge("same_page", workload=VIDEO, visits=watched("h3", unfinished=1)).status == "pass"
    given_up = watched("h3", failed={"https://video.lab/7.m4s": 1}, failed_classes={"interrupted": 1})
    assert judge("same_page", workload=VIDEO, visits=given_up).status == "warn"


# browser


@pytest.mark.parametrize(("cpu_ms", "status"), [(500, "pass"), (1000, "warn"), (1700, "fail")])
def test_cpu_time_against_load_time(cpu_ms, status):
    visits = seen("h3", page(1, cpu_ns=cpu_ms * MS), page(2, cpu_ns=cpu_ms * MS))
    result = judge("browser", visits=visits)
    assert result.status == status
    assert result.value == pytest.approx(cpu_ms / 900 / 2)


def test_more_cores_are_more_time():
    visits = seen("h3", page(1, cpu_ns=1700 * MS))
    assert judge("browser", visits=visits, told={"cpus": 8}).status == "pass"
    assert judge("browser", visits=visits, told={"cpus": None}).status == "fail"  # the machine's two


def test_without_a_path_the_browser_sets_the_pace():
    visits = seen("h3", page(1, cpu_ns=1700 * MS))
    result = judge("browser", path=BARE, visits=visits)
    assert result.status == "warn"
    assert "the browser sets the pace" in result.evidence
    assert judge("browser", path=dataclasses.replace(BARE, rate_bits_per_s=10**7)).status == "pass"


def test_a_watch_is_measured_by_its_wall_time():
    assert judge("browser", workload=VIDEO, visits=watched("h3", watch(cpu_ns=38_000 * MS))).status == "fail"
    assert judge("browser", workload=VIDEO).status == "pass"
    assert judge("browser", workload=VIDEO, visits=watched("h3", watch(cpu_ns=None))).status == "unknown"


def test_the_server_strangers_and_another_version():
    assert judge("browser", server={"cpu_ns": 600_000_000}).status == "warn"
    assert judge("browser", server={"cpu_ns": 600_000_000, "wall_ns": 2_000_000_000}).status == "pass"
    result = judge("browser", told={"stray_lookups": 3, "stray_names": {"stats.example": 3}})
    assert (result.status, result.value) == ("warn", 3)
    assert "(stats.example)" in result.evidence
    siblings = (evidence("h1", told={"version": "155.0"}),)
    result = judge("browser", siblings=siblings)
    assert result.status == "fail"
    assert "156.0 here, 155.0 in h1" in result.evidence


def test_a_repeated_view_resumes():
    repeated = dataclasses.replace(PAGE, view="repeat")
    assert judge("browser", workload=repeated).status == "warn"
    taken = seen("h3", page(1, resumed_connections=2))
    assert judge("browser", workload=repeated, visits=taken).status == "pass"
    untold = seen("h3", page(1, resumed_connections=None))
    assert judge("browser", workload=repeated, visits=untold).status == "unknown"


# playback


def test_time_that_neither_played_nor_stalled_fails():
    result = judge("playback", workload=VIDEO, visits=watched("h3", watch(played_ns=17_500 * MS)))
    assert (result.status, result.value) == ("fail", 800 * MS)
    ahead = watched("h3", watch(played_ns=19_500 * MS))
    assert judge("playback", workload=VIDEO, visits=ahead).status == "warn"
    assert judge("playback", workload=VIDEO, visits=watched("h3", watch(played_ns=None))).status == "unknown"


@pytest.mark.parametrize(
    ("dropped", "floor", "status"),
    [(4, 2, "pass"), (40, 2, "warn"), (8, 8, "warn"), (40, 40, "fail"), (4, None, "unknown"), (None, 2, "unknown")],
)
def test_frames_that_the_machine_drops_are_told_from_others(dropped, floor, status):
    visits = watched("h3", watch(frames_dropped=dropped, frames_dropped_floor=floor))
    assert judge("playback", workload=VIDEO, visits=visits).status == status


def test_why_the_floor_is_not_known_is_said():
    unmeasured = watched("h3", watch(frames_dropped_floor=None))
    result = judge("playback", workload=VIDEO, visits=unmeasured, load={"floor_error": "the browser did not come up"})
    assert (result.status, "the browser did not come up" in result.evidence) == ("unknown", True)


def test_a_live_video_that_was_no_longer_packaged_fails():
    result = judge("playback", workload=VIDEO, server={"live_ended": "ffmpeg was killed by signal 9"})
    assert (result.status, "killed by signal 9" in result.evidence) == ("fail", True)


def test_a_stall_open_at_the_end_warns():
    visits = watched("h3", watch(stalled_at_end=True))
    assert judge("playback", workload=VIDEO, visits=visits).status == "warn"


def test_every_arm_plays_the_same_ladder():
    strange = watched("h3", segments=SEGMENTS | {(3, 4): 5})
    assert judge("playback", workload=VIDEO, visits=strange).status == "fail"
    other = (evidence("h1", VIDEO, visits=watched("h1", segments={(1, 2): 1, (2, 2): 900_000})),)
    result = judge("playback", workload=VIDEO, siblings=other)
    assert result.status == "fail"
    assert "segment 2 of rung 1 has 440000 B here, 1 B in h1" in result.evidence
    live = dataclasses.replace(VIDEO, mode="live")
    assert judge("playback", workload=live, siblings=other).status == "pass"
    assert judge("playback", workload=VIDEO, visits=watched("h3", segments={})).status == "unknown"
    assert judge("playback", workload=VIDEO, visits=watched("h3", watch(error="timeout"))).status == "unknown"


# the checks of every workload


def test_headroom_is_that_of_the_link_and_the_server_alone():
    assert judge("headroom", told={"busy_ratio": 1.6}).status == "pass"
    slow = sound.LINK | {"run_delay_ns": 500_000_000}
    assert judge("headroom", link={"links": {"client-router": slow}}).status == "fail"


def test_as_many_visits_as_asked_for():
    assert judge("same_work", samples=sound.facts(samples=1, warmup_samples=1)).status == "fail"
    assert judge("same_work", samples=sound.facts(samples=2, warmup_samples=0)).status == "fail"
    wrong = sound.facts(samples=2, warmup_samples=1, errors={"status": 1})
    assert "1 of 2 visits were wrong" in judge("same_work", samples=wrong).evidence


def test_a_browser_that_crashed_is_no_result_of_the_path():
    crashed = sound.facts(samples=2, warmup_samples=1, errors={"browser:crashed": 1})
    result = judge("errors", samples=crashed)
    assert result.status == "fail"
    assert "1 of 2 visits failed in the browser itself" in result.evidence
    assert judge("errors", samples=sound.facts(samples=2, errors={"timeout": 1})).status == "warn"
    assert judge("errors", told={"ended": "crashed"}).status == "fail"


def test_a_warm_up_that_was_not_made_warns():
    assert judge("steady_state", samples=sound.facts(samples=2, warmup_samples=0)).status == "warn"
    assert judge("steady_state").status == "pass"
