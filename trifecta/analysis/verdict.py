"""Verdicts: every comparison of every cell, judged against the margin and as one family."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from trifecta.analysis import modes, node_faults
from trifecta.analysis.confidence import (
    Interval,
    Judgement,
    confidence_sequence,
    judge,
    log_e_above,
    log_e_below,
    log_e_within,
)
from trifecta.analysis.estimate import PairBlocks, Row, arm_pairs, by_cell, node_of, pair_blocks, ratio_estimate
from trifecta.analysis.family import claims, level_of, log_e_to_claim
from trifecta.analysis.forecast import (
    FAR_FROM,
    OUT_OF_REACH,
    Forecast,
    at_least,
    blocks_to_difference,
    blocks_to_same,
    earliest,
    within_horizon,
)
from trifecta.analysis.mean_ratio import mean_ratio
from trifecta.analysis.modes import MinorityMode
from trifecta.analysis.nested import Nested, nested
from trifecta.analysis.noise import NoiseFloor, margin_in_force, noise_floors
from trifecta.analysis.signed_rank import FixedAnalysis, fixed_analysis
from trifecta.analysis.success import log_e_unseen, with_unseen
from trifecta.design import plan, quantity
from trifecta.design.arms import arm_words, node_words
from trifecta.design.metric import Metric
from trifecta.design.metrics import METRICS
from trifecta.design.model import AA_SUFFIX, Cell, Study, Verdict, VerdictKind
from trifecta.design.phrases import numbered

Claim = Literal["faster", "slower", "same"]
SUCCESS = "success_rate"

# A mode that a fifth of the trials take or more would have shown in so many blocks: 0.8 ** 14 < 5 %.
SAME_BLOCKS = 14


@dataclass(frozen=True)
class _Evidence:
    """What one comparison rests on; ``best`` is the claim it comes closest to, with the log e-value for it.

    ``hindrance`` is why that claim cannot be made, however strong the evidence; empty where it can. ``among`` are the
    blocks by node; None where they are of one.
    """

    pair: PairBlocks
    judged: Judgement
    floor: NoiseFloor | None
    apart: list[str]
    best: Claim
    log_e: float
    hindrance: str
    among: Nested | None = None

    @property
    def eligible(self) -> float:
        """The log e-value with which it enters the family."""
        return -math.inf if self.hindrance else self.log_e


@dataclass(frozen=True)
class _Family:
    """All comparisons of the study: how many, how many can be claimed, how many could be each by itself."""

    comparisons: int
    claimed: int
    likely: int

    def next_needs(self, alpha: float) -> float:
        """The log e-value that one more claim needs, once those that are likely are claimed, too."""
        return log_e_to_claim(self.comparisons, min(max(self.claimed + 1, self.likely), self.comparisons), alpha)


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
    and which the planner does not need. Where the rows are of two nodes of a cluster or more, blocks are nested in
    nodes (`nested`), and nodes whose baseline differs from itself do not count (`node_faults`).
    """
    chosen = METRICS[metric or study.metric]
    places = plan.cells(study) if cells is None else cells
    keys = [cell.key for cell in places]
    nodes = {node_of(row) for row in rows}
    out = node_faults.left_out(study, rows) if len(nodes) > 1 else {}
    if out:
        rows = [row for row in rows if node_of(row) not in out]
    grouped = by_cell(rows)
    floors = noise_floors(study, rows, keys, chosen.name)
    evidence = []
    for cell in places:
        here = grouped.get(cell.key, [])
        apart = modes.minority_modes(here, chosen, study.margin)
        for arm, reference in arm_pairs(study):
            pair = pair_blocks(cell.key, here, chosen, arm=arm, reference=reference, baseline=study.baseline.level)
            modes_of_pair = _modes_of(study, cell, chosen, apart=apart, rows=here, pair=(arm, reference))
            one = _weigh(study, chosen, pair, floors.get(cell.key), modes_of_pair)
            evidence.append(_of_nodes(study, one) if len(nodes) > 1 else one)
    family = _family(study, evidence)
    judged = [
        _judge(
            study,
            chosen,
            one,
            family=family,
            analysis=fixed_analysis(one.pair.logs, study.confidence) if fixed and one.among is None else None,
        )
        for one in evidence
    ]
    if len(nodes) < 2:
        return judged
    return [_with_nodes(study, verdict, one.among, out) for verdict, one in zip(judged, evidence, strict=True)]


def _family(study: Study, evidence: Sequence[_Evidence]) -> _Family:
    alpha = 1 - study.confidence
    entered = np.array([one.eligible for one in evidence])
    likely = int((entered >= log_e_to_claim(1, 1, alpha) - 1e-9).sum())
    return _Family(len(evidence), claims(entered, alpha), likely)


def _modes_of(
    study: Study,
    cell: Cell,
    metric: Metric,
    *,
    apart: dict[str, MinorityMode],
    rows: Sequence[Row],
    pair: tuple[str, str],
) -> list[tuple[MinorityMode, str]]:
    """The trials of the pair that stand apart, with a sentence each; the baseline's two runs are one arm."""
    arm_modes = []
    for arm in pair:
        path = study.paths.get(str(plan.treatment(study, cell, arm).levels.get("path", "")))
        rtt_ns = None if path is None else path.rtt_ns
        second = arm + AA_SUFFIX
        counted = sum(str(row["arm"]) in (arm, second) and bool(row.get("valid")) for row in rows)
        one = apart.get(arm)
        if arm == study.baseline.level:
            known = (apart.get(arm), apart.get(second))
            trials = sum(item.trials for item in known if item is not None)
            one = modes.merged(apart, arm, second, counted - trials)
        if one is not None:
            arm_modes.append((one, one.words(arm_words(study.compare, arm), metric, rtt_ns)))
    return arm_modes


def interval_alone(metric: Metric, pair: PairBlocks, confidence: float) -> Interval:
    """The interval of one comparison at this level: the confidence sequence over its blocks, of success rates with what
    so few trials may have missed, of blocks on several nodes with what so few nodes may have missed.
    """
    level = 1 - confidence
    interval = confidence_sequence(pair.logs, level)
    if metric.name == SUCCESS:
        interval = with_unseen(interval, pair.logs, confidence)
    among = nested(pair.logs, pair.nodes)
    return interval if among is None else among.interval(interval, level)


def _weigh(
    study: Study, metric: Metric, pair: PairBlocks, floor: NoiseFloor | None, apart: list[tuple[MinorityMode, str]]
) -> _Evidence:
    alpha = 1 - study.confidence
    among = nested(pair.logs, pair.nodes)
    judged = judge(pair.logs, alpha) if among is None else among.judged(alpha)
    judged = replace(judged, interval=interval_alone(metric, pair, study.confidence))
    log_margin = math.log1p(study.margin)
    larger = judged.log_e_above >= judged.log_e_below
    best: Claim = "faster" if larger != metric.lower_is_better else "slower"
    swallowed = _swallowed(floor)
    log_e = _beyond(pair, among, swallowed, larger=larger) if swallowed else max(judged.log_e_above, judged.log_e_below)
    hindrance = _below_the_floor(judged.interval, floor)
    if not judged.interval.excludes_zero():
        same = log_e_within(pair.logs, log_margin) if among is None else among.log_e(-log_margin, log_margin)
        if same > log_e:
            best, log_e = "same", same
            hindrance = _not_same(study, pair, floor, apart)
            log_e = min(log_e, log_e_unseen(pair.logs, log_margin)) if metric.name == SUCCESS else log_e
            if metric.name == SUCCESS and not hindrance and not judged.interval.within(log_margin):
                limit = quantity.format_ratio(study.margin)
                hindrance = f"so few trials ({pair.blocks}) could have missed failures beyond {limit}"
    return _Evidence(pair, judged, floor, [text for _, text in apart], best, log_e, hindrance, among)


def _of_nodes(study: Study, evidence: _Evidence) -> _Evidence:
    """What is left of the evidence where any one node is left out: a node by itself must not decide."""
    needed = math.log(2 / (1 - study.confidence)) - 1e-9  # no claim is made with less, in whatever family
    if evidence.log_e < needed or not evidence.pair.nodes:
        return evidence
    if evidence.among is None:
        only = node_words(evidence.pair.nodes[0])
        return replace(
            evidence, hindrance=evidence.hindrance or f"all of its blocks are of {only}: a node alone does not decide"
        )
    if evidence.best == "same":
        least, node = evidence.among.weakest(-math.log1p(study.margin), math.log1p(study.margin))
    elif evidence.judged.log_e_above >= evidence.judged.log_e_below:
        least, node = evidence.among.weakest(low=_swallowed(evidence.floor))
    else:
        least, node = evidence.among.weakest(high=-_swallowed(evidence.floor))
    sentence = "" if least >= needed else f"without {node_words(node)} it is undecided: a node alone does not decide"
    return replace(evidence, log_e=min(evidence.log_e, least), hindrance=evidence.hindrance or sentence)


def _with_nodes(study: Study, verdict: Verdict, among: Nested | None, out: Mapping[str, str]) -> Verdict:
    """The verdict with what is known of its nodes, and of those that do not count."""
    spread = None if among is None else among.spread(study.confidence)
    notes = [verdict.reason if verdict.blocks or not out else "no usable block on a node that agrees with itself"]
    if among is not None:
        notes.append(among.words(study.confidence))
    notes += [f"{node_words(node)} does not count, because {why}" for node, why in out.items()]
    return replace(
        verdict,
        reason="; ".join(note for note in notes if note),
        nodes=len(among.names) if among is not None else min(1, verdict.blocks),
        node_sd=spread.value if spread else None,
        node_sd_low=spread.low if spread else None,
        node_sd_high=spread.high if spread else None,
        left_out_nodes_json=node_faults.as_json(out) if out else None,
    )


def _swallowed(floor: NoiseFloor | None) -> float:
    """Up to which log ratio a difference is no claim: the noise floor of a baseline that differs from itself."""
    return math.log1p(floor.floor) if floor is not None and floor.biased and floor.floor is not None else 0.0


def _beyond(pair: PairBlocks, among: Nested | None, edge: float, *, larger: bool) -> float:
    """Log e-value of "the median log ratio is at most ``edge``", or of its like on the other side of 0."""
    low, high = (edge, None) if larger else (None, -edge)
    if among is not None:
        return among.log_e(low, high)
    return float((log_e_above(pair.logs, np.array([edge])) if larger else log_e_below(pair.logs, np.array([-edge])))[0])


def _below_the_floor(interval: Interval, floor: NoiseFloor | None) -> str:
    """A baseline that differs from itself swallows differences of that size."""
    if floor is None or not floor.biased:
        return ""
    larger = interval.low is not None and interval.low > 0
    nearest = interval.low if larger else interval.high
    if floor.floor is not None and abs(nearest or 0.0) > math.log1p(floor.floor):
        return ""
    return f"the baseline differs from itself here: a difference must exceed the noise floor of {_floor_text(floor)}"


def _not_resolved(study: Study, floor: NoiseFloor | None) -> str:
    """Why a lab may call nothing the same within the margin of a study."""
    known = floor is not None and floor.floor is not None
    if floor is not None and floor.biased:
        how_much = f"by up to {_floor_text(floor)}" if known else "by how much is not known"
        return f"the baseline differs from itself here, {how_much}"
    seen = "no difference seen, but the smallest that this lab could have seen here is"
    return (
        f"{seen} {_floor_text(floor)}, above the margin of {quantity.format_ratio(study.margin)}"
        if known
        else f"{seen} not known yet"
    )


def _not_same(study: Study, pair: PairBlocks, floor: NoiseFloor | None, apart: list[tuple[MinorityMode, str]]) -> str:
    """Why the arms may not be called the same, though their medians lie within the margin."""
    _, allowed = margin_in_force(study.margin, floor)
    if not allowed:
        return _not_resolved(study, floor)
    agree = f"the medians agree within {quantity.format_ratio(study.margin)}"
    common = [text for one, text in apart if not one.rare]
    if common:
        return f"{agree}, but {' and '.join(common)}, which a median hides"
    average = mean_ratio(pair.log_ratios(), 1 - study.confidence)
    if average is None or abs(math.log(average.ratio)) > math.log1p(study.margin):
        return f"{agree}, but the means do not"
    if pair.blocks < SAME_BLOCKS:
        return (
            f"{agree}, but {pair.blocks} blocks could have missed a mode of a fifth of the trials: {SAME_BLOCKS} would "
            "show it"
        )
    return ""


def _judge(
    study: Study,
    metric: Metric,
    evidence: _Evidence,
    *,
    family: _Family,
    analysis: FixedAnalysis | None,
) -> Verdict:
    claimed, total, alpha = family.claimed, family.comparisons, 1 - study.confidence
    pair, interval, floor = evidence.pair, evidence.judged.interval, evidence.floor
    holds = claimed > 0 and evidence.eligible >= log_e_to_claim(total, claimed, alpha) - 1e-9
    kind: VerdictKind = evidence.best if holds else "undecided"
    level = level_of(total, claimed if holds else claimed + 1, alpha)
    beside = confidence_sequence(pair.logs, level)
    if metric.name == SUCCESS:
        beside = with_unseen(beside, pair.logs, 1 - level)
    ratio = ratio_estimate(pair.logs)
    if evidence.among is not None:
        beside, ratio = evidence.among.interval(beside, level), _factor(evidence.among.middle)
    margin, _ = margin_in_force(study.margin, floor)
    likely = None if holds else _likely(evidence, study)
    needed = OUT_OF_REACH if holds else _blocks_needed(study, evidence, family.next_needs(alpha))
    average = mean_ratio(pair.log_ratios(), alpha)
    if average and evidence.among is not None:  # its interval takes every block for one of its own
        average = replace(average, low=None, high=None)
    notes = [
        _reason(study, metric, evidence, kind=kind, likely=likely, total=total),
        *(evidence.apart if kind != "undecided" else []),
    ]
    if pair.censored:
        hold = "block holds" if pair.censored == 1 else "blocks hold"
        notes.append(f"{pair.censored} {hold} a trial without a finite value, counted as worse than every other")
    return Verdict(
        cell=pair.cell,
        metric=metric.name,
        arm=pair.arm,
        reference=pair.reference,
        verdict=kind,
        ratio=ratio,
        low=_factor(interval.low),
        high=_factor(interval.high),
        family_low=_factor(beside.low),
        family_high=_factor(beside.high),
        likely=likely,
        blocks=pair.blocks,
        margin=margin,
        noise_floor=None if floor is None else floor.floor,
        weather_floor=None if floor is None else floor.weather_floor,
        e_value=math.exp(min(evidence.judged.log_e, 700.0)),
        blocks_needed=within_horizon(needed.middle, pair.blocks),
        blocks_needed_low=_whole_blocks(needed.low, pair.blocks),
        blocks_needed_high=_whole_blocks(needed.high, pair.blocks),
        mean_ratio=average.ratio if average else None,
        mean_low=average.low if average else None,
        mean_high=average.high if average else None,
        modes="; ".join(evidence.apart),
        fixed_ratio=analysis.ratio if analysis else None,
        fixed_low=analysis.low if analysis else None,
        fixed_high=analysis.high if analysis else None,
        fixed_p=analysis.p if analysis else None,
        invalid_trials=pair.invalid_trials,
        reason="; ".join(note for note in notes if note),
    )


def _factor(log_end: float | None) -> float | None:
    return None if log_end is None else math.exp(log_end)


def _whole_blocks(needed: float, blocks: int) -> int | None:
    """An end of the range of a forecast; None where it is out of reach, which nothing is in its first blocks."""
    if blocks < FAR_FROM and math.isfinite(needed) and needed < 10_000:
        return max(blocks + 1, math.ceil(needed))
    return within_horizon(needed, blocks)


def _likely(evidence: _Evidence, study: Study) -> Claim | None:
    """What the comparison would be by itself, were it the only one asked."""
    interval = evidence.judged.interval
    if interval.excludes_zero() and evidence.best != "same" and not evidence.hindrance:
        return evidence.best
    if evidence.best == "same" and interval.within(math.log1p(study.margin)):
        pending = not evidence.hindrance or evidence.hindrance.endswith("would show it")
        return "same" if pending else None
    return None


def _reason(
    study: Study, metric: Metric, evidence: _Evidence, *, kind: VerdictKind, likely: Claim | None, total: int
) -> str:
    """The verdict of one comparison, in one sentence."""
    pair, interval = evidence.pair, evidence.judged.interval
    reference = arm_words(study.compare, pair.reference)
    among = f", among {total} comparisons too" if total > 1 else ""
    if kind in ("faster", "slower"):
        side = "above" if interval.low is not None and interval.low > 0 else "below"
        return f"the whole interval of the ratio of {metric.label} lies {side} 1{among}"
    if kind == "same":
        return f"the whole interval lies within {quantity.format_ratio(study.margin)} of {reference}{among}"
    biased = evidence.floor is not None and evidence.floor.biased
    within = interval.within(math.log1p(study.margin))
    hindrance = ""
    if biased or within or interval.excludes_zero() or metric.name == SUCCESS:
        hindrance = evidence.hindrance
    if not hindrance and likely is None and evidence.among is not None:
        hindrance = evidence.among.hindrance(1 - study.confidence)
    if hindrance:
        return hindrance
    if likely is not None:
        return f"by itself it would be decided, but among {total} comparisons the evidence is not enough yet"
    if interval.low is None or interval.high is None:
        return _why_no_interval(pair)
    return f"the interval holds 1 and reaches beyond the margin of {quantity.format_ratio(study.margin)}"


def _blocks_needed(study: Study, evidence: _Evidence, threshold: float) -> Forecast:
    """Blocks that would decide, if further ones were like those seen: by a difference, or by fitting the margin."""
    logs, floor = evidence.pair.logs, evidence.floor
    if evidence.among is not None:
        of_blocks, of_both = judge(logs, 1 - study.confidence), evidence.judged
        enough = max(of_blocks.log_e_above, of_blocks.log_e_below) >= threshold
        if enough and max(of_both.log_e_above, of_both.log_e_below) < threshold:
            return OUT_OF_REACH  # what is missing is not blocks but nodes
    same = at_least(
        blocks_to_same(logs, math.log1p(study.margin), threshold),
        max(SAME_BLOCKS, math.inf if floor is None else floor.blocks_to_margin),
    )
    if evidence.apart:
        same = OUT_OF_REACH
    return earliest(blocks_to_difference(logs, threshold), same)


def _why_no_interval(pair: PairBlocks) -> str:
    if pair.blocks:
        are = "block is" if pair.blocks == 1 else "blocks are"
        return f"{pair.blocks} usable {are} too few for an interval"
    if pair.invalid_trials:
        return f"no usable block: {numbered(pair.invalid_trials, 'trial')} failed a check"
    return "no block holds a value of both" if pair.incomplete_blocks else "no block has been run yet"


def _floor_text(floor: NoiseFloor | None) -> str:
    return "unknown size" if floor is None or floor.floor is None else f"{100 * floor.floor:.1f} %"
