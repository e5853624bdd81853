"""The experiment of `retries-hidden`: requests that failed, and what hiding that by trying again would make of them.

Nothing is retried on the wire: the times of requests that succeeded, and of those that failed, are what the
back-off of `analysis.resampling` is carried out on. *Off* is the mean of those that succeeded beside a success rate;
*on* is the mean over all, each failure retried until it succeeds.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np

from trifecta.analysis.resampling import NO_NOISE_FLOOR, Block, Change, by_block, change, failures, retries_hidden
from trifecta.analysis.success import success_rate
from trifecta.contract.threats import EffectDocument, EffectRow, MeanDocument
from trifecta.design import plan
from trifecta.design.metrics import METRICS
from trifecta.design.model import Study
from trifecta.store import request_times

FACTOR = "retries"  # no factor of the study: what is done with its failures
OFF, ON = "counted", "hidden"


def effects(connection: duckdb.DuckDBPyConnection, study: Study) -> list[EffectDocument]:
    """What hidden retries do in each cell of a run; nothing where no request failed."""
    effect_documents: list[EffectDocument] = []
    for cell in plan.cells(study):
        limits = (study.workload.request_timeout_ns, study.workload.connect_timeout_ns)
        effect_documents += of_blocks(by_block(request_times.of_cell(connection, cell.key, *limits)), study, cell.key)
    return effect_documents


def of_blocks(blocks: Sequence[Block], study: Study, cell: str = "") -> list[EffectDocument]:
    """The success rates, and the mean time with and without, of each protocol and of their ratio."""
    arms = plan.levels_of(study)
    if not failures(blocks):
        return []
    base = study.baseline.level
    pairs = [*((arm, None) for arm in arms), *((arm, base) for arm in arms if arm != base)]
    confidence = 1 - (1 - study.confidence) / len(pairs)  # they hold together (Bonferroni)
    rows: list[EffectRow] = []
    for arm, reference in pairs:
        changed = change(
            blocks, arm, reference, retries_hidden(), NO_NOISE_FLOOR, seed=study.seed, confidence=confidence
        )
        if changed is not None:
            rows.append(_row(arm, reference, _mean(blocks, arm, reference), changed, study.margin))
    head: EffectDocument = {
        "factor": FACTOR,
        "off": OFF,
        "on": ON,
        "baseline": base,
        "margin": study.margin,
        "detected": None,
    }
    head |= {"confidence": study.confidence, "cell": cell}
    return [
        {**head, "title": "requests that succeed", **_of("success_rate"),
         "rows": [_success(blocks, arm, study.confidence) for arm in arms]},
        {**head, "title": "", **_of("latency_mean_ns"), "rows": rows},
    ]  # fmt: skip


def _of(name: str) -> EffectDocument:
    metric = METRICS[name]
    return {
        "metric": name, "metric_label": metric.label, "unit": metric.unit, "lower_is_better": metric.lower_is_better,
    }  # fmt: skip


def _mean(blocks: Sequence[Block], arm: str, reference: str | None) -> float | None:
    """The mean of the requests that succeeded, or its ratio to that of another protocol."""
    means = []
    for one in (arm, *([reference] if reference else [])):
        known = [trial.done_ns for block in blocks for trial in block.get(one, ()) if len(trial.done_ns)]
        if not known:
            return None
        means.append(float(np.concatenate(known).mean()))
    return means[0] if reference is None else means[0] / means[1]


def _row(arm: str, reference: str | None, off: float | None, change: Change, margin: float) -> EffectRow:
    outcome = "undecided"
    if change.low is not None and change.high is not None:
        if change.low > 1 or change.high < 1:
            outcome = "more" if change.low > 1 else "less"
        elif change.low >= 1 / (1 + margin) and change.high <= 1 + margin:
            outcome = "same"
    on = None if off is None else off * change.ratio
    sides = _value(off, change.blocks), _value(on, change.blocks)
    return _row_of((arm, reference), sides, (change.ratio, change.low, change.high), outcome, change.blocks)


def _success(blocks: Sequence[Block], arm: str, confidence: float) -> EffectRow:
    """The share that succeeds; with retries none is seen to fail."""
    counts = [
        (len(trial.done_ns) + len(trial.failed_ns), len(trial.done_ns))
        for block in blocks
        for trial in block.get(arm, ())
    ]
    rate = success_rate(counts, confidence)
    outcome = "more" if rate.high is not None and rate.high < 1 else "undecided"
    off, on = _value(rate.rate, len(blocks)), _value(None if rate.rate is None else 1.0, len(blocks))
    if off is not None:
        off |= {"low": rate.low, "high": rate.high}
    return _row_of((arm, None), (off, on), (1 / rate.rate if rate.rate else None, None, None), outcome, len(blocks))


def _value(value: float | None, blocks: int) -> MeanDocument | None:
    return None if value is None else {"value": value, "low": None, "high": None, "blocks": blocks}


def _row_of(
    arms: tuple[str, str | None],
    sides: tuple[MeanDocument | None, MeanDocument | None],
    ratio: tuple[float | None, float | None, float | None],
    outcome: str,
    blocks: int,
) -> EffectRow:
    """``arms``: which, and to which; ``sides``: off and on; ``ratio``: with its bounds."""
    return {
        "place": "", "levels": {}, "arm": arms[0], "reference": arms[1], "p_holm": None, "blocks": blocks,
        "off": sides[0], "on": sides[1], "ratio": ratio[0], "low": ratio[1], "high": ratio[2], "outcome": outcome,
    }  # fmt: skip
