"""Did the path keep packets in order?

## Fails when
Never.

## Warns when
More than 1 % of the packets of a direction arrived after a later one.

## Why
A path may reorder, but then the result shows the stacks' tolerance of it: RFC 9002 declares a packet lost once three
later ones are acknowledged; Linux TCP adapts to how far packets overtake each other.

## Sources
RFC 4737, 3.3 (the measure); RFC 9002, 6.1.1; RFC 8985.
"""

from __future__ import annotations

from trifecta.analysis.checks.evidence import Evidence, Finding, worst
from trifecta.design.model import CheckResult

# Share of the packets of one direction that came behind a later one (RFC 4737 section 3.3). Paths of the Internet stay
# well below; what a stack sends again for nothing is then below what it sends again for losses.
REORDERED_LIMIT = 0.01
_REMEDY = "compare with the same path without reordering (`--without jitter-reordering`)"


def check(evidence: Evidence) -> list[CheckResult]:
    """Warn of a direction in which more than one packet in a hundred was overtaken; no result without a link."""
    findings = []
    for wire, link in evidence.links.items():
        for direction, way in ((link.get("a_to_b"), "to the server"), (link.get("b_to_a"), "to the client")):
            report = direction or {}
            packets, late = int(report.get("delivered") or 0), report.get("out_of_order")
            if late is None or not packets or link.get("netem"):  # which does not count them
                continue
            share = int(late) / packets
            where = f"{wire} {way}".strip()
            text = f"{where}: {late} of {packets} packets ({100 * share:.1f} %) arrived after a later one"
            if share > REORDERED_LIMIT:
                findings.append(Finding("warn", text, share, REORDERED_LIMIT, _REMEDY))
            else:
                findings.append(Finding("pass", text, share, REORDERED_LIMIT))
    return worst(evidence, "reordering", findings) if findings else []
