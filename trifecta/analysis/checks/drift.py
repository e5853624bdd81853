"""How much did the path, or the server, change while it was measured?

## Fails when
Never.

## Warns when
For servers elsewhere: the baseline's medians in the first and the last third of a cell's blocks differ by more than a
factor of 1.25.

## Why
Nobody here controls the load of the hour. The arms of a block share it, in random order, so ratios stay unbiased; they
hold for the path as it was then, and its changes within a block widen the intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from trifecta.analysis.checks.evidence import RunEvidence, duration
from trifecta.analysis.estimate import Row, by_cell, usable
from trifecta.design.model import AA_SUFFIX, CheckResult

DRIFT_WARN = 1.25
ENOUGH_BLOCKS = 3  # a third of fewer is not even one
_REMEDY = "read the ratios as those of this hour; measure again at another time"


def check(evidence: RunEvidence) -> list[CheckResult]:
    """Per cell of a server elsewhere: what the baseline took at first and at last, and in between at least and most."""
    if not evidence.study.workload.outside:
        return []
    rows = by_cell(evidence.rows)
    return [
        result
        for cell in evidence.cells
        if (result := _cell(cell.key, evidence.study.baseline.level, rows.get(cell.key, []))) is not None
    ]


def _cell(key: str, baseline: str, rows: Sequence[Row]) -> CheckResult | None:
    took = [one for _, one in by_block(baseline, rows)]
    if len(took) < ENOUGH_BLOCKS:
        return None
    third = len(took) // 3
    first, last = median(took[:third]), median(took[-third:])
    drift = max(first, last) / min(first, last)
    text = (
        f"the baseline took {duration(first)} in the first third of the blocks and {duration(last)} in the last, "
        f"{duration(min(took))} to {duration(max(took))} overall"
    )
    if drift > DRIFT_WARN:
        return CheckResult("drift", key, "warn", text, drift, DRIFT_WARN, _REMEDY)
    return CheckResult("drift", key, "pass", text, drift, DRIFT_WARN)


def by_block(baseline: str, rows: Sequence[Row]) -> list[tuple[int, float]]:
    """(block, median latency of the baseline's trials in ns), in order of the blocks, of usable trials."""
    values_by_block: dict[int, list[float]] = {}
    for row in rows:
        took = row.get("latency_p50_ns")
        if str(row["arm"]).removesuffix(AA_SUFFIX) == baseline and usable(row) and took:
            values_by_block.setdefault(int(row["block"]), []).append(float(took))
    return [(block, median(values)) for block, values in sorted(values_by_block.items())]
