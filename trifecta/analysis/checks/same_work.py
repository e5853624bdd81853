"""Did every arm get the same complete responses?

## Fails when
A response was not the one asked for (status, length, content), fewer requests were made than asked for, or the study
asks for requests or responses of another size over one protocol than over another.

## Warns when
Responses of a server elsewhere, which may change meanwhile, differ in size between arms of a block by more than 2 %
(fails beyond 20 %).

## Why
A response cut short is a fast one; arms that did different work cannot be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from trifecta.analysis.checks import answers_alike
from trifecta.analysis.checks.evidence import (
    Evidence,
    Finding,
    SampleFacts,
    counts,
    nothing_succeeded,
    telling_failures,
    worst,
)
from trifecta.design import by_protocol, failures, plan, quantity
from trifecta.design.model import PROTOCOL_FACTOR, PROTOCOL_NAMES, CheckResult
from trifecta.design.workloads.requests import Family

_EMPTY_ANSWER = ("HEAD", "DELETE")  # no content in their answers: RFC 9110, 9.3.2 and 9.3.5
_WRONG_ANSWERS = ("length", "content", "status", "malformed")
_REMEDY = "look at the server's log; every arm must serve the same site"


def check(evidence: Evidence) -> list[CheckResult]:
    """Fail on any response that is not the one asked for, on missing requests, and on arms that differ."""
    facts = evidence.samples
    if facts is None:
        return evidence.result("same_work", "unknown", "no samples to compare")
    return worst(evidence, "same_work", [*_sizes(evidence), *WORK[evidence.workload.family](evidence, facts)])


def _sizes(evidence: Evidence) -> list[Finding]:
    """What the study itself gives the protocols that it compares in different sizes."""
    requests_workload = plan.workload_for(evidence.study, evidence.trial)
    findings = []
    for field in requests_workload.sized_apart:
        octets = requests_workload.response_bytes if field == "response" else requests_workload.request_bytes
        protocols = sorted(map(str, evidence.study.factors[PROTOCOL_FACTOR]))
        sizes = {protocol: by_protocol.octets_over(octets, protocol) for protocol in protocols}
        if len(set(sizes.values())) > 1:
            each = (f"{quantity.format_size(size)} over {PROTOCOL_NAMES[name]}" for name, size in sizes.items())
            text = f"the study asks for a {field} of {', '.join(each)}"
            most, least = (float(one(sizes.values())) for one in (max, min))
            findings.append(Finding("fail", text, most, least, f"set one size, as in `--set {field}='128 B'`"))
    return findings


def _of_responses(evidence: Evidence, facts: SampleFacts) -> list[Finding]:
    """The octets asked for in every response, in every arm."""
    workload = evidence.workload
    octets = 0 if workload.method in _EMPTY_ANSWER else by_protocol.one_size(workload.response_bytes)
    findings = _wrong(facts, "responses")
    sizes = {size: count for size, count in facts.bytes_in.items() if size != octets}
    if sizes:
        others = ", ".join(f"{count} of {size} B" for size, count in sorted(sizes.items())[:5])
        findings.append(_fail(f"every response should have {octets} B, but there were {others}", sizes))
    findings += _requests(evidence, facts)
    for sibling in evidence.siblings:
        if not evidence.asked_alike(sibling):
            continue
        received = sibling.samples.bytes_in if sibling.samples is not None else {}
        if received and facts.bytes_in and set(received) != set(facts.bytes_in):
            other = f"{sibling.trial.arm} got responses of {counts(received)}"
            findings.append(_fail(f"responses of {counts(facts.bytes_in)} (octets and number) here, {other}", sizes))
    if not findings and (evidence.load or {}).get("content_compared") is False:
        text = f"all successful responses had {octets} B, but {evidence.client} does not expose their content"
        findings.append(Finding("unknown", text))
    elif not findings:
        answered = sum(facts.bytes_in.values())
        findings.append(Finding("pass", f"all {answered} successful responses had the {octets} B requested", 0.0, 0.0))
    return findings


def _of_cycles(evidence: Evidence, facts: SampleFacts) -> list[Finding]:
    """A service's 502 or 504 is a failed cycle, not other work."""
    kinds = [kind for kind in _WRONG_ANSWERS if kind != "status"]
    return [*_wrong(facts, "responses", kinds), *_cycles(evidence), *_requests(evidence, facts)]


def _of_visits(evidence: Evidence, facts: SampleFacts) -> list[Finding]:
    """What each visit got is compared by the check `same_page`."""
    return [*_wrong(facts, "visits"), *_visits(evidence, facts)]


def _of_a_stranger(evidence: Evidence, facts: SampleFacts) -> list[Finding]:
    """Of a server elsewhere nobody here knows what is right, but for what the first look got."""
    wrong = [*_wrong(facts, "responses"), *_requests(evidence, facts)]
    return [*wrong, *answers_alike.findings(evidence, facts)]


def _wrong(facts: SampleFacts, what: str, kinds: Sequence[str] = _WRONG_ANSWERS) -> list[Finding]:
    """Answers that are not what was asked for."""
    wrong = {name: count for name, count in facts.errors.items() if name.split(":")[0] in kinds}
    if not wrong:
        return []
    text = f"{sum(wrong.values())} of {facts.samples} {what} were wrong: {failures.in_words(wrong)}"
    return [Finding("fail", text, float(sum(wrong.values())), 0.0, failures.remedy(wrong))]


def _visits(evidence: Evidence, facts: SampleFacts) -> list[Finding]:
    """As many visits as asked for."""
    measured, warmup = facts.samples, facts.warmup_samples
    requested = (evidence.workload.samples, evidence.workload.warmup_samples)
    text = (
        f"{measured} visits were made after {warmup} of warm-up; the study asks for {requested[0]} after {requested[1]}"
    )
    if (measured, warmup) != requested:
        return [Finding("fail", text, float(measured), float(requested[0]), "raise the timeouts of the study")]
    return [Finding("pass", text, float(measured), float(requested[0]))]


def _cycles(evidence: Evidence) -> list[Finding]:
    """Every cycle that did not fail made the calls of its graph, no more and no fewer."""
    cycles = (evidence.server or {}).get("cycles")
    if cycles is None:
        return [Finding("unknown", "the hops of the cycles were not recorded")]
    expected = str(cycles["expected_hops"])
    hops = {count: number for count, number in cycles["hops"].items() if count != expected}
    if hops:
        others = ", ".join(f"{number} of {count}" for count, number in list(hops.items())[:5])
        return [_fail(f"every cycle should have {expected} hops, but there were {others}", hops)]
    complete_cycles = cycles["hops"].get(expected, 0)
    return [Finding("pass", f"all {complete_cycles} cycles that did not fail had their {expected} hops", 0.0, 0.0)]


def _requests(evidence: Evidence, facts: SampleFacts) -> list[Finding]:
    """A trial that ends after a number of requests must have made that many, whatever became of them."""
    requested = evidence.workload.samples
    if not requested or evidence.workload.duration_ns:
        return []
    measured = facts.samples + facts.warmup_samples
    if measured >= requested:
        return []
    remedy = "raise the timeouts of the study, or ask for fewer requests"
    if nothing_succeeded(facts) and (errors := telling_failures(facts)):
        remedy = failures.remedy(errors, PROTOCOL_NAMES[evidence.trial.protocol])
    before = " before its total timeout" if (evidence.load or {}).get("ended") == "total_timeout" else ""
    text = f"the study asks for {requested} requests, {measured} were made{before}"
    return [Finding("fail", text, float(measured), float(requested), remedy)]


def _fail(text: str, wrong: dict[str, int] | dict[int, int]) -> Finding:
    return Finding("fail", text, float(sum(wrong.values())), 0.0, _REMEDY)


WORK: Mapping[Family, Callable[[Evidence, SampleFacts], list[Finding]]] = {
    "requests": _of_responses,
    "services": _of_cycles,
    "visits": _of_visits,
    "far": _of_a_stranger,
    "far-visits": _of_visits,
}
"""What is looked at, by the family of the workload."""
