"""Are there enough usable blocks?

## Fails when
A cell has no usable block, or over half of its trials were left out.

## Warns when
There are fewer usable blocks than the study asks for; more than a tenth of the trials were left out (counted by arm);
the study asks for one block.

## Why
If one arm fails checks more often than another, the remaining trials are a biased selection.
"""

from __future__ import annotations

from collections import Counter

from trifecta.analysis.checks.evidence import RunEvidence
from trifecta.analysis.estimate import by_cell, usable
from trifecta.design import plan
from trifecta.design.model import CheckResult, CheckStatus
from trifecta.design.phrases import counted

EXCLUDED_WARN, EXCLUDED_FAIL = 0.1, 0.5  # share of a cell's trials


def check(evidence: RunEvidence) -> list[CheckResult]:
    """Per cell: blocks in which every arm is usable against ``min_blocks``, and the share of excluded trials."""
    grouped = by_cell(evidence.rows)
    arms = set(plan.arms(evidence.study))
    results = []
    for cell in evidence.cells:
        rows = grouped.get(cell.key, [])
        good: dict[int, set[str]] = {}
        for row in rows:
            if usable(row):
                good.setdefault(int(row["block"]), set()).add(str(row["arm"]))
        complete = sum(arms_usable >= arms for arms_usable in good.values())
        excluded = Counter(str(row["arm"]) for row in rows if not usable(row))
        left_out = sum(excluded.values())
        share = left_out / len(rows) if rows else 0.0
        needed = min(evidence.study.min_blocks, evidence.study.max_blocks)
        by_arm = ", ".join(f"{arm} {count}" for arm, count in sorted(excluded.items()))
        text = f"{counted(complete, 'block')} with every arm usable, {needed} required; "
        text += f"{left_out} of {counted(len(rows), 'trial')} left out"
        text += f" ({by_arm})" if by_arm else ""
        status: CheckStatus = "pass"
        remedy = ""
        if not rows:
            text = f"not measured yet, {counted(needed, 'block')} required"
            status, remedy = "fail", "raise `--budget`"
        elif share > EXCLUDED_FAIL or not complete:
            status, remedy = "fail", "look at the failed checks of its trials"
        elif complete < needed or share > EXCLUDED_WARN:
            status = "warn"
            remedy = "raise `--budget`" if complete < needed else "look at the failed checks of its trials"
        elif evidence.study.max_blocks < 2:
            text += "; one block does not show how much its loads vary"
            status, remedy = "warn", "set blocks: {at_least: 6}, or read it as a first look, not a comparison"
        results.append(CheckResult("blocks", cell.key, status, text, float(complete), float(needed), remedy))
    return results
