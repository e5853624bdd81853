"""Did the trial end normally, and what failed?

## Fails when
The client crashed, ended early or never succeeded, or TLS or the client itself failed; a server elsewhere answered 429
or 503, after which no more requests are sent in this trial.

## Warns when
Anything else failed: timeouts, resets, status codes. Failures are results and count as infinitely long, unless
`same_work` leaves the trial out because of them.

## Why
A trial without any success is no measurement, and one that was cut short has lost its slowest requests.
"""

from __future__ import annotations

from trifecta.analysis.checks import same_work
from trifecta.analysis.checks.evidence import (
    Evidence,
    SampleFacts,
    failed_in_warmup,
    nothing_succeeded,
    telling_failures,
)
from trifecta.design import failures
from trifecta.design.model import PROTOCOL_NAMES, CheckResult

_CUT_SHORT = {
    "total_timeout": "the trial ran into its total timeout",
    "no_response": "the client gave up without a single response",
    "signal": "a signal ended the client",
    "stdin": "the client was stopped from outside",
    "crashed": "the client was killed",
    "status": "the server asked to slow down (429 or 503)",
}
# Nothing a path does to a request ends in these: the set-up is wrong.
_SETUP_CLASSES = {"tls": "in TLS", "browser": "in the browser itself", "client": "in the client itself"}


def check(evidence: Evidence) -> list[CheckResult]:
    """Fail when the client crashed, was cut short, never succeeded, or its set-up failed; warn on other failures."""
    facts = evidence.samples
    if evidence.trouble or evidence.load is None or facts is None:
        why = evidence.trouble or "the client left no result"
        return evidence.result("errors", "fail", why, remedy="look at the logs of the run")
    return _without_success(evidence, facts) if nothing_succeeded(facts) else _of_failures(evidence, facts)


def _of_failures(evidence: Evidence, facts: SampleFacts) -> list[CheckResult]:
    name, noun = PROTOCOL_NAMES[evidence.trial.protocol], evidence.noun
    classes, remedy = failures.in_words(facts.errors, name), failures.remedy(facts.errors, name)
    failed = sum(facts.errors.values())
    share = failed / facts.samples
    ended = str((evidence.load or {}).get("ended", ""))
    if ended in _CUT_SHORT:
        text = f"{_CUT_SHORT[ended]} after {facts.samples} {noun} (failures: {classes})"
        return evidence.result("errors", "fail", text, value=share, remedy=remedy if failed else failures.CARRY)
    setup = {name: count for name, count in facts.errors.items() if name.split(":")[0] in _SETUP_CLASSES}
    if setup:
        where = _SETUP_CLASSES[next(iter(sorted(setup))).split(":")[0]]
        text = f"{sum(setup.values())} of {facts.samples} {noun} failed {where}: {failures.in_words(setup, name)}"
        remedy = failures.remedy(setup, name)
        return evidence.result("errors", "fail", text, value=share, limit=0.0, remedy=remedy)
    if failed:
        other_work = any(one.status == "fail" for one in same_work.check(evidence))
        count = "the check same work leaves the trial out" if other_work else "they count as slower than all others"
        text = f"{failed} of {facts.samples} {noun} failed: {classes}; {count}"
        return evidence.result("errors", "warn", text, value=share, limit=0.0, remedy=remedy)
    return evidence.result("errors", "pass", f"all {facts.samples} {noun} succeeded", value=0.0, limit=0.0)


def _without_success(evidence: Evidence, facts: SampleFacts) -> list[CheckResult]:
    """Of a trial that measured nothing, maybe not even made a request after its warm-up."""
    name, errors = PROTOCOL_NAMES[evidence.trial.protocol], telling_failures(facts)
    how, classes = _CUT_SHORT.get(str((evidence.load or {}).get("ended", ""))), failures.in_words(errors, name)
    in_warmup = failed_in_warmup(facts) or bool(facts.warmup_samples and not facts.samples)
    made = f"{facts.warmup_samples} {evidence.noun} of the warm-up" if in_warmup else f"{facts.samples} {evidence.noun}"
    if how is None and not in_warmup:
        text = f"none of {made} succeeded: {classes}"
    else:
        text = f"{how or 'nothing was measured'} after {made} (failures: {classes})"
    remedy = failures.remedy(errors, name) if errors else failures.CARRY
    return evidence.result("errors", "fail", text, value=1.0, remedy=remedy)
