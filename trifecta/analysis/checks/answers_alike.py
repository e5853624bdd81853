"""The part of the check `same_work` for servers elsewhere: what they answer is not ours, but it must be the same.

A page may change while it is measured, for all arms alike; an arm that gets other answers does other work.
"""

from __future__ import annotations

from statistics import median

from trifecta.analysis.checks.evidence import Evidence, Finding, SampleFacts

ALIKE, FAR_APART = 0.02, 0.2  # share by which the sizes of two arms' answers may differ; beyond, and far beyond
_REMEDY = "request something that does not change, or a smaller part of it"


def findings(evidence: Evidence, facts: SampleFacts) -> list[Finding]:
    """Compare the sizes of the answers with those of the other arms of the block."""
    own = _size(facts)
    if own is None:
        return [Finding("unknown", "no complete response arrived, so there is no size to compare")]
    spread = f"{min(facts.bytes_in):,} to {max(facts.bytes_in):,} B" if len(facts.bytes_in) > 1 else f"{own:,.0f} B"
    for sibling in evidence.siblings:
        other = _size(sibling.samples) if sibling.samples is not None and evidence.asked_alike(sibling) else None
        if other is None:
            continue
        apart = abs(own - other) / max(own, other, 1.0)
        if apart > ALIKE:
            text = f"median response size {own:,.0f} B here, {other:,.0f} B in {sibling.trial.arm}"
            return [Finding("fail" if apart > FAR_APART else "warn", text, apart, ALIKE, _REMEDY)]
    return [Finding("pass", f"all {sum(facts.bytes_in.values())} responses had {spread}", 0.0, ALIKE)]


def _size(facts: SampleFacts) -> float | None:
    """The median of the content of successful answers."""
    sizes = [size for size, count in facts.bytes_in.items() for _ in range(count)]
    return float(median(sizes)) if sizes else None
