"""Verdicts: every comparison of every cell, judged against the margin and as one family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trifecta.analysis.confidence import Interval, judge
from trifecta.analysis.estimate import (
    METRICS,
    Metric,
    PairBlocks,
    Row,
    arm_pairs,
    by_cell,
    pair_blocks,
    ratio_estimate,
)
from trifecta.analysis.family import adjusted_log_e, log_e_to_claim
from trifecta.analysis.fixed import FixedAnalysis, fixed_analysis, holm
from trifecta.analysis.forecast import blocks_to_difference, blocks_to_fit, within_horizon
from trifecta.analysis.noise import NoiseFloor, margin_in_force, noise_floors
from trifecta.design import plan
from trifecta.design.model import PROTOCOL_NAMES, Cell, Study, Verdict, VerdictKind


@dataclass(frozen=True)
class _Evidence:
    """What one comparison rests on."""

    pair: PairBlocks
    interval: Interval
    log_e: float
    claimed: bool
    log_e_to_claim: float
    floor: NoiseFloor | None


def verdicts(
    study: Study,
    rows: Sequence[Row],
    cells: Sequence[Cell] | None = None,
    metric: str | None = None,
    fixed: bool = True,
) -> list[Verdict]:
    """Judge every comparison of the study from the rows of ``trials`` finished so far.

    ``cells`` are the cells of the study's plan that this run can do (default: all of the plan); it must not change
    during a run, because it is the family of claims. ``fixed`` adds the fixed-size analysis, which takes longer
    and which the planner does not need.
    """
    chosen = METRICS[metric or study.metric]
    keys = [cell.key for cell in (plan.cells(study) if cells is None else cells)]
    alpha = 1 - study.confidence
    grouped = by_cell(rows)
    baseline = study.baseline.protocol
    pairs = [
        pair_blocks(key, grouped.get(key, []), chosen, arm=arm, reference=reference, baseline=baseline)
        for key in keys
        for arm, reference in arm_pairs(study)
    ]
    floors = noise_floors(study, rows, keys, chosen.name)
    judged = [judge(pair.logs, alpha) for pair in pairs]
    log_e = np.array([judgement.log_e for judgement in judged])
    claims = adjusted_log_e(log_e) >= math.log(1 / alpha)
    analyses: list[FixedAnalysis | None] = [
        fixed_analysis(pair.logs, study.confidence, study.seed) if fixed else None for pair in pairs
    ]
    p_holm = holm([analysis.p if analysis else None for analysis in analyses])
    results = []
    for i, pair in enumerate(pairs):
        evidence = _Evidence(
            pair=pair,
            interval=judged[i].interval,
            log_e=float(log_e[i]),
            claimed=bool(claims[i]),
            log_e_to_claim=log_e_to_claim(log_e, i, alpha),
            floor=floors.get(pair.cell),
        )
        results.append(_judge(study, chosen, evidence, analyses[i], p_holm[i]))
    return results


def _judge(
    study: Study, metric: Metric, evidence: _Evidence, analysis: FixedAnalysis | None, p_holm: float | None
) -> Verdict:
    pair, interval, floor = evidence.pair, evidence.interval, evidence.floor
    margin, _ = margin_in_force(study.margin, floor)
    kind, reason = _decide(metric, evidence, study.margin)
    needed = None
    if kind == "undecided":
        needed = _blocks_needed(study, evidence)
    notes = [reason]
    if pair.censored:
        notes.append(f"{pair.censored} blocks hold a trial without a finite value, counted as worse than every other")
    return Verdict(
        cell=pair.cell,
        metric=metric.name,
        arm=pair.arm,
        reference=pair.reference,
        verdict=kind,
        ratio=ratio_estimate(pair.logs),
        low=None if interval.low is None else math.exp(interval.low),
        high=None if interval.high is None else math.exp(interval.high),
        blocks=pair.blocks,
        margin=margin,
        noise_floor=None if floor is None else floor.floor,
        e_value=math.exp(min(evidence.log_e, 700.0)),
        blocks_needed=needed,
        fixed_ratio=analysis.ratio if analysis else None,
        fixed_low=analysis.low if analysis else None,
        fixed_high=analysis.high if analysis else None,
        fixed_p=analysis.p if analysis else None,
        fixed_p_holm=p_holm,
        invalid_trials=pair.invalid_trials,
        reason="; ".join(notes),
    )


def _decide(metric: Metric, evidence: _Evidence, study_margin: float) -> tuple[VerdictKind, str]:
    """The verdict of one comparison and why, in one sentence."""
    pair, interval, floor = evidence.pair, evidence.interval, evidence.floor
    reference = PROTOCOL_NAMES.get(pair.reference, pair.reference)
    if interval.excludes_zero():
        return _difference(metric, evidence)
    if interval.low is None or interval.high is None:
        return "undecided", _why_no_interval(pair, interval)
    margin, same_allowed = margin_in_force(study_margin, floor)
    if not interval.within(math.log1p(margin)):
        return "undecided", f"the interval holds 1 and reaches beyond the margin of {margin:.1%}"
    if not same_allowed and floor is not None and floor.biased:
        return "undecided", f"the baseline differs from itself here, by up to {_floor_text(floor)}"
    if not same_allowed:
        return "undecided", (
            f"no difference seen, but the smallest that this lab could have seen here is {_floor_text(floor)}, "
            f"above the margin of {study_margin:.1%}"
        )
    return "same", f"the whole interval lies within {margin:.1%} of {reference}"


def _blocks_needed(study: Study, evidence: _Evidence) -> int | None:
    """Blocks that would decide, if further ones were like those seen: by a difference, or by fitting the margin."""
    logs, floor = evidence.pair.logs, evidence.floor
    same = max(
        blocks_to_fit(logs, math.log1p(study.margin), 1 - study.confidence),
        math.inf if floor is None else floor.blocks_to_margin,
    )
    return within_horizon(min(blocks_to_difference(logs, evidence.log_e_to_claim), same), len(logs))


def _why_no_interval(pair: PairBlocks, interval: Interval) -> str:
    if interval.contradictory:
        return "the blocks contradict each other: no constant ratio fits, so the effect changed during the run"
    if pair.blocks:
        are = "block is" if pair.blocks == 1 else "blocks are"
        return f"{pair.blocks} usable {are} too few for an interval"
    if pair.invalid_trials:
        return f"no usable block: {pair.invalid_trials} trials failed a check"
    return "no block holds a value of both" if pair.incomplete_blocks else "no block has been run yet"


def _difference(metric: Metric, evidence: _Evidence) -> tuple[VerdictKind, str]:
    interval, floor = evidence.interval, evidence.floor
    larger = interval.low is not None and interval.low > 0
    nearest = interval.low if larger else interval.high
    if not evidence.claimed:
        return "undecided", (
            f"the interval excludes 1, but among all comparisons of the study the evidence is not enough yet "
            f"(e-value {math.exp(min(evidence.log_e, 700.0)):.3g} of {math.exp(evidence.log_e_to_claim):.3g} needed)"
        )
    if floor is not None and floor.biased and (floor.floor is None or abs(nearest or 0.0) <= math.log1p(floor.floor)):
        return "undecided", (
            f"the baseline differs from itself here: a difference must exceed the noise floor of {_floor_text(floor)}"
        )
    faster = larger != metric.lower_is_better
    word: VerdictKind = "faster" if faster else "slower"
    side = "above" if larger else "below"
    return word, f"the whole interval of the ratio of {metric.label} lies {side} 1"


def _floor_text(floor: NoiseFloor | None) -> str:
    return "unknown size" if floor is None or floor.floor is None else f"{floor.floor:.1%}"
