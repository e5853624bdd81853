"""Did every service run to the end, and does the client know of its errors?

## Fails when
A service died, was not there at the end, or counts more errors than the client has failures.

## Warns when
A service counts more connections that ended badly than the client has failures.

## Why
Without one of its services a trial does not measure what the study describes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from trifecta.analysis.checks.evidence import Evidence, Finding, counts, worst
from trifecta.contract.stored import Service, ServiceSummary
from trifecta.design import failures
from trifecta.design.model import CheckResult
from trifecta.design.phrases import numbered

# How a connection can end without a request on it: the client's last packets were lost, or came late and looked like a
# new connection. They are told, and not held against the trial.
_ENDINGS = frozenset({"idle_timeout", "closed_in_handshake", "reset", "quic:timeout"})
_LOG = "read the service's log in the run's folder `logs`"


def check(evidence: Evidence) -> list[CheckResult]:
    """Fail for a service that is gone, or that counts more errors than the client has failures."""
    if evidence.server is None:
        return worst(evidence, "service", [])
    services = evidence.server.get("services")
    if services is None:
        return evidence.result("service", "pass", "one server, and no services behind it")
    findings = []
    for name, facts in services.items():
        if not facts.get("client"):  # what becomes of the client is told by its rows, and by the check of errors
            findings += _service(evidence, name, facts)
    return worst(evidence, "service", _condensed(findings))


def _service(evidence: Evidence, name: str, facts: Service) -> list[Finding]:
    where = f" on {facts['host']}" if facts.get("host") else ""
    who = f"service {name}{where}"
    if facts.get("ended"):
        return [Finding("fail", f"{who} died: {facts['ended']}", None, None, _LOG)]
    if facts.get("running") is False:
        return [Finding("fail", f"{who} was not running at the end of the trial", None, None, _LOG)]
    summary = facts.get("summary")
    if summary is None:
        return [Finding("fail", f"{who} ended without its final report", None, None, _LOG)]
    return _errors(evidence, who, summary)


def _errors(evidence: Evidence, who: str, summary: ServiceSummary) -> list[Finding]:
    met: dict[str, int] = {str(name): int(count) for name, count in (summary.get("errors") or {}).items() if count}
    failed = _failures(evidence)
    grave = {name: count for name, count in met.items() if name not in _ENDINGS}
    number = sum(grave.values())
    if number > failed:
        text = f"{who} counted {numbered(number, 'error')}, the client {failed}: {failures.in_words(grave)}"
        return [Finding("fail", text, float(number), float(failed), f"{failures.remedy(grave)}; {_LOG}")]
    endings = sum(met.values()) - number
    if endings > failed:
        ended = f"{who} saw {numbered(endings, 'connection')} end badly ({counts(met)})"
        text = f"{ended}, the client counted {numbered(failed, 'failure')}"
        return [Finding("warn", text, float(endings), float(failed), _LOG)]
    text = f"{who} ran to the end" + (f" with the errors {counts(met)}" if met else " without an error")
    return [Finding("pass", text, float(number), float(failed))]


def _failures(evidence: Evidence) -> int:
    """Requests of the client that failed, warm-up included where the load tells."""
    errors = cast(int | Mapping[str, int] | None, (evidence.load or {}).get("errors"))
    if isinstance(errors, Mapping):  # by class
        errors = sum(int(count) for count in errors.values())
    failed_samples = sum(evidence.samples.errors.values()) if evidence.samples else 0
    return max(int(errors or 0), failed_samples)


def _condensed(findings: list[Finding]) -> list[Finding]:
    """Ten services without an error are one sentence."""
    if len(findings) < 2 or any(finding.status != "pass" for finding in findings):
        return findings
    quiet = [finding for finding in findings if finding.text.endswith("without an error")]
    others = [finding for finding in findings if finding not in quiet]
    if not quiet:
        return others
    first = Finding("pass", f"{len(quiet)} of {len(findings)} services ran to the end without an error", 0.0, 0.0)
    return [first, *others]
