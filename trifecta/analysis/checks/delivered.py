"""Did each path behave as requested over the whole run?

## Fails when
A link lost, duplicated, corrupted or reordered a different share of packets than requested, beyond chance under
continuous monitoring; or, in any trial, its configuration differed from the plan, or its hits from its random draws.
Then no trial of the path counts.

## Warns when
Never.

## Why
One trial has too few packets to tell 2 % from 1 %; all trials of a run have enough.

## Sources
Ville 1939 (a test valid under continuous monitoring).
"""

from __future__ import annotations

from trifecta.analysis.checks.evidence import RunEvidence
from trifecta.analysis.deliveries import Stream, streams
from trifecta.design import plan
from trifecta.design.model import CheckResult

_REMEDY = "check the link's configuration in the run's log, and the engine; no trial of this path counts"


def check(evidence: RunEvidence) -> list[CheckResult]:
    """Per cell: fail where its path lost, duplicated, corrupted or reordered another share of packets than asked."""
    by_path: dict[str, list[Stream]] = {}
    for stream in streams(evidence.study, evidence.rows):
        by_path.setdefault(stream.path, []).append(stream)
    results = []
    for cell in evidence.cells:
        paths = dict.fromkeys(str(one.levels.get("path", "")) for one in plan.treatments_of(evidence.study, cell))
        of_path = [stream for path in paths for stream in by_path.get(path, ())]
        if of_path:
            results.append(_cell(cell.key, of_path))
    return results


def _cell(key: str, of_path: list[Stream]) -> CheckResult:
    failed = [stream for stream in of_path if stream.failed]
    pooled = [stream for stream in of_path if stream.arm is None]
    if failed:
        first = failed[0]
        text = "; ".join(stream.text for stream in failed[:3])
        share = first.hits / first.packets if first.packets else 0.0
        return CheckResult("delivered", key, "fail", text, share, first.asked, _REMEDY)
    with_packets = [stream for stream in pooled if stream.packets]
    if not with_packets:
        return CheckResult("delivered", key, "unknown", "no packet has met this path's impairments yet")
    text = "; ".join(stream.text for stream in with_packets)
    return CheckResult(
        "delivered", key, "pass", text, with_packets[0].hits / with_packets[0].packets, with_packets[0].asked
    )
