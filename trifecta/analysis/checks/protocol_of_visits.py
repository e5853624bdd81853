"""A browser spoke the protocol asked for, in every request of every visit, to every host of the page's own.

With third parties it spoke HTTP/2, in every arm alike; with those of a page elsewhere whatever they agreed on.
"""

from __future__ import annotations

from trifecta.analysis.checks.evidence import TRANSPORTS, Evidence, Finding, counts, nothing_sent, worst
from trifecta.analysis.checks.visits import Visits
from trifecta.design.model import PROTOCOL_NAMES, CheckResult, RequestsWorkload


def check(evidence: Evidence) -> list[CheckResult]:
    """Part of the check `protocol`, for browsers: forced, or found by Alt-Svc."""
    visits, workload = evidence.visits, evidence.workload
    name = PROTOCOL_NAMES[evidence.trial.protocol]
    if visits is None:
        return evidence.result("protocol", "unknown", f"no requests to tell whether {name} was used")
    if not visits.protocols:
        return worst(evidence, "protocol", [_unreported(evidence, visits, name)])
    if workload.discovery == "alt-svc" and evidence.trial.protocol == "h3":
        findings = _discovered(workload, visits)
    else:
        findings = _forced(evidence, visits, name)
    theirs = _of_strangers(evidence, visits) if workload.outside else _third_parties(workload, visits)
    return worst(evidence, "protocol", [*findings, *theirs])


def _unreported(evidence: Evidence, visits: Visits, name: str) -> Finding:
    if visits.untold:
        text = f"{evidence.client} does not report the protocol of {visits.untold} requests"
        return Finding("unknown", text)
    remedy = f"check that the server offers {name} on this port and that the path carries it"
    return Finding("fail", f"{name} was requested, but no visit succeeded", 0.0, 1.0, remedy)


def _forced(evidence: Evidence, visits: Visits, name: str) -> list[Finding]:
    requested, total = evidence.trial.protocol, sum(visits.protocols.values())
    right = visits.protocols.get(requested, 0)
    findings = [Finding("pass", f"all {total} requests with a reported protocol used {name}", right / total, 1.0)]
    if right < total:
        others = sorted(set(visits.protocols) - {requested})
        text = f"{name} was requested, but {total - right} of {total} requests used another protocol "
        examples = ", ".join(url for each in others for url in visits.examples[each])
        text += f"({counts(visits.protocols)}), such as {examples}"
        remedy = f"configure the server to offer {name} for every host of the page"
        findings = [Finding("fail", text, right / total, 1.0, remedy)]
    if nothing_sent(evidence):
        text = f"{evidence.client} reports {name}, but its host sent nothing over {TRANSPORTS[requested][0]}"
        findings.append(Finding("fail", text, 0.0, 1.0, "do not trust this client"))
    if visits.untold:
        findings.append(
            Finding("unknown", f"{evidence.client} does not report the protocol of {visits.untold} requests")
        )
    return findings


def _third_parties(workload: RequestsWorkload, visits: Visits) -> list[Finding]:
    """Whose protocol is their own; of a repeated view it may be that the cache had all of it."""
    spoken = visits.third_party_protocols
    total, right = sum(spoken.values()), spoken.get("h2", 0)
    who = f"the page's third parties ({', '.join(visits.third_parties)})"
    if right < total:
        text = f"{total - right} of {total} requests to {who} did not use HTTP/2 ({counts(spoken)})"
        return [Finding("fail", text, right / total, 1.0, "report a bug: their server offers only HTTP/2")]
    if total:
        return [Finding("pass", f"all {total} requests to {who} used HTTP/2, as in every arm", 1.0, 1.0)]
    if not visits.third_parties or workload.view == "repeat":
        return []
    remedy = "check the page: it must request something of them (docs/pages.md)"
    return [Finding("fail", f"no request to {who} was answered", 0.0, 1.0, remedy)]


def _of_strangers(evidence: Evidence, visits: Visits) -> list[Finding]:
    """Of a page elsewhere third parties are left as they are: they may find HTTP/3 where a browser has it on."""
    spoken = visits.third_party_protocols
    if not spoken:
        return []
    for sibling in evidence.siblings:
        other = sibling.visits.third_party_protocols if sibling.visits is not None else {}
        if sibling.client == evidence.client and other and set(other) != set(spoken):
            text = f"third parties spoke {counts(spoken)} here, {counts(other)} in {sibling.trial.arm}"
            remedy = "read it as including the third parties' protocols, or visit a page without them"
            return [Finding("warn", text, remedy=remedy)]
    return [Finding("pass", f"third parties spoke {counts(spoken)}")]


def _discovered(workload: RequestsWorkload, visits: Visits) -> list[Finding]:
    """HTTP/3 found by Alt-Svc (RFC 7838): a visit begins over TCP, and what follows may go over QUIC."""
    total, right = sum(visits.protocols.values()), visits.protocols.get("h3", 0)
    # Over connections that stand, or with what an earlier visit learned, the first request may speak HTTP/3 already.
    early = [visit.number for visit in visits.loaded if visit.first_protocol == "h3"] if workload.view == "cold" else []
    findings = []
    if early:
        text = f"HTTP/3 was to be discovered by Alt-Svc, but visits {early} used it from the first request"
        findings.append(Finding("fail", text, float(len(early)), 0.0, "report a bug: the profile was not new"))
    if not right:
        text = f"HTTP/3 was never discovered by Alt-Svc: all {total} requests used {counts(visits.protocols)}"
        remedy = "check that the server sends alt-svc, and that the browser accepts it (docs/browsers.md)"
        findings.append(Finding("fail", text, 0.0, 1.0, remedy))
    text = f"{right} of {total} requests ({100 * (right / total):.0f} %) used HTTP/3 after it was discovered by Alt-Svc"
    return [*findings, Finding("pass", text, right / total, 1.0, bounded=False)]
