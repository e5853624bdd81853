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
from trifecta.contract.threats import EffectFound, EffectRow, MeanFound
from trifecta.design import plan
from trifecta.design.metrics import METRICS
from trifecta.design.model import Study
from trifecta.store import request_times

FACTOR = "retries"  # no factor of the study: what is done with its failures
OFF, ON = "counted", "hidden"


def effects(connection: duckdb.DuckDBPyConnection, study: Study) -> list[EffectFound]:
    """What hidden retries do in each cell of a run; nothing where no request failed."""
    made: list[EffectFound] = []
    for cell in plan.cells(study):
        limits = (study.workload.request_timeout_ns, study.workload.connect_timeout_ns)
        made += of_blocks(by_block(request_times.of_cell(connection, cell.key, *limits)), study, cell.key)
    return made


def of_blocks(blocks: Sequence[Block], study: Study, cell: str = "") -> list[EffectFound]:
    """The success rates, and the mean time with and without, of each protocol and of their ratio."""
    arms = plan.levels_of(study)
    if not failures(blocks):
        return []
    base = study.baseline.level
    pairs = [*((arm, None) for arm in arms), *((arm, base) for arm in arms if arm != base)]
    confidence = 1 - (1 - study.confidence) / len(pairs)  # they hold together (Bonferroni)
    rows: list[EffectRow] = []
    for arm, reference in pairs:
        found = change(blocks, arm, reference, retries_hidden(), NO_NOISE_FLOOR, seed=study.seed, confidence=confidence)
        if found is not None:
            rows.append(_row(arm, reference, _mean(blocks, arm, reference), found, study.margin))
    head: EffectFound = {
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


def _of(name: str) -> EffectFound:
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


def _row(arm: str, reference: str | None, off: float | None, found: Change, margin: float) -> EffectRow:
    outcome = "undecided"
    if found.low is not None and found.high is not None:
        if found.low > 1 or found.high < 1:
            outcome = "more" if found.low > 1 else "less"
        elif found.low >= 1 / (1 + margin) and found.high <= 1 + margin:
            outcome = "same"
    on = None if off is None else off * found.ratio
    sides = _value(off, found.blocks), _value(on, found.blocks)
    return _row_of((arm, reference), sides, (found.ratio, found.low, found.high), outcome, found.blocks)


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


def _value(value: float | None, blocks: int) -> MeanFound | None:
    return None if value is None else {"value": value, "low": None, "high": None, "blocks": blocks}


def _row_of(
    arms: tuple[str, str | None],
    sides: tuple[MeanFound | None, MeanFound | None],
    ratio: tuple[float | None, float | None, float | None],
    outcome: str,
    blocks: int,
) -> EffectRow:
    """``arms``: which, and to which; ``sides``: off and on; ``ratio``: with its bounds."""
    return {
        "place": "", "levels": {}, "arm": arms[0], "reference": arms[1], "p_holm": None, "blocks": blocks,
        "off": sides[0], "on": sides[1], "ratio": ratio[0], "low": ratio[1], "high": ratio[2], "outcome": outcome,
    }  # fmt: skip
