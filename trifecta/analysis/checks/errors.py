"""Failures, timeouts and unfinished trials. Failures are results; a trial without any success is not a measurement."""

from __future__ import annotations

from trifecta.analysis.checks.evidence import Evidence, counts
from trifecta.design.model import CheckResult

_CUT_SHORT = {
    "total_timeout": "the trial ran into its total timeout",
    "no_response": "nothing was ever answered",
    "signal": "the client was ended by a signal",
    "stdin": "the client was ended from outside",
    "crashed": "the client was killed",
}
# Nothing a path does to a request ends in these: the set-up is wrong.
_SETUP_CLASSES = {
    "tls": ("failed in TLS", "look at the server's certificate"),
    "browser": ("failed in the browser itself", "look at its log in the run"),
    "client": ("failed in the client itself", "look at its log in the run"),
}


def check(evidence: Evidence) -> list[CheckResult]:
    """Fail when the client crashed, was cut short, never succeeded, or its set-up failed; warn on other failures."""
    facts = evidence.samples
    if evidence.trouble or evidence.load is None or facts is None:
        why = evidence.trouble or "the client left no result"
        return evidence.result("errors", "fail", why, remedy="look at the logs of the run")
    classes, noun = counts(facts.errors), evidence.noun
    failed = sum(facts.errors.values())
    share = failed / facts.samples if facts.samples else 1.0
    ended = str(evidence.load.get("ended", ""))
    if ended in _CUT_SHORT:
        text = f"{_CUT_SHORT[ended]} after {facts.samples} {noun} (failures: {classes})"
        return evidence.result(
            "errors", "fail", text, value=share, remedy="see that server and path carry this workload"
        )
    if failed >= facts.samples:
        text = f"none of {facts.samples} {noun} succeeded ({classes})"
        return evidence.result("errors", "fail", text, value=share, remedy="look at the server's log and the path")
    setup = {name: count for name, count in facts.errors.items() if name.split(":")[0] in _SETUP_CLASSES}
    if setup:
        where, remedy = _SETUP_CLASSES[next(iter(sorted(setup))).split(":")[0]]
        text = f"{sum(setup.values())} of {facts.samples} {noun} {where} ({counts(setup)})"
        return evidence.result("errors", "fail", text, value=share, limit=0.0, remedy=remedy)
    if failed:
        text = f"{failed} of {facts.samples} {noun} failed ({classes}); they count as slower than every other"
        return evidence.result("errors", "warn", text, value=share, limit=0.0)
    return evidence.result("errors", "pass", f"all {facts.samples} {noun} succeeded", value=0.0, limit=0.0)
