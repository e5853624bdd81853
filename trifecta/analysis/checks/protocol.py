"""The protocol that was negotiated (ALPN) is the one asked for, in every request."""

from __future__ import annotations

from trifecta.analysis.checks.evidence import Evidence, counts
from trifecta.design.model import PROTOCOL_NAMES, CheckResult


def check(evidence: Evidence) -> list[CheckResult]:
    """Fail when a single request was answered over another protocol, or none was answered at all."""
    asked = evidence.trial.protocol
    name = PROTOCOL_NAMES[asked]
    if evidence.samples is None:
        return evidence.result("protocol", "unknown", f"no samples to tell whether {name} was spoken")
    spoken = dict(evidence.samples.protocols)
    total = sum(spoken.values())
    if total == 0:
        return evidence.result(
            "protocol",
            "fail",
            f"{name} was asked for, but no request was answered ({counts(evidence.samples.errors)})",
            value=0.0,
            limit=1.0,
            remedy=f"see that the server offers {name} on this port and that the path carries it",
        )
    right = spoken.get(asked, 0)
    share = right / total
    if right < total:
        return evidence.result(
            "protocol",
            "fail",
            f"{name} was asked for, {total - right} of {total} requests spoke something else ({counts(spoken)})",
            value=share,
            limit=1.0,
            remedy=f"configure the server to offer {name}",
        )
    return evidence.result("protocol", "pass", f"all {total} answered requests spoke {name}", value=share, limit=1.0)
