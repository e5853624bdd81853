"""Did every visit of a browser get the same page?

## Fails when
Visits differ in their requests or in the octets of one, in the trial or between arms of a block; a request failed; a
cold or warm visit took something from the cache. For a page elsewhere, which may change meanwhile: requests or octets
of a visit differ from those of the block's first by more than a fifth, or a request to its host failed in one arm only.

## Warns when
The recording had no answer to a request; one was answered with a status of 400 to 499; one was still running at the
end; a repeated view took nothing from the cache; a player's request failed. For a page elsewhere: visits differ at all,
or a request failed.

## Why
In 2021 a study compared loads of 120, 123 and 134 requests: the page differed, not the protocol.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from trifecta.analysis.checks import page_alike
from trifecta.analysis.checks.evidence import Evidence, Finding, counts, worst
from trifecta.analysis.checks.visits import FetchResult, Visits
from trifecta.design.model import CheckResult, RequestsWorkload
from trifecta.design.phrases import numbered

SHOWN = 3  # URLs named of each kind of difference
_REMEDY = "look at the waterfalls: every visit must fetch the same page (docs/pages.md)"
_RECORDED = "check whether it was recorded like this (`trifecta page show`)"
_NOT_THERE = "check the page: it requests what does not exist"

Page = Mapping[str, FetchResult]


def check(evidence: Evidence) -> list[CheckResult]:
    """Fail when visits of this trial, or of the block's earlier ones, differ in requests or octets."""
    workload = evidence.workload
    if not workload.visiting:
        return []  # nothing of this check was asked for
    visits = evidence.visits
    if visits is None or not visits.loaded:
        return worst(evidence, "same_page", [Finding("unknown", "no visit succeeded, so there is nothing to compare")])
    if workload.outside:
        alike = page_alike.findings(evidence, visits, lambda one, other: difference(one.fetched, other.fetched))
        return worst(evidence, "same_page", [*_refused(visits, _NOT_THERE), *alike])
    findings = [*_missing(visits), *_refused(visits), *_cache(workload, visits)]
    if workload.plays:
        findings += _of_a_player(visits)
    else:
        findings += [*_failed(visits), *page_alike.unfinished(visits), *_compare_pages(evidence, visits)]
    return worst(evidence, "same_page", findings)


def _of_a_player(visits: Visits) -> list[Finding]:
    """A player asks for the rungs that suit the path, and gives up a segment that comes too slowly.

    What it got is compared by the check `playback`; that it was still fetching at the end is as it should be.
    """
    failed = [dataclasses.replace(finding, status="warn") for finding in _failed(visits)]
    return failed or [Finding("pass", f"none of {visits.fetches} requests of the player failed", 0.0, 0.0)]


def _compare_pages(evidence: Evidence, visits: Visits) -> list[Finding]:
    alike = [each for each in evidence.siblings if evidence.asked_alike(each)]
    others = [(f"{each.trial.arm} ", each.visits.loaded) for each in alike if each.visits]
    first_arm, first = next(((arm, loaded[0]) for arm, loaded in others if loaded), ("", visits.loaded[0]))
    for visit in visits.loaded:
        wrong = difference(visit.fetched, first.fetched)
        if wrong:
            text = f"visit {visit.number} differs from {first_arm}visit {first.number}: {wrong}"
            return [
                Finding("fail", text, float(page_alike.requests(visit)), float(page_alike.requests(first)), _REMEDY)
            ]
    untold = sum(fetch.octets is None for fetch in visits.loaded[0].fetched.values())
    octets = sum(fetch.octets or 0 for fetch in visits.loaded[0].fetched.values())
    number = float(page_alike.requests(first))
    theirs = sum(
        fetch.times for requested, fetch in first.fetched.items() if requested.split("/")[2] in visits.third_parties
    )
    apart = f" ({theirs} of them to third parties)" if theirs else ""
    text = f"all {len(visits.loaded)} visits made the same {number:.0f} requests{apart} for {octets} B"
    if untold == len(visits.loaded[0].fetched) and untold and not visits.from_cache:
        return [Finding("unknown", f"{text}, but {evidence.client} does not report response sizes")]
    return [Finding("pass", text, number, number)]


def difference(page: Page, reference: Page) -> str:
    """What of ``page`` is not as in ``reference``, in words; empty when nothing is."""
    less = [url for url in reference if url not in page]
    more = [url for url in page if url not in reference]
    common = [url for url in page if url in reference]
    times = [
        f"{url} {page[url].times} times, not {reference[url].times}"
        for url in common
        if _times_differ(url, page, reference)
    ]
    octets = [_octets_in_words(url, page, reference) for url in common if _octets_differ(page[url], reference[url])]
    status = [
        f"{url} status {page[url].status}, not {reference[url].status}"
        for url in common
        if page[url].status != reference[url].status
    ]
    parts = [
        _items_in_words(f"lacks {len(less)} of {len(reference)} requests", less),
        _items_in_words(f"has {len(more)} more", more),
        _items_in_words("", times),
        _items_in_words("", status),
        _items_in_words("", octets),
    ]
    return "; ".join(part for part in parts if part)


def _times_differ(url: str, page: Page, reference: Page) -> bool:
    return page[url].times != reference[url].times


def _octets_differ(fetch_result: FetchResult, other: FetchResult) -> bool:
    return fetch_result.octets is not None and other.octets is not None and fetch_result.octets != other.octets


def _octets_in_words(url: str, page: Page, reference: Page) -> str:
    return f"{url} {page[url].octets} B, not {reference[url].octets} B"


def _items_in_words(what: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    named = ", ".join(items[:SHOWN]) + (f" and {len(items) - SHOWN} more" if len(items) > SHOWN else "")
    return f"{what} ({named})" if what else named


def _failed(visits: Visits) -> list[Finding]:
    if not visits.failed:
        return []
    number = sum(visits.failed.values())
    which = f"{counts(visits.failed_classes)}: {_urls(visits.failed)}"
    text = f"{numbered(number, 'request')} failed in visits that loaded ({which})"
    return [Finding("fail", text, float(number), 0.0, "check that the server and the path can carry the page")]


def _refused(visits: Visits, remedy: str = _RECORDED) -> list[Finding]:
    if not visits.refused:
        return []
    number = sum(visits.refused.values())
    were = "request was" if number == 1 else "requests were"
    text = f"{number} {were} answered with a status of 400 or more ({_urls(visits.refused)})"
    return [Finding("warn", text, float(number), 0.0, remedy)]


def _missing(visits: Visits) -> list[Finding]:
    if not visits.missing:
        return []
    number = sum(visits.missing.values())
    them = "it is" if number == 1 else "they are"
    said = f"the recording has no answer to {numbered(number, 'request')} ({_urls(visits.missing)})"
    text = f"{said}; {them} not compared"
    return [Finding("warn", text, float(number), 0.0, "record the page again, or remove the script that requests them")]


def _cache(workload: RequestsWorkload, visits: Visits) -> list[Finding]:
    if workload.view == "repeat":
        if visits.from_cache:
            return [Finding("pass", f"{visits.from_cache} requests were answered by the browser's cache")]
        text = "a repeated view was asked for, but nothing came from the browser's cache"
        return [Finding("warn", text, 0.0, None, "check that the page allows caching (cache-control, etag)")]
    if visits.from_cache:
        text = f"{visits.from_cache} requests of {workload.view} visits were answered by the browser's cache"
        return [Finding("fail", text, float(visits.from_cache), 0.0, "report a bug: the profile was not new")]
    return []


def _urls(counts: Mapping[str, int]) -> str:
    ranked = sorted(counts, key=lambda url: (-counts[url], url))
    return _items_in_words("", ranked)
