"""The part of the check `same_page` for pages of servers elsewhere, which may change meanwhile, for all arms alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from trifecta.analysis.checks.answers_alike import ALIKE, FAR_APART
from trifecta.analysis.checks.evidence import Evidence, Finding, counts
from trifecta.analysis.checks.visits import Visit, Visits

_CHANGES = "read it as a page that changes, or visit one that does not"
_FAILS = "look at the waterfalls: what fails in every browser is the page's fault"
_SHOWN = 3  # URLs that are named
Difference = Callable[[Visit, Visit], str]
"""What of one visit is not as in another, in words; empty when nothing is."""


def findings(evidence: Evidence, visits: Visits, difference: Difference) -> list[Finding]:
    """Compare requests and octets of the visits with those of the block's first, and tell what failed."""
    return [*_failed(evidence, visits), *unfinished(visits), _compare_visits(evidence, visits, difference)]


def _compare_visits(evidence: Evidence, visits: Visits, difference: Difference) -> Finding:
    others = [(f"{arm} ", each.loaded) for arm, each in _siblings(evidence)]
    arm, first = next(((arm, loaded[0]) for arm, loaded in others if loaded), ("", visits.loaded[0]))
    worst, what, other = 0.0, "", visits.loaded[0]
    for visit in visits.loaded:
        words = difference(visit, first)
        if words and (apart := max(_relative_difference(visit, first), ALIKE)) > worst:
            worst, what, other = apart, words, visit
    if what:
        text = (
            f"visit {other.number} made {requests(other)} requests for {_octets(other):,} B, {arm}visit "
            f"{first.number} {requests(first)} for {_octets(first):,} B: {what}"
        )
        return Finding("fail" if worst > FAR_APART else "warn", text, worst, FAR_APART, _CHANGES)
    text = f"all {len(visits.loaded)} visits made the same {requests(first)} requests for {_octets(first):,} B"
    return Finding("pass", text, 0.0, FAR_APART)


def _siblings(evidence: Evidence) -> list[tuple[str, Visits]]:
    """What this browser saw of the page in the earlier trials of the block, with their arms."""
    alike = [each for each in evidence.siblings if evidence.asked_alike(each) and each.client == evidence.client]
    return [(each.trial.arm, each.visits) for each in alike if each.visits is not None]


def _relative_difference(visit: Visit, other: Visit) -> float:
    """By which share of the larger one requests differ, or octets, whichever is more."""
    pairs = ((requests(visit), requests(other)), (_octets(visit), _octets(other)))
    return max(abs(one - two) / max(one, two, 1) for one, two in pairs)


def requests(visit: Visit) -> int:
    """How many a visit made."""
    return sum(fetch.times for fetch in visit.fetched.values())


def _octets(visit: Visit) -> int:
    """As far as they are told."""
    return sum(fetch.octets or 0 for fetch in visit.fetched.values())


def _failed(evidence: Evidence, visits: Visits) -> list[Finding]:
    """What fails in every arm is the page's own; what its host did not answer in one arm alone is that arm's."""
    host = _host(str((evidence.server or {}).get("url") or ""))
    own = {url for url in visits.failed if _host(url) == host}
    for arm, other in _siblings(evidence):
        alone = own ^ {url for url in other.failed if _host(url) == host}
        if alone:
            text = f"requests to the page's host failed here or in {arm} alone ({_some_urls(alone)})"
            return [
                Finding("fail", text, float(len(alone)), 0.0, "check that the server and the path can carry the page")
            ]
    if not visits.failed:
        return []
    number = sum(visits.failed.values())
    text = (
        f"{number} requests failed in visits that loaded ({counts(visits.failed_classes)}: {_some_urls(visits.failed)})"
    )
    return [Finding("warn", text, float(number), 0.0, _FAILS)]


def _some_urls(urls: Iterable[str]) -> str:
    return ", ".join(sorted(urls)[:_SHOWN])


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].partition(":")[0].lower()


def unfinished(visits: Visits) -> list[Finding]:
    """A warning where requests still ran when a visit was over."""
    if not visits.unfinished:
        return []
    text = f"{visits.unfinished} requests were still running when the visit ended"
    return [Finding("warn", text, float(visits.unfinished), 0.0, "raise `settle`")]
