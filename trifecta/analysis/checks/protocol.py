"""Did every request use the requested protocol?

## Fails when
A single request was answered over another protocol, or none was answered at all; with a browser, any request of a
visit. With HTTP/3 discovered by Alt-Svc: a cold visit starts with it, or no visit discovers it. For a page with third
parties in a lab: one of their responses did not come over HTTP/2, or none came.

## Warns when
Third parties of a page elsewhere, whose protocol is not forced, spoke another protocol in one arm than in another.

## Why
A client that falls back silently measures the protocol that it fell back to.

## Sources
RFC 7301 (ALPN), RFC 7838 (Alt-Svc).
"""

from __future__ import annotations

from collections.abc import Mapping

from trifecta.analysis.checks import protocol_of_visits
from trifecta.analysis.checks.evidence import TRANSPORTS, Evidence, counts, nothing_sent, telling_failures
from trifecta.contract.stored import Service
from trifecta.design import failures
from trifecta.design.model import PROTOCOL_NAMES, CheckResult


def check(evidence: Evidence) -> list[CheckResult]:
    """Fail when a single request was answered over another protocol, or none was answered at all."""
    return protocol_of_visits.check(evidence) if evidence.browsing else _of_requests(evidence)


def _of_requests(evidence: Evidence) -> list[CheckResult]:
    requested = evidence.trial.protocol
    name = PROTOCOL_NAMES[requested]
    if evidence.samples is None:
        return evidence.result("protocol", "unknown", f"no samples to tell whether {name} was used")
    spoken = dict(evidence.samples.protocols)
    total = sum(spoken.values())
    succeeded = evidence.samples.samples - sum(evidence.samples.errors.values())
    if total < succeeded and set(spoken) <= {requested}:
        text = f"{evidence.client} does not report the protocol of {succeeded - total} of {succeeded} requests"
        return evidence.result("protocol", "unknown", text)
    if total == 0:
        return _without_success(evidence, name)
    right = spoken.get(requested, 0)
    share = right / total
    if right < total:
        return evidence.result(
            "protocol",
            "fail",
            f"{name} was requested, but {total - right} of {total} requests used another protocol ({counts(spoken)})",
            value=share,
            limit=1.0,
            remedy=f"configure the server to offer {name}",
        )
    if evidence.foreign and nothing_sent(evidence):
        text = f"{evidence.client} reports {name}, but its host sent nothing over {TRANSPORTS[requested][0]}"
        return evidence.result("protocol", "fail", text, value=0.0, limit=1.0, remedy="do not trust this client")
    return _among_services(evidence) or evidence.result(
        "protocol", "pass", f"all {total} answered requests used {name}", value=share, limit=1.0
    )


def _without_success(evidence: Evidence, name: str) -> list[CheckResult]:
    """Answers that were wrong are no sign of another protocol; where none came at all, nothing was spoken."""
    assert evidence.samples is not None
    facts = evidence.samples
    errors = telling_failures(facts)
    if not facts.samples and sum(errors.values()) < facts.warmup_samples:
        text = f"{name} was requested, but no request was made after the warm-up"
        return evidence.result("protocol", "fail", text, value=0.0, limit=1.0, remedy=failures.CARRY)
    what, remedy = failures.in_words(errors, name), failures.remedy(errors, name)
    if failures.ANSWERED & errors.keys():
        text = f"{name} was requested; responses arrived, but none was correct: {what}"
        return evidence.result("protocol", "unknown", text, remedy=remedy)
    text = f"{name} was requested, but no request was answered: {what}"
    return evidence.result("protocol", "fail", text, value=0.0, limit=1.0, remedy=remedy)


def _among_services(evidence: Evidence) -> list[CheckResult]:
    """The failure of calls behind the client's; nothing when all spoke what was asked."""
    strays = _strays((evidence.server or {}).get("services") or {})
    if not strays:
        return []
    text = f"calls among the services used another protocol than requested: {'; '.join(strays)}"
    return evidence.result("protocol", "fail", text, value=0.0, limit=1.0, remedy="look at the services' logs")


def _strays(services: Mapping[str, Service]) -> list[str]:
    """Services that were asked over a protocol that none of their callers was to speak."""
    requested: dict[str, set[str]] = {}
    for facts in services.values():
        for callee, protocol in (facts.get("asked") or {}).items():
            requested.setdefault(callee, set()).add(protocol)
    strays = []
    for name, facts in services.items():
        others = {
            p: n for p, n in (facts.get("protocols_spoken") or {}).items() if n and p not in requested.get(name, ())
        }
        if others:
            strays.append(f"{name} was called over {counts(others)}")
    return strays
